"""Cost-complexity pruning of every tree of a forest by itself, all levels at once.

With R(h) the Gini impurity of node h times the share of its tree's rows, a tree pruned at level
alpha is the smallest one that minimizes ``sum_leaves R + alpha x number of leaves``. Such trees are
nested (Breiman, Friedman, Olshen and Stone 1984, chapter 3), so that all of them are told by the
level at which each split goes: the link between a split and the subtree below it is as weak as
``(R(h) - sum of R over its leaves) / (its leaves - 1)``, and the weakest is cut first. It is what
scikit-learn's ``ccp_alpha`` does to trees grown by the Gini impurity.
"""

import numpy as np
from numpy.typing import NDArray

from bayescascade.methods.forests.forest import Forest
from bayescascade.methods.prunings.kernels.programs import find_ends
from bayescascade.methods.prunings.kernels.weakest_links import find_levels

__all__ = ["best_levels", "split_levels"]

Floats = NDArray[np.float64]


def split_levels(forest: Forest) -> Floats:
    """Return the level at which each split goes, (n_nodes,) float64 >= 0; 0 at leaves.

    A tree pruned at a level keeps the splits that go at higher ones; no split goes later than the
    one above it.
    """
    totals = forest.counts.sum(axis=1)
    gini = 1.0 - (forest.probabilities**2).sum(axis=1)
    risk = gini * totals / np.repeat(totals[forest.roots], np.diff(forest.tree_starts))
    ends, alive = np.empty(forest.n_nodes, np.int64), np.empty(forest.n_nodes, np.int32)
    n_leaves = np.empty(forest.n_nodes, np.int64)
    branch_risk, levels = np.empty(forest.n_nodes), np.empty(forest.n_nodes)
    find_ends(forest.right, ends)
    find_levels(
        forest.tree_starts, forest.right, forest.parents, ends, risk, branch_risk, n_leaves, alive,
        levels,
    )  # fmt: skip
    return levels


def best_levels(forest: Forest, levels: Floats, counts: Floats) -> Floats:
    """Return the level of each tree at which it errs least on other rows, (n_trees,) float64.

    Parameters
    ----------
    forest : Forest
    levels : (n_nodes,) float64
        Of `split_levels`.
    counts : (n_nodes, n_classes) float64
        Weight of each class of the other rows at each node.

    Returns
    -------
    (n_trees,) float64
        The highest of equals, for the smallest tree; 0 keeps all but what is of no use.
    """
    wrong = forest.errors(counts)
    best = np.zeros(forest.n_trees)
    for tree in range(forest.n_trees):
        nodes = np.arange(*forest.tree_starts[tree : tree + 2])
        splits = nodes[forest.feature[nodes] >= 0]
        splits = splits[np.argsort(levels[splits], kind="stable")]
        worse = wrong[splits] - wrong[splits + 1] - wrong[forest.right[splits]]
        tried = np.unique(np.append(0.0, levels[splits]))
        n_cut = np.searchsorted(levels[splits], tried, side="right")
        errors = np.append(0.0, np.cumsum(worse))[n_cut]  # beyond the whole tree's
        best[tree] = tried[np.flatnonzero(errors <= errors.min())[-1]]
    return best
