"""The exact posterior, by a sum over all trees."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy.special import logsumexp, softmax

from bayescascade.base.arrays import Codes, Floats
from bayescascade.base.errors import ParameterError, TooLargeError
from bayescascade.base.validation import check_choice, check_integer, check_real
from bayescascade.base.watch import Watch
from bayescascade.methods.density.trees.exact.averages import RowAverages
from bayescascade.methods.density.trees.exact.cost import (
    ExactCost,
    cheapest_boxes,
    check_fits,
    check_magnitudes,
    first_cap,
    number_of_cells,
)
from bayescascade.methods.density.trees.exact.k_best import RankedTree, TreeOrder
from bayescascade.methods.density.trees.exact.kernels.layout import UNION
from bayescascade.methods.density.trees.exact.kernels.terms import UNIT as UNIT_OF_EXPONENTS
from bayescascade.methods.density.trees.exact.lattice import Root
from bayescascade.methods.density.trees.exact.pieces import Progress
from bayescascade.methods.density.trees.exact.plan import SearchPlan
from bayescascade.methods.density.trees.exact.recursion import Recursion
from bayescascade.methods.density.trees.exact.rounding import TILT, PassRounding
from bayescascade.methods.density.trees.exact.shared import Boxes, SharedBoxes
from bayescascade.methods.density.trees.exact.tail import LEFT_OUT, Tail, log_prior_mass
from bayescascade.methods.density.trees.exact.tree_choices import choose_trees
from bayescascade.methods.density.trees.tree import Tree
from bayescascade.model.guard import EVALUATED, UNIT, certified, log_gamma_sizes

if TYPE_CHECKING:
    from bayescascade.methods.density.trees.tree_posterior import CascadePosterior


_TAIL_PASSES = 8  # most passes for each number of leaves tried
_LIKELY = 1e-3  # probability of the largest trees; above it, no bound is tried


@dataclass(frozen=True, slots=True)
class SplitProbabilities:
    """Posterior probabilities that columns are split, by name."""

    used: dict[str, float]  # by column: a split anywhere
    first: dict[str, float]  # by column: the first split
    none: float  # no split at all


def solve(
    posterior: "CascadePosterior",
    *,
    max_leaves: int | None = None,
    memory_limit: float = 2e9,
    work_limit: float = 1e12,
    progress: Progress | None = None,
    n_jobs: int | None = 1,
) -> "SummedPosterior":
    """Sum over all trees.

    The result can also average densities of rows, unless only boxes with data are kept. That
    happens for the branch model with `partitions` "levels", if all boxes do not fit or take far
    longer. `max_leaves` >= 1 bounds the trees of a leaf model. None: all trees. Then the sum is
    over trees with up to twice the expected leaves or 12, and more, until all larger trees are
    proved to have a total probability below 1e-9, and none of them is the most probable; see
    `tail`. `memory_limit` is in bytes, `work_limit` in terms of one pass, see `ExactCost`; its
    default takes one core half a day. `progress` is called with the finished share.
    TooLargeError: the solution takes more than is allowed; it is raised at once, unless trees of
    more leaves prove to matter. SummationStopped: Ctrl-C came after the best tree was found.
    """
    if max_leaves is not None:
        check_integer("max_leaves", max_leaves, minimum=1)
    check_real("memory_limit", memory_limit, above=0.0)
    check_real("work_limit", work_limit, above=0.0)
    check_magnitudes(posterior)
    total = float(posterior.table.weights.sum())
    plan = SearchPlan.of(posterior, first_cap(posterior, max_leaves))
    if plan.shift == 0:
        cost, boxes = cheapest_boxes(posterior, plan, memory_limit, work_limit, n_jobs)
        kind = SummedPosterior if isinstance(boxes, SharedBoxes) else ExactPosterior
        return kind(posterior, plan, cost, progress, None, n_jobs, memory_limit, boxes)
    cost = check_fits(posterior, plan, memory_limit, work_limit)
    most = number_of_cells(posterior)
    if max_leaves is not None or cost.max_leaves in (None, posterior.model.max_leaves, most):
        return ExactPosterior(posterior, plan, cost, progress, None, n_jobs, memory_limit)
    free = SearchPlan.of(posterior, None)
    free_cost, boxes = cheapest_boxes(
        posterior, free, memory_limit, work_limit, n_jobs, cost.memory_bytes
    )
    root = Root.of(posterior, plan)
    bounds = PassRounding.of(posterior, free)
    log_prior = (0.0, 0.0)
    if not posterior.model.is_generative:
        log_prior = log_prior_mass(
            boxes.lattice, boxes.terms, root, plan.max_leaves, most, bounds, memory_limit
        )
    tail = Tail(boxes, root, total, most, bounds)
    n_passes = max(2, min(_TAIL_PASSES, int(2 * work_limit / free_cost.n_terms)))
    found: StoppedPosterior | None = None
    try:
        while True:
            exact = ExactPosterior(posterior, plan, cost, progress, log_prior, n_jobs, memory_limit)
            cap, enough = plan.max_leaves, most
            found = StoppedPosterior(
                posterior, cost, exact.tree, exact.log_density, cap, exact.rounding
            )
            if exact.leaf_count_probabilities[-max(1, *plan.costs) :].sum() < _LIKELY:
                negligible = exact.log_normalizer + np.log(LEFT_OUT)
                enough = tail.enough(cap, negligible, n_passes)
                if exact.log_density < negligible:  # an omitted tree could be the most probable
                    best = tail.enough(cap, exact.log_density, n_passes, maximize=True)
                    enough = max(enough, best)
            if enough <= cap:
                return exact
            plan = SearchPlan.of(posterior, min(2 * cap, enough))
            cost = check_fits(posterior, plan, memory_limit, work_limit, free_cost.memory_bytes)
            del exact  # its memory is needed for the next one
    except SummationStopped:
        raise
    except KeyboardInterrupt:
        if found is None:
            raise
        raise SummationStopped(found) from None


@dataclass(frozen=True, slots=True, eq=False)
class StoppedPosterior:
    """The best tree of a posterior whose sum over all trees is not known."""

    posterior: "CascadePosterior"
    cost: ExactCost  # cost of a pass
    tree: Tree  # the most probable one
    log_density: float  # the largest among trees in the sum
    max_leaves: int | None  # most leaves of those trees; None if they are all trees
    rounding: float  # >= 0: nats by which another tree may be more probable because of rounding

    is_interrupted: ClassVar[bool] = True
    gap: ClassVar[float] = 0.0
    error: ClassVar[float] = math.inf
    log_normalizer: ClassVar[float] = math.nan
    log_evidence: ClassVar[float] = math.nan


class SummationStopped(KeyboardInterrupt):
    """Raised by Ctrl-C after the best tree was found."""

    def __init__(self, found: StoppedPosterior) -> None:
        super().__init__()
        self.found = found


class SummedPosterior:
    """The posterior, summed over all trees; returned by `solve`.

    Attributes
    ----------
    posterior : CascadePosterior
    cost : ExactCost
        Size of the computation.
    max_leaves : int or None
        Maximum number of leaves in the sum over trees. None for the branch model, which sums over
        all trees.
    log_normalizer : float
        Log of the sum of ``exp(posterior.log_density(tree))`` over all trees, nats.
    log_evidence : float
        Log probability of the data under the normalized prior, comparable across hyperparameters.
        It is `log_normalizer` minus the same sum without data, which is 0 with the generative
        prior.
    tree : Tree
        The most probable tree.
    log_density : float
        Log density of this tree. No tree has a higher one.
    is_complete : bool
        Whether this is the posterior over all trees: no tree of positive density has more than
        `max_leaves` leaves, or such trees are proved to be negligible. Otherwise, prior and
        posterior are restricted to trees with at most `max_leaves` leaves.
    gap, error, rounding
        `gap` is 0. `error` is a bound on the error of `log_normalizer`; that of `log_evidence` is
        at most twice as large. `rounding` is a bound on how much more probable another tree may be
        because of rounding. All in nats.
    is_interrupted : bool
        Whether Ctrl-C ended `solve_or_tilt` during the drawing of trees.
    """

    gap = 0.0
    is_interrupted = False

    def __init__(
        self,
        posterior: "CascadePosterior",
        plan: SearchPlan,
        cost: ExactCost,
        progress: Progress | None = None,
        log_prior: tuple[float, float] | None = None,
        n_jobs: int | None = 1,
        memory_limit: float = np.inf,
        boxes: Boxes | None = None,
    ) -> None:
        self.posterior, self.cost, self.max_leaves = posterior, cost, cost.max_leaves
        self._plan = plan
        self._root = Root.of(posterior, plan)
        self._total = float(posterior.table.weights.sum())
        self._sums = Recursion.of(posterior, plan, n_jobs) if boxes is None else boxes
        self._n_jobs, self._memory_limit = n_jobs, memory_limit
        self._bounds = PassRounding.of(posterior, plan)
        self._sums.run(maximize=True, progress=_part_of(progress, 0.0, 0.5), n_jobs=n_jobs)
        self._origin = self._sums.origin
        best = self._log_densities
        entry = int(np.argmax(best))
        (tree,) = choose_trees(self._sums, [entry], np.random.default_rng(0))  # nothing is drawn
        self.tree = posterior.canonical(tree)
        self.rounding = self._bounds.of_maximum(tree.n_leaves) + posterior.rounding(self.tree)
        self.rounding += self._rounding_of_root
        claimed = float(best[entry]) + self._log_common
        self.log_density = certified(posterior.log_density, self.tree, claimed, self.rounding)
        own = (None, posterior.model.max_leaves, number_of_cells(posterior))
        self.is_complete = log_prior is not None or self.max_leaves in own
        try:
            self._add_up(log_prior, _part_of(progress, 0.5, 1.0))
        except KeyboardInterrupt:
            cap = None if self.max_leaves in own else self.max_leaves
            found = StoppedPosterior(
                posterior, cost, self.tree, self.log_density, cap, self.rounding
            )
            raise SummationStopped(found) from None

    def _add_up(self, log_prior: tuple[float, float] | None, progress: Progress | None) -> None:
        """Sum over all trees and bound the error; `log_prior`: the same without data."""
        tilted: float | None = None
        if self._bounds.is_large:
            self._sums.run(tilt=TILT, n_jobs=self._n_jobs)
            tilted = self._root.log_sum(self._sums.log_values(), self._total)
        self._sums.run(progress=progress, n_jobs=self._n_jobs)
        self._origin = self._sums.origin
        self._log_sum = float(logsumexp(self._log_densities))
        self.log_normalizer = self._log_sum + self._log_common
        whole = self._root.log_sum(self._sums.log_values(), self._total)
        error = self._bounds.of_sum(whole, tilted)
        has_all_trees = self.max_leaves in (None, number_of_cells(self.posterior))
        if log_prior is None and self.posterior.model.is_generative and has_all_trees:
            log_prior = 0.0, 0.0
        elif log_prior is None:
            shapes = self._sums.shapes
            assert shapes is not None  # boxes with rows have shapes
            if self._bounds.is_large:
                shapes.run(tilt=TILT)
                tilted = self._root.log_sum(shapes.log_values(), 0.0)
                shapes.run()
            whole = self._root.log_sum(shapes.log_values(), 0.0)
            log_prior = whole + self._root.log_common(0.0), self._bounds.of_sum(whole, tilted)
        else:  # trees of many leaves may be omitted
            error += LEFT_OUT
        self.error = max(error, log_prior[1]) + self._rounding_of_root
        self.log_evidence = self.log_normalizer - log_prior[0]

    @property
    def _rounding_of_root(self) -> float:
        """Bound on the error of the common factor of all trees, after its addition."""
        sizes = log_gamma_sizes(self._total + self.posterior.model.concentration)
        sizes += 2 * abs(self._origin * UNIT_OF_EXPONENTS)
        return float(EVALUATED * UNIT * sizes)

    @property
    def _log_densities(self) -> Floats:
        """Logs of the root's sums (or maxima) without the common factor, to save digits."""
        return self._root.log_densities(self._sums.log_values(self._origin), self._total)

    @property
    def _log_common(self) -> float:
        return self._origin * UNIT_OF_EXPONENTS + self._root.log_common(self._total)

    @cached_property
    def _entry_probabilities(self) -> Floats:
        # not exp(x - log_normalizer): x in the thousands is rounded, and shares would exceed 1
        probabilities: Floats = softmax(self._log_densities)
        return probabilities

    @property
    def leaf_count_probabilities(self) -> Floats:
        """Probabilities of 1, 2, ... leaves, (max_leaves,) float64.

        Raises
        ------
        ParameterError
            For the branch model, which has no sums by numbers of leaves. Count the leaves of draws
            instead.
        """
        if self.max_leaves is None:
            raise ParameterError(
                "leaf_count_probabilities needs a leaf model, got a branch model: "
                "count the leaves of draws, sample(n, rng)"
            )
        return self._entry_probabilities

    @cached_property
    def split_probabilities(self) -> SplitProbabilities:
        """Probabilities of splits and of first splits of columns; slow at the first call."""
        names = [self.posterior.schema.names[j] for j in self._plan.columns]
        possible = self._entry_probabilities > 0
        worth = self._sums.first_splits(self._origin)[:, possible]
        shares = np.exp(worth - logsumexp(worth, axis=0)) * self._entry_probabilities[possible]
        none, *splits = shares.sum(axis=1).tolist()
        first = dict.fromkeys(self.posterior.schema.names, 0.0)
        first.update(zip(names, splits, strict=True))
        used = dict.fromkeys(self.posterior.schema.names, 0.0)
        try:
            for j, name in enumerate(names):
                used[name] = self._used(j)
        finally:
            if self._plan.shift != UNION:
                with Watch(None).watching():  # draws and averages need all of it
                    self._sums.run(n_jobs=self._n_jobs)
        first = {name: min(1.0, share) for name, share in first.items()}
        return SplitProbabilities(used, first, min(1.0, none))

    def _used(self, j: int) -> float:
        """Return the probability that a column, in the plan's order, is split."""
        if self._plan.n_levels[j] == 1:
            return 0.0
        if self._plan.shift == UNION:
            entries = np.arange(self._entry_probabilities.size)
            return min(1.0, float(self._entry_probabilities[entries >> j & 1 == 1].sum()))
        self._sums.run(closed=j, n_jobs=self._n_jobs)
        log_sum = self._root.log_sum(self._sums.log_values(self._origin), self._total)
        return float(-np.expm1(min(0.0, log_sum - self._log_sum)))

    def in_order(self) -> Iterator[RankedTree]:
        """Return all trees, the most probable first; see `k_best`."""
        boxes = self._maxima(None)
        size = self._entry_probabilities.size
        root = self._root.log_densities(np.zeros(size), self._total)
        root = root + self._root.log_common(self._total)
        room = self._memory_limit - 2 * self.cost.memory_bytes
        n_columns = self.posterior.schema.n_columns
        return iter(TreeOrder(boxes, root, self.log_normalizer, n_columns, room))

    def k_best(self, k: int) -> list[RankedTree]:
        """Return the k most probable trees in order, or all if there are fewer.

        Each has its `tree`, its `log_density` (nats, as of the posterior) and its `probability`. No
        other tree is more probable than the last. Trees of equal density may be in any order.

        Raises
        ------
        ParameterError
            If the model has a `feature_inclusion`, so that no recursion over boxes orders trees.
        TooLargeError
            If the limit `memory_limit` is exceeded.
        """
        check_integer("k", k, minimum=1)
        return list(islice(self.in_order(), k))

    def best_without(self, column: str) -> tuple[Tree, float]:
        """Return the most probable tree that does not split a column, and its log density."""
        names = self.posterior.schema.names
        place = names.index(check_choice("column", column, names))
        boxes = self._maxima(self._plan.columns.index(place))
        values = self._root.log_densities(boxes.log_values(boxes.origin), self._total)
        (tree,) = choose_trees(boxes, [int(np.argmax(values))], np.random.default_rng(0))
        tree = self.posterior.canonical(tree)
        return tree, self.posterior.log_density(tree)

    def _maxima(self, closed: int | None) -> Boxes:
        """Return the boxes with the value of the best tree below each; `closed` is never split."""
        if self._plan.shift == UNION:
            raise ParameterError(
                "feature_inclusion must be None for trees in order, got "
                f"{self.posterior.parameters()['feature_inclusion']}"
            )
        boxes, n_bytes = self._sums.again(), 2 * self.cost.memory_bytes
        if n_bytes > self._memory_limit:
            needed = f"{n_bytes / 1e9:.3g} GB for trees in order"
            raise TooLargeError(f"memory_limit must be at least {needed}", needed)
        boxes.run(maximize=True, closed=closed, n_jobs=self._n_jobs)
        return boxes

    def sample(self, n: int, rng: np.random.Generator | int | None = None) -> list[Tree]:
        """Return independent draws from the posterior.

        Parameters
        ----------
        n : int >= 0
        rng : numpy.random.Generator, int or None
            Generator or seed.
        """
        check_integer("n", n, minimum=0)
        rng = np.random.default_rng(rng)
        shares = self._entry_probabilities
        entries = rng.choice(shares.size, size=n, p=shares / shares.sum())
        return choose_trees(self._sums, entries.tolist(), rng)


