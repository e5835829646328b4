"""The rows that trees were not grown on, by which a forest can be judged without others."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.errors import ParameterError
from bayescascade.methods.forests.forest import Forest

Bools = NDArray[np.bool_]


def has_bags(estimator: Any) -> bool:
    """Return whether a fitted estimator says which rows each of its trees was grown on."""
    return bool(getattr(estimator, "bootstrap", False)) and hasattr(
        estimator, "estimators_samples_"
    )


def out_of_bag(estimator: Any, n_rows: int, what_for: str) -> NDArray[np.bool_]:
    """Return which trees of a forest were not grown on which rows, (n_rows, n_trees) bool.

    Raises ParameterError if the forest has no bags, or was grown on another number of rows.
    """
    if not has_bags(estimator):
        got = " with bootstrap=False" if hasattr(estimator, "bootstrap") else ""
        raise ParameterError(
            f"{what_for} needs a forest of scikit-learn with bootstrap=True, "
            f"got a {type(estimator).__name__}{got}"
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


def votes_of(pruned: Forest, outside: Bools) -> Bools:
    """Return which trees vote on rows out of their bags, (n_rows, n_trees) bool.

    As in predictions, trees without a split do not where others have one.
    """
    splits = pruned.is_split[pruned.roots]
    return outside & splits if splits.any() else outside


def wrong_out_of_bag(
    pruned: Forest, rows: NDArray[np.float32], labels: NDArray[np.int64], outside: Bools
) -> Bools:
    """Return whether rows are classified wrongly by the trees that were not grown on them.

    `pruned` has all trees as they were pruned; rows (n_rows, n_columns); labels (n_rows,), places
    of classes; outside (n_rows, n_trees) says which trees were not grown on which rows; what is
    returned (n,) bool, of the rows outside the bag of a tree. As in predictions, trees without a
    split do not vote where others have one.
    """
    votes = votes_of(pruned, outside)
    leaves = pruned.apply(rows)
    shares = np.zeros((len(rows), pruned.n_classes))
    for tree in range(pruned.n_trees):
        of_tree = pruned.probabilities[leaves[:, tree]]
        shares += np.where(votes[:, tree, np.newaxis], of_tree, 0.0)
    is_told = votes.any(axis=1)
    wrong: Bools = shares[is_told].argmax(axis=1) != labels[is_told]
    return wrong
