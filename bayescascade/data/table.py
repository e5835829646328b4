"""Table: the one way in for data, as distinct rows of codes with their summed weights.

The likelihoods of all models need only the distinct rows, so a long file over a small domain costs
what its distinct rows cost. A table does not depend on the order of the rows or on how a file is
cut into chunks.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Unpack

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from bayescascade.base.errors import DataError, ParameterError
from bayescascade.base.validation import check_weights
from bayescascade.data.declarations import Declarations, Declared, by_name
from bayescascade.data.distinct_rows import DistinctRows
from bayescascade.data.inference import (
    BinCollector,
    Collector,
    LevelCollector,
    collected_columns,
)
from bayescascade.data.levels import level_text
from bayescascade.data.schema import (
    Column,
    Schema,
    check_distinct_names,
    check_present,
    frame_from_array,
)
from bayescascade.data.sources import (
    CsvSource,
    FrameSource,
    ParquetSource,
    Source,
    as_frame,
    weighted_blocks,
)

__all__ = ["Table"]


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Distinct rows of a table, coded, with their summed weights.

    Build one with `from_frame`, `from_arrays`, `from_csv` or `from_parquet`; they share these
    declarations, all by keyword and optional:

    columns, drop : list of str
        The columns to use, in this order (default: all), and those to leave out.
    nominal : list of str, or mapping of str to levels
        Columns whose levels have no order; integers with at most 64 values, unless all rows differ,
        text, truth values and pandas categories are so by default. At most 64 levels.
    ordinal : list of str, or mapping of str to levels in order
        Columns of which only contiguous groups of levels make sense. Levels that are not given (or
        None) are the numbers in the data, ascending. An ordered pandas categorical is ordinal.
    continuous : mapping of str to int or list of float
        Columns of real numbers: the number of equal-frequency bins, or increasing bin edges. Other
        numbers are so by default, in as many bins as the cube root of the weight of their rows
        comes nearest to, from 2 to 10, which `notes` say.
    missing : {"level", "error"}
        What a missing cell is: a level of its own in the columns that have some, which `notes` say,
        or an error.
    schema : Schema
        Code by an earlier table's schema and infer nothing; excludes the declarations above.

    Declared levels, edges and categories are the domain even if the data do not use all of them; a
    value outside is an error.

    Attributes
    ----------
    schema : Schema
    codes : (n_columns, n_distinct) uint8, or uint16 if a column has more than 256 codes
        The distinct rows, C-contiguous, in lexicographic order; not writeable.
    weights : (n_distinct,) float64 > 0
        Their summed weights; not writeable.
    n_rows : int
        Number of rows read, those of weight zero included.
    total_weight : float
    source : str
        The file's name; empty if there is none.
    notes : tuple of str
        What a user should know, such as a constant column.
    """

    schema: Schema
    codes: NDArray[np.uint8] | NDArray[np.uint16]
    weights: NDArray[np.float64]
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

        A table of polars, Arrow, or anything that Arrow can read is taken for a DataFrame.

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
        frame = as_frame(frame)
        if not isinstance(frame, pd.DataFrame):
            raise ParameterError(f"frame must be a pandas DataFrame, got {type(frame).__name__}")
        declarations = Declarations(**declared)
        if weights is not None and not isinstance(weights, str):
            weights = check_weights("weights", weights, len(frame))
        return _read(FrameSource(frame, source), declarations, weights, schema)

    @classmethod
    def from_arrays(
        cls,
        X: ArrayLike | pd.DataFrame,
        *,
        names: Sequence[str] | None = None,
        sample_weight: ArrayLike | None = None,
        schema: Schema | None = None,
        source: str = "",
        **declared: Unpack[Declared],
    ) -> "Table":
        """Read a 2-D array or a list of rows, (n_rows, n_columns).

        `names` default to the schema's or to x0, x1, ...; declarations may use names or column
        numbers. A DataFrame or other table is read as by `from_frame`. Declarations: see the class.

        Raises
        ------
        DataError, ParameterError
            As `from_frame`; also if the array's width is not the number of names.
        """
        frame = as_frame(X)
        if not isinstance(frame, pd.DataFrame):
            frame = frame_from_array(frame, schema.names if names is None and schema else names)
        known = [str(name) for name in frame.columns]
        Declarations(**declared)  # checks the shapes, before numbers are replaced
        named: Any = {
            option: value if option == "missing" else by_name(option, value, known)
            for option, value in declared.items()
            if value is not None
        }
        return cls.from_frame(frame, weights=sample_weight, schema=schema, source=source, **named)

    @classmethod
    def from_csv(
        cls,
        path: str | PathLike[str],
        *,
        chunk_rows: int = 100_000,
        weights: str | None = None,
        schema: Schema | None = None,
        **declared: Unpack[Declared],
    ) -> "Table":
        """Read a comma-separated UTF-8 file with a header, twice or three times, in chunks.

        The file may be compressed (.gz). Cells mean what pandas.read_csv takes them for, and the
        table is the one that `from_frame` makes of its DataFrame. But rows of another width than
        the header, and equal column names, are errors; and integers beyond 2**53 stay exact beside
        missing cells. Memory: a chunk and the distinct rows.

        Parameters
        ----------
        path : path
        chunk_rows : int >= 1
            Most rows held at a time; does not change the result.
        weights : str, optional
            The column that holds the rows' weights.
        schema, columns, drop, nominal, ordinal, continuous, missing
            See the class.

        Raises
        ------
        DataError, ParameterError
            As `from_frame`; also if the file cannot be read.
        """
        return _read(CsvSource(path, chunk_rows), Declarations(**declared), weights, schema)

    @classmethod
    def from_parquet(
        cls,
        path: str | PathLike[str],
        *,
        chunk_rows: int = 100_000,
        weights: str | None = None,
        schema: Schema | None = None,
        **declared: Unpack[Declared],
    ) -> "Table":
        """Read a Parquet file in chunks. Parameters and errors: see `from_csv`."""
        return _read(ParquetSource(path, chunk_rows), Declarations(**declared), weights, schema)

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


