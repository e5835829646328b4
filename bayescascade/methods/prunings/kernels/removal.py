"""What it would save to remove splits from a pruned forest (numba, nothing else)."""

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.jit import kernel

__all__ = ["saved_by_removal"]


@kernel
def saved_by_removal(
    removed: NDArray[np.bool_],
    edge_starts: NDArray[np.int64],
    edge_use: NDArray[np.int32],
    use_cost: NDArray[np.float64],
    n_asking: NDArray[np.int32],
    n_removed: NDArray[np.int32],
) -> float:
    """Return the cost of the uses that only removed splits ask for.

    removed (n_splits,) bool: among the splits kept; edge_starts (n_splits + 1,) int64 and edge_use
    (n_edges,) int32: what each asks for; use_cost (n_uses,) float64; n_asking (n_uses,) int32: kept
    splits that ask for each use. n_removed (n_uses,) int32: zeros, and zeros again afterwards.
    """
    saved = 0.0
    for split in range(removed.shape[0]):
        if removed[split]:
            for edge in range(edge_starts[split], edge_starts[split + 1]):
                use = edge_use[edge]
                n_removed[use] += 1
                if n_removed[use] == n_asking[use]:
                    saved += use_cost[use]
    for split in range(removed.shape[0]):
        if removed[split]:
            for edge in range(edge_starts[split], edge_starts[split + 1]):
                n_removed[edge_use[edge]] = 0
    return saved
