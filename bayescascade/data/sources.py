"""Where rows come from: any library's table, block by block.

Tables of other libraries become DataFrames here, with their names and categories (`as_frame`), or
are read as Arrow data in batches (`source_of`). Files are read by `bayescascade.data.readers`.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeAlias

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.interchange
from numpy.typing import NDArray

from bayescascade.base.errors import DataError
from bayescascade.base.validation import check_weight_values
from bayescascade.data.levels import to_numbers

__all__ = [
    "BLOCK_ROWS",
    "ArrowSource",
    "Batch",
    "FrameSource",
    "Source",
    "as_column",
    "as_frame",
    "categorical_names",
    "column_names",
    "frame_of_arrow",
    "is_lazy",
    "is_partitioned",
    "source_of",
    "weighted_blocks",
]

BLOCK_ROWS = 100_000
_LONG = 10_000  # rows

_NATIVE = (pd.DataFrame, pd.Series, np.ndarray, Sequence, Mapping)

Batch: TypeAlias = pd.DataFrame | pyarrow.RecordBatch


def as_frame(rows: Any) -> Any:
    """Return another library's table as a DataFrame, and whatever has no named columns as it is.

    Parameters
    ----------
    rows : object
        A table of polars (lazy ones, too), Arrow (readers and data sets, too), DuckDB, Dask or
        narwhals, or of whatever offers Arrow's PyCapsule interface or the dataframe interchange
        protocol. Its dictionaries (categories) become categoricals.

    Raises
    ------
    DataError
        If it has named columns but cannot be read.
    """
    if isinstance(rows, _NATIVE):
        return rows
    if is_partitioned(rows):
        return _read(rows.compute, rows)
    if hasattr(rows, "to_native"):  # of narwhals
        return as_frame(rows.to_native())
    if is_lazy(rows):
        return as_frame(_read(rows.collect, rows))
    if _is_arrow(rows):
        return _read(lambda: frame_of_arrow(pyarrow.table(rows)), rows)
    if _is_dataset(rows):
        return _read(lambda: frame_of_arrow(rows.to_table()), rows)
    if hasattr(rows, "__dataframe__"):
        return _read(lambda: _frame_of_interchange(rows), rows)
    if hasattr(type(rows), "columns") or not _is_array(rows):  # as an array it would lose names
        raise DataError(
            f"rows must be a DataFrame, an array or a table that Arrow can read, got "
            f"{type(rows).__name__}: convert it to one of these"
        )
    return rows


def as_column(cells: Any) -> Any:
    """Return another library's column, or table of one column, in pandas' form; see `as_frame`."""
    if isinstance(cells, _NATIVE):
        return cells
    if is_partitioned(cells) or hasattr(cells, "to_native") or is_lazy(cells):
        whole = as_frame(cells)
        one_column = isinstance(whole, pd.DataFrame) and whole.shape[1] == 1
        return whole.iloc[:, 0] if one_column else as_column(whole)
    if not _is_arrow(cells):
        return cells
    column = _read(lambda: pyarrow.chunked_array(cells), cells)
    if pyarrow.types.is_struct(column.type):
        return as_frame(cells)
    return _read(lambda: column.to_pandas(integer_object_nulls=True), cells)


def is_partitioned(rows: object) -> bool:
    """Return whether rows are computed elsewhere, in parts, as those of Dask are."""
    return hasattr(rows, "__dask_graph__") and hasattr(rows, "compute")


def is_lazy(data: Any) -> bool:
    """Return whether it is a plan of a table that is not computed yet, of polars or narwhals."""
    return hasattr(data, "collect") and hasattr(data, "collect_schema")


def frame_of_arrow(table: pyarrow.Table) -> pd.DataFrame:
    """Return Arrow data as a DataFrame: whole numbers stay whole beside missing cells."""
    categories = {}
    for index, field in enumerate(table.schema):
        # pyarrow cannot convert categories that are intervals
        if pyarrow.types.is_dictionary(field.type) and isinstance(
            field.type.value_type, pyarrow.BaseExtensionType
        ):
            column = table.column(index).combine_chunks()
            table = table.set_column(index, field.name, column.indices)
            categories[field.name] = pd.Categorical.from_codes(
                column.indices.fill_null(-1), column.dictionary.to_pandas(), column.type.ordered
            )
    # To ask a pool of threads for a few cells would take longer than to convert them.
    is_long = table.num_rows > _LONG
    frame: pd.DataFrame = table.to_pandas(integer_object_nulls=True, use_threads=is_long)
    return frame.assign(**categories)


def _is_arrow(data: Any) -> bool:
    return hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")


def _is_dataset(data: Any) -> bool:
    """Whether it is a data set, or what scans one, of Arrow."""
    return type(data).__module__.startswith("pyarrow") and hasattr(data, "to_table")


def _is_array(data: Any) -> bool:
    """Whether NumPy, or scikit-learn's checks, may make something of it."""
    return any(hasattr(data, name) for name in ("__array__", "__getitem__", "shape"))


def _read(reader: Callable[[], Any], data: object) -> Any:
    try:
        return reader()
    except Exception as error:  # other libraries raise what they like
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise DataError(f"cannot read the {type(data).__name__} as Arrow data: {reason}") from error


