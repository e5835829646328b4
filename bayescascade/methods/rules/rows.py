"""Distinct rows as bits, ordered so that most words are counted at once.

Rows of one class and one weight that fill a word or more get words of their own; the rest of a
class shares words, whose rows are counted one by one.
"""

import numpy as np
from numpy.typing import NDArray

from bayescascade.methods.rules.kernels.layout import RowArrays

__all__ = ["row_arrays"]

_WORD = 64


def row_arrays(
    codes: NDArray[np.unsignedinteger],
    weights: NDArray[np.float64],
    labels: NDArray[np.integer],
    n_classes: int,
    items: NDArray[np.int32],
) -> RowArrays:
    """Return rows as kernels read them.

    Parameters
    ----------
    codes : (p, n) uint8 or uint16
    weights : (n,) float64 > 0
    labels : (n,) int in [0, n_classes)
    n_classes : int >= 1
    items : (n_items, 3) int32
        Column, low, high: conditions whose bits are wanted.
    """
    position = np.empty(weights.size, np.int64)  # of each row's bit
    runs: list[tuple[int, int, int, float]] = []
    n_words = 0
    for label in range(n_classes):
        rest: list[NDArray[np.int64]] = []
        inside = np.flatnonzero(labels == label)
        inside = inside[np.argsort(weights[inside], kind="stable")]
        cuts = np.flatnonzero(np.diff(weights[inside])) + 1
        for group in np.split(inside, cuts):
            if group.size < _WORD:
                rest.append(group)
            else:
                n_words = _place(position, group, n_words, runs, label, weights)
        if sum(group.size for group in rest):
            n_words = _place(position, np.concatenate(rest), n_words, runs, label, weights)
    row_weights = np.zeros(_WORD * n_words)
    row_weights[position] = weights
    table = np.array(runs, np.float64).reshape(-1, 4)
    bits = np.empty((items.shape[0], n_words), np.uint64)
    for item, (column, low, high) in zip(bits, items, strict=True):
        holds = (codes[column] >= low) & (codes[column] < high)
        item[:] = _pack(position[holds], n_words)
    return RowArrays(
        bits=bits,
        everyone=_pack(position, n_words),
        run_start=table[:, 0].astype(np.int64),
        run_end=table[:, 1].astype(np.int64),
        run_class=table[:, 2].astype(np.int64),
        run_weight=table[:, 3].copy(),
        row_weights=row_weights,
        n_classes=n_classes,
    )


def _place(
    position: NDArray[np.int64],
    group: NDArray[np.int64],
    n_words: int,
    runs: list[tuple[int, int, int, float]],
    label: int,
    weights: NDArray[np.float64],
) -> int:
    """Give a group of rows the next words; return how many there are now."""
    position[group] = _WORD * n_words + np.arange(group.size)
    end = n_words + -(-group.size // _WORD)
    is_even = bool(np.all(weights[group] == weights[group[0]]))
    runs.append((n_words, end, label, float(weights[group[0]]) if is_even else np.nan))
    return end


def _pack(positions: NDArray[np.int64], n_words: int) -> NDArray[np.uint64]:
    flags = np.zeros(_WORD * n_words, np.bool_)
    flags[positions] = True
    return np.packbits(flags, bitorder="little").view("<u8").astype(np.uint64)
