"""The columns of a table, and the conversion of rows to codes and back.

A model keeps the schema of its training table. It converts later tables, rows and conditions into
the same codes; errors name column, value and row.
"""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayescascade.base.arrays import Codes, Flags, Floats, Integers
from bayescascade.base.errors import DataError, ParameterError
from bayescascade.base.store import restored, stored
from bayescascade.data.arrow_frames import is_lazy
from bayescascade.data.cell_policy import UnknownCells
from bayescascade.data.changed_source import with_parts
from bayescascade.data.column import MISSING, Column
from bayescascade.data.date_parts import needed_dates, with_date_parts
from bayescascade.data.files import Paths, are_paths, located_errors, open_learned
from bayescascade.data.given import GivenRows, frame_from_mapping
from bayescascade.data.levels import Cells
from bayescascade.data.names import check_distinct_names, check_known, check_present


@runtime_checkable
class CodedTable(Protocol):
    """A table that is already coded (`bayescascade.data.table.Table`)."""

    @property
    def schema(self) -> "Schema":
        """Columns of the table."""

    @property
    def codes(self) -> NDArray[np.unsignedinteger]:
        """(n_columns, n_distinct) codes."""


# Mappings are one row (name to value) or several (name to a column of values).
Rows: TypeAlias = (
    pd.DataFrame
    | Cells
    | Mapping[str, object]
    | NDArray[np.generic]
    | Sequence[object]
    | CodedTable
)


