"""Densities of rows, averaged over all trees and their leaf probabilities.

A pass from the top down finds, for each box, the part of a new row's probability that stays in it
as a leaf, over all trees; see `kernels.flows`. Under the branch model this is the probability of
the path to the leaf times its branches' ``(n_c + alpha) / (n + b alpha)``; under the leaf model it
is ``(n_l + alpha) / (n + K alpha)`` for each leaf, summed over the numbers of leaves K. The density
of a row is the sum of this part divided by the volume, over the boxes that hold the row.

If all boxes are kept and leaves are uniform, the sums for all cells are computed together: column
by column, the sums of blocks are passed on to their levels.
"""

import numpy as np

from bayescascade.base.arrays import Codes, Floats
from bayescascade.base.jit import sparing
from bayescascade.methods.density.trees.exact.kernels.flows import sum_leaves
from bayescascade.methods.density.trees.exact.plan import SearchPlan
from bayescascade.methods.density.trees.exact.recursion import Recursion


class RowAverages:
    """Densities of rows, averaged by sums over all trees; `root` as in `Recursion.share_out`."""

    def __init__(self, recursion: Recursion, root: Floats) -> None:
        lattice = recursion.lattice
        self._recursion = recursion
        self._shares = [widths / widths.sum() for widths in lattice.widths]
        self._log_widths = np.array([np.log(widths.sum()) for widths in lattice.widths])
        # whether blocks hold levels; the last line, index -1, is for missing cells
        self._holds = [np.ones((b.single.size + 1, b.n_blocks), np.bool_) for b in lattice.blocks]
        for holds, blocks in zip(self._holds, lattice.blocks, strict=True):
            holds[:-1] = False
            for block, codes in enumerate(blocks.codes):
                holds[codes, block] = True
        self._per_width = [
            1.0 / (shares @ holds[:-1])
            for shares, holds in zip(self._shares, self._holds, strict=True)
        ]
        self._flows = recursion.share_out(root)
        self._cells: Floats | None = None
        if _has_cells(lattice.plan):
            self._cells, self._flows = self._all_cells(), np.empty(0)

    @staticmethod
    def memory_bytes(plan: SearchPlan) -> int:
        """Return the bytes that a plan's boxes need."""
        of_box = 8 if plan.shift == 0 else 40  # with several entries a box, their starts count
        return 8 * plan.index().n_entries + of_box * plan.count_index().n_entries

    def log_densities(self, codes: Codes) -> Floats:
        """Return the log density of (p, n) coded rows, (n,) float64 nats; -1 is a missing cell."""
        ordered = codes[list(self._recursion.lattice.plan.columns)].T
        rows, inverse = np.unique(ordered, axis=0, return_inverse=True)
        relative = self._of_boxes(rows) if self._cells is None else self._of_cells(rows)
        with np.errstate(divide="ignore"):
            logs: Floats = np.log(relative) - (rows >= 0) @ self._log_widths
        return logs[inverse.reshape(-1)]

    def _all_cells(self) -> Floats:
        """Return the densities of all cells, divided by that of the whole table as a leaf."""
        index = self._recursion.index
        cells = self._flows if max(index.sizes) == 1 else self._flows[index.starts]
        n_done = 1
        for holds, per_width in zip(self._holds, self._per_width, strict=True):
            cells = np.matmul(holds[:-1] * per_width, cells.reshape(n_done, per_width.size, -1))
            n_done *= holds.shape[0] - 1
        return cells.reshape([shares.size for shares in self._shares])

    def _of_cells(self, rows: Codes) -> Floats:
        assert self._cells is not None
        found = np.empty(len(rows))
        patterns, inverse = np.unique(rows < 0, axis=0, return_inverse=True)
        for i, is_missing in enumerate(patterns):
            cells, these = self._cells, inverse.reshape(-1) == i
            for j in np.flatnonzero(is_missing)[::-1]:
                cells = np.tensordot(cells, self._shares[j], axes=(j, 0))
            found[these] = cells[tuple(rows[these][:, ~is_missing].T)]
        return found

    def _of_boxes(self, rows: Codes) -> Floats:
        boxes, per_width = self._recursion, np.concatenate(self._per_width)
        found, n_holding = np.empty(len(rows)), 1.0
        for holds in self._holds:
            n_holding *= holds[0].sum()
        with sparing(n_holding * len(self._holds)):
            for i, row in enumerate(rows):
                found[i] = sum_leaves(
                    boxes.lattice.arrays, boxes.index.arrays,
                    np.concatenate([h[c] for h, c in zip(self._holds, row, strict=True)]),
                    boxes.terms, boxes.count_index.arrays, boxes.counts, self._flows, boxes.work,
                    per_width, row.astype(np.int64),
                )  # fmt: skip
        return found


def _has_cells(plan: SearchPlan) -> bool:
    """Whether all cells are among the boxes and leaves are uniform."""
    index = plan.count_index()
    return not plan.is_independent and index.n_entries == np.prod(
        [float(n) for n in index.n_blocks]
    )
