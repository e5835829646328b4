"""The density of rows, averaged over all trees: the sum with the row over the sum without."""

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from bayescascade.methods.cascades.exact.recursion import Recursion
from bayescascade.methods.cascades.exact.root import Root

__all__ = ["RowAverages"]

Floats = NDArray[np.float64]
Row = tuple[int, ...]


class RowAverages:
    """Averaged log densities of rows; each distinct complete row is evaluated once.

    Parameters
    ----------
    recursion : Recursion
        Sums over all trees. While a row is evaluated, the boxes that contain it have other values.
    root : Root
    total : float
        Weight of all rows.
    origin : int
        Of logs of all trees' entries, see `Recursion.log_values`.
    """

    def __init__(self, recursion: Recursion, root: Root, total: float, origin: int) -> None:
        self._recursion = recursion
        self._root = root
        self._total = total
        self._origin = origin
        self._known: dict[Row, float] = {}

    def log_densities(self, codes: NDArray[np.int32]) -> Floats:
        """Return the log density of (p, n) coded rows, (n,) float64 nats; -1 is a missing cell."""
        ordered = codes[list(self._recursion.lattice.plan.columns)].T
        rows, inverse = np.unique(ordered, axis=0, return_inverse=True)
        found = np.array([self._log_density(tuple(row.tolist())) for row in rows])
        return found[inverse.reshape(-1)]

    def _log_density(self, row: Row) -> float:
        if all(code < 0 for code in row):
            return 0.0
        complete = np.array([self._complete(cells) + w for cells, w in self._completions(row)])
        return float(logsumexp(complete))

    def _completions(self, row: Row) -> Iterator[tuple[Row, float]]:
        """Yield all complete rows behind a row, and the log widths of the cells filled in."""
        widths = self._recursion.lattice.widths
        cells = [
            range(w.size) if code < 0 else (code,) for code, w in zip(row, widths, strict=True)
        ]
        for complete in product(*cells):
            filled = [w[c] for code, c, w in zip(row, complete, widths, strict=True) if code < 0]
            yield complete, float(np.log(filled).sum())

    def _complete(self, row: Row) -> float:
        if row not in self._known:
            before = self._root.log_sum(self._recursion.log_values(self._origin), self._total)
            common = np.log(self._total + self._root.model.concentration)  # of lnG: the difference
            self._known[row] = float(self._log_sum_with(row) - before - common)
        return self._known[row]

    def _log_sum_with(self, row: Row) -> float:
        """Return the log of the sum over all trees with one row more, less what is common."""
        recursion = self._recursion
        is_open = self._containing(row)
        entries = recursion.index.entries(is_open)
        boxes = entries
        if recursion.count_index != recursion.index:
            boxes = recursion.count_index.entries(is_open)
        arrays = (*recursion.values, recursion.counts)
        places = (entries, entries, boxes)
        saved = [array[at] for array, at in zip(arrays, places, strict=True)]
        try:
            recursion.counts[boxes] += 1.0
            recursion.run(is_open=is_open)
            return self._root.log_sum(recursion.log_values(self._origin), self._total + 1.0)
        finally:
            for array, at, old in zip(arrays, places, saved, strict=True):
                array[at] = old

    def _containing(self, row: Row) -> Sequence[NDArray[np.bool_]]:
        """Return, for every column, whether each block contains the row's level."""
        arrays = self._recursion.lattice.arrays
        flags = []
        for j, code in enumerate(row):
            start, stop = arrays.starts[j], arrays.starts[j + 1]
            bounds = arrays.code_start[start : stop + 1]
            holds = np.concatenate([[0], np.cumsum(arrays.codes[bounds[0] : bounds[-1]] == code)])
            flags.append(np.diff(holds[bounds - bounds[0]]) > 0)
        return flags
