"""Tables of other libraries as sources: Arrow data, made and read batch by batch."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import pandas as pd
import pyarrow

from bayescascade.data.sources import (
    BLOCK_ROWS,
    NATIVE,
    Batch,
    FrameSource,
    Source,
    arrow_table,
    as_frame,
    converted,
    frame_of_arrow,
    is_arrow,
    is_dataset,
    is_lazy,
    is_partitioned,
)


class ArrowSource:
    """The rows of Arrow data that can be read again, in batches.

    `open_batches` takes the names of columns and returns record batches of these columns.
    """

    is_text = False
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
        finally:  # the other library must not wait for batches that nobody reads
            if hasattr(batches, "close"):
                batches.close()


def source_of(rows: Any, label: str = "") -> Source | None:
    """Return any library's table as a source, None if it has no named columns; see `as_frame`.

    Arrow data sets, polars plans and DuckDB relations are computed batch by batch, again for each
    pass; what can be read only once is held in memory as Arrow data.
    """
    if hasattr(rows, "to_native"):
        rows = rows.to_native()
    if not isinstance(rows, NATIVE) and not is_partitioned(rows):
        for opened in (_open_dataset, _open_lazy, _open_relation, _open_arrow):
            source: Source | None = converted(partial(opened, rows, label), rows)
            if source is not None:
                return source
    frame = as_frame(rows)
    return FrameSource(frame, label) if isinstance(frame, pd.DataFrame) else None


def column_names(schema: pyarrow.Schema) -> list[str]:
    """Return the names of columns; an index that pandas stored is none."""
    if b"pandas" not in (schema.metadata or {}):
        return list(schema.names)
    return [str(name) for name in schema.empty_table().to_pandas().columns]


def categorical_names(schema: pyarrow.Schema) -> frozenset[str]:
    """Return the names of the columns that have dictionaries."""
    types = zip(schema.names, schema.types, strict=True)
    return frozenset(name for name, kind in types if pyarrow.types.is_dictionary(kind))


def _open_dataset(rows: Any, label: str) -> Source | None:
    if not is_dataset(rows) or not hasattr(rows, "schema"):  # a scanner can be read only once
        return None
    return ArrowSource(rows.schema, lambda names: rows.to_batches(columns=names), label)


def _open_lazy(rows: Any, label: str) -> Source | None:
    if not is_lazy(rows) or not hasattr(rows, "collect_batches"):
        return None

    def open_batches(names: list[str]) -> Iterator[pyarrow.RecordBatch]:
        for part in rows.select(names).collect_batches(chunk_size=BLOCK_ROWS, maintain_order=True):
            yield from arrow_table(part).to_batches()

    return ArrowSource(arrow_table(rows.head(0).collect()).schema, open_batches, label)


def _open_relation(rows: Any, label: str) -> Source | None:
    if not (hasattr(rows, "to_arrow_table") and hasattr(rows, "project")):
        return None
    # as DuckDB before 1.4 calls it
    read = "to_arrow_reader" if hasattr(rows, "to_arrow_reader") else "fetch_arrow_reader"

    def open_batches(names: list[str]) -> Iterator[pyarrow.RecordBatch]:
        quoted = ('"' + name.replace('"', '""') + '"' for name in names)
        with getattr(rows.project(", ".join(quoted)), read)(BLOCK_ROWS) as reader:
            yield from reader

    return ArrowSource(rows.limit(0).to_arrow_table().schema, open_batches, label)


def _open_arrow(rows: Any, label: str) -> Source | None:
    if not is_arrow(rows) and not is_dataset(rows):
        return None
    table = arrow_table(rows) if is_arrow(rows) else rows.to_table()
    return ArrowSource(table.schema, lambda names: table.select(names).to_batches(), label)
