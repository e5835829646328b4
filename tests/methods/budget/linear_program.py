"""The linear relaxation of the pruning program, for SciPy's HiGHS: an oracle of small problems.

(IP) is built as Nan (2018), section 4.2, prints it, with its variables relaxed to [0, 1]: z of
every node, w of every edge (a tree, a use) and w of every use; an equation for every leaf, one for
every edge, and an inequality for every edge. By the thesis's theorem 4.3.2 it has optimal solutions
of whole numbers, which a simplex method finds, or the crossover after an interior point one.

What a leaf costs enters by what each split loses, error gained less, as a program knows it: of the
costs of two children, any are the same to (IP) that together are their parent's and that loss.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, hstack, vstack

from bayescascade.methods.prunings.program import PruningProgram

__all__ = ["LinearRelaxation", "relax"]

Floats = NDArray[np.float64]


class LinearRelaxation(NamedTuple):
    """An optimal solution of the relaxed program.

    Parameters
    ----------
    split_is_leaf : (n_splits,) float64 in [0, 1]
        z of the splits.
    is_leaf : (n_leaves,) float64 in [0, 1]
        z of the leaves of trees that have splits.
    edge_is_used : (n_edges,) float64 in [0, 1]
        w of a tree and a use, in the order of `PruningProgram.edge_use`.
    is_used : (n_uses,) float64 in [0, 1]
        w of a use.
    kept : (n_splits,) float64 in [0, 1]
        1 less the sum of z from the root to the split.
    value : float
        The optimum, hence a lower bound of all prunings' objectives.
    """

    split_is_leaf: Floats
    is_leaf: Floats
    edge_is_used: Floats
    is_used: Floats
    kept: Floats
    value: float


def relax(program: PruningProgram, tradeoff: float) -> LinearRelaxation:
    """Solve the relaxed program."""
    if not program.n_splits:
        none = np.zeros(0)
        return LinearRelaxation(none, none, none, none, none, program.base_error)
    path = _paths(program.parent)
    n_inner = np.bincount(program.parent[program.parent >= 0], minlength=program.n_splits)
    leaf_parent = np.repeat(np.arange(program.n_splits), 2 - n_inner)
    sizes = (program.n_splits, leaf_parent.size, program.edge_use.size, program.n_uses)
    costs = [
        *_node_costs(program.parent, tradeoff * program.work - program.error_gain, leaf_parent),
        np.zeros(program.edge_use.size),
        tradeoff * program.use_cost,
    ]
    equations = [
        _row(sizes, [path[leaf_parent], eye_array(leaf_parent.size), None, None]),
        _row(sizes, [path[program.edge_split], None, eye_array(program.edge_use.size), None]),
    ]
    use = csr_array((np.ones(sizes[2]), program.edge_use, np.arange(sizes[2] + 1)), shape=sizes[2:])
    result = linprog(
        np.concatenate(costs),
        A_eq=vstack(equations),
        b_eq=np.ones(sizes[1] + sizes[2]),
        A_ub=_row(sizes, [None, None, eye_array(sizes[2]), -use]),
        b_ub=np.zeros(sizes[2]),
        bounds=(0.0, 1.0),
    )
    assert result.status == 0, result.message
    leaf, end, used, last = np.split(result.x, np.cumsum(sizes)[:-1])
    return LinearRelaxation(leaf, end, used, last, 1 - path @ leaf, program.base_error + result.fun)


def _paths(parent: NDArray[np.int32]) -> csr_array:
    """Return the matrix of 1 where a column's split is a row's split or above it."""
    pairs = []
    split, above = np.arange(parent.size), np.arange(parent.size, dtype=np.int32)
    while split.size:
        pairs.append((split, above))
        has_parent = parent[above] >= 0
        split, above = split[has_parent], parent[above[has_parent]]
    rows, columns = map(np.concatenate, zip(*pairs, strict=True))
    return csr_array((np.ones(rows.size), (rows, columns)), shape=(parent.size, parent.size))


def _node_costs(
    parent: NDArray[np.int32], loss: Floats, leaf_parent: NDArray[np.int64]
) -> tuple[Floats, Floats]:
    """Return costs of splits and leaves as leaves: each half its parent's and that one's loss."""
    costs = np.zeros(parent.size)
    for split, above in enumerate(parent):
        if above >= 0:
            costs[split] = (costs[above] + loss[above]) / 2
    return costs, (costs + loss)[leaf_parent] / 2


def _row(sizes: tuple[int, ...], blocks: list[Any]) -> csr_array:  # Any: of several sparse types
    """Return blocks of so many columns side by side, where None is a block of zeros."""
    n_rows = next(block.shape[0] for block in blocks if block is not None)
    return hstack(
        [
            csr_array((n_rows, size)) if block is None else block
            for size, block in zip(sizes, blocks, strict=True)
        ],
        format="csr",
    )
