"""What the kernels that grow trees share: rows, costs, settings, a work space, and the tree."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "MISSING",
    "MOST_STUMPS",
    "Array",
    "GrowingArrays",
    "GrownNodes",
    "GrowthCosts",
    "GrowthLimits",
    "Work",
    "new_nodes",
    "new_work",
]

Array = NDArray[Any]  # the docstrings give dtypes

MISSING = -1
"""The code of a missing value."""

MOST_STUMPS = 80


class GrowingArrays(NamedTuple):
    """The rows that trees are grown on, of n rows, d columns and k classes.

    codes (d, n) int32: the place of each value among its column's distinct values or bins,
    ascending, or MISSING; starts (d + 1,) int64: where a column's values start in lows and highs
    (n_values,) float64, the least and greatest value of each code; labels (n,) int64 < k; weights
    (n,) float64 >= 0.
    """

    codes: Array
    starts: Array
    lows: Array
    highs: Array
    labels: Array
    weights: Array


class GrowthCosts(NamedTuple):
    """What columns cost: the items each of them incurs, as in CostItems.

    costs (n_items,) float64 > 0; starts (d + 1,) int64 and items int64: column j incurs
    items[starts[j]:starts[j + 1]]; exponent >= 0: the power that costs are raised to;
    reuse_is_free: whether items paid on the path cost nothing.
    """

    costs: Array
    starts: Array
    items: Array
    exponent: float
    reuse_is_free: bool


class GrowthLimits(NamedTuple):
    """Most depth, most columns looked at for a split, and whether random cuts only are."""

    max_depth: int
    max_features: int
    has_stumps: bool


class GrownNodes(NamedTuple):
    """The nodes of a tree, in the layout of a Forest, with room for m nodes.

    feature (m,) int32; threshold (m,) float64; missing_left (m,) bool; counts (m, k)
    float64.
    """

    feature: Array
    threshold: Array
    missing_left: Array
    counts: Array


class Work(NamedTuple):
    """What a tree is grown with; s is the largest number of stumps.

    rows, kept (n,) int32: the rows, those of a node in one stretch, and room to divide one;
    labels (n,) int64 and weights (n,) float64: of the rows of the node at hand; part (n,) int64:
    those of them that are not missing in the column at hand, code and place in one number. left,
    right, trial, missing (k,) float64: class counts. columns (d,) int64: the columns in the order
    they are looked at, first those known not to vary. path (n,) int32: the columns of the node's
    ancestors; paid (n_items,) bool: the items that they incur. pending (n, 4) int64: the right
    children that are yet to be grown: start, end, depth, and how many columns are known not to
    vary. stumps (s,) int32.
    """

    rows: Array
    kept: Array
    labels: Array
    weights: Array
    part: Array
    left: Array
    right: Array
    trial: Array
    missing: Array
    columns: Array
    path: Array
    paid: Array
    pending: Array
    stumps: Array


def new_nodes(n_nodes: int, n_classes: int) -> GrownNodes:
    """Return room for a tree; pages of it that stay unused take no memory."""
    return GrownNodes(
        feature=np.empty(n_nodes, np.int32),
        threshold=np.empty(n_nodes),
        missing_left=np.empty(n_nodes, np.bool_),
        counts=np.empty((n_nodes, n_classes)),
    )


def new_work(n_rows: int, n_columns: int, n_classes: int, n_items: int) -> Work:
    """Return a work space for trees of up to n_rows distinct rows."""
    return Work(
        rows=np.empty(n_rows, np.int32),
        kept=np.empty(n_rows, np.int32),
        labels=np.empty(n_rows, np.int64),
        weights=np.empty(n_rows),
        part=np.empty(n_rows, np.int64),
        left=np.empty(n_classes),
        right=np.empty(n_classes),
        trial=np.empty(n_classes),
        missing=np.empty(n_classes),
        columns=np.arange(n_columns),
        path=np.empty(n_rows, np.int32),
        paid=np.empty(n_items, np.bool_),
        pending=np.empty((n_rows, 4), np.int64),
        stumps=np.empty(MOST_STUMPS, np.int32),
    )
