"""The sum over all trees of a leaf model, by an expansion in tilts; `passes` defines the terms.

``Z = sum_K w_K S_K``, where ``w_K`` is smooth in K. A least-squares fit ``sum_i c_i exp(s_i K)``
with a few s_i approximates it, so ``Z`` is nearly ``sum_i c_i G(s_i)``. No term is negative, so
``S_K`` is at most ``M_K = min_s G(s) exp(-s K)``, and for any c_i the error is at most ``sum_K
abs(w_K - sum_i c_i exp(s_i K)) M_K``.

**Rounding.** A pass at s finds ``G(s)`` up to a factor between ``exp(-d)`` and ``exp(d)``.
`PassRounding` bounds d by the number of leaves, which is bounded by the slope of ln G to the next
tilt. So ``abs(c_i) G(s_i) (exp(d_i) - 1)`` is added to the error for each tilt, and tilts with a
large d are not used. ``ln M_K`` is raised by h K. The terms of the error are differences of
exponentials; each is raised by the error of the exponents times the sizes of both.

**Draws.** A tree drawn from tilt i, chosen with probability ``a_i``, is accepted in proportion to
``w_K / sum_i a_i exp(s_i K) / G(s_i)``, so draws are independent and exact, except that numbers of
leaves with a total share below `NEGLIGIBLE` are left out.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import optimize
from scipy.special import logsumexp, softmax

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import TooLargeError
from bayescascade.methods.density.trees.exact.passes import Passes
from bayescascade.methods.density.trees.exact.tail import next_place
from bayescascade.methods.density.trees.tree import Tree
from bayescascade.model.guard import EVALUATED, UNIT

_MOST_LOG = 600.0  # for a coefficient; its log is larger if unlisted leaf counts are probable
_SMALL = 1e-24  # share of a sum that a fit ignores
_CUTS = (1e-15, 1e-12, 1e-9)  # for singular values: with fewer of them, coefficients are smaller
_WELL_KNOWN = 1e-6  # nats: largest error of a tilt's sum
_PILOT, _TUNINGS = 100, 6  # trees drawn to find probable leaf counts, and rounds
# Tilts that shift leaf counts up or down by some standard deviations. The first ones are all used;
# the others are used until the sum is precise, the most useful first:
_OFFSETS = (0.8, 1.6, 2.8, 4.6, 8.0)
_MORE_OFFSETS = (1.2, 2.2, 0.4, 3.6, 6.0, 0.2, 0.6, 1.0, 1.4, 1.9, 2.5, 5.2)
_MOST_OUTER, _MOST_LOOKS = 16, 80  # tilts farther out, and numbers of leaves examined for them
_MARGIN, _LOWERED = 5.0, 0.5  # nats below negligible; nats by which a tilt must lower a bound
_OF_MIXTURE = 5  # tilts nearest to the posterior's numbers of leaves
_RARE = 0.05  # share of accepted draws; below, all tilts are mixed
_RATIOS = -9.0, 7.0  # range of logs in which a mixture's shares are optimized
_GUESSED, _HOPELESS = 0.5, 1_000  # guessed share of accepted draws; most trees for one accepted

NEGLIGIBLE = 1e-9
"""Share of the sum over all trees that draws may omit."""


@dataclass(frozen=True, slots=True)
class Mixture:
    """Tilts to draw from."""

    tilts: Floats  # (m,)
    shares: Floats  # (m,) >= 0: probability of each tilt
    log_accepted: Floats  # (K,) <= 0: log probability to accept, by leaves; -inf where negligible
    rate: float  # in [0, 1]: least probability that a draw is accepted


def mix(passes: Passes, tilts: Floats, log_least: float, log_most: Floats) -> Mixture:
    """Return the mixture of tilts with the largest acceptance rate, by a linear program.

    All draws are accepted for the K with the least ``sum_i a_i r_Ki``. tilts (m,) float64;
    log_least: lower bound on the log of the sum over all trees, nats; log_most (K,) float64: upper
    bounds on the log of the sum over trees of K leaves without ``w_K``, nats.
    """
    log_mass = passes.log_w + log_most - log_least  # upper bound on posterior probabilities
    order = np.argsort(log_mass)
    kept = np.sort(order[np.cumsum(np.exp(np.minimum(log_mass[order], 0.0))) > NEGLIGIBLE])
    if kept.size == 0:  # all probable trees have more leaves than are listed
        return Mixture(tilts[:1], np.ones(1), np.full(passes.k.size, -np.inf), 0.0)
    log_of = tilts[:, None] * passes.k[kept] - np.array([[passes.sums[s]] for s in tilts])
    log_ratios = log_of - passes.log_w[kept] + log_least
    low, high = _RATIOS  # clipping can only lower the least rate
    ratios = np.where(log_ratios < low, 0.0, np.exp(np.minimum(log_ratios, high))).T
    at_most = np.column_stack([-ratios, np.ones(kept.size)]), np.zeros(kept.size)
    sums_to_one = np.append(np.ones(tilts.size), 0.0)[None], [1.0]
    least = optimize.linprog(np.append(np.zeros(tilts.size), -1.0), *at_most, *sums_to_one)
    shares = np.ones(tilts.size) if least.x is None else np.maximum(least.x[:-1], 0.0)
    shares /= shares.sum()
    log_mixed = logsumexp(log_ratios, b=shares[:, None], axis=0)
    log_accepted = np.full(passes.k.size, -np.inf)
    log_accepted[kept] = log_mixed.min() - log_mixed
    used = shares > 0
    return Mixture(tilts[used], shares[used], log_accepted, float(np.exp(log_mixed.min())))


def draw(passes: Passes, mixture: Mixture, n: int, rng: np.random.Generator) -> list[Tree]:
    """Return draws, kept or by a pass a tilt; TooLargeError if under 1 in 1,000 is accepted."""
    try:
        return _drawn(passes, mixture, n, rng)
    finally:
        passes.drop_kept()


def _drawn(passes: Passes, mixture: Mixture, n: int, rng: np.random.Generator) -> list[Tree]:
    drawn: list[Tree] = []
    rate, n_tried = max(mixture.rate, _GUESSED), 0
    log_accepted_of = np.append(mixture.log_accepted, -np.inf)  # the last: unlisted numbers
    while len(drawn) < n:
        wanted = int((n - len(drawn)) / rate * 1.1) + 10
        numbers = rng.multinomial(wanted, mixture.shares)
        trees: list[Tree] = []
        for tilt, number in zip(mixture.tilts.tolist(), numbers.tolist(), strict=True):
            trees += passes.draws_of(tilt, number, rng)
        sizes = np.minimum([tree.n_leaves for tree in trees], passes.k.size + 1)
        log_accepted = log_accepted_of[sizes - 1]
        accepted = np.flatnonzero(np.log(rng.random(len(trees))) < log_accepted)
        drawn += [trees[i] for i in rng.permutation(accepted)]
        n_tried += len(trees)
        if n_tried > _HOPELESS * (1 + len(drawn)):
            few = f"more than {_HOPELESS:,} trees for each draw"
            raise TooLargeError(
                f"rejection sampling accepted fewer than 1 in {_HOPELESS:,} trees; use "
                'search="anneal+metropolis"',
                few,
            )
        rate = max(accepted.size / len(trees), 0.02)
    return drawn[:n]


@dataclass(frozen=True, slots=True)
class Sum:
    """The sum over all trees."""

    log_sum: float  # minus `Passes.log_common`, nats
    error: float  # bound on the error of `log_sum`, nats
    mixture: Mixture  # of tilts, for posterior draws


class Expansion:
    """The sum over trees by tilted passes, at least ``exp(log_least)``, without `log_common`."""

    def __init__(self, passes: Passes, log_least: float) -> None:
        self._passes, self._log_least = passes, log_least

    def add_up(self, guess: int, rng: np.random.Generator, precise: float) -> Sum:
        """Sum with more tilts until the error is below `precise`, nats, or they do not help."""
        passes = self._passes
        tilt, spread = self._center(guess, rng)
        passes.keep(tilt, rng)
        tilts = [tilt]
        for offset in _OFFSETS:
            for s in (tilt - offset / spread, tilt + offset / spread):
                passes.sum_of(s, rng)
                if len(tilts) < _OF_MIXTURE:
                    passes.keep(s, rng)
                tilts.append(s)
        log_sum, error = self.expanded(tilts)
        if self.cover(self._at_least(log_sum, error), rng):
            log_sum, error = self.expanded(tilts)
        for offset in _MORE_OFFSETS:
            if error < precise:
                break
            for s in (tilt - offset / spread, tilt + offset / spread):
                passes.sum_of(s, rng)
                tilts.append(s)
            log_sum, error = self.expanded(tilts)
        log_least, log_most = self._at_least(log_sum, error), self._log_most()
        mixture = mix(passes, np.array(tilts[:_OF_MIXTURE]), log_least, log_most)
        if mixture.rate < _RARE:
            mixture = mix(passes, np.array(list(passes.sums)), log_least, log_most)
        return Sum(log_sum, error, mixture)

    def _at_least(self, log_sum: float, error: float) -> float:
        """Return a lower bound on the log of the sum over all trees."""
        return max(log_sum - error, self._log_least)

    def _center(self, guess: int, rng: np.random.Generator) -> tuple[float, float]:
        """Return the tilt whose trees have as many leaves as the posterior's, and their spread."""
        passes = self._passes
        k, tilt, spread, move = passes.k, passes.slope(guess), 0.5, 0.0
        for _ in range(_TUNINGS):
            tilt += move
            sizes = np.array(passes.sum_of(tilt, rng, _PILOT))
            mean, spread = float(sizes.mean()), max(float(sizes.std()), 0.5)
            shares = softmax(passes.log_w - tilt * k - 0.5 * ((k - mean) / spread) ** 2)
            shift = (float(shares @ k) - mean) / spread
            if abs(shift) < 0.5:
                break
            move = float(np.clip(shift / spread, -2.0, 2.0))
        return tilt, spread

    def expanded(self, tilts: Sequence[float]) -> tuple[float, float]:
        """Return the sum by expanding the weights in some tilts, and a bound on its error.

        In the first tilt's sum, trees of K leaves have a share of at most ``exp(log_most)``. The
        wanted sum has these shares times ``w_K exp(-s_0 K)``, the known ones times ``exp((s_i -
        s_0) K)``.
        """
        off = self._roundings()
        known = [s for s in tilts if off[s] < _WELL_KNOWN] or list(tilts)[:1]
        # the rounding of the largest tilt is bounded only by the number of cells
        those = [known, [s for s in known if s < max(known)] or known]
        found = [self._fit(some, [off[s] for s in some], cut) for some in those for cut in _CUTS]
        return min(found, key=lambda point: point[1])

    def _fit(self, tilts: Sequence[float], off: Sequence[float], cut: float) -> tuple[float, float]:
        """Return the same as `expanded`, with all of these tilts, given their sums' errors."""

        def fitted(known: Floats, wanted: Floats, _scale: float) -> Floats:
            use = np.flatnonzero(np.maximum(wanted, known.max(axis=0)) > _SMALL)
            factors, *_ = np.linalg.lstsq(known[:, use].T, wanted[use], rcond=cut)
            return np.asarray(factors)

        return self._bounded(tilts, off, fitted)

    def given(self, tilts: Sequence[float], log_c: Floats) -> tuple[float, float]:
        """Return the sum for given logs of coefficients, and a bound on its error."""
        off, sums = self._roundings(), self._passes.sums
        log_sums = np.array([sums[s] for s in tilts]) - sums[tilts[0]]

        def those(_known: Floats, _wanted: Floats, scale: float) -> Floats:
            return np.exp(np.minimum(log_c + log_sums - scale, _MOST_LOG))

        return self._bounded(tilts, [off[s] for s in tilts], those)

    def _bounded(
        self,
        tilts: Sequence[float],
        off: Sequence[float],
        factors_of: Callable[[Floats, Floats, float], Floats],
    ) -> tuple[float, float]:
        """Return the sum of coefficients times tilts' sums, and a bound on its error.

        ``factors_of(known, wanted, scale)`` returns (m,) such that ``factors @ known`` is near
        `wanted`; known (m, n), wanted (n,) less `scale`, nats.
        """
        passes, k = self._passes, self._passes.k
        center, origin = tilts[0], passes.sums[tilts[0]]
        log_most = self._log_most() - origin + center * k
        log_ratio = passes.log_w - center * k
        scale = float(np.max(log_most + log_ratio))
        wanted = np.exp(log_most + log_ratio - scale)
        shifts = np.array(tilts) - center
        log_sums = np.array([passes.sums[s] - origin for s in tilts])
        known = np.exp(log_most + shifts[:, None] * k - log_sums[:, None])
        lost = 2 * np.max([passes.lost(s, passes.sums[s]) for s in tilts], axis=0)
        factors = factors_of(known, wanted, scale)
        share, sizes = float(factors.sum()), np.abs(factors)
        error = float(np.abs(wanted - factors @ known).sum())
        with np.errstate(over="ignore", invalid="ignore"):
            error += float(np.expm1(lost) @ (wanted + sizes @ known))
        error += float(sizes @ np.expm1(off)) + UNIT * sizes.size * float(sizes.sum())
        if passes.has_more:
            error += self._error_beyond(tilts, factors, center, scale)
        if not error < share:  # or NaN
            return float(logsumexp(passes.log_w + log_most - center * k)) + origin, np.inf
        rounding = EVALUATED * UNIT * (abs(origin) + abs(scale))
        return origin + scale + float(np.log(share)), float(-np.log1p(-error / share)) + rounding

    def _roundings(self) -> dict[float, float]:
        """Return a bound on the error of the log of each tilt's sum, nats."""
        sums, bounds = self._passes.sums, self._passes.bounds
        ascending, found = sorted(sums), {}
        for tilt, larger in zip(ascending, [*ascending[1:], np.inf], strict=True):
            slope = bounds.most
            if larger < np.inf and larger - tilt > 4 * bounds.of_sums:
                lost = EVALUATED * UNIT * (abs(sums[tilt]) + abs(sums[larger]))
                rise = sums[larger] - sums[tilt] + lost + 2 * bounds.fixed
                slope = min(slope, rise / (larger - tilt - 2 * bounds.of_sums))
            found[tilt] = bounds.fixed + bounds.of_sums * slope + 2 * UNIT * abs(sums[tilt])
        return found

    def cover(self, log_least: float, rng: np.random.Generator) -> bool:
        """Try tilts farther out until the rest is negligible; return whether any was tried."""
        passes = self._passes
        wanted = np.log(NEGLIGIBLE) - _MARGIN + log_least - passes.log_w
        is_open, n_tried = np.ones(passes.k.size, np.bool_), 0
        for _ in range(_MOST_LOOKS):
            tilts = np.array(sorted(passes.sums))
            bounds = np.array([passes.sums[s] - s * passes.k for s in tilts])
            excess = np.where(is_open, bounds.min(axis=0) - wanted, -np.inf)
            at = int(np.argmax(excess))
            if excess[at] <= 0.0 or n_tried == _MOST_OUTER:
                break
            tilt = next_place(tilts, bounds[:, at], float(wanted[at]))
            if tilt is None:
                is_open[at] = False
                continue
            passes.sum_of(tilt, rng)
            n_tried += 1
            own = passes.sums[tilt] - tilt * float(passes.k[at])
            is_open[at] = own < float(bounds[:, at].min()) - _LOWERED
        return n_tried > 0

    def _log_most(self) -> Floats:
        """Return bounds on the logs of ``S_K``."""
        passes = self._passes
        of_sums = passes.bounds.of_sums * passes.k
        found = [g - s * passes.k + passes.lost(s, g) for s, g in passes.sums.items()]
        bounds: Floats = np.min(found, axis=0) + of_sums
        return bounds

    def _error_beyond(
        self, tilts: Sequence[float], factors: Floats, center: float, scale: float
    ) -> float:
        """Return a bound on the error by trees with more leaves than are listed."""
        passes = self._passes
        last, outer = float(passes.k[-1]), max(passes.sums)
        own = outer - passes.bounds.of_sums  # the effective tilt, with rounding
        log_ratio = passes.root.log_most_rise(int(last)) - own  # of successive w_K S_K
        if log_ratio >= 0:
            return np.inf
        lost = float(passes.lost(outer, passes.sums[outer])[-1])
        at_last = passes.sums[outer] - own * last + lost  # bound on ln S_K; falls with K
        series = passes.log_w[-1] + at_last - scale - passes.sums[center] + log_ratio
        with np.errstate(over="ignore"):  # infinity is a valid bound
            error = np.exp(series) / -np.expm1(log_ratio)
            for s, factor in zip(tilts, factors, strict=True):
                share = 1.0
                if s < own:
                    log_share = at_last + s * last - passes.sums[s] + s - own
                    share = np.exp(log_share) / -np.expm1(s - own)
                error += abs(factor) * min(1.0, share)
        return float(error)
