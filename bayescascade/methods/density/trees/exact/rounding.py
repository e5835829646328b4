"""A proved bound on the effect of rounding on a pass over the boxes.

Let u = `UNIT`. The value of a box as a leaf is off by 4 u, see `kernels.terms.from_log`; a split
into b branches by 4 u for its factor and b u for the products. So a tree of K leaves, which has at
most K - 1 splits and 2 K - 2 branches, is off by 10 u for each leaf. A maximum adds no error, but
among choices that differ by less than 2**-45 = 256 u the first is taken, at most b times for a
split, and shares of choices are off by a few u: 768 u for each leaf. For boxes with data, there is
one choice for each split, whose logs may be off by 256 u. A sum of M terms adds an error of M u to
each of them, for each split.

So the sums ``S_K`` over the trees of K leaves are off by a factor between ``exp(-h K)`` and ``exp(h
K)``, and ``G(s) = sum_K S_K exp(s K)`` lies between ``G(s - h)`` and ``G(s + h)``: **rounding acts
as a tilt**. As ln G is convex, ``ln G(h) - ln G(0)`` is at most ``h (ln G(t) - ln G(h)) / (t - h)``
for each t > h, where ``G(t - h)`` and ``G(h)`` are bounded by the passes at t and 0, from above and
below; and it is at most ``h`` times the largest number of leaves of any tree.

Two errors do not depend on the number of leaves: the rounding of log gamma functions to two floats,
1e-27 n for each level of the tree; and, if weights are not integers, the error of their sums, a
share c of each count, which changes each ``lnG(x)`` by ``c x abs(psi(x))`` and each ``n ln v`` by a
share c. With X the largest argument, and l = ``max(abs(ln alpha), ln X) + 1``, the total for all
leaves is at most ``c l (n + K (alpha + 1))``.

The most probable tree of the branch model splits few boxes that hold no rows. If there is such a
split, and it is not the only one of its column, which `feature_inclusion` may favor, then the
subtree of one of its branches can replace it: the prior increases, because a Poisson's probability
of b branches, and exp(-rate) for each other branch, are below 1. For each distinct row, splits of
boxes with rows are on a path of at most ``D = sum_j (q_j - 1)`` splits.

Under the generative prior a subtree that begins with one of N splits has a probability of at most
``(1 - s) / N``, and a leaf has s. So in a box without rows, a leaf is at least as good unless ``N <
(1 - s) / s``. As each column of several levels allows a split, such a box has fewer than this many
of these columns, and a subtree there has no more leaves than these have cells. The factor ``1 / N``
needs an inverse, a sum of p numbers, and a power: (p + 4) u for each split.
"""

from dataclasses import dataclass
from math import ceil, log, prod
from typing import TYPE_CHECKING

from bayescascade.methods.density.trees.exact.kernels.layout import UNION
from bayescascade.methods.density.trees.exact.plan import SearchPlan
from bayescascade.methods.density.trees.models import BranchModel
from bayescascade.methods.density.trees.rounding import largest_log_volume
from bayescascade.model.guard import EVALUATED, UNIT, share_of_sums

if TYPE_CHECKING:
    from bayescascade.methods.density.trees.tree_posterior import CascadePosterior

TILT = 0.01
"""Nats added for each leaf, to find how many leaves probable trees have."""

_MUCH = 1e-3  # nats of rounding; beyond, this search is worthwhile
_OF_LEAF, _OF_CHOICES, _OF_WAYS = 10.0, 768.0, 4.0  # units of rounding
_OF_LOG = 1e-26  # times the weight of all rows