def _read(
    source: Source,
    declarations: Declarations,
    weights: str | NDArray[np.float64] | None,
    schema: Schema | None,
) -> Table:
    """Read a source: for its levels and largest weight, for bins if need be, and for its rows."""
    check_distinct_names(source.names)
    notes: list[str] = []
    is_inferred = schema is None
    if schema is None:
        weights_column = weights if isinstance(weights, str) else None
        collectors: list[Collector] = [
            (BinCollector if declared.kind == "continuous" else LevelCollector)(
                name=name, declared=declared, is_text=source.is_text
            )
            for name, declared in declarations.resolve(source.names, weights_column).items()
        ]
        largest_weight = _scan(source, collectors, weights)
        is_weighted = weights is not None
        collectors = _with_bins(source, collectors, weights)
        schema = Schema(collected_columns(collectors, declarations.missing, is_weighted))
        notes = [text for collector in collectors for text in collector.notes]
    else:
        if not declarations.is_empty:
            raise ParameterError("schema excludes columns, drop, nominal, ordinal and continuous")
        needed = [*schema.names, weights] if isinstance(weights, str) else schema.names
        check_present(needed, source.names)
        largest_weight = None if weights is None else _scan(source, [], weights)
    rows = DistinctRows(schema.n_levels, largest_weight)
    n_rows = 0
    for first_row, cells, block_weights in weighted_blocks(source, schema.names, weights):
        rows.add(schema.encode(cells, allow_missing=False, first_row=first_row), block_weights)
        n_rows += len(cells)
    if is_inferred and (schema.n_levels == 1).all():
        counted = "1 row" if n_rows == 1 else f"{n_rows:,} rows"
        raise DataError(
            f"at least one column must vary, got {counted} with the same values: "
            "there is nothing to split"
        )
    codes, row_weights = rows.result()
    is_small = schema.n_levels.max() <= 256
    compact = codes.astype(np.uint8) if is_small else codes.astype(np.uint16)
    compact.flags.writeable = False
    row_weights.flags.writeable = False
    return Table(
        schema=schema,
        codes=compact,
        weights=row_weights,
        n_rows=n_rows,
        total_weight=math.fsum(row_weights),
        source=source.label,
        notes=(*notes, *(_constant_note(c) for c in schema.columns if c.n_levels == 1)),
    )


def _with_bins(
    source: Source, collectors: Sequence[Collector], weights: str | NDArray[np.float64] | None
) -> list[Collector]:
    """Return the collectors, of columns of numbers that have to be cut those of their bins.

    Such columns are read once more.
    """
    is_weighted = weights is not None
    found = [
        BinCollector(name=c.name, declared=c.declared, is_text=c.is_text)
        if isinstance(c, LevelCollector) and c.needs_bins(is_weighted)
        else c
        for c in collectors
    ]
    binned = [new for new, old in zip(found, collectors, strict=True) if new is not old]
    if binned:
        _scan(source, binned, weights)
    return found


def _scan(
    source: Source, collectors: Sequence[Collector], weights: str | NDArray[np.float64] | None
) -> float | None:
    """Show every row to the collectors; return the largest weight, None without weights."""
    largest = 0.0
    names = [collector.name for collector in collectors]
    for _, cells, block_weights in weighted_blocks(source, names, weights):
        for collector in collectors:
            collector.add(cells[collector.name], block_weights)
        if block_weights is not None:
            largest = max(largest, float(block_weights.max()))
    if weights is None:
        return None
    if largest == 0:
        raise DataError("weights must not be all zero, got only zeros")
    return largest


def _constant_note(column: Column) -> str:
    value = f'"{level_text(column.levels[0])}"' if column.levels else "one bin"
    return f'column "{column.name}" is constant ({value}): no split or rule can use it'
