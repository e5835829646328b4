"""Sources of rows: DataFrames and tables of other libraries, block by block.

`bayescascade.data.readers` reads files.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias

import pandas as pd
import pyarrow

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import DataError
from bayescascade.base.validation import check_weight_values
from bayescascade.data.arrow_frames import (
    NATIVE,
    arrow_table,
    as_frame,
    converted,
    frame_of_arrow,
    is_arrow,
    is_dataset,
    is_lazy,
    is_partitioned,
)
from bayescascade.data.levels import Level, to_numbers

BLOCK_ROWS = 100_000

_CODES, _UNITS = "missing codes", "units"  # in `attrs` of a frame

Batch: TypeAlias = pd.DataFrame | pyarrow.RecordBatch

Units: TypeAlias = Mapping[str, tuple[str, str]]
"""By column of a text file, the unit that is left out of its numbers, or "", and a cell of it."""

NO_UNITS: Units = MappingProxyType({})


class Source(Protocol):
    """Rows that can be read several times."""

    label: str  # name in messages and printed models; may be empty
    names: list[str]  # the columns, in order; a name may occur twice
    is_text: bool  # whether numbers come as text
    units: Units  # empty for typed files

    def blocks(self, names: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Yield the rows' cells in the columns `names`, some rows at a time."""

    def batches(self, names: Sequence[str]) -> Generator[Batch, None, None]:
        """Yield the same as `blocks`, in the fastest form.

        Dictionaries of Arrow data are categories only if `categorical` names their column.
        """

    @property
    def notes(self) -> Sequence[str]:
        """Notes on how the rows are read."""

    @property
    def categorical(self) -> frozenset[str]:
        """Names of the columns of `batches` whose dictionaries are declared categories."""


