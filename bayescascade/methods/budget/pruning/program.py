"""The 0-1 program of pruning a forest by its error and the costs of its features.

Nan (2018), section 4.2, states it in variables z of a node (it is a leaf of the pruned tree), w of
a tree, a feature and a row (the row pays for the feature in that tree) and w of a feature and a
row (in any tree)::

    minimize  1 / (N T) sum_t sum_h e_h z_h
              + tradeoff (1 / N sum_i sum_k c_k w_ki  +  1 / N sum_t sum_h |S_h| d_h z_h)       (IP)

where the z of a path from a root to a leaf sum to 1, w_tki = 1 - (the sum of z from the root to the
first node u of the row's path that reads k), and w_tki <= w_ki. With ``s_v`` = 1 if split v is
kept, that is, if no node from the root to v is a leaf, all terms are sums over splits: z_h =
s_parent(h) - s_h, w_tki = s_u, and the least w_ki is the largest s_u over the trees. A row's depth
in a tree is the number of kept splits on its path, so the last sum is that of |S_v| s_v over
splits. So

    minimize  base_error - sum_v error_gain_v s_v
              + tradeoff (sum_v work_v s_v  +  sum_u use_cost_u max_{v asks for u} s_v)
    where  s_v <= s_parent(v)

A *use* u is a cost item (a feature, or a group of features paid for once) and a validation row. A
split asks for it if the row passes the split and no split above asks for the same use. The result
is a closure problem: keeping a split requires keeping the one above and paying for its uses.

*Departures.* Errors are shares of the weight of each tree's own rows, which is the paper's 1 / N
for bootstrap samples as large as the data. Items include groups. The computation cost is weighted
by `split_cost`, and is 0 by default, as in the paper's experiments. Rows that pass the same splits
are merged to one row with their summed weight.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayescascade.base.arrays import Codes, Flags, Floats, Integers
from bayescascade.base.validation import check_real, check_weights
from bayescascade.costs.items import CostItems
from bayescascade.methods.budget.forests.forest import Forest
from bayescascade.methods.budget.pruning.kernels.programs import find_first_items, mark_uses
from bayescascade.model.guard import UNIT

SEEN = 5e-5
"""Half of the last digit of an error rate that is printed in percent with two decimals."""


@dataclass(frozen=True, slots=True, eq=False)
class PruningProgram:
    """The gains and costs of a forest's splits, to choose the `kept` ones, (n_splits,) bool."""

    # (n_trees + 1,) int64: splits of tree t are tree_starts[t]:tree_starts[t + 1], in preorder
    tree_starts: Integers
    node: Codes  # (n_splits,) int32: the node of each split in the forest
    parent: Codes  # (n_splits,) int32: the split above, which precedes it; -1 at roots
    # (n_splits,) float64: decrease of the mean error rate of the trees by keeping it; may be
    # negative if errors are measured on other rows than those of the trees
    error_gain: Floats
    base_error: float  # in [0, 1]: mean error rate of the trees' roots
    work: Floats  # (n_splits,) float64 >= 0: `split_cost` times the share of rows that pass it
    use_cost: Floats  # (n_uses,) float64 > 0: cost of the item times the share of the rows
    use_item: Codes  # (n_uses,) int32: the item, by its place in `CostItems.names`
    # (n_splits + 1,) int64: split v asks for edge_use[edge_starts[v]:edge_starts[v + 1]]
    edge_starts: Integers
    edge_use: Codes  # (n_edges,) int32: uses

    @classmethod
    def of(
        cls,
        forest: Forest,
        items: CostItems,
        X_val: NDArray[np.float32],
        row_weight: ArrayLike | None = None,
        *,
        split_cost: float = 0.0,
        counts: Floats | None = None,
    ) -> "PruningProgram":
        """Return the program of a forest, with its costs on rows.

        X_val (n_rows, n_columns) float32, of weights `row_weight`; split_cost >= 0; counts
        (n_nodes, n_classes): the weight of each class at a node, by default the forest's own.
        """
        check_real("split_cost", split_cost, minimum=0.0)
        weights = check_weights(
            "row_weight", np.ones(len(X_val)) if row_weight is None else row_weight, len(X_val)
        )
        node = np.flatnonzero(forest.is_split).astype(np.int32)
        tree_starts = np.searchsorted(node, forest.tree_starts)
        parent_node = forest.parents[node]
        parent = np.where(parent_node < 0, -1, np.searchsorted(node, parent_node)).astype(np.int32)
        error_gain, base_error = _errors(forest, node, forest.counts if counts is None else counts)
        slot_split, slot_item = _first_items(parent, forest.feature[node], items)
        passing = _Passing.of(forest, node, X_val, weights)
        slot, edge_row = passing.rows(slot_split)
        use, edge_use = np.unique(
            slot_item[slot] * np.int64(passing.share.size) + edge_row, return_inverse=True
        )
        item, row = np.divmod(use, passing.share.size)
        return cls(
            tree_starts=tree_starts,
            node=node,
            parent=parent,
            error_gain=error_gain,
            base_error=base_error,
            work=split_cost * passing.shares(),
            use_cost=items.costs[item] * passing.share[row],
            use_item=item.astype(np.int32),
            edge_starts=np.searchsorted(slot_split[slot], np.arange(node.size + 1)),
            edge_use=edge_use.astype(np.int32),
        )

    @property
    def n_splits(self) -> int:
        """Number of splits."""
        return self.node.size

    @property
    def n_uses(self) -> int:
        """Number of uses."""
        return self.use_cost.size

    @property
    def edge_split(self) -> Codes:
        """The split of each entry of `edge_use`, (n_edges,) int32."""
        return np.repeat(np.arange(self.n_splits, dtype=np.int32), np.diff(self.edge_starts))

    def objective(self, kept: Flags, tradeoff: float) -> float:
        """Return the value of (IP): error + tradeoff x cost."""
        return self.error(kept) + tradeoff * self.cost(kept)

    def rounding(self, kept: Flags, tradeoff: float) -> float:
        """Return a bound on the rounding error of a pruning's `objective`.

        The error of a sum of n numbers is at most ``n UNIT`` times their sizes, in any order.
        """
        sizes = self.base_error + np.abs(self.error_gain[kept]).sum() + tradeoff * self.cost(kept)
        return float((self.n_splits + self.n_uses + 4) * UNIT * sizes)

    def error(self, kept: Flags) -> float:
        """Return the mean error rate of the single pruned trees."""
        return float(self.base_error - self.error_gain[kept].sum())

    def cost(self, kept: Flags) -> float:
        """Return the mean cost of a row: of its uses, and of the splits on its paths."""
        return float(self.work[kept].sum() + self.use_cost[self.used(kept)].sum())

    def used(self, kept: Flags) -> Flags:
        """Return whether each use is paid for, (n_uses,) bool."""
        used = np.zeros(self.n_uses, np.bool_)
        mark_uses(kept, self.edge_starts, self.edge_use, used)
        return used

    def is_closed(self, kept: Flags) -> bool:
        """Return whether the split above each kept split is also kept."""
        inner = self.parent >= 0
        return not np.any(kept[inner] & ~kept[self.parent[inner]])

    def between(self, lower: Flags, upper: Flags) -> tuple["PruningProgram", Integers]:
        """Return the program of the splits between a pruning and a larger one, and these splits.

        lower, upper (n_splits,) bool; its cost is the additional cost beyond that of `lower`.
        """
        splits = np.flatnonzero(upper & ~lower)
        place = np.full(self.n_splits + 1, -1, np.int32)  # the last is for parents of roots
        place[splits] = np.arange(splits.size)
        of_edge = place[self.edge_split]
        is_inner = (of_edge >= 0) & ~self.used(lower)[self.edge_use]
        edge_use = self.edge_use[is_inner]
        is_use = np.zeros(self.n_uses, np.bool_)
        is_use[edge_use] = True
        n_edges = np.bincount(of_edge[is_inner], minlength=splits.size)
        inner = PruningProgram(
            tree_starts=np.searchsorted(splits, self.tree_starts),
            node=self.node[splits],
            parent=place[self.parent[splits]],
            error_gain=self.error_gain[splits],
            base_error=self.error(lower),
            work=self.work[splits],
            use_cost=self.use_cost[is_use],
            use_item=self.use_item[is_use],
            edge_starts=np.append(0, np.cumsum(n_edges)),
            edge_use=(np.cumsum(is_use) - 1)[edge_use].astype(np.int32),
        )
        return inner, splits


