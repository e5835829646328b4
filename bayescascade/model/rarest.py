"""The rarest rows of a table that is read block by block, with reasons."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayescascade.base.arrays import Codes, Floats
from bayescascade.data.cell_policy import UnknownCells
from bayescascade.data.levels import plain_level, quoted
from bayescascade.report.numbers import nats_text, ratio_text
from bayescascade.report.page import Page, Pieces

if TYPE_CHECKING:
    from bayescascade.model.density_parts import DensityParts


@dataclass(frozen=True, slots=True)
class RareRow:
    """A row of low density."""

    row: int  # number of the first equal data row, from 1
    times: int  # number of rows with equal codes
    values: Mapping[str, Any]  # its cells; None if missing
    log_density: float  # nats, of the present cells
    log_uniform: float  # nats, of the uniform density


class RarestRows:
    """Keeps the `n_rows` different rows of lowest density.

    Rows are different if their codes are; all unknown levels of a column have the same code. Among
    equally rare rows, the earlier ones are kept.
    """

    def __init__(self, density: "DensityParts", n_rows: int) -> None:
        """Start without rows."""
        self.density = density
        self._log_widths = [float(np.log(c.widths.sum())) for c in density.schema.columns]
        self._n_rows = n_rows
        self._kept: dict[bytes, RareRow] = {}

    def add(
        self,
        cells: pd.DataFrame,
        codes: Codes,
        scores: Floats,
        first_row: int,
        weights: Floats | None = None,
    ) -> None:
        """Add a block whose first row is number `first_row`; rows of weight zero are skipped.

        cells (n, p); codes (p, n) int32; scores (n,) float64, log densities, nats; weights (n,)
        float64.
        """
        if not self._n_rows:
            return
        is_full = len(self._kept) == self._n_rows
        limit = max(row.log_density for row in self._kept.values()) if is_full else np.inf
        is_there = True if weights is None else weights > 0
        candidates = np.flatnonzero((scores <= limit) & is_there)
        if not candidates.size:
            return
        different, first, times = _distinct(codes[:, candidates])
        positions = candidates[first]
        numbers = first_row + positions  # of the first equal row, in this block or before
        known = np.frombuffer(b"".join(self._kept), different.dtype)
        for index in np.flatnonzero(np.isin(different, known)):
            numbers[index] = self._kept[different[index].tobytes()].row
        order = np.lexsort((numbers, scores[positions]))[: self._n_rows]
        for index in order:
            position, key, n = int(positions[index]), different[index].tobytes(), int(times[index])
            if key in self._kept:
                self._kept[key] = replace(self._kept[key], times=self._kept[key].times + n)
                continue
            present = codes[:, position] >= 0
            self._kept[key] = RareRow(
                row=first_row + position,
                times=n,
                values={str(name): _plain(cells[name].iloc[position]) for name in cells},
                log_density=float(scores[position]),
                log_uniform=-float(np.dot(present, self._log_widths)),
            )
        # A dropped row cannot come back: the rows before it in this order stay before it.
        kept = sorted(self._kept.items(), key=lambda item: (item[1].log_density, item[1].row))
        self._kept = dict(kept[: self._n_rows])

    @property
    def rows(self) -> list[RareRow]:
        """The rarest rows, rarest first."""
        return list(self._kept.values())


def rare_row_page(density: "DensityParts", rare: RareRow) -> Page:
    """Return a row's density, its cells, and the rule of the leaf or part that contains it."""
    alike = "" if rare.times == 1 else f", {rare.times - 1:,} more like it"
    head = [
        f"row {rare.row:,}{alike}",
        f"log density {nats_text(rare.log_density)}",
        f"{ratio_text(rare.log_density - rare.log_uniform)} x uniform",
    ]
    alone = _alone(density, rare)
    if alone is not None:
        ratio = ratio_text(alone - rare.log_uniform)
        head.append(f"averaged (by the model shown alone: {ratio} x uniform)")
    cells = [
        f"{name}: {'missing' if v is None else quoted(str(v))}" for name, v in rare.values.items()
    ]
    reasons = density.explain(rare.values).splitlines()
    because = (Pieces([f"because {reason}"], indent=4, first="  ") for reason in reasons)
    return (Pieces(head, "bold"), Pieces(cells, first="  "), *because)


def _alone(density: "DensityParts", rare: RareRow) -> float | None:
    """Return a row's log density by the printed model alone; None if it looks the same in print.

    Also None if a cell is unknown, which determines the density.
    """
    unknown = UnknownCells()
    codes = density.schema.encode_row(rare.values, unknown)
    alone = float(density.score_codes(codes[:, np.newaxis])[0])
    is_same = nats_text(alone) == nats_text(rare.log_density)
    return None if is_same or unknown.levels else alone


def _distinct(codes: Codes) -> tuple[NDArray[np.void], NDArray[np.intp], NDArray[np.intp]]:
    """Return the distinct columns of `codes` as bytes, with first positions and counts."""
    rows = np.ascontiguousarray(codes.T)
    keys = rows.view(f"V{rows.itemsize * rows.shape[1]}").ravel()
    return np.unique(keys, return_index=True, return_counts=True)


def _plain(cell: Any) -> Any:  # Any: a cell of any type that a level may have
    """Return a cell in a type of JSON; None if it is missing."""
    return None if pd.isna(cell) else plain_level("", cell)
