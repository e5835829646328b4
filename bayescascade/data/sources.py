"""Where rows come from: any library's table, block by block.

Tables of other libraries become DataFrames here, with their names and categories (`as_frame`).
`bayescascade.data.arrow_sources` reads them in batches, `bayescascade.data.readers` reads files.
"""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.interchange
from numpy.typing import NDArray
from pyarrow import compute

from bayescascade.base.errors import DataError
from bayescascade.base.validation import check_weight_values
from bayescascade.data.levels import Level, to_numbers

BLOCK_ROWS = 100_000
_LONG = 10_000  # rows

_CODES = "missing codes"  # in `attrs` of a frame

NATIVE = (pd.DataFrame, pd.Series, np.ndarray, Sequence, Mapping)

Batch: TypeAlias = pd.DataFrame | pyarrow.RecordBatch


def as_frame(rows: Any) -> Any:
    """Return another library's table as a DataFrame, and whatever has no named columns unchanged.

    Tables are those of polars (lazy ones, too), Arrow (readers and data sets, too), DuckDB, Dask or
    narwhals, and those that offer Arrow's PyCapsule interface or the dataframe interchange
    protocol. Their dictionaries (categories) become categoricals. Raises DataError if a table has
    named columns but cannot be read.
    """
    if isinstance(rows, NATIVE):
        return rows
    if is_partitioned(rows):
        whole = converted(rows.compute, rows)
        if not is_partitioned(whole):  # as what xarray computes would still be
            return whole
    if hasattr(rows, "to_native"):  # of narwhals
        return as_frame(rows.to_native())
    if is_lazy(rows):
        return as_frame(converted(rows.collect, rows))
    if is_arrow(rows):
        return converted(lambda: frame_of_arrow(arrow_table(rows)), rows)
    if is_dataset(rows):
        return converted(lambda: frame_of_arrow(rows.to_table()), rows)
    if hasattr(rows, "__dataframe__"):
        return converted(lambda: _frame_of_interchange(rows), rows)
    if hasattr(type(rows), "columns") or not _is_array(rows):  # as an array it would lose names
        raise DataError(
            f"rows must be a DataFrame, an array or a table that Arrow can read, got "
            f"{type(rows).__name__}: convert it to one of these"
        )
    return rows


def as_column(cells: Any) -> Any:
    """Return another library's column, or table of one column, in pandas' form; see `as_frame`."""
    if isinstance(cells, NATIVE):
        return cells
    if is_partitioned(cells) or hasattr(cells, "to_native") or is_lazy(cells):
        whole = as_frame(cells)
        one_column = isinstance(whole, pd.DataFrame) and whole.shape[1] == 1
        return whole.iloc[:, 0] if one_column else as_column(whole)
    if not is_arrow(cells):
        return cells
    column = converted(lambda: pyarrow.chunked_array(cells), cells)
    if pyarrow.types.is_struct(column.type):
        return as_frame(cells)
    return converted(lambda: column.to_pandas(integer_object_nulls=True), cells)


def is_partitioned(rows: object) -> bool:
    """Return whether rows are computed elsewhere, in parts, as those of Dask are."""
    return hasattr(rows, "__dask_graph__") and hasattr(rows, "compute")


def is_lazy(data: Any) -> bool:
    """Return whether it is a plan of a table that is not computed yet, of polars or narwhals."""
    return hasattr(data, "collect") and hasattr(data, "collect_schema")


def arrow_table(rows: Any) -> pyarrow.Table:
    """Return what offers Arrow's interface as a table of Arrow's.

    Types are corrected because not every version of polars reports that the levels of an Enum are
    ordered, and that a Categorical is a way to store text.
    """
    if not type(rows).__module__.startswith("polars"):
        table = pyarrow.table(rows)
        if isinstance(rows, pyarrow.RecordBatchReader) and not table.num_rows:
            raise DataError("it has no rows left, and a reader can be read only once")
        return table
    kinds = {name: type(kind).__name__ for name, kind in rows.schema.items()}
    stored = [name for name, kind in kinds.items() if kind == "Categorical"]
    table = pyarrow.table(rows.cast(dict.fromkeys(stored, str)) if stored else rows)
    for place, name in enumerate(table.schema.names):
        if kinds[name] == "Enum":
            ordered = [
                pyarrow.DictionaryArray.from_arrays(part.indices, part.dictionary, ordered=True)
                for part in table.column(place).chunks
            ]
            kind = table.schema.types[place]
            kind = pyarrow.dictionary(kind.index_type, kind.value_type, ordered=True)
            table = table.set_column(place, name, pyarrow.chunked_array(ordered, kind))
    return table