@dataclass(frozen=True, slots=True, eq=False)
class Pruning:
    """The result of a solver: a pruning, and a lower bound for all prunings, minus rounding."""

    kept: Flags  # (n_splits,), closed under parents
    tradeoff: float  # >= 0, error rate that a unit of cost is worth
    objective: float  # error + tradeoff x cost; see `PruningProgram.objective`
    lower_bound: float  # no pruning has a lower objective
    rounding: float
    interrupted: bool = False  # by Ctrl-C

    @classmethod
    def of(
        cls,
        program: PruningProgram,
        kept: Flags,
        tradeoff: float,
        claimed_bound: float,
        interrupted: bool = False,
        *,
        rounding: float = 0.0,
    ) -> "Pruning":
        """Return a pruning with its objective and a bound, whose error is at most `rounding`.

        The rounding is subtracted from the bound; the objective has its own rounding.
        """
        objective = program.objective(kept, tradeoff)
        lower_bound = min(claimed_bound - rounding, objective)
        apart = 2 * rounding + program.rounding(kept, tradeoff)
        return cls(kept, tradeoff, objective, lower_bound, apart, interrupted)

    @property
    def gap(self) -> float:
        """See `relative_gap`."""
        return relative_gap(self.objective, self.lower_bound, self.rounding)