class FrameSource:
    """A DataFrame's rows."""

    is_text = False
    notes: Sequence[str] = ()
    categorical: frozenset[str] = frozenset()

    def __init__(self, frame: pd.DataFrame, label: str = "") -> None:
        self.label = label
        self.names = [str(name) for name in frame.columns]
        self.n_rows = len(frame)
        self.missing_codes, self.units = missing_codes_of(frame), units_of(frame)
        self._frame = frame

    def blocks(self, names: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Yield the rows' cells in the columns `names`, some rows at a time."""
        chosen = self._frame.iloc[:, [self.names.index(name) for name in names]]
        chosen = chosen.set_axis(list(names), axis=1)
        for start in range(0, len(chosen), BLOCK_ROWS):
            yield chosen.iloc[start : start + BLOCK_ROWS]

    def batches(self, names: Sequence[str]) -> Generator[Batch, None, None]:
        """Yield the same as `blocks`."""
        yield from self.blocks(names)


class ArrowSource:
    """Rows of Arrow data; `open_batches` takes names of columns and returns record batches."""

    is_text, units = False, NO_UNITS
    notes: Sequence[str] = ()

    def __init__(
        self,
        schema: pyarrow.Schema,
        open_batches: Callable[[list[str]], Iterable[pyarrow.RecordBatch]],
        label: str = "",
    ) -> None:
        self.label = label
        self.names = column_names(schema)
        self.categorical = categorical_names(schema)
        self._open_batches = open_batches

    def blocks(self, names: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Yield the rows' cells in the columns `names`, some rows at a time."""
        for batch in self.batches(names):
            yield frame_of_arrow(pyarrow.Table.from_batches([batch]))[list(names)]

    def batches(self, names: Sequence[str]) -> Generator[Batch, None, None]:
        """Yield the rows' cells in the columns `names`, some rows at a time."""
        batches = iter(self._open_batches(list(names)))
        try:
            while (batch := converted(lambda: next(batches, None), batches)) is not None:
                for start in range(0, batch.num_rows, BLOCK_ROWS):
                    yield batch.slice(start, BLOCK_ROWS)
        finally:  # the other library must not wait for unread batches
            if hasattr(batches, "close"):
                batches.close()


def column_names(schema: pyarrow.Schema) -> list[str]:
    """Return the names of columns, without an index that pandas stored."""
    if b"pandas" not in (schema.metadata or {}):
        return list(schema.names)
    return [str(name) for name in schema.empty_table().to_pandas().columns]


def categorical_names(schema: pyarrow.Schema) -> frozenset[str]:
    """Return the names of the columns that have dictionaries."""
    return frozenset(field.name for field in schema if pyarrow.types.is_dictionary(field.type))


def source_of(rows: Any, label: str = "") -> Source | None:
    """Return any library's table as a source, None if it has no named columns; see `as_frame`.

    Arrow data sets, lazy tables of polars and DuckDB relations are computed in batches, again for
    each pass. Data that can be read only once are kept in memory as Arrow data.
    """
    if hasattr(rows, "to_native"):
        rows = rows.to_native()
    if not isinstance(rows, NATIVE) and not is_partitioned(rows):
        opened: Source | None = converted(partial(_opened, rows, label), rows)
        if opened is not None:
            return opened
    frame = as_frame(rows)
    return FrameSource(frame, label) if isinstance(frame, pd.DataFrame) else None


def _opened(rows: Any, label: str) -> Source | None:
    """Return Arrow data as a source."""
    if is_dataset(rows) and hasattr(rows, "schema"):  # a scanner can be read only once
        return ArrowSource(rows.schema, lambda names: rows.to_batches(columns=names), label)
    if is_lazy(rows) and hasattr(rows, "collect_batches"):

        def computed(names: list[str]) -> Iterator[pyarrow.RecordBatch]:
            plan = rows.select(names)
            for part in plan.collect_batches(chunk_size=BLOCK_ROWS, maintain_order=True):
                yield from arrow_table(part).to_batches()

        return ArrowSource(arrow_table(rows.head(0).collect()).schema, computed, label)
    if hasattr(rows, "to_arrow_table") and hasattr(rows, "project"):
        # its name in DuckDB before 1.4
        read = "to_arrow_reader" if hasattr(rows, "to_arrow_reader") else "fetch_arrow_reader"

        def related(names: list[str]) -> Iterator[pyarrow.RecordBatch]:
            quoted = ('"' + name.replace('"', '""') + '"' for name in names)
            with getattr(rows.project(", ".join(quoted)), read)(BLOCK_ROWS) as reader:
                yield from reader

        return ArrowSource(rows.limit(0).to_arrow_table().schema, related, label)
    if is_arrow(rows) or is_dataset(rows):
        table = arrow_table(rows)
        return ArrowSource(table.schema, lambda names: table.select(names).to_batches(), label)
    return None


def missing_codes_of(rows: Any) -> Mapping[str, tuple[Level, ...]]:
    """Return the codes of missing cells, by column, of a source or frame."""
    found: Mapping[str, tuple[Level, ...]] = getattr(rows, "missing_codes", {})
    return rows.attrs.get(_CODES, {}) if isinstance(rows, pd.DataFrame) else found


def units_of(rows: Any) -> Units:
    """Return the units of a source or frame; a frame has no empty ones."""
    found: Units = getattr(rows, "units", NO_UNITS)
    return rows.attrs.get(_UNITS, NO_UNITS) if isinstance(rows, pd.DataFrame) else found


def with_readings(frame: pd.DataFrame, rows: Any) -> pd.DataFrame:
    """Return a frame that carries the codes of missing cells and the units of its source."""
    units = {name: unit for name, unit in units_of(rows).items() if unit[0]}
    for name, read in ((_CODES, missing_codes_of(rows)), (_UNITS, units)):
        if read:  # pandas copies it at each step
            frame.attrs[name] = read
    return frame


def weighted_blocks(
    source: Source, names: Sequence[str], weights: str | Floats | None
) -> Iterator[tuple[int, pd.DataFrame, Floats | None]]:
    """Yield the number of a block's first row, its cells, and its rows' weights, if there are any.

    The weights are a column, which is then among the cells, or (n_rows,) numbers >= 0.
    """
    label = f'weights column "{weights}"'
    first_row = 1
    for frame in source.blocks([*names, weights] if isinstance(weights, str) else names):
        block_weights = None
        if isinstance(weights, str):
            numbers = to_numbers(label, frame[weights], first_row)
            block_weights = check_weight_values(label, numbers, first_row)
        elif weights is not None:
            block_weights = weights[first_row - 1 : first_row - 1 + len(frame)]
        yield first_row, frame, block_weights
        first_row += len(frame)
    if first_row == 1:
        raise DataError(f"{source.label or 'the table'} must have at least one row, got none")