def frame_of_arrow(table: pyarrow.Table) -> pd.DataFrame:
    """Return Arrow data as a DataFrame: whole numbers stay whole beside missing cells."""
    categories = {}
    for index, field in enumerate(table.schema):
        if pyarrow.types.is_dictionary(field.type):
            chunks = table.column(index).chunks
            tidy = [with_distinct_entries(chunk) for chunk in chunks]
            if any(new is not old for new, old in zip(tidy, chunks, strict=True)):
                column = pyarrow.chunked_array([_of_one_type(chunk) for chunk in tidy])
                table = table.set_column(index, field.name, column)
    for index, field in enumerate(table.schema):
        if pyarrow.types.is_dictionary(field.type) and _is_unusual(field.type):
            column = table.column(index).combine_chunks()
            codes = column.indices.cast(pyarrow.int64())
            table = table.set_column(index, field.name, codes)
            categories[field.name] = pd.Categorical.from_codes(
                codes.fill_null(-1), column.dictionary.to_pandas(), column.type.ordered
            )
    # To ask a pool of threads for a few cells would take longer than to convert them.
    is_long = table.num_rows > _LONG
    frame: pd.DataFrame = table.to_pandas(integer_object_nulls=True, use_threads=is_long)
    return frame.assign(**categories)


def with_distinct_entries(cells: pyarrow.DictionaryArray) -> pyarrow.DictionaryArray:
    """Return dictionary-encoded cells whose dictionary has no equal, and no missing, entries.

    Arrow allows these, pandas does not. Cells of types that Arrow cannot compare, such as nested
    ones, are returned unchanged.
    """
    entries = _entries(cells)
    kind = entries.type
    if isinstance(kind, pyarrow.BaseExtensionType) or pyarrow.types.is_nested(kind):
        return cells
    try:
        is_there = compute.invert(compute.is_null(entries, nan_is_null=True))
        distinct = compute.unique(entries.filter(is_there))
        if len(distinct) == len(entries):
            return cells
        places = compute.index_in(entries, value_set=distinct)  # null of a missing one
    except pyarrow.ArrowNotImplementedError:
        return cells
    return pyarrow.DictionaryArray.from_arrays(
        places.take(cells.indices), distinct, ordered=cells.type.ordered
    )


def _of_one_type(cells: pyarrow.DictionaryArray) -> pyarrow.DictionaryArray:
    """Return dictionary-encoded cells in the type that `with_distinct_entries` makes."""
    places = cells.indices.cast(pyarrow.int32())
    return pyarrow.DictionaryArray.from_arrays(places, _entries(cells), ordered=cells.type.ordered)


def _entries(cells: pyarrow.DictionaryArray) -> pyarrow.Array:
    """Return a dictionary's entries, in a type of text that Arrow has all functions for."""
    if cells.type.value_type != pyarrow.string_view():
        return cells.dictionary
    # which Arrow 17 cannot cast
    return pyarrow.array(cells.dictionary.to_pylist(), pyarrow.large_string())


def is_arrow(data: Any) -> bool:
    """Return whether data offer Arrow's PyCapsule interface."""
    return hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")


def is_dataset(data: Any) -> bool:
    """Return whether it is a data set, or what scans one, of Arrow."""
    return type(data).__module__.startswith("pyarrow") and hasattr(data, "to_table")


def _is_array(data: Any) -> bool:
    """Whether NumPy, or scikit-learn's checks, may make something of it."""
    return any(hasattr(data, name) for name in ("__array__", "__getitem__", "shape"))


def _is_unusual(kind: pyarrow.DictionaryType) -> bool:
    """Whether pyarrow, or an older one, cannot make pandas' categories of dictionaries."""
    is_extension = isinstance(kind.value_type, pyarrow.BaseExtensionType)  # as of intervals
    return is_extension or pyarrow.types.is_unsigned_integer(kind.index_type)


def converted(reader: Callable[[], Any], data: object) -> Any:
    """Return what a reader makes of another library's data; raises DataError if it cannot."""
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
    def notes(self) -> Sequence[str]:
        """What a user should know of how the rows are read."""

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
        self.missing_codes = missing_codes_of(frame)
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


def missing_codes_of(rows: Any) -> Mapping[str, tuple[Level, ...]]:
    """Return the codes of missing cells, by column, that a source or a frame was read with.

    An encoder of such rows, in which these cells are missing, keeps the codes for later rows.
    """
    found: Mapping[str, tuple[Level, ...]] = getattr(rows, "missing_codes", {})
    return rows.attrs.get(_CODES, {}) if isinstance(rows, pd.DataFrame) else found


def with_missing_codes(frame: pd.DataFrame, rows: Any) -> pd.DataFrame:
    """Return a frame that says which codes the rows that it is made of were read with."""
    codes = missing_codes_of(rows)
    if codes:
        frame.attrs[_CODES] = codes
    return frame


def weighted_blocks(
    source: Source, names: Sequence[str], weights: str | NDArray[np.float64] | None
) -> Iterator[tuple[int, pd.DataFrame, NDArray[np.float64] | None]]:
    """Yield the number of a block's first row, its cells, and its rows' weights, if there are any.

    The weights are a column, which is then among the cells, or (n_rows,) numbers >= 0. Raises
    DataError if a weight is no number >= 0, or there are no rows.
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