def is_proved(difference: float, rounding: float) -> bool:
    """Return whether a difference from a bound is rounding, and too small to show in prints."""
    return difference <= rounding < SEEN


def relative_gap(objective: float, lower_bound: float, rounding: float) -> float:
    """Return a bound on the share by which an objective could be lower: >= 0, and 0 is proof.

    A difference up to `rounding`, which must be proved, counts as 0, unless it shows in print. If
    the objective is 0, any other difference is an infinite share.
    """
    difference = objective - lower_bound
    if is_proved(difference, rounding):
        return 0.0
    return difference / abs(objective) if objective else math.inf


class _Passing(NamedTuple):
    """The rows that pass each split: a range, because a tree's rows are sorted by leaf."""

    share: Floats  # (n_rows,) of the total weight; rows that pass the same splits are merged
    order: Integers  # (n_trees, n_rows) rows by leaf
    starts: Integers  # (n_splits,) index into flat `order`
    ends: Integers

    @classmethod
    def of(
        cls, forest: Forest, node: Codes, X_val: NDArray[np.float32], weights: Floats
    ) -> "_Passing":
        weighted = weights > 0
        leaves = forest.apply(X_val[weighted])
        _, example, group = np.unique(
            forest.parents[leaves], axis=0, return_index=True, return_inverse=True
        )
        share = np.bincount(group.ravel(), weights[weighted]) / weights.sum()
        by_tree = leaves[example].T
        order = np.argsort(by_tree, axis=1, kind="stable")
        # The trees are in order, and so are the leaves of each, so the array is ascending.
        leaf = np.take_along_axis(by_tree, order, axis=1).ravel()
        return cls(
            share, order, np.searchsorted(leaf, node), np.searchsorted(leaf, forest.ends[node])
        )

    def shares(self) -> Floats:
        """Return the share of the total weight that passes each split."""
        total = np.concatenate([[0.0], np.cumsum(self.share[self.order])])
        shares: Floats = total[self.ends] - total[self.starts]
        return shares

    def rows(self, splits: Integers) -> tuple[Integers, Integers]:
        """Return the index of its split, and the row, for each row of each of the given splits."""
        size = (self.ends - self.starts)[splits]
        place = np.repeat(np.arange(splits.size), size)
        first = np.concatenate([[0], np.cumsum(size)[:-1]]) if splits.size else size
        inside = np.arange(place.size) - first[place]
        return place, self.order.ravel()[self.starts[splits][place] + inside]


def _errors(forest: Forest, node: Codes, counts: Floats) -> tuple[Floats, float]:
    """Return the gain of each split, and the mean error rate of the roots."""
    wrong = forest.errors(counts)
    roots = forest.roots
    total = counts[roots].sum(axis=1)
    # a tree without rows has the error 0
    per_row = np.divide(1.0, total * roots.size, out=np.zeros(total.shape), where=total > 0)
    gain = wrong[node] - wrong[node + 1] - wrong[forest.right[node]]
    tree = np.searchsorted(roots, node, side="right") - 1
    return gain * per_row[tree], float(wrong[roots] @ per_row)


def _first_items(parent: Codes, column: Codes, items: CostItems) -> tuple[Integers, Integers]:
    """Return splits and items for which the split is the first on its path with the item."""
    n_items = (items.starts[1:] - items.starts[:-1])[column]
    slot_starts = np.concatenate([[0], np.cumsum(n_items)])
    is_first = np.empty(slot_starts[-1], np.bool_)
    find_first_items(parent, column, items.starts, items.items, slot_starts, is_first)
    split = np.repeat(np.arange(column.size), n_items)
    place = items.starts[column][split] + np.arange(split.size) - slot_starts[split]
    return split[is_first], items.items[place[is_first]]
