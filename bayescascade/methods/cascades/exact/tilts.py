"""Passes with one number a box for the leaf model, however many leaves trees have.

Of a tree with K leaves the density is ``w_K exp(sum_l g_l)``: ``ln w_K`` is `Root.log_weights`,
and ``g_l`` what leaf l is worth. A pass in which every leaf counts ``exp(s)`` times more, a *tilt*,
finds ``G(s) = sum_K S_K exp(s K)``, where ``S_K`` sums over the trees of K leaves, or the best
tree's ``U(s) = max_T sum_l (g_l + s)``, with one entry a box. A few tilts tell the rest:

* **The most probable tree.** The best K leaves are worth at most ``H_K = min_s (U(s) - s K)``, so
  that no tree has more than ``max_K (ln w_K + H_K)``. The next s is the slope between the known
  neighbors of the K where that is largest: it finds a better tree there, or that there is none on
  the upper hull of ``max_(K leaves) sum g``. What then remains between bound and best tree is the
  gap: 0 unless K lies inside an edge of the hull.
* **The sum over all trees**, ``Z = sum_K w_K S_K``: ``w_K`` is smooth in K, and by least squares
  nearly ``sum_i c_i exp(s_i K)`` for a few s_i, so that ``Z`` is nearly ``sum_i c_i G(s_i)``. No
  term is negative: ``S_K <= min_s G(s) exp(-s K)``, and the error is at most ``sum_K |w_K - sum_i
  c_i exp(s_i K)| min_s G(s) exp(-s K)``.
* **Draws.** With no c_i negative, a tree drawn from tilt i, chosen in proportion to ``c_i G(s_i)``,
  is accepted with a probability in proportion to ``w_K / sum_i c_i exp(s_i K)``, which makes draws
  independent and exact, but for numbers of leaves that come to less than `NEGLIGIBLE` together.

K ends at the number of cells. Where that is too large a number to go through, ``w_(K+1) / w_K <=
rate / (K + 1)`` bounds the rest, as in `tail`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.special import logsumexp, softmax

from bayescascade.base.errors import TooLargeError
from bayescascade.methods.cascades.exact.lattice import Root
from bayescascade.methods.cascades.exact.pass_log import PassLog
from bayescascade.methods.cascades.exact.recursion import Boxes, Progress
from bayescascade.methods.cascades.exact.tree_choices import choose_trees
from bayescascade.methods.cascades.tree import Tree

__all__ = ["BestTree", "Sum", "Tilts"]

Floats = NDArray[np.float64]

NEGLIGIBLE = 1e-9
"""Share of the sum over all trees that draws may leave out."""

_SMALL = 1e-24  # share of a sum, that a fit does not look at
_MOST_LISTED = 1 << 16  # numbers of leaves
_ROUNDING = 1e-13  # of a log density, and of a sum of tilts: more than all that rounding does to it
_MOST_MAXIMA = 60  # passes; the hull is found in about two for every halving of the leaf counts
_PILOT, _TUNINGS = 100, 6  # trees drawn to find where leaf counts are probable, and how often
# Tilts that shift leaf counts by so many standard deviations, either way; of the first ones all are
# taken, of the others as many as it takes until the sum is precise, the most telling first:
_OFFSETS = (0.8, 1.6, 2.8, 4.6, 8.0)
_MORE_OFFSETS = (1.2, 2.2, 0.4, 3.6, 6.0, 0.2, 0.6, 1.0, 1.4, 1.9, 2.5, 5.2)
_MOST_OUTER, _MARGIN = 8, 5.0  # such tilts further out, and nats below what is negligible
_RATIOS = -9.0, 7.0  # logs, between which the shares of a mixture are told apart
_RARE, _GUESSED, _HOPELESS = 0.05, 0.5, 1_000  # draws accepted, and trees for one that is
_OF_MIXTURE = 5  # tilts nearest to the posterior's own numbers of leaves


@dataclass(frozen=True, slots=True)
class BestTree:
    """The most probable tree found.

    Parameters
    ----------
    tree : Tree
    log_density : float
        Less `Root.log_common`, nats.
    gap : float >= 0
        Nats by which any tree may have more; 0 if none has, up to 1e-13 of what leaves are worth.
    """

    tree: Tree
    log_density: float
    gap: float


@dataclass(frozen=True, slots=True)
class Sum:
    """The sum over all trees.

    Parameters
    ----------
    log_sum : float
        Less `Root.log_common`, nats.
    error : float >= 0
        Bound on the error of `log_sum`, nats.
    tilts : (m,) float64
        Of which the posterior is nearly a mixture.
    shares : (m,) float64 >= 0
        Of each in the mixture; they sum to one.
    log_accepted : (K,) float64 <= 0
        Log probability to accept a draw of so many leaves from the mixture; -inf where negligible.
    rate : float in [0, 1]
        How many are accepted, at least.
    """

    log_sum: float
    error: float
    tilts: Floats
    shares: Floats
    log_accepted: Floats
    rate: float


@dataclass
class Tilts:
    """Tilted passes over the boxes of a leaf model.

    Parameters
    ----------
    boxes : Boxes
        Of a plan with one entry a box.
    root : Root
    total : float
        Weight of all rows.
    most : int
        Leaves that no tree has more of.
    n_jobs : int or None
    progress : callable, optional
        Is told the share done of each pass.
    n_kept : int >= 0
        Trees to be drawn from each tilt near to the posterior as soon as it has been summed over:
        `draw` makes use of them, each once.
    log : PassLog
        What passes have found: those in it are not made again, unless to draw trees.

    Attributes
    ----------
    n_passes : int
        Passes made, those of the log included.
    """

    boxes: Boxes
    root: Root
    total: float
    most: int
    n_jobs: int | None = 1
    progress: Progress | None = None
    n_kept: int = 0
    log: PassLog = field(default_factory=PassLog)
    n_passes: int = 0
    _kept: dict[float, list[Tree]] = field(default_factory=dict)
    _later: dict[float, np.random.Generator] = field(default_factory=dict)
    _at: float | None = None  # the tilt of the boxes' sums
    _found: dict[int, tuple[float, Tree]] = field(default_factory=dict)
    _sums: dict[float, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.n_passes = self.log.n_passes
        self._k = np.arange(1, min(self.most, _MOST_LISTED) + 1)
        self._log_w = self.root.log_weights(self._k, self.total)
        self._hull = np.full(self._k.size, np.inf)  # of sums over leaves, by their number
        self._beyond = np.inf if self._k.size < self.most else -np.inf  # of more than are listed

    def _run(self, tilt: float, maximize: bool) -> float:
        """Make a pass; return its sum or maximum over all trees, nats."""
        self.boxes.run(maximize, tilt=tilt, progress=self.progress, n_jobs=self.n_jobs)
        self.n_passes += 1
        self._at = None if maximize else tilt
        return float(self.boxes.log_values()[0])

    def _best_of(self, tilt: float) -> tuple[float, Tree]:
        """Return what the best tree is worth, and that tree."""
        if tilt not in self.log.maxima:
            worth = self._run(tilt, maximize=True)
            (tree,) = choose_trees(self.boxes, [0], np.random.default_rng(0))  # nothing is drawn
            self.log.maxima[tilt] = worth, tree
            self.log.save()
        return self.log.maxima[tilt]

    def _sum_of(self, tilt: float, rng: np.random.Generator, n_drawn: int = 0) -> list[int]:
        """Sum over all trees; return the numbers of leaves of some draws."""
        own = _child(rng)  # the same whether this is done or remembered
        if tilt not in self.log.sums:
            log_sum = self._run(tilt, maximize=False)
            sizes = [tree.n_leaves for tree in choose_trees(self.boxes, [0] * n_drawn, own)]
            self.log.sums[tilt] = log_sum, sizes
            self.log.save()
        self._sums[tilt], sizes = self.log.sums[tilt]
        return sizes

    def _keep(self, tilt: float, rng: np.random.Generator) -> None:
        """Draw trees from the tilt summed over last; only when asked for if it was remembered."""
        own = _child(rng)
        if self._at == tilt:
            self._kept[tilt] = choose_trees(self.boxes, [0] * self.n_kept, own)
        else:
            self._later[tilt] = own

    def _slope(self, n_leaves: int) -> float:
        """Return how much less a leaf more weighs."""
        at = min(max(n_leaves, 1), self._k.size - 1)
        return float(self._log_w[at] - self._log_w[at - 1]) if at > 0 else 0.0

    # -- the most probable tree --------------------------------------------------------------------

    @property
    def best(self) -> BestTree | None:
        """The best tree found so far; None before the first pass."""
        if not self._found:
            return None
        log_density, n_leaves = max(
            (float(self._log_w[n - 1]) + v, n) for n, (v, _) in self._found.items()
        )
        bound = max(float((self._log_w + self._hull).max()), self._beyond)
        rounding = _ROUNDING * max(abs(v) for v, _ in self._found.values())
        gap = bound - log_density
        return BestTree(self._found[n_leaves][1], log_density, gap if gap > rounding else 0.0)

    def maximize(self, guess: int) -> BestTree:
        """Find the most probable tree, from a guess at its number of leaves."""
        tried: set[float] = set()
        tilt: float | None = self._slope(guess)
        while tilt is not None and len(tried) < _MOST_MAXIMA:
            tried.add(tilt)
            worth, tree = self._best_of(tilt)
            value = worth - tilt * tree.n_leaves
            if tree.n_leaves not in self._found or self._found[tree.n_leaves][0] < value:
                self._found[tree.n_leaves] = value, tree
            self._hull = np.minimum(self._hull, worth - tilt * self._k)
            last = float(self._k[-1])
            if np.log(self.root.model.rate / last) <= tilt:  # the bound falls from there on
                self._beyond = min(self._beyond, float(self._log_w[-1]) + worth - tilt * last)
            best = self.best
            assert best is not None
            if best.gap == 0.0:
                break
            tilt = self._next_tilt(1 + int(np.argmax(self._log_w + self._hull)), tried)
        assert best is not None
        return best

    def _next_tilt(self, n_leaves: int, tried: set[float]) -> float | None:
        """Return the slope at which the hull at a number of leaves is known better, or None."""
        found = self._found
        if n_leaves in found:
            return None  # the hull touches it: nothing is better there
        below = max((n for n in found if n < n_leaves), default=None)
        above = min((n for n in found if n > n_leaves), default=None)
        if below is None or above is None:  # outside what is known: go on by doubling steps
            step = 1.0 + max(tried) - min(tried)
            return max(tried) + step if above is None else min(tried) - step
        slope = (found[below][0] - found[above][0]) / (above - below)
        near = any(abs(slope - t) <= 1e-12 * max(1.0, abs(t)) for t in tried)
        return None if near else slope

    # -- the sum over all trees --------------------------------------------------------------------

    def add_up(self, guess: int, rng: np.random.Generator, precise: float) -> Sum:
        """Sum over all trees, from a guess at how many leaves are probable.

        Tilts are added until the error is below `precise`, nats, or there are as many as help.
        """
        tilt, spread = self._center(guess, rng)
        self._keep(tilt, rng)
        tilts = [tilt]
        for offset in _OFFSETS:
            for s in (tilt - offset / spread, tilt + offset / spread):
                self._sum_of(s, rng)
                if len(tilts) < _OF_MIXTURE:
                    self._keep(s, rng)
                tilts.append(s)
        log_sum, error = self._expand(tilts)
        if self._cover(tilt, self._at_least(log_sum, error), rng):
            log_sum, error = self._expand(tilts)
        for offset in _MORE_OFFSETS:
            if error < precise:
                break
            for s in (tilt - offset / spread, tilt + offset / spread):
                self._sum_of(s, rng)
                tilts.append(s)
            log_sum, error = self._expand(tilts)
        log_least = self._at_least(log_sum, error)
        few, rate = self._mixture(np.array(tilts[:_OF_MIXTURE]), log_least)
        if rate < _RARE:
            few, rate = self._mixture(np.array(list(self._sums)), log_least)
        return Sum(log_sum, error, *few, rate)

    def _at_least(self, log_sum: float, error: float) -> float:
        """Return the log of what all trees come to at least."""
        best = self.best
        return max(log_sum - error, -np.inf if best is None else best.log_density)

    def _center(self, guess: int, rng: np.random.Generator) -> tuple[float, float]:
        """Return the tilt whose trees have as many leaves as the posterior's, and their spread."""
        k, tilt, spread, move = self._k, self._slope(guess), 0.5, 0.0
        for _ in range(_TUNINGS):
            tilt += move
            sizes = np.array(self._sum_of(tilt, rng, _PILOT))
            mean, spread = float(sizes.mean()), max(float(sizes.std()), 0.5)
            shares = softmax(self._log_w - tilt * k - 0.5 * ((k - mean) / spread) ** 2)
            shift = (float(shares @ k) - mean) / spread
            if abs(shift) < 0.5:
                break
            move = float(np.clip(shift / spread, -2.0, 2.0))
        return tilt, spread

    def _expand(self, tilts: Sequence[float]) -> tuple[float, float]:
        """Return the sum by an expansion of the weights in some tilts, and a bound on its error.

        Of what the first tilt sums up, trees of K leaves have a share of at most ``exp(log_most)``;
        shares times ``w_K exp(-s_0 K)`` are wanted, and known times ``exp((s_i - s_0) K)``.
        """
        k, center = self._k, tilts[0]
        origin = self._sums[center]
        log_most = self._log_most() - origin + center * k
        log_ratio = self._log_w - center * k
        scale = float(np.max(log_most + log_ratio))
        wanted = np.exp(log_most + log_ratio - scale)
        shifts = np.array(tilts) - center
        log_sums = np.array([self._sums[s] - origin for s in tilts])
        known = np.exp(log_most + shifts[:, None] * k - log_sums[:, None])
        use = np.flatnonzero(np.maximum(wanted, known.max(axis=0)) > _SMALL)
        factors, *_ = np.linalg.lstsq(known[:, use].T, wanted[use], rcond=1e-15)
        share = float(factors.sum())
        error = float(np.abs(wanted - factors @ known).sum()) + _ROUNDING * np.abs(factors).sum()
        if k.size < self.most:
            error += self._error_beyond(shifts, factors, center, scale)
        if error >= share:
            return float(logsumexp(self._log_w + log_most)) + origin, np.inf
        return origin + scale + float(np.log(share)), float(-np.log1p(-error / share))

    def _cover(self, center: float, log_least: float, rng: np.random.Generator) -> bool:
        """Try tilts further out until what lies there is negligible; return whether any was.

        Where ``ln w_K`` is convex, a bound must come down on numbers of leaves far from probable.
        """
        for n_tried in range(_MOST_OUTER):
            tilts = np.array(sorted(self._sums))
            bounds = np.array([self._sums[s] - s * self._k for s in tilts])
            log_mass = self._log_w + bounds.min(axis=0) - log_least
            nearest = bounds.argmin(axis=0)
            for end in (0, tilts.size - 1):
                outside = np.flatnonzero(nearest == end)
                if outside.size == 0 or log_mass[outside].max() < np.log(NEGLIGIBLE) - _MARGIN:
                    continue
                slope = self._slope(int(self._k[outside[np.argmax(log_mass[outside])]]))
                further = 2 * tilts[end] - center
                self._sum_of(min(slope, further) if end == 0 else max(slope, further), rng)
                break
            else:
                return n_tried > 0
        return True

    def _log_most(self) -> Floats:
        """Return bounds on the logs of ``S_K``."""
        bounds: Floats = np.min([g - s * self._k for s, g in self._sums.items()], axis=0)
        return bounds

    def _error_beyond(self, shifts: Floats, factors: Floats, center: float, scale: float) -> float:
        """Return a bound on the error that trees of more leaves than are listed make."""
        last, outer = float(self._k[-1]), max(self._sums)
        log_ratio = np.log(self.root.model.rate / last) - outer  # of w_K S_K to the one before
        if log_ratio >= 0:
            return np.inf
        at_last = self._sums[outer] - outer * last  # log of S_K at most, and for more leaves less
        series = self._log_w[-1] + at_last - scale - self._sums[center] + log_ratio
        error = np.exp(series) / -np.expm1(log_ratio)
        for shift, factor in zip(shifts, factors, strict=True):
            s = center + shift
            ratio = np.exp(s - outer)
            share = (
                np.exp(at_last + s * last - self._sums[s]) * ratio / (1 - ratio) if s < outer else 1
            )
            error += abs(factor) * min(1.0, share)
        return float(error)

    def _mixture(
        self, tilts: Floats, log_least: float
    ) -> tuple[tuple[Floats, Floats, Floats], float]:
        """Return tilts, shares and log probabilities to accept, as of `Sum`, and how many are.

        Of a tree of K leaves the mixture's probability over the posterior's is ``sum_i a_i r_Ki``;
        a draw is accepted where the least of these over K is 1, and less where they are more. A
        linear program finds the shares that make the least the largest.
        """
        log_mass = self._log_w + self._log_most() - log_least  # of the posterior, at most
        order = np.argsort(log_mass)
        kept = np.sort(order[np.cumsum(np.exp(log_mass[order])) > NEGLIGIBLE])
        log_of = tilts[:, None] * self._k[kept] - np.array([[self._sums[s]] for s in tilts])
        log_ratios = log_of - self._log_w[kept] + log_least
        low, high = _RATIOS  # what is cut off would only add to the least
        ratios = np.where(log_ratios < low, 0.0, np.exp(np.minimum(log_ratios, high))).T
        least = linprog(
            np.append(np.zeros(tilts.size), -1.0),
            A_ub=np.column_stack([-ratios, np.ones(kept.size)]),
            b_ub=np.zeros(kept.size),
            A_eq=np.append(np.ones(tilts.size), 0.0)[None],
            b_eq=[1.0],
        )
        shares = np.ones(tilts.size) if least.x is None else np.maximum(least.x[:-1], 0.0)
        shares /= shares.sum()
        log_mixed = logsumexp(log_ratios, b=shares[:, None], axis=0)
        log_accepted = np.full(self._k.size, -np.inf)
        log_accepted[kept] = log_mixed.min() - log_mixed
        used = shares > 0
        return (tilts[used], shares[used], log_accepted), float(np.exp(log_mixed.min()))

    def draw(self, found: Sum, n: int, rng: np.random.Generator) -> list[Tree]:
        """Return independent draws from the posterior: of trees kept, then by a pass for each tilt.

        Raises TooLargeError if more than a thousand trees are drawn for each that is accepted.
        """
        drawn: list[Tree] = []
        rate, n_tried = max(found.rate, _GUESSED), 0
        while len(drawn) < n:
            wanted = int((n - len(drawn)) / rate * 1.1) + 10
            numbers = rng.multinomial(wanted, found.shares)
            trees: list[Tree] = []
            for tilt, number in zip(found.tilts.tolist(), numbers.tolist(), strict=True):
                if tilt in self._later:
                    self._run(tilt, maximize=False)
                    own = self._later.pop(tilt)
                    self._kept[tilt] = choose_trees(self.boxes, [0] * self.n_kept, own)
                kept = self._kept.get(tilt, [])
                trees += kept[:number]
                n_more = max(0, number - len(kept))
                del kept[:number]
                if n_more > 0:
                    self._run(tilt, maximize=False)
                    trees += choose_trees(self.boxes, [0] * n_more, rng)
            sizes = np.minimum([tree.n_leaves for tree in trees], self._k.size)
            log_accepted = found.log_accepted[sizes - 1]
            accepted = np.flatnonzero(np.log(rng.random(len(trees))) < log_accepted)
            drawn += [trees[i] for i in rng.permutation(accepted)]
            n_tried += len(trees)
            if n_tried > _HOPELESS * (1 + len(drawn)):
                few = f"more than {_HOPELESS:,} trees for each draw"
                raise TooLargeError(
                    f"draws from the posterior must be had from tilts, got {few}", few
                )
            rate = max(accepted.size / len(trees), 0.02)
        self._kept.clear()  # later draws depend on their own seed alone
        self._later.clear()
        return drawn[:n]


def _child(rng: np.random.Generator) -> np.random.Generator:
    return np.random.default_rng(rng.integers(1 << 63, size=2))
