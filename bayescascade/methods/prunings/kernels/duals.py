"""The compiled steps of the primal-dual method (numba, nothing else).

Edges are ordered by use here: those of use u are use_starts[u]:use_starts[u + 1], and edge e is of
split[e]. An edge's dual variable is what its split pays for its use.
"""

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.jit import inner_kernel, kernel

__all__ = ["measure_direction", "move_duals", "prune_trees"]


@kernel
def prune_trees(
    parent: NDArray[np.int32],
    loss: NDArray[np.float64],
    split: NDArray[np.int32],
    dual: NDArray[np.float64],
    value: NDArray[np.float64],
    kept: NDArray[np.bool_],
) -> float:
    """Prune each tree by itself, given what splits pay; return by how much that lessens losses.

    From the leaves up, `value` (n_splits,) becomes what the best pruning of a subtree gains if its
    top split is kept: less than its loss and duals, plus those of the splits below worth keeping.
    `kept` (n_splits,) is written.
    """
    for v in range(parent.shape[0]):
        value[v] = -loss[v]
    for edge in range(split.shape[0]):
        value[split[edge]] -= dual[edge]
    total = 0.0
    for v in range(parent.shape[0] - 1, -1, -1):
        if value[v] > 0.0:
            if parent[v] >= 0:
                value[parent[v]] += value[v]
            else:
                total += value[v]
    for v in range(parent.shape[0]):
        kept[v] = value[v] > 0.0 and (parent[v] < 0 or kept[parent[v]])
    return total


@kernel
def measure_direction(
    use_starts: NDArray[np.int64],
    split: NDArray[np.int32],
    price: NDArray[np.float64],
    kept: NDArray[np.bool_],
) -> tuple[float, float]:
    """Return the squared length of the subgradient and the price of the uses of kept splits.

    The subgradient is whether each edge's split is kept, less the mean of that over its use's
    edges, along which their sum does not change.
    """
    squared, paid = 0.0, 0.0
    for use in range(price.shape[0]):
        first, last = use_starts[use], use_starts[use + 1]
        n_kept = 0
        for edge in range(first, last):
            if kept[split[edge]]:
                n_kept += 1
        squared += n_kept - n_kept * n_kept / (last - first)
        if n_kept > 0:
            paid += price[use]
    return squared, paid


@kernel
def move_duals(
    use_starts: NDArray[np.int64],
    split: NDArray[np.int32],
    price: NDArray[np.float64],
    kept: NDArray[np.bool_],
    step: float,
    dual: NDArray[np.float64],
) -> None:
    """Let kept splits pay a step more, and go to the nearest duals >= 0 that add up to prices."""
    for use in range(price.shape[0]):
        first, last = use_starts[use], use_starts[use + 1]
        for edge in range(first, last):
            if kept[split[edge]]:
                dual[edge] += step
        surplus = _surplus(dual, first, last, price[use])
        for edge in range(first, last):
            dual[edge] = max(dual[edge] - surplus, 0.0)


@inner_kernel
def _surplus(dual, first, last, price):
    """Return what to take from each of some duals, those at 0 excepted, to add up to a price.

    Duals that would become negative are left out until none would (Michelot 1986).
    """
    surplus, n_before = -np.inf, last - first + 1
    while True:
        total, n_larger = 0.0, 0
        for edge in range(first, last):
            if dual[edge] > surplus:
                total += dual[edge]
                n_larger += 1
        if n_larger == 0 or n_larger >= n_before:  # the latter by rounding, or when it is found
            return surplus
        surplus, n_before = (total - price) / n_larger, n_larger
