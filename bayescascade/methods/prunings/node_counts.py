"""How many rows of each class come to each node of a forest, other than those it was grown on.

A program may measure errors on any rows: on a validation set or, tree by tree, on the rows that are
not in the tree's bag.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.errors import ParameterError
from bayescascade.methods.forests.forest import Forest
from bayescascade.methods.prunings.kernels.programs import find_ends

__all__ = ["count_classes", "out_of_bag"]


def count_classes(
    forest: Forest,
    rows: NDArray[np.float32],
    labels: NDArray[np.int64],
    is_counted: NDArray[np.bool_] | None = None,
) -> NDArray[np.float64]:
    """Return how many rows of each class come to each node, (n_nodes, n_classes) float64.

    Parameters
    ----------
    forest : Forest
    rows : (n_rows, n_columns) float32
    labels : (n_rows,) int64
        Position of each row's class.
    is_counted : (n_rows, n_trees) bool, optional
        Which trees count each row; all of them by default.
    """
    leaves = forest.apply(rows)
    cell = leaves * np.int64(forest.n_classes) + labels[:, np.newaxis]
    if is_counted is not None:
        cell = cell[is_counted]
    at_leaves = np.bincount(cell.ravel(), minlength=forest.counts.size)
    # A subtree is a range of nodes: what comes to its root is the sum over its leaves.
    below = np.zeros((forest.n_nodes + 1, forest.n_classes))
    np.cumsum(at_leaves.reshape(forest.counts.shape), axis=0, out=below[1:])
    ends = np.empty(forest.n_nodes, np.int64)
    find_ends(forest.right, ends)
    counts: NDArray[np.float64] = below[ends] - below[:-1]
    return counts


def out_of_bag(
    estimator: Any,  # a fitted forest
    n_rows: int,
    what_for: str = 'errors="out_of_bag"',
) -> NDArray[np.bool_]:
    """Return which trees of a forest were not grown on which rows, (n_rows, n_trees) bool.

    Raises
    ------
    ParameterError
        If the forest has no bags, or was grown on another number of rows.
    """
    if not getattr(estimator, "bootstrap", False) or not hasattr(estimator, "estimators_samples_"):
        raise ParameterError(
            f"{what_for} needs a forest of scikit-learn with bootstrap=True, "
            f"got a {type(estimator).__name__}"
        )
    if estimator._n_samples != n_rows:
        raise ParameterError(
            f"{what_for} needs the rows that the forest was fitted on, "
            f"{estimator._n_samples:,}, got {n_rows:,}"
        )
    bags = estimator.estimators_samples_
    outside = np.ones((n_rows, len(bags)), np.bool_)
    for tree, bag in enumerate(bags):
        outside[bag, tree] = False
    return outside