class ExactPosterior(SummedPosterior):
    """The posterior summed over all trees, with predictive densities of further rows."""

    def log_predictive(self, codes: Codes) -> Floats:
        """Return the log predictive density of rows, averaged over all trees.

        The first call takes about as long as one pass over the boxes. After that a row takes
        microseconds. For independent leaves, or if some boxes have too many leaves outside, a row
        takes a pass over the boxes that contain it.

        Parameters
        ----------
        codes : (p, n) int32
            Codes as from `Schema.encode`. -1 is a missing cell, which is integrated out.

        Returns
        -------
        (n,) float64, nats

        Raises
        ------
        TooLargeError
            If the limit `memory_limit` is exceeded: additional 8 bytes for each entry of the boxes,
            and for each box.
        """
        return self._averages.log_densities(codes)

    @cached_property
    def _averages(self) -> RowAverages:
        assert isinstance(self._sums, Recursion)
        n_bytes = self.cost.memory_bytes + RowAverages.memory_bytes(self._plan)
        if n_bytes > self._memory_limit:
            needed = f"{n_bytes / 1e9:.3g} GB for averages over all trees"
            raise TooLargeError(f"memory_limit must be at least {needed}", needed)
        shares, alpha = self._entry_probabilities, self.posterior.model.concentration
        n_together = 1 if self.max_leaves is None else np.arange(1, shares.size + 1)
        return RowAverages(self._sums, shares / (self._total + n_together * alpha))


def _part_of(progress: Progress | None, low: float, high: float) -> Progress | None:
    if progress is None:
        return None
    return lambda share: progress(low + share * (high - low))
