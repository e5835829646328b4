"""Growing one boosted tree of given depth, from histograms of binned columns.

At a node whose rows have gradients of sum G and curvatures of sum H, a cut into sides L and R gains

    1/2 [G_L^2 / (H_L + ridge) + G_R^2 / (H_R + ridge) - G^2 / (H + ridge)] - price of its column,

the fall of the loss by Newton's method, and a leaf has the value ``rate G / (H + ridge)``. A column
has the price of its items that are not paid yet: ``once`` times their cost for the whole model, and
``per_row`` times their cost and the size of the node's rows that have not paid. Nodes of a level
are cut from left to right. Each has the cut of the largest gain, if that is positive, and among
ties the first column and cut. Later cuts need not pay again for the items of a cut.

Histograms are summed over rows at the root and in the smaller one of two siblings; those of the
larger one are the difference to their parent.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.jit import inner_kernel, kernel

Array = NDArray[Any]  # the docstrings give dtypes

LEAF = -1


class Binned(NamedTuple):
    """Binned rows, and the items of their columns."""

    codes: Array  # (n, p) uint8; the number of bins for a missing cell
    n_bins: Array  # (p,) int64, without missing cells
    starts: Array  # (p + 1,) int64, starts of each column's items in `items`
    items: Array  # (n_incurred,) int64
    costs: Array  # (m,) float64 > 0


class CostPenalty(NamedTuple):
    """The price of a unit of cost, nats, and the items that are paid."""

    once: float
    per_row: float
    bought: Array  # (m,) bool, items paid by the model
    paid: Array  # (n, m) uint8, items paid by each row; without rows if per_row is 0
    sizes: Array  # (n,) float64, weights of rows in payments


class GateGrowth(NamedTuple):
    """How trees grow."""

    depth: int
    ridge: float
    least: float  # minimum curvature of a side
    rate: float


class SplitWorkspace(NamedTuple):
    """Workspace for K = 2^depth - 1 splits, with 2^(depth - 1) slots of histograms, at least 1."""

    order: Array  # (n,) int64, rows, grouped by node
    other: Array  # (n,) int64
    sums: Array  # (n_slots, p, n_codes, 2) float64, sums of gradients and curvatures
    unpaid: Array  # (n_slots, m) float64
    starts: Array  # (2 K + 1,) int64
    ends: Array  # (2 K + 1,) int64
    slots: Array  # (2 K + 1,) int64


class BoostedTree(NamedTuple):
    """A tree, as a heap: the children of node k are 2 k + 1 and 2 k + 2; (2 K + 1,) each."""

    column: Array  # int64, -1 at leaves
    cut: Array  # int64, the last bin on the left
    missing_left: Array  # bool
    value: Array  # float64, values of leaves
    gain: Array  # float64, gains of splits


@kernel
def grow_tree(
    data: Binned,
    prices: CostPenalty,
    growth: GateGrowth,
    space: SplitWorkspace,
    gradients: NDArray[np.float64],
    curvatures: NDArray[np.float64],
    tree: BoostedTree,
    scores: NDArray[np.float64],
) -> int:
    """Grow a tree, add its values to scores (n,) and pay for its items; return its splits.

    gradients (n,): negative gradients of the loss of all rows; curvatures (n,): >= 0.
    """
    n, n_splits = data.codes.shape[0], 0
    for i in range(n):
        space.order[i] = i
    space.starts[0], space.ends[0], space.slots[0] = 0, n, 0
    tree.column[:] = LEAF
    next_slot, first = 1, 0
    _gather(data, prices, space, gradients, curvatures, 0)
    for depth in range(growth.depth):
        for node in range(first, 2 * first + 1):
            if depth > 0 and tree.column[(node - 1) // 2] == LEAF:
                continue
            found = _best_cut(data, prices, growth, space, node)
            if found[1] == LEAF:
                continue
            n_splits += 1
            tree.column[node], tree.cut[node], tree.missing_left[node] = found[1:]
            tree.gain[node] = found[0]
            _pay(data, prices, space, node, found[1])
            _part(data, space, node, found[1], found[2], found[3])
            if depth + 1 < growth.depth:
                _share(data, prices, space, gradients, curvatures, node, next_slot)
                next_slot += 1
        first = 2 * first + 1
    _value_leaves(growth, space, gradients, curvatures, tree, scores)
    return n_splits


@inner_kernel
def _gather(data, prices, space, gradients, curvatures, node):
    """Sum the node's rows into its slot."""
    slot = space.slots[node]
    sums, unpaid = space.sums[slot], space.unpaid[slot]
    sums[:] = 0.0
    n_columns = data.codes.shape[1]
    for place in range(space.starts[node], space.ends[node]):
        i = space.order[place]
        gradient, curvature = gradients[i], curvatures[i]
        codes = data.codes[i]
        for j in range(n_columns):
            cell = sums[j, codes[j]]
            cell[0] += gradient
            cell[1] += curvature
    unpaid[:] = 0.0
    if prices.per_row > 0.0:
        for place in range(space.starts[node], space.ends[node]):
            i = space.order[place]
            size, paid = prices.sizes[i], prices.paid[i]
            for item in range(unpaid.shape[0]):
                unpaid[item] += size * (1 - paid[item])


