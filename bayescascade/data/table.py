"""Table: data as distinct rows of codes with their total weights.

The likelihoods need only the distinct rows, so many rows over a small domain cost little. A table
does not depend on the order of the rows or on the chunks of a file.
"""

import hashlib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import DataError, ParameterError, UndeclaredError
from bayescascade.base.validation import check_weights
from bayescascade.data.arrow_frames import as_frame, is_partitioned
from bayescascade.data.column import Column
from bayescascade.data.declarations import Declarations, Declared, by_name
from bayescascade.data.files import Paths, are_paths, open_files
from bayescascade.data.given import GivenRows
from bayescascade.data.inference import reason_words
from bayescascade.data.levels import level_text
from bayescascade.data.merging import merge_rows
from bayescascade.data.partitions import are_partitions, open_partitions
from bayescascade.data.readers import ParquetSource
from bayescascade.data.reading import CountedRows, RowReader
from bayescascade.data.schema import Rows, Schema
from bayescascade.data.sources import BLOCK_ROWS, FrameSource, Source, source_of
from bayescascade.data.text_files import CsvSource


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Distinct rows of a table, coded, with their total weights.

    Build it with `from_frame`, `from_arrays` or `from_files` (`from_csv`, `from_parquet`). They
    share these optional keyword arguments:

    columns, drop : list of str
        The columns to use, in this order (default: all), and the columns to leave out.
    nominal : list of str, or mapping of str to levels
        Columns whose levels have no order, at most 64. By default these are text, truth values,
        pandas categories, and integers with at most 12 values (unless all rows differ).
    ordinal : list of str, or mapping of str to levels in order
        Columns whose levels have an order, so that only groups of adjacent levels make sense.
        Levels that are not given (or None) are the numbers in the data, ascending. An ordered
        pandas categorical is ordinal.
    continuous : mapping of str to int or list of float
        Columns of real numbers, with a number of equal-frequency bins or with increasing bin edges.
        Other numbers are continuous by default. Their number of bins is the cube root of the weight
        of the rows, rounded, from 2 to 10, which `notes` report. For integers, edges are halfway
        between two integers.
    missing : {"level", "error"}
        "level": missing cells are a separate level in columns that have some, which `notes` report.
        "error": missing cells are an error.
    schema : Schema
        Code rows by the schema of an earlier table, and infer nothing. Of the arguments above, only
        `missing` is allowed with it: "error" refuses missing cells even if the schema has a level
        for them.

    Declared levels, edges and categories are the domain, even if the data do not use all of them. A
    value outside is an error.

    Attributes
    ----------
    schema : Schema
    codes : (n_columns, n_distinct) uint8, or uint16 if a column has more than 256 codes
        The distinct rows, C-contiguous, in lexicographic order; not writeable.
    weights : (n_distinct,) float64 > 0
        Total weights of the distinct rows; not writeable.
    n_rows : int
        Number of rows read, including rows of weight zero.
    total_weight : float
    source : str
        Name of the file; empty if there is none.
    notes : tuple of str
        Notes for the user, such as on a constant column.
    """

    schema: Schema
    codes: NDArray[np.uint8] | NDArray[np.uint16]
    weights: Floats
    n_rows: int
    total_weight: float
    source: str = ""
    notes: tuple[str, ...] = ()

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        *,
        weights: str | ArrayLike | None = None,
        schema: Schema | None = None,
        source: str = "",
        **declared: Unpack[Declared],
    ) -> "Table":
        """Read a DataFrame; `weights` is a column's name or (n_rows,) numbers >= 0.

        Tables of polars, Arrow, DuckDB, Dask or narwhals, and all tables that Arrow can read, are
        accepted as well. Arrow datasets, polars LazyFrames and DuckDB relations are read in
        batches.

        Declarations: see the class.

        Raises
        ------
        DataError
            If the data break a rule; the message names the column, the rule and the value.
        ParameterError
            If a declaration is malformed or contradicts another.

        Examples
        --------
        >>> frame = pd.DataFrame({"sex": ["male", "female", "male"], "age": [1, 2, 1]})
        >>> Table.from_frame(frame)
        <Table: 3 rows, 2 distinct, 2 columns, 4 cells>
        """
        opened = _opened(frame, weights, source)
        if opened is None:
            raise ParameterError(f"frame must be a pandas DataFrame, got {type(frame).__name__}")
        return _read(opened, Declarations(**declared), weights, schema)

    @classmethod
    def from_arrays(
        cls,
        X: ArrayLike | Rows | Paths,
        *,
        names: Sequence[str] | None = None,
        sample_weight: str | ArrayLike | None = None,
        schema: Schema | None = None,
        source: str = "",
        **declared: Unpack[Declared],
    ) -> "Table":
        """Read a 2-D array or a list of rows, (n_rows, n_columns), or a mapping of columns.

        `names` default to those of the schema, or to x0, x1, ... Declarations may use names or
        column numbers. A DataFrame or other table is read as by `from_frame`, and paths as by
        `from_files`. For these, `sample_weight` may be the name of a column. Declarations: see the
        class.

        Raises
        ------
        DataError, ParameterError
            As in `from_frame`, and if the width of the array is not the number of names.
        """
        is_whole = is_partitioned(X) and not are_partitions(X)
        rows: Any = as_frame(X) if is_whole else X  # computed once
        opened = open_files(rows) if are_paths(rows) else _opened(rows, sample_weight, source)
        if opened is None:
            if isinstance(rows, pd.Series):
                raise DataError(
                    "rows must be a table, got a Series: pass rows.to_frame() for a column"
                )
            found = schema.names if names is None and schema else names
            opened = FrameSource(GivenRows.of(rows).named(found), source)
        Declarations(**declared)  # checks the shapes, before numbers are replaced
        named: Any = {
            option: value if option == "missing" else by_name(option, value, opened.names)
            for option, value in declared.items()
            if value is not None
        }
        return _read(opened, Declarations(**named), sample_weight, schema)

    @classmethod
    def from_files(
        cls,
        paths: Paths,
        *,
        chunk_rows: int = BLOCK_ROWS,
        weights: str | None = None,
        schema: Schema | None = None,
        **declared: Unpack[Declared],
    ) -> "Table":
        """Read CSV, Parquet, Arrow, Excel, Stata, SAS or SPSS files as one table, in chunks.

        The first bytes of a file with another extension decide what it is.

        Rows are counted in one pass. Weights, and columns that are cut into bins, need another pass
        over these columns only. An error also needs another pass, to name the row.

        Parameters
        ----------
        paths : path, URL, list of them, or ReadAs
            Files, folders, patterns such as ``parts/*.parquet``, or URLs that fsspec knows, such as
            ``s3://bucket/parts``. `ReadAs` has options for reading. All files must have the same
            columns. Files of a list are read in this order, other files in the order of their
            names.
        chunk_rows : int >= 1
            Maximum number of rows in memory at a time. It does not change the result.
        weights : str, optional
            The column that holds the rows' weights.
        schema, columns, drop, nominal, ordinal, continuous, missing
            See the class.

        Raises
        ------
        DataError, ParameterError
            As in `from_frame`, and if a file cannot be read or has other columns than the first
            one.
        """
        return _read(open_files(paths, chunk_rows), Declarations(**declared), weights, schema)

    @classmethod
    def from_csv(
        cls,
        path: Paths,
        *,
        chunk_rows: int = BLOCK_ROWS,
        weights: str | None = None,
        schema: Schema | None = None,
        **declared: Unpack[Declared],
    ) -> "Table":
        """Read text files with a header in chunks. File names may have any ending.

        Files may be compressed (.gz). Separators are commas, semicolons, tabs or "|". Encodings are
        UTF-8, UTF-16 with its mark, or cp1252. The decimal separator may be a comma. Formats other
        than UTF-8 with commas are detected in the first bytes of the file, and `notes` report them.
        Cells have the same meaning as in pandas.read_csv, and the table is the same as by
        `from_frame` for its DataFrame, with these exceptions: rows of another width than the header
        and repeated column names are errors; integers beyond 2**53 stay exact next to missing
        cells; integers with leading zeros are text; blanks at the ends of cells are left out; and
        so are percent signs, currencies and commas between thousands, if all cells of a column
        agree. `notes` report the last three. Memory holds a chunk and the distinct rows. Parameters
        and errors: see `from_files`.
        """
        source = open_files(path, chunk_rows, CsvSource)
        return _read(source, Declarations(**declared), weights, schema)

    @classmethod
    def from_parquet(
        cls,
        path: Paths,
        *,
        chunk_rows: int = BLOCK_ROWS,
        weights: str | None = None,
        schema: Schema | None = None,
        **declared: Unpack[Declared],
    ) -> "Table":
        """Read Parquet files in chunks. Parameters and errors: see `from_files`."""
        source = open_files(path, chunk_rows, ParquetSource)
        return _read(source, Declarations(**declared), weights, schema)

    @classmethod
    def from_dask(
        cls,
        rows: Any,
        *,
        weights: str | None = None,
        schema: Schema | None = None,
        **declared: Unpack[Declared],
    ) -> "Table":
        """Count the rows of a Dask DataFrame, or of files, on the workers of Dask.

        Each partition or file sends only its distinct rows. The table is exactly the same as in one
        process. Weights, and columns that are cut into bins, are first fetched partition by
        partition. To explain an error, all columns are fetched.

        Parameters
        ----------
        rows : Dask DataFrame, or path, URL or list of them
            Files as in `from_files`. Each worker must find them under the same names.
        weights : str, optional
            The column that holds the rows' weights.
        schema, columns, drop, nominal, ordinal, continuous, missing
            See the class.

        Raises
        ------
        DataError, ParameterError
            As in `from_frame`, and if Dask is not installed.
        """
        return _read(open_partitions(rows), Declarations(**declared), weights, schema)

    @classmethod
    def merge(cls, tables: Iterable["Table"]) -> "Table":
        """Merge several tables into the table of all their rows.

        The result does not depend on the order of the tables. It is the table of all rows read at
        once if columns are declared, or if their kinds do not depend on the rows. Levels of nominal
        columns, and numbers of ordinal columns, are joined. Levels of ordered text, and bins, must
        be the same in all tables, as in tables that were read with one schema. Undeclared columns
        of numbers may be levels in each part, but bins in all rows: declare them when the parts are
        read, or read all parts with one schema. For weights that are not counts, the last bit may
        differ, because each table rounds its sums.

        Raises
        ------
        DataError
            If there is no table, if columns, kinds, types, orders or bins differ, or if a column
            has too many levels in all tables together.

        Examples
        --------
        >>> rows = pd.DataFrame({"sex": ["male", "female", "male"], "age": [1, 2, 1]})
        >>> Table.merge([Table.from_frame(rows[:2]), Table.from_frame(rows[1:])])
        <Table: 4 rows, 2 distinct, 2 columns, 4 cells>
        """
        parts = list(tables)
        if not parts:
            raise DataError("at least one table must be given, got none")
        sources = list(dict.fromkeys(part.source for part in parts if part.source))
        more = f" and {len(sources) - 1} more" if len(sources) > 1 else ""
        return _table(merge_rows(parts), "".join(sources[:1]) + more)

    @property
    def n_distinct(self) -> int:
        """Number of distinct rows."""
        return int(self.codes.shape[1])

    def fingerprint(self) -> str:
        """Return the SHA-256 of schema, codes and weights, as hexadecimal digits."""
        digest = hashlib.sha256(self.schema.fingerprint().encode())
        digest.update(self.codes.astype("<u2").tobytes())
        digest.update(self.weights.astype("<f8").tobytes())
        return digest.hexdigest()

    def __repr__(self) -> str:
        n_cells = self.schema.n_cells
        words = [
            f"{self.source}: {self.n_rows:,} rows" if self.source else f"{self.n_rows:,} rows",
            f"{self.n_distinct:,} distinct",
            f"{self.schema.n_columns} columns",
            *([] if n_cells is None else [f"{n_cells:,} cells"]),
        ]
        return f"<Table: {', '.join(words)}>"


def without_unusable(
    read: Callable[..., Table], tell: Callable[[str], None], **declared: Any
) -> Table:
    """Return the table of `read`, without columns that must be declared first.

    `read` takes declarations by keyword; `tell` takes a sentence that names the columns left out,
    which none of `declared` is.
    """
    try:
        return read(**declared)
    except UndeclaredError as error:
        named = {name for name in declared.get("columns") or () if isinstance(name, str)}
        if named & error.reasons.keys():
            raise
        dropped = [*(declared.get("drop") or ()), *error.reasons]
        try:
            table = read(**{**declared, "drop": dropped})
        except DataError:
            raise error from None
        columns = "column" if len(error.reasons) == 1 else "columns"
        tell(f"left out: {columns} {reason_words(error.reasons)}")
        return table


def _opened(rows: Any, weights: object, label: str) -> Source | None:
    """Return a table with named columns as a source, None if it has none."""
    if not (weights is None or isinstance(weights, str)):
        rows = as_frame(rows)  # weights in an array need a table in memory
    return open_partitions(rows) if are_partitions(rows) else source_of(rows, label)


def _read(
    source: Source,
    declarations: Declarations,
    weights: str | ArrayLike | None,
    schema: Schema | None,
) -> Table:
    checked: str | Floats | None = None
    if isinstance(weights, str):
        checked = weights
    elif weights is not None:
        if not isinstance(source, FrameSource):
            raise ParameterError(
                f"weights must be the name of a column of {source.label}, "
                f"got {type(weights).__name__}"
            )
        checked = check_weights("weights", weights, source.n_rows)
    rows = RowReader.of(source, declarations, checked, schema).read()
    return _table(rows, source.label, source.notes)


def _table(rows: CountedRows, source: str, of_source: Sequence[str] = ()) -> Table:
    schema = rows.schema
    is_small = schema.n_levels.max() <= 256
    compact = rows.codes.astype(np.uint8) if is_small else rows.codes.astype(np.uint16)
    compact.flags.writeable = False
    rows.weights.flags.writeable = False
    return Table(
        schema=schema,
        codes=compact,
        weights=rows.weights,
        n_rows=rows.n_rows,
        total_weight=math.fsum(rows.weights),
        source=source,
        notes=(
            *of_source,
            *rows.notes,
            *(_constant_note(c) for c in schema.columns if c.n_levels == 1),
        ),
    )


def _constant_note(column: Column) -> str:
    value = f'"{level_text(column.levels[0])}"' if column.levels else "one bin"
    return f'column "{column.name}" is constant ({value}): no split or rule can use it'


def as_table(
    X: Rows | ArrayLike | Table,
    sample_weight: ArrayLike | str | None = None,
    **declared: Unpack[Declared],
) -> Table:
    """Return rows of any kind as a table; a Table has its own weights and columns."""
    if not isinstance(X, Table):
        return Table.from_arrays(X, sample_weight=sample_weight, **declared)
    if sample_weight is not None:
        raise ParameterError("sample_weight must be None with a Table, which has weights")
    for name in declared:
        raise ParameterError(f"{name} must not be given with a Table, which has columns")
    return X