@dataclass(frozen=True)
class Schema:
    """The columns of a table, in order.

    Parameters
    ----------
    columns : tuple of Column
        At least one column. Names must differ.

    Raises
    ------
    DataError
        If there is no column or a name occurs twice.
    """

    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        if not self.columns:
            raise DataError("a table must have at least one column, got none")
        check_distinct_names(self.names)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.columns)

    @cached_property
    def n_levels(self) -> Integers:
        """Number of codes of each column, (n_columns,) int64, not writeable."""
        n_levels = np.array([column.n_levels for column in self.columns], dtype=np.int64)
        n_levels.flags.writeable = False
        return n_levels

    @cached_property
    def log_cells(self) -> float:
        """Logarithm (nats) of the volume of the whole domain: cells times bin widths."""
        return math.fsum(math.log(column.widths.sum()) for column in self.columns)

    @property
    def n_cells(self) -> int | None:
        """Number of cells of the domain; None if a column is continuous."""
        if any(column.kind == "continuous" for column in self.columns):
            return None
        return math.prod(column.n_levels for column in self.columns)

    def encode(
        self,
        data: Rows,
        *,
        allow_missing: bool = True,
        first_row: int = 1,
        unknown: UnknownCells | None = None,
    ) -> Codes:
        """Return the codes of rows.

        Parameters
        ----------
        data : DataFrame or other table, paths, mapping, Series, array, list of rows or Table
            A DataFrame, a table that Arrow can read, or a mapping of columns is matched by column
            name, in any order, and may have additional columns. An array or list of lists is
            matched by position. A Series or a mapping of single values is one row. A Table with
            this schema gives its distinct rows. Files are read as by
            `bayescascade.data.table.Table.from_files`.
        allow_missing : bool
            Whether missing cells are allowed. They get code -1, unless their column has a missing
            level.
        first_row : int
            Number of the first data row, for messages.
        unknown : UnknownCells, optional
            Collects cells outside the domain of their column, which get code -2. None: such cells
            are an error.

        Returns
        -------
        (n_columns, n_rows) int32, C-contiguous

        Raises
        ------
        DataError
            If a column is missing, the width is wrong, or a cell is outside the domain of its
            column. The message names the column, the value and the data row, counted from 1.
        """
        # Asking a lazy table for its schema takes long.
        if not is_lazy(data) and isinstance(data, CodedTable):
            if data.schema != self:
                raise DataError("the table must have the model's columns and levels, got others")
            return data.codes.astype(np.int32)
        if are_paths(data):
            return self._encode_files(data, allow_missing, first_row, unknown)
        if isinstance(data, pd.Series):
            data = {str(name): value for name, value in data.items()}
        if isinstance(data, Mapping):  # other keys may be no columns
            dates = needed_dates(self.names, list(data))
            used = [*self.names, *(column for column, _ in dates.values())]
            data = frame_from_mapping({name: data[name] for name in used if name in data})
        cells = self.cells_of(GivenRows.of(data).named(self.names), first_row)
        return self._encode_cells(cells, allow_missing, first_row, unknown)

    def cells_of(self, frame: pd.DataFrame, first_row: int = 1) -> list[Cells]:
        """Return the cells of a frame in each column of the schema, with parts of dates."""
        frame = with_date_parts(frame, self.names, first_row)
        names = [str(name) for name in frame.columns]
        check_distinct_names([name for name in names if name in set(self.names)])
        check_present(self.names, names)
        return [frame.iloc[:, names.index(name)] for name in self.names]

    def _encode_cells(
        self,
        columns: Sequence[Cells],
        allow_missing: bool,
        first_row: int,
        unknown: UnknownCells | None,
    ) -> Codes:
        """Return the codes of rows, given their cells in each column; see `encode`."""
        codes = np.empty((self.n_columns, len(columns[0])), dtype=np.int32)
        for column, cells, column_codes in zip(self.columns, columns, codes, strict=True):
            column_codes[:] = column.encode(cells, first_row, allow_unknown=unknown is not None)
            if unknown is not None:
                unknown.note(column.name, cells, column_codes)
            missing = column_codes == MISSING
            if not allow_missing and missing.any():
                raise DataError(
                    f'column "{column.name}" has a missing cell in row '
                    f"{first_row + int(np.argmax(missing))} but no level for it"
                )
        return codes

    def _encode_files(
        self, paths: Paths, allow_missing: bool, row: int, unknown: UnknownCells | None
    ) -> Codes:
        source = with_parts(open_learned(paths, self.columns), self.names)
        check_distinct_names([name for name in source.names if name in self.names])
        check_present(self.names, source.names)
        parts = [np.empty((self.n_columns, 0), np.int32)]
        with located_errors(source):
            for cells in source.blocks(self.names):
                noted = None if unknown is None else UnknownCells()
                columns = [cells[name] for name in self.names]
                parts.append(self._encode_cells(columns, allow_missing, row, noted))
                if unknown is not None and noted is not None:
                    unknown.append(noted)
                row += len(cells)
        return np.concatenate(parts, axis=1)

    def encode_row(
        self, row: Mapping[str, object] | Cells, unknown: UnknownCells | None = None
    ) -> Codes:
        """Return the codes of one row, (n_columns,) int32; see `encode`."""
        codes = self.encode({str(name): value for name, value in row.items()}, unknown=unknown)
        if codes.shape[1] != 1:
            raise DataError(f"a row must have one value per column, got {codes.shape[1]}")
        return codes[:, 0]

    def encode_conditions(self, conditions: Mapping[str, object]) -> dict[int, tuple[int, ...]]:
        """Return the sorted codes that conditions allow, by column index.

        `conditions` maps a column's name to a level, a list of levels, a number or a pair of bin
        edges: {"sex": "male"}, {"class": ["1st", "2nd"]}, {"income": (10, 20)}.

        Raises
        ------
        DataError
            If a column or level is unknown, or a pair is not two increasing edges.
        """
        check_known("conditions", conditions, self.names)
        codes = {}
        for name, value in conditions.items():
            index = self.names.index(name)
            codes[index] = self.columns[index].codes_for(value)
        return codes

    def decode(self, codes: NDArray[np.integer], rng: np.random.Generator) -> pd.DataFrame:
        """Return (n_columns, n_rows) codes as rows, the reverse of `encode`.

        Levels have their original types. Continuous values are drawn uniformly within their bins. A
        missing level becomes NaN, None or pandas.NA, depending on the type of the column.

        Raises
        ------
        ParameterError
            If a code is out of range or the shape is wrong.
        """
        if codes.ndim != 2 or codes.shape[0] != self.n_columns:
            raise ParameterError(
                f"codes must have shape ({self.n_columns}, n_rows), got {codes.shape}"
            )
        return pd.DataFrame(
            {
                column.name: column.decode(column_codes, rng)
                for column, column_codes in zip(self.columns, codes, strict=True)
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as plain JSON types."""
        record: dict[str, Any] = stored(self)
        return record

    @classmethod
    def from_dict(cls, record: object) -> "Schema":
        """Rebuild a schema from the result of `to_dict`.

        Raises
        ------
        ModelFileError
            If the record is incomplete, inconsistent, or has unknown fields or wrong types.
        """
        schema: Schema = restored(cls, record, {}, "schema")
        return schema

    def fingerprint(self) -> str:
        """Return the SHA-256 of the canonical JSON, as hexadecimal digits."""
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


Conditions: TypeAlias = Mapping[int, tuple[int, ...]]
"""The allowed codes of a column, ascending, by its index."""


def conditions_words(schema: Schema, known: Conditions) -> str:
    """Return conditions in words, such as "sex is male and grade is 1, 2"; empty if none."""
    columns = schema.columns
    return " and ".join(columns[j].condition_words(left, is_full=True) for j, left in known.items())


def narrow_conditions(
    schema: Schema, known: Conditions, conditions: Mapping[str, object]
) -> dict[int, tuple[int, ...]]:
    """Return the allowed codes by column number, given more conditions."""
    narrowed = dict(known)
    for j, codes in schema.encode_conditions(conditions).items():
        column = schema.columns[j]
        left = tuple(code for code in known.get(j, range(column.n_levels)) if code in codes)
        if not left:
            raise DataError(
                f'conditions on "{column.name}" must agree with the conditions given before, '
                f"{conditions_words(schema, known)}"
            )
        if column.kind != "nominal" and left[-1] - left[0] >= len(left):
            raise DataError(
                f'conditions on {column.kind} column "{column.name}" must be neighboring levels, '
                f"got {column.describe_codes(left)}"
            )
        narrowed[j] = left
    return narrowed


def subtract_widths(scores: Floats, schema: Schema, known: Conditions, codes: Codes) -> None:
    """Turn log probabilities of coded rows into log densities, in place; -inf without agreement."""
    for column, of_column in zip(schema.columns, codes, strict=True):
        log_widths = np.append(np.log(column.widths), 0.0)  # the last one is for -1, missing
        scores -= log_widths[of_column]
    scores[~agrees(known, codes)] = -np.inf


def agrees(known: Conditions, codes: Codes) -> Flags:
    """Return whether each row of codes (n_columns, n_rows), -1 for missing, may meet conditions."""
    may_be_true = np.ones(codes.shape[1], np.bool_)
    for j, allowed in known.items():
        may_be_true &= (codes[j] < 0) | np.isin(codes[j], allowed)
    return may_be_true
