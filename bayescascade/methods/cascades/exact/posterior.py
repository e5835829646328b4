"""The exact posterior: what the sum over all trees has to say."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

from bayescascade.base.errors import ParameterError
from bayescascade.base.validation import check_integer, check_real
from bayescascade.methods.cascades.exact.averages import RowAverages
from bayescascade.methods.cascades.exact.cost import (
    ExactCost,
    check_fits,
    first_cap,
    number_of_cells,
)
from bayescascade.methods.cascades.exact.draws import choose_trees
from bayescascade.methods.cascades.exact.kernels import UNION
from bayescascade.methods.cascades.exact.lattice import Lattice, term_arrays
from bayescascade.methods.cascades.exact.plan import Plan
from bayescascade.methods.cascades.exact.recursion import Progress, Recursion, count_all
from bayescascade.methods.cascades.exact.root import Root
from bayescascade.methods.cascades.tree import Tree

if TYPE_CHECKING:
    from bayescascade.methods.cascades.posterior import CascadePosterior

__all__ = ["ExactPosterior", "SplitProbabilities", "solve"]

Floats = NDArray[np.float64]

_SMALL_TAIL = 1e-9  # of the probability of as many leaves as are allowed


@dataclass(frozen=True, slots=True)
class SplitProbabilities:
    """Posterior probabilities of what is split.

    Parameters
    ----------
    used : dict of str to float
        Probability that a column is split anywhere, by name.
    first : dict of str to float
        Probability that a column is split first, by name.
    none : float
        Probability that nothing is split.
    """

    used: dict[str, float]
    first: dict[str, float]
    none: float


def solve(
    posterior: "CascadePosterior",
    *,
    max_leaves: int | None = None,
    memory_limit: float = 2e9,
    work_limit: float = 1e12,
    progress: Progress | None = None,
) -> "ExactPosterior":
    """Sum over all trees.

    Parameters
    ----------
    posterior : LeafPosterior or BranchPosterior
    max_leaves : int >= 1 or None
        Most leaves of a tree of the leaf model, if the model itself has no bound. None: twice the
        leaves expected or 12, doubled while the probability of so many leaves is above 1e-9 and
        twice as many fit. The branch model needs no bound.
    memory_limit : float > 0, bytes
    work_limit : float > 0, terms
        Of one pass over the boxes, see `ExactCost`; the default takes one core half a day.
    progress : callable, optional
        Takes the share of the work done, in [0, 1].

    Raises
    ------
    TooLargeError
        At once, if the solution would take more than is allowed; the message says what would fit.
    """
    if max_leaves is not None:
        check_integer("max_leaves", max_leaves, minimum=1)
    check_real("memory_limit", memory_limit, above=0.0)
    check_real("work_limit", work_limit, above=0.0)
    plan = Plan.of(posterior, first_cap(posterior, max_leaves))
    cost = check_fits(posterior, plan, memory_limit, work_limit)
    exact = ExactPosterior(posterior, plan, cost, progress)
    while max_leaves is None and exact.tail > _SMALL_TAIL:
        cap = min(2 * plan.max_leaves, number_of_cells(posterior))
        plan = Plan.of(posterior, cap)
        cost = ExactCost.of_plan(plan)
        if not cost.fits(memory_limit, work_limit):
            break
        del exact  # before the next one takes its memory
        exact = ExactPosterior(posterior, plan, cost, progress)
    return exact


class ExactPosterior:
    """All trees of a posterior at once; made by `solve`.

    Attributes
    ----------
    posterior : CascadePosterior
    cost : ExactCost
        What it took.
    max_leaves : int or None
        Most leaves of the trees summed over; None for the branch model, whose trees all are.
    log_normalizer : float
        Log of the sum of ``exp(posterior.log_density(tree))`` over all trees, nats.
    log_evidence : float
        That, less the same sum without data: the log probability of the data under the normalized
        prior (on trees of at most `max_leaves` leaves), comparable across hyperparameters.
    tree : Tree
        The most probable tree.
    log_density : float
        Its log density: no tree has more.
    is_complete : bool
        Whether no tree of positive density has more than `max_leaves` leaves.
    tail : float
        If not, the probability of as many leaves as one more split could not have: unless it is
        small, trees of more leaves would be probable, too.
    """

    def __init__(
        self,
        posterior: "CascadePosterior",
        plan: Plan,
        cost: ExactCost,
        progress: Progress | None = None,
    ) -> None:
        self.posterior = posterior
        self.cost = cost
        self.max_leaves = cost.max_leaves
        self._plan = plan
        self._root = Root(plan, posterior.model)
        self._total = float(posterior.table.weights.sum())
        lattice = Lattice.of(plan, posterior)
        terms = term_arrays(plan, posterior.model)
        self._shapes = Recursion(lattice.shapes(), terms, np.zeros(1), None)
        self._sums = Recursion(lattice, terms, count_all(lattice, posterior.table), self._shapes)
        self._sums.run(maximize=True, progress=_part_of(progress, 0.0, 0.5))
        best = self._log_densities
        entry = int(np.argmax(best))
        self.log_density = float(best[entry])
        (tree,) = choose_trees(self._sums, [entry], np.random.default_rng(0))  # nothing is drawn
        self.tree = posterior.canonical(tree)
        self._sums.run(progress=_part_of(progress, 0.5, 1.0))
        self.log_normalizer = float(logsumexp(self._log_densities))
        without_data = self._root.log_normalizer(self._shapes.log_values(_whole(self._shapes)), 0.0)
        self.log_evidence = self.log_normalizer - without_data
        self._averages = RowAverages(self._sums, self._root, self._total)

    @property
    def _log_densities(self) -> Floats:
        """Log of the sum (or maximum) over the trees of every entry of the root."""
        return self._root.log_densities(self._sums.log_values(_whole(self._sums)), self._total)

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
            Of the branch model, whose sums are not kept by numbers of leaves: count those of draws.
        """
        if self.max_leaves is None:
            raise ParameterError(
                "leaf_count_probabilities must be asked of a leaf model, got a branch model: "
                "count the leaves of draws, sample(n, rng)"
            )
        return self._entry_probabilities

    @property
    def is_complete(self) -> bool:
        """Whether these are all trees to which the model gives a density."""
        own = getattr(self.posterior.model, "max_leaves", None)
        return self.max_leaves in (None, own, number_of_cells(self.posterior))

    @property
    def tail(self) -> float:
        """Probability of leaves within a split of `max_leaves`; 0 where no tree has more.

        A split by level adds several leaves at once, so that not every number of leaves occurs.
        """
        if self.is_complete:
            return 0.0
        return float(self._entry_probabilities[-max(1, *self._plan.costs) :].sum())

    @cached_property
    def split_probabilities(self) -> SplitProbabilities:
        """Which columns are split, and which first; the first call solves anew without each."""
        names = [self.posterior.schema.names[j] for j in self._plan.columns]
        possible = self._entry_probabilities > 0
        worth = self._sums.first_splits()[:, possible]
        shares = np.exp(worth - logsumexp(worth, axis=0)) * self._entry_probabilities[possible]
        none, *splits = shares.sum(axis=1).tolist()
        first = dict.fromkeys(self.posterior.schema.names, 0.0)
        first.update(zip(names, splits, strict=True))
        used = dict.fromkeys(self.posterior.schema.names, 0.0)
        for j, name in enumerate(names):
            used[name] = self._used(j)
        first = {name: min(1.0, share) for name, share in first.items()}
        return SplitProbabilities(used, first, min(1.0, none))

    def _used(self, j: int) -> float:
        """Return the probability that a column, in the plan's order, is split."""
        if self._plan.n_levels[j] == 1:
            return 0.0
        if self._plan.shift == UNION:
            entries = np.arange(self._entry_probabilities.size)
            return min(1.0, float(self._entry_probabilities[entries >> j & 1 == 1].sum()))
        lattice = self._sums.lattice.without(j)
        shapes = Recursion(lattice.shapes(), self._sums.terms, np.zeros(1), None)
        shapes.run()
        unused = Recursion(lattice, self._sums.terms, self._sums.counts, shapes)
        unused.run()
        log_sum = self._root.log_normalizer(unused.log_values(_whole(unused)), self._total)
        return float(-np.expm1(min(0.0, log_sum - self.log_normalizer)))

    def sample(self, n: int, rng: np.random.Generator | int | None = None) -> list[Tree]:
        """Return independent draws from the posterior.

        Parameters
        ----------
        n : int >= 0
        rng : numpy.random.Generator, int or None
            Or the seed of one.
        """
        check_integer("n", n, minimum=0)
        rng = np.random.default_rng(rng)
        shares = self._entry_probabilities
        entries = rng.choice(shares.size, size=n, p=shares / shares.sum())
        return choose_trees(self._sums, entries.tolist(), rng)

    def log_predictive(self, codes: NDArray[np.int32]) -> Floats:
        """Return the log density of rows, averaged over all trees and their leaf probabilities.

        Parameters
        ----------
        codes : (p, n) int32
            As of `Schema.encode`; -1 is a missing cell and integrated out: the density is then that
            of the others. Its time is that of all ways to fill it in.

        Returns
        -------
        (n,) float64, nats
        """
        return self._averages.log_densities(codes)


def _whole(recursion: Recursion) -> tuple[int, ...]:
    return recursion.lattice.whole


def _part_of(progress: Progress | None, low: float, high: float) -> Progress | None:
    if progress is None:
        return None
    return lambda share: progress(low + share * (high - low))