@dataclass(frozen=True, slots=True)
class PassRounding:
    """Bounds on rounding."""

    fixed: float  # error of the log density of any tree, nats
    of_best: float  # additional error for each leaf of a tree found by maxima, nats
    of_sums: float  # additional error for each leaf in sums, nats
    most: float  # most leaves of any tree
    most_of_best: float  # most leaves of the most probable tree

    @classmethod
    def of(cls, posterior: "CascadePosterior", plan: SearchPlan) -> "PassRounding":
        """Return the bounds for the passes of a plan."""
        model, table = posterior.model, posterior.table
        total, share = float(table.weights.sum()), share_of_sums(table.weights)
        is_branch, p = isinstance(model, BranchModel), len(plan.n_levels)
        alpha, depth = model.concentration, sum(q - 1 for q in plan.n_levels)
        cells = float(min(prod(plan.n_levels), 10**300))
        most = plan.max_leaves if plan.shift == 1 else cells
        most_of_best = float(most)
        if is_branch:
            n_splits = float(table.n_distinct * depth + p)
            most_of_best = 1.0 + n_splits * (plan.most - 1)
            if model.is_generative:
                most_of_best *= _most_in_empty_box(plan, model.stop)
            most_of_best = min(cells, most_of_best)
        n_levels = depth + 1 if is_branch else 1
        n_inside = 2 * p if plan.is_independent else 0
        largest = total + (plan.most + max(plan.n_levels)) * (alpha + model.leaf_concentration)
        lowest = min(alpha, model.leaf_concentration)
        each = max(abs(log(lowest)), log(1.0 + largest) + log(most)) + 1.0
        volume = largest_log_volume(posterior.schema)
        fixed = share * total * (each * (2 * n_levels + n_inside) + volume * max(1, n_inside))
        fixed += _OF_LOG * total * (n_levels + n_inside)
        n_terms = 4 * plan.most + n_inside * max(plan.n_levels)
        of_leaf = share * each * n_terms * (1.0 + alpha + model.leaf_concentration)
        of_leaf += (p + _OF_WAYS) * UNIT if model.is_generative else 0.0
        of_best = (_OF_LEAF + _OF_CHOICES) * UNIT + of_leaf
        of_sums = of_sums_without_rows(plan) + of_leaf
        return cls(fixed, of_best, of_sums, float(most), most_of_best)

    def of_maximum(self, n_leaves: float) -> float:
        """Return how much more probable any tree may be than a found one with some leaves, nats."""
        return 2 * self.fixed + self.of_best * (n_leaves + self.most_of_best)

    @property
    def is_large(self) -> bool:
        """Whether sums may have large errors if trees have as many leaves as there are cells."""
        return self.of_sums * self.most > _MUCH

    def of_sum(self, log_sum: float, log_tilted: float | None = None) -> float:
        """Return the rounding of a log sum, nats; `log_tilted`: the sum with `TILT` a leaf."""
        n_leaves = self.most
        if log_tilted is not None and 4 * self.of_sums < TILT:
            lost = EVALUATED * UNIT * (abs(log_sum) + abs(log_tilted)) + 2 * self.fixed
            n_leaves = min(n_leaves, (log_tilted - log_sum + lost) / (TILT - 2 * self.of_sums))
        return self.fixed + self.of_sums * n_leaves


def _most_in_empty_box(plan: SearchPlan, stop: float) -> float:
    """Return a sufficient number of leaves for the best tree below a box without rows."""
    fewer = ceil((1.0 - stop) / stop)  # bound on the number of columns of several levels
    largest = sorted(plan.n_levels, reverse=True)[: max(0, fewer - 1)]
    return float(min(prod(largest), 10**300))


def of_sums_without_rows(plan: SearchPlan) -> float:
    """Return a bound on the error of sums over all trees without data, nats for each leaf."""
    return (_OF_LEAF + _n_additions(plan)) * UNIT


def _n_additions(plan: SearchPlan) -> float:
    """Return the largest number of additions for any term of a box.

    For each column, this is the number of two-way partitions of its whole block, for each number of
    branches, and each pair of entries; the short way adds all partitions one by one.
    """
    pairs = 0.0
    for q, nominal in plan.kinds:
        if plan.partitions == "levels":
            pairs += q
        else:
            pairs += 2.0 ** (q - 1) if nominal else q
    if plan.is_short:
        pairs = max(pairs, float(sum(plan.n_ways)))
    n_entries = 1.0 if plan.shift == 0 else float(plan.n_entries(0))
    if plan.shift == UNION:
        n_entries **= 2
    return (pairs * n_entries + 1.0) * (plan.most + 1.0)
