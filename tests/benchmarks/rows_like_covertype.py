"""Rows like covertype's, drawn: 54 columns, 44 of them binary, and labels of seven classes."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["rows_like_covertype"]


def rows_like_covertype(n_rows: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return so many rows and their labels."""
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(n_rows, 10))
    soil = rng.geometric(0.1, n_rows)[:, np.newaxis] == np.arange(1, 45)
    score = numbers[:, :5] @ rng.normal(size=(5, 7)) + soil @ rng.normal(size=(44, 7))
    labels = (2 * score + rng.normal(size=(n_rows, 7))).argmax(axis=1)
    return np.column_stack([numbers, soil]).astype(np.float32), labels