def _frame_of_interchange(rows: Any) -> pd.DataFrame:
    frame = frame_of_arrow(pyarrow.interchange.from_dataframe(rows))
    described = rows.__dataframe__()
    for name in frame.select_dtypes("category"):  # pyarrow forgets which are ordered
        if described.get_column_by_name(name).describe_categorical["is_ordered"]:
            frame[name] = frame[name].cat.as_ordered()
    return frame


class Source(Protocol):
    """Rows that can be read several times."""

    label: str  # what messages and printed models call it; may be empty
    names: list[str]  # the columns, in order; a name may occur twice
    is_text: bool  # whether numbers come as text

    def blocks(self, names: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Yield the rows' cells in the columns `names`, some rows at a time."""

    def batches(self, names: Sequence[str]) -> Generator[Batch, None, None]:
        """Yield the same as `blocks`, in the form that takes least time to make.

        Dictionaries of Arrow data are categories only if `categorical` names their column.
        """

    @property
    def categorical(self) -> frozenset[str]:
        """Names of the columns of `batches` whose dictionaries are declared categories."""


class FrameSource:
    """A DataFrame's rows."""

    is_text = False
    categorical: frozenset[str] = frozenset()

    def __init__(self, frame: pd.DataFrame, label: str = "") -> None:
        self.label = label
        self.names = [str(name) for name in frame.columns]
        self.n_rows = len(frame)
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
    """The rows of Arrow data that can be read again, in batches.

    Parameters
    ----------
    schema : pyarrow.Schema
    open_batches : callable
        Returns an iterator over record batches of the columns that it is given the names of.
    label : str
    """

    is_text = False

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
            while (batch := _read(lambda: next(batches, None), batches)) is not None:
                for start in range(0, batch.num_rows, BLOCK_ROWS):
                    yield batch.slice(start, BLOCK_ROWS)
        finally:  # the other library must not wait for batches that nobody reads
            if hasattr(batches, "close"):
                batches.close()


def source_of(rows: Any, label: str = "") -> Source | None:
    """Return any library's table as a source, None if it has no named columns; see `as_frame`.

    Arrow data sets, plans of polars and relations of DuckDB are computed batch by batch, again for
    each pass; what can be read only once is held in memory as Arrow data.
    """
    if hasattr(rows, "to_native"):
        rows = rows.to_native()
    if not isinstance(rows, _NATIVE) and not is_partitioned(rows):
        for opened in (_open_dataset, _open_lazy, _open_relation, _open_arrow):
            source: Source | None = _read(partial(opened, rows, label), rows)
            if source is not None:
                return source
    frame = as_frame(rows)
    return FrameSource(frame, label) if isinstance(frame, pd.DataFrame) else None


def column_names(schema: pyarrow.Schema) -> list[str]:
    """Return the names of columns; an index that pandas stored is none."""
    return [str(name) for name in schema.empty_table().to_pandas().columns]


def categorical_names(schema: pyarrow.Schema) -> frozenset[str]:
    """Return the names of the columns that have dictionaries."""
    types = zip(schema.names, schema.types, strict=True)
    return frozenset(name for name, kind in types if pyarrow.types.is_dictionary(kind))


def _open_dataset(rows: Any, label: str) -> Source | None:
    if not _is_dataset(rows) or not hasattr(rows, "schema"):  # a scanner can be read only once
        return None
    return ArrowSource(rows.schema, lambda names: rows.to_batches(columns=names), label)


def _open_lazy(rows: Any, label: str) -> Source | None:
    if not is_lazy(rows) or not hasattr(rows, "collect_batches"):
        return None

    def open_batches(names: list[str]) -> Iterator[pyarrow.RecordBatch]:
        for part in rows.select(names).collect_batches(chunk_size=BLOCK_ROWS, maintain_order=True):
            yield from pyarrow.table(part).to_batches()

    return ArrowSource(pyarrow.table(rows.head(0).collect()).schema, open_batches, label)


def _open_relation(rows: Any, label: str) -> Source | None:
    if not (_is_arrow(rows) and hasattr(rows, "to_arrow_reader") and hasattr(rows, "project")):
        return None

    def open_batches(names: list[str]) -> Iterator[pyarrow.RecordBatch]:
        quoted = ('"' + name.replace('"', '""') + '"' for name in names)
        with rows.project(", ".join(quoted)).to_arrow_reader(BLOCK_ROWS) as reader:
            yield from reader

    return ArrowSource(rows.limit(0).to_arrow_table().schema, open_batches, label)


def _open_arrow(rows: Any, label: str) -> Source | None:
    if not _is_arrow(rows) and not _is_dataset(rows):
        return None
    table = pyarrow.table(rows) if _is_arrow(rows) else rows.to_table()
    return ArrowSource(table.schema, lambda names: table.select(names).to_batches(), label)


def weighted_blocks(
    source: Source, names: Sequence[str], weights: str | NDArray[np.float64] | None
) -> Iterator[tuple[int, pd.DataFrame, NDArray[np.float64] | None]]:
    """Yield the number of a block's first row, its cells, and its rows' weights, if there are any.

    The weights are a column, which is then among the cells, or (n_rows,) numbers >= 0.

    Raises
    ------
    DataError
        If a weight is no number >= 0, or there are no rows.
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