@inner_kernel
def _best_cut(data, prices, growth, space, node):
    """Return the gain, column, last bin on the left and side of missing cells of the best cut."""
    sums, unpaid = space.sums[space.slots[node]], space.unpaid[space.slots[node]]
    gradient, curvature = 0.0, 0.0
    for code in range(data.n_bins[0] + 1):
        gradient += sums[0, code, 0]
        curvature += sums[0, code, 1]
    whole = _worth(growth, gradient, curvature)
    best, best_column, best_cut, best_side = 0.0, np.int64(LEAF), np.int64(0), False
    for j in range(data.n_bins.shape[0]):
        price, n_bins = _price(data, prices, unpaid, j), data.n_bins[j]
        missing = sums[j, n_bins]
        is_missing = missing[1] > 1e-9 * curvature  # more than rounding errors of sums
        for side in range(2 if is_missing else 1):
            g, h = (missing[0], missing[1]) if side == 1 else (0.0, 0.0)
            for code in range(n_bins if is_missing and side == 0 else n_bins - 1):
                g += sums[j, code, 0]
                h += sums[j, code, 1]
                if h < growth.least or curvature - h < growth.least:
                    continue
                gain = _worth(growth, g, h) + _worth(growth, gradient - g, curvature - h)
                gain = 0.5 * (gain - whole) - price
                if gain > best:
                    best, best_column, best_cut = gain, np.int64(j), np.int64(code)
                    best_side = side == 1
    return best, best_column, best_cut, best_side


@inner_kernel
def _worth(growth, gradient, curvature):
    return gradient * gradient / (curvature + growth.ridge) if curvature > 0.0 else 0.0


@inner_kernel
def _price(data, prices, unpaid, column):
    """Return the price of a column at a node, nats."""
    price = 0.0
    for place in range(data.starts[column], data.starts[column + 1]):
        item = data.items[place]
        if not prices.bought[item]:
            price += prices.once * data.costs[item]
        price += prices.per_row * data.costs[item] * unpaid[item]
    return price


@inner_kernel
def _pay(data, prices, space, node, column):
    """Mark a column's items as paid by the model and by the node's rows."""
    unpaid = space.unpaid[space.slots[node]]
    for place in range(data.starts[column], data.starts[column + 1]):
        item = data.items[place]
        prices.bought[item] = True
        unpaid[item] = 0.0
        if prices.per_row > 0.0:
            for k in range(space.starts[node], space.ends[node]):
                prices.paid[space.order[k], item] = 1


@inner_kernel
def _part(data, space, node, column, cut, missing_left):
    """Order the node's rows by its children."""
    start, end = space.starts[node], space.ends[node]
    n_bins, left, right = data.n_bins[column], start, 0
    for place in range(start, end):
        i = space.order[place]
        code = data.codes[i, column]
        if code <= cut or (code == n_bins and missing_left):
            space.order[left] = i
            left += 1
        else:
            space.other[right] = i
            right += 1
    for k in range(right):
        space.order[left + k] = space.other[k]
    for child, begin, stop in ((2 * node + 1, start, left), (2 * node + 2, left, end)):
        space.starts[child], space.ends[child] = begin, stop


@inner_kernel
def _share(data, prices, space, gradients, curvatures, node, next_slot):
    """Sum the smaller child's rows into a new slot, and subtract them in the larger one's."""
    first, second = 2 * node + 1, 2 * node + 2
    small, large = first, second
    if space.ends[first] - space.starts[first] > space.ends[second] - space.starts[second]:
        small, large = second, first
    space.slots[small], space.slots[large] = next_slot, space.slots[node]
    _gather(data, prices, space, gradients, curvatures, small)
    part, rest = space.sums[next_slot], space.sums[space.slots[large]]
    for j in range(data.n_bins.shape[0]):
        for code in range(data.n_bins[j] + 1):
            rest[j, code, 0] -= part[j, code, 0]
            rest[j, code, 1] -= part[j, code, 1]
    of_part, of_rest = space.unpaid[next_slot], space.unpaid[space.slots[large]]
    for item in range(of_part.shape[0]):
        of_rest[item] -= of_part[item]


@inner_kernel
def _value_leaves(growth, space, gradients, curvatures, tree, scores):
    """Calculate values of leaves, and add them to the scores of their rows."""
    for node in range(tree.column.shape[0]):
        is_there = node == 0 or tree.column[(node - 1) // 2] != LEAF
        if not is_there or tree.column[node] != LEAF:
            continue
        gradient, curvature = 0.0, 0.0
        for place in range(space.starts[node], space.ends[node]):
            gradient += gradients[space.order[place]]
            curvature += curvatures[space.order[place]]
        value = 0.0
        if curvature > 0.0:
            value = growth.rate * gradient / (curvature + growth.ridge)
        tree.value[node] = value
        for place in range(space.starts[node], space.ends[node]):
            scores[space.order[place]] += value
