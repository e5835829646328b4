"""Tables of other libraries as DataFrames, with their names and categories."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.interchange
from pyarrow import compute

from bayescascade.base.errors import DataError

_LONG = 10_000  # rows

NATIVE = (pd.DataFrame, pd.Series, np.ndarray, Sequence, Mapping)


def as_frame(rows: Any) -> Any:
    """Return another library's table as a DataFrame; data without named columns stay unchanged.

    Tables are those of polars (lazy ones, too), Arrow (readers and data sets, too), DuckDB, Dask or
    narwhals, and those that offer Arrow's PyCapsule interface or the dataframe interchange
    protocol. Raises DataError if a table has named columns but cannot be read.
    """
    if isinstance(rows, NATIVE):
        return rows
    if is_partitioned(rows):
        whole = converted(rows.compute, rows)
        if not is_partitioned(whole):  # xarray computes these again and again
            return whole
    if hasattr(rows, "to_native"):  # of narwhals
        return as_frame(rows.to_native())
    if is_lazy(rows):
        return as_frame(converted(rows.collect, rows))
    if is_arrow(rows) or is_dataset(rows):
        return converted(lambda: frame_of_arrow(arrow_table(rows)), rows)
    if hasattr(rows, "__dataframe__"):
        return converted(lambda: _frame_of_interchange(rows), rows)
    is_array = any(hasattr(rows, name) for name in ("__array__", "__getitem__", "shape"))
    if hasattr(type(rows), "columns") or not is_array:  # as an array it would lose its names
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
    """Return whether rows are in partitions that Dask computes."""
    return hasattr(rows, "__dask_graph__") and hasattr(rows, "compute")


def is_lazy(data: Any) -> bool:
    """Return whether it is a table of polars or narwhals that is not computed yet."""
    return hasattr(data, "collect") and hasattr(data, "collect_schema")


def is_arrow(data: Any) -> bool:
    """Return whether data offer Arrow's PyCapsule interface."""
    return hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")


def is_dataset(data: Any) -> bool:
    """Return whether it is a data set of Arrow, or a scanner of one."""
    return type(data).__module__.startswith("pyarrow") and hasattr(data, "to_table")


def converted(reader: Callable[[], Any], data: object) -> Any:
    """Return another library's data, read by `reader`; DataError if that fails."""
    try:
        return reader()
    except Exception as error:  # other libraries raise errors of any type
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise DataError(f"cannot read the {type(data).__name__} as Arrow data: {reason}") from error


def arrow_table(rows: Any) -> pyarrow.Table:
    """Return data that `is_arrow` or `is_dataset` as an Arrow table.

    Types are corrected because not every version of polars reports that the levels of an Enum are
    ordered, and that a Categorical is a way to store text.
    """
    if not type(rows).__module__.startswith("polars"):
        table = pyarrow.table(rows) if is_arrow(rows) else rows.to_table()
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
    """Return Arrow data as a DataFrame; integers with missing cells stay integers."""
    categories = {}
    for index, field in enumerate(table.schema):
        if not pyarrow.types.is_dictionary(field.type):
            continue
        chunks = table.column(index).chunks
        tidy = [with_distinct_entries(chunk) for chunk in chunks]
        if any(new is not old for new, old in zip(tidy, chunks, strict=True)):
            column = pyarrow.chunked_array([_of_one_type(chunk) for chunk in tidy])
            table = table.set_column(index, field.name, column)
        kind = table.schema.field(index).type
        is_extension = isinstance(kind.value_type, pyarrow.BaseExtensionType)  # as for intervals
        # which some versions of pyarrow cannot convert to categories
        if is_extension or pyarrow.types.is_unsigned_integer(kind.index_type):
            column = table.column(index).combine_chunks()
            codes = column.indices.cast(pyarrow.int64())
            table = table.set_column(index, field.name, codes)
            categories[field.name] = pd.Categorical.from_codes(
                codes.fill_null(-1), column.dictionary.to_pandas(), column.type.ordered
            )
    # For a few cells, a pool of threads takes longer than the conversion.
    is_long = table.num_rows > _LONG
    frame: pd.DataFrame = table.to_pandas(integer_object_nulls=True, use_threads=is_long)
    return frame.assign(**categories)


def with_distinct_entries(cells: pyarrow.DictionaryArray) -> pyarrow.DictionaryArray:
    """Return dictionary cells without equal or missing entries, which pandas refuses."""
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
    """Return dictionary cells in the type of `with_distinct_entries`."""
    places = cells.indices.cast(pyarrow.int32())
    return pyarrow.DictionaryArray.from_arrays(places, _entries(cells), ordered=cells.type.ordered)


def _entries(cells: pyarrow.DictionaryArray) -> pyarrow.Array:
    """Return a dictionary's entries, as a type of text that all functions of Arrow support."""
    if cells.type.value_type != pyarrow.string_view():
        return cells.dictionary
    # which Arrow 17 cannot cast
    return pyarrow.array(cells.dictionary.to_pylist(), pyarrow.large_string())


def _frame_of_interchange(rows: Any) -> pd.DataFrame:
    frame = frame_of_arrow(pyarrow.interchange.from_dataframe(rows))
    described = rows.__dataframe__()
    for name in frame.select_dtypes("category"):  # pyarrow forgets which are ordered
        if described.get_column_by_name(name).describe_categorical["is_ordered"]:
            frame[name] = frame[name].cat.as_ordered()
    return frame
