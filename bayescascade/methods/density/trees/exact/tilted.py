"""The posterior of the leaf model if sums by numbers of leaves do not fit.

Its most probable tree is found by a few tilted passes; `passes` defines the terms. The best tree of
K leaves has ``sum g`` of at most ``H_K = min_s (U(s) - s K)``, so no tree has a log density above
``max_K (ln w_K + H_K)``. The next s is the slope between the known neighbors of the K of this
maximum. It finds a better tree there, or proves that there is none on the upper hull of ``max_(K
leaves) sum g``. The final difference between bound and best tree is the gap. It is 0 unless K is
inside an edge of the hull; a gap within rounding counts as 0.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator

import samplers
from bayescascade.base.errors import ParameterError, TooLargeError
from bayescascade.base.validation import check_integer, check_real
from bayescascade.methods.density.trees.exact.beta_tilts import add_up_by_beta
from bayescascade.methods.density.trees.exact.cost import (
    ExactCost,
    cheapest_boxes,
    check_magnitudes,
    number_of_cells,
)
from bayescascade.methods.density.trees.exact.expansion import Expansion, Sum, draw
from bayescascade.methods.density.trees.exact.passes import Passes, PassLog
from bayescascade.methods.density.trees.exact.pieces import Progress
from bayescascade.methods.density.trees.exact.plan import SearchPlan
from bayescascade.methods.density.trees.exact.posterior import (
    StoppedPosterior,
    SummationStopped,
    SummedPosterior,
    solve,
)
from bayescascade.methods.density.trees.exact.prior import log_prior_sum
from bayescascade.methods.density.trees.models import LeafModel
from bayescascade.methods.density.trees.tree import Tree
from bayescascade.model.guard import certified, shown_gap
from bayescascade.model.solution import Certificate
from bayescascade.report.page import count_of

if TYPE_CHECKING:
    from bayescascade.methods.density.trees.tree_posterior import CascadePosterior

PassProgress = Callable[[int, float, "BestTree | None"], None]

_MANY_TERMS = 5e7  # for a pass; with more, the sum is only as precise as its print
_ENOUGH, _PRECISE = 5e-3, 1e-9  # nats; with an error below the first, the printed evidence is right
_MOST_KEPT = 2_500  # trees kept for draws from a tilt
_MOST_PASSES = 60  # about two for each halving of the range of leaf counts


@dataclass(frozen=True, slots=True)
class BestTree:
    """The most probable tree found."""

    tree: Tree
    log_density: float  # minus `Passes.log_common`, nats
    gap: float  # >= 0: nats by which any tree may be better; 0 if within rounding
    rounding: float  # >= 0: if the gap is 0, nats by which another tree may be better


class Hull:
    """Upper bounds on log densities of trees, by their number of leaves."""

    def __init__(self, passes: Passes) -> None:
        self._passes = passes
        self._found: dict[int, tuple[float, Tree, float]] = {}  # log density, tree, rounding
        self._bounds = np.full(passes.k.size, np.inf)  # on ln w plus the sum over leaves
        self._exceeded = np.zeros(passes.k.size)  # largest excess by rounding
        self._beyond = np.inf if passes.has_more else -np.inf  # for unlisted numbers of leaves
        self._can_sink = True  # whether another tilt may lower this bound

    @property
    def best(self) -> BestTree | None:
        """The best tree found so far; None before the first pass."""
        if not self._found:
            return None
        log_density, tree, own = max(self._found.values(), key=lambda tree: tree[0])
        if self._beyond == np.inf:
            return BestTree(tree, log_density, np.inf, 2 * own)
        bound = max(float(self._bounds.max()), self._beyond)
        most = max(float((self._bounds + self._exceeded).max()), self._beyond)
        gap, rounding = bound - log_density, most - bound + 2 * own
        if gap <= rounding:
            return BestTree(tree, log_density, 0.0, max(gap, 0.0) + rounding)
        return BestTree(tree, log_density, gap + rounding, rounding)

    def maximize(self, guess: int) -> BestTree:
        """Find the most probable tree, from a guess at its number of leaves."""
        passes, tried = self._passes, set[float]()
        tilt: float | None = passes.slope(guess)
        while tilt is not None and len(tried) < _MOST_PASSES:
            tried.add(tilt)
            worth, tree, log_density, own = passes.best_of(tilt)
            if tree.n_leaves not in self._found or self._found[tree.n_leaves][0] < log_density:
                self._found[tree.n_leaves] = log_density, tree, own
            self._lower(tilt, worth)
            best = self.best
            assert best is not None
            if best.gap == 0.0:
                break
            if self._beyond >= float(self._bounds.max()):
                tilt = self._tilt_beyond(tried)
            else:
                tilt = self._next_tilt(1 + int(np.argmax(self._bounds)), tried)
        assert best is not None
        return best

    def _lower(self, tilt: float, worth: float) -> None:
        """Lower the bounds by the result of a pass."""
        passes = self._passes
        bounds, lost = passes.log_w + worth - tilt * passes.k, passes.lost(tilt, worth)
        is_lower = bounds + lost < self._bounds + self._exceeded
        self._bounds = np.where(is_lower, bounds, self._bounds)
        self._exceeded = np.where(is_lower, lost, self._exceeded)
        if passes.has_more and tilt >= self._least_beyond:  # the bound decreases from there on
            beyond = float(bounds[-1] + lost[-1])
            self._can_sink = beyond < self._beyond
            self._beyond = min(self._beyond, beyond)

    @property
    def _least_beyond(self) -> float:
        """The least tilt whose bound decreases with each leaf beyond the listed ones."""
        passes = self._passes
        # rounding may add this much for each leaf
        return passes.root.log_most_rise(int(passes.k[-1])) + passes.bounds.of_best

    def _tilt_beyond(self, tried: set[float]) -> float | None:
        """Return a tilt that lowers the bound for unlisted numbers of leaves, or None."""
        above = [t for t in tried if t >= self._least_beyond]
        if not above:
            return self._least_beyond
        return 2 * max(above) - min(above) + 1.0 if self._can_sink else None

    def _next_tilt(self, n_leaves: int, tried: set[float]) -> float | None:
        """Return the tilt that improves the hull at a number of leaves, or None."""
        found = self._found
        if n_leaves in found:
            return None  # the hull touches this point, so it is exact
        below = max((n for n in found if n < n_leaves), default=None)
        above = min((n for n in found if n > n_leaves), default=None)
        if below is None or above is None:  # outside the known range: double the step
            step = 1.0 + max(tried) - min(tried)
            return max(tried) + step if above is None else min(tried) - step
        log_w = self._passes.root.log_weights(np.array([below, above]), self._passes.total)
        slope = (found[below][0] - found[above][0] + log_w[1] - log_w[0]) / (above - below)
        near = any(abs(slope - t) <= 1e-12 * max(1.0, abs(t)) for t in tried)
        return None if near else slope


def solve_or_tilt(
    posterior: "CascadePosterior",
    *,
    memory_limit: float = 2e9,
    work_limit: float = 1e12,
    rng: Generator | int | None = None,
    progress: Progress | None = None,
    pass_progress: PassProgress | None = None,
    draw_progress: Callable[[], None] | None = None,
    n_jobs: int | None = 1,
    n_draws: int = 0,
    checkpoint: str | Path | None = None,
    resume: bool = False,
) -> "tuple[SummedPosterior | StoppedPosterior | TiltedPosterior, list[Tree]]":
    """Solve a posterior, by tilts if `solve` does not fit; return the result, and draws from it."""
    rng = np.random.default_rng(rng)
    try:
        exact = solve(
            posterior, memory_limit=memory_limit, work_limit=work_limit, progress=progress,
            n_jobs=n_jobs,
        )  # fmt: skip
    except TooLargeError:
        if not isinstance(posterior.model, LeafModel) or posterior.model.max_leaves is not None:
            raise
        tilted = solve_by_tilts(
            posterior, memory_limit=memory_limit, work_limit=work_limit, rng=rng,
            progress=pass_progress, n_jobs=n_jobs, n_draws=n_draws,
            checkpoint=checkpoint, resume=resume,
        )  # fmt: skip
        return tilted, tilted.draws
    except SummationStopped as stopped:
        return stopped.found, []
    try:
        if draw_progress is not None:
            draw_progress()
        return exact, exact.sample(n_draws, rng)
    except KeyboardInterrupt:
        exact.is_interrupted = True
        return exact, []


def certificate_of(exact: "SummedPosterior | StoppedPosterior | TiltedPosterior") -> Certificate:
    """Return the proved facts: the evidence if its print is right, and visible rounding."""
    most = exact.max_leaves if isinstance(exact, StoppedPosterior) else None
    is_accurate = exact.error < _ENOUGH and not np.isnan(exact.log_evidence)
    gap = shown_gap(exact.gap, exact.rounding)
    return Certificate(
        gap=gap,
        extent=count_of(exact.cost.n_boxes, "box", "boxes"),
        log_evidence=exact.log_evidence if is_accurate else None,
        scope=f"of up to {most} leaves" if most is not None else "",
        is_rounding=exact.gap == 0.0 < gap,
    )


def solve_by_tilts(
    posterior: "CascadePosterior",
    *,
    memory_limit: float = 2e9,
    work_limit: float = 1e12,
    rng: Generator | int | None = None,
    progress: PassProgress | None = None,
    n_jobs: int | None = 1,
    n_draws: int = 0,
    checkpoint: str | Path | None = None,
    resume: bool = False,
) -> "TiltedPosterior":
    """Find the most probable tree of a leaf model, and sum over all trees, by a few dozen passes.

    Ctrl-C ends it early, from the first pass on, with the gap that is left. Apart from rounding,
    only draws depend on `rng`, and nothing depends on `n_jobs`. `memory_limit` is in bytes,
    `work_limit` in terms of one pass, see `ExactCost`. `progress` is called with the number of
    finished passes, the share of the next, and the best tree so far. `n_draws` >= 0 independent
    draws are made during the passes.
    `checkpoint` keeps the result of each pass; with `resume` only the other passes are made, and
    the result is that of an uninterrupted search.
    """
    model = posterior.model
    if not isinstance(model, LeafModel) or model.max_leaves is not None:
        raise ParameterError(
            f"posterior must be of a leaf model without max_leaves to be solved by tilts, "
            f"got {model!r}"
        )
    check_real("memory_limit", memory_limit, above=0.0)
    check_real("work_limit", work_limit, above=0.0)
    check_integer("n_draws", n_draws, minimum=0)
    check_magnitudes(posterior)
    plan = SearchPlan.of(posterior, None)
    cost, boxes = cheapest_boxes(posterior, plan, memory_limit, work_limit, n_jobs)
    section = None
    if checkpoint is not None:  # each kind of leaves has a section, if several are compared
        section = samplers.Checkpoint(checkpoint, resume).section(f"tilts, leaf {model.leaf}")
    log = PassLog(section, posterior.fingerprint())
    log.save()  # fails early if it cannot be written
    passes = Passes(posterior, boxes, number_of_cells(posterior), n_jobs, log=log)
    passes.n_kept = min(n_draws + n_draws // 4, _MOST_KEPT)
    hull = Hull(passes)
    if progress is not None:
        passes.progress = lambda share: progress(passes.n_passes, share, hull.best)
    return TiltedPosterior(cost, passes, hull, np.random.default_rng(rng), n_draws)


class TiltedPosterior:
    """The posterior of a leaf model; returned by `solve_by_tilts`.

    Attributes
    ----------
    posterior : LeafPosterior
    cost : ExactCost
        Size of a pass.
    tree : Tree
        The most probable tree that was found.
    log_density : float
        Its log density, nats.
    gap : float >= 0
        Bound on how much higher the log density of another tree may be, nats; 0 means exact, up to
        rounding.
    rounding : float >= 0
        Bound on how much higher it may be because of rounding, nats.
    log_normalizer : float
        Log of the sum of ``exp(posterior.log_density(tree))`` over all trees, nats; NaN if
        interrupted too early.
    error : float >= 0
        Bound on the error of `log_normalizer`, nats. If it is infinite, `log_normalizer` is only an
        upper bound.
    log_evidence : float
        Log probability of the data under the normalized prior, nats, with the same error; NaN if
        interrupted too early, or if columns have too many partitions (see `prior`).
    draws : list of Tree
        Independent draws. Empty if interrupted, or if the tilts are too far from the posterior for
        rejection sampling; then use chains that start from `tree`.
    n_passes : int
        Number of passes over the boxes.
    is_interrupted : bool
        Whether Ctrl-C ended the search early.
    is_resumable
        True: a checkpoint, if there is one, has the result so far.
    """

    is_resumable = True

    def __init__(
        self, cost: ExactCost, passes: Passes, hull: Hull, rng: Generator, n_draws: int = 0
    ) -> None:
        self.posterior = posterior = passes.posterior
        self.cost, self._passes = cost, passes
        self._sum: Sum | None = None
        self.log_normalizer = self.log_evidence = np.nan
        self.error, self.is_interrupted = np.inf, False
        self.draws: list[Tree] = []
        expected = int(min(posterior.model.rate, passes.most))
        try:
            found = self._add_up(hull.maximize(expected), rng)
            with suppress(TooLargeError):  # chains can draw instead
                self.draws = draw(passes, found.mixture, n_draws, rng)
            passes.log.finish()
        except KeyboardInterrupt:
            if hull.best is None:
                raise
            self.is_interrupted = True
        best = hull.best
        assert best is not None  # there was at least one pass
        self.tree, self.gap = posterior.canonical(best.tree), best.gap
        self.rounding = best.rounding + posterior.rounding(self.tree) + passes.rounding_of_common
        claimed = best.log_density + passes.log_common
        self.log_density = certified(posterior.log_density, self.tree, claimed, self.rounding)

    def _add_up(self, best: BestTree, rng: Generator) -> Sum:
        """Sum over all trees, with data and without."""
        passes, posterior, rate = self._passes, self.posterior, self.posterior.model.rate
        precise = _ENOUGH if self.cost.n_terms > _MANY_TERMS else _PRECISE
        n_leaves = best.tree.n_leaves
        if posterior.model.is_generative and passes.total > 0.0:
            self._sum = add_up_by_beta(passes, best.log_density, n_leaves, rng, precise)
        else:
            self._sum = Expansion(passes, best.log_density).add_up(n_leaves, rng, precise)
        self.log_normalizer = self._sum.log_sum + passes.log_common
        self.error = self._sum.error + passes.rounding_of_common
        lattice, shapes = passes.boxes.lattice, passes.boxes.shapes
        if posterior.model.is_generative:
            self.log_evidence = self.log_normalizer
        elif lattice.plan.has_few_ways and shapes is not None:
            log_prior, error = log_prior_sum(shapes, rate, passes.most, passes.bounds.of_sums)
            self.log_evidence = self.log_normalizer - log_prior
            self.error += error
        return self._sum

    @property
    def n_passes(self) -> int:
        """Number of passes over the boxes so far."""
        return self._passes.n_passes

    def sample(self, n: int, rng: Generator | int | None = None) -> list[Tree]:
        """Return independent draws from the posterior, with a few passes over the boxes.

        Parameters
        ----------
        n : int >= 0
        rng : numpy.random.Generator, int or None
            Generator or seed.

        Raises
        ------
        ParameterError
            If the search was interrupted before the sum over all trees was known.
        TooLargeError
            If rejection sampling accepts fewer than 1 in 1,000 trees.
        """
        check_integer("n", n, minimum=0)
        if self._sum is None:
            raise ParameterError("sample needs a search that was not interrupted")
        return draw(self._passes, self._sum.mixture, n, np.random.default_rng(rng))
