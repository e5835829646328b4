"""Columns of any type as a matrix of numbers.

Numbers and truth values stay unchanged. For text and categories, two levels become 0 and 1, ordered
levels their rank, and others one column of 0 and 1 per level. The learner's policy treats missing
cells and unknown levels. If missing cells are a level, text has one more level. Missing numbers and
ranks become the median, and an additional column of 0 and 1 marks them, for columns that had
missing cells in the training rows.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import check_array

from bayescascade.base.arrays import Floats, Integers
from bayescascade.base.errors import DataError, ModelFileError, UnknownLevelError
from bayescascade.base.store import GIVEN, SKIPPED, As, Saved, restored, stored
from bayescascade.base.typed_words import typed
from bayescascade.data.cell_policy import STRICT, CellPolicy, Matrix, UnknownCells
from bayescascade.data.column import UNKNOWN, Column, Levels, Unit
from bayescascade.data.date_parts import with_date_parts
from bayescascade.data.given import GivenRows, check_width, column_text
from bayescascade.data.levels import (
    Cells,
    Level,
    check_numbers,
    factorize,
    holds_numbers,
    level_text,
    tidy_levels,
    to_numbers,
    without_codes,
)
from bayescascade.data.names import check_present
from bayescascade.data.number_words import is_number_column, number_column
from bayescascade.data.sources import units_of

_MOST_LISTED = 5  # columns


@dataclass(frozen=True, slots=True, eq=False)
class MatrixEncoder:
    """The encoding of each column; tuples have an entry for each column, or are empty."""

    columns: tuple[str | int, ...]  # names, or indices if there are no names
    levels: tuple[Column | None, ...]  # None for a column of numbers
    policy: Annotated[CellPolicy, GIVEN] = STRICT
    # medians of columns of numbers or ranks that had missing cells; None for others
    medians: Annotated[tuple[float | None, ...], SKIPPED] = ()
    # columns of integers, with one bin, or of truth values, with two levels;
    # None for others; empty if the policy does not allow them
    numbers: Annotated[tuple[Column | None, ...], Saved("numbers", is_optional=True)] = ()
    # values that stand for missing cells
    missing_codes: Annotated[tuple[Levels, ...], Saved("missing_codes", is_optional=True)] = ()
    # left out of numbers, by column
    units: Annotated[Mapping[str, Unit], Saved("units", is_optional=True)] = field(
        default_factory=dict
    )

    @classmethod
    def learn(cls, rows: GivenRows, policy: CellPolicy = STRICT) -> "MatrixEncoder":
        """Return the encoder of the columns of rows.

        Columns have names if all names are text, as in scikit-learn; categories are levels even if
        no cell has them.
        """
        array = rows.numbers(least_rows=1)
        if array is not None:
            n_columns = array.shape[1]
            found = cls(tuple(range(n_columns)), (None,) * n_columns, policy)
            found = found._with_numbers(dict(enumerate(array.T)))
            return found._with_medians(rows.frame()) if policy.missing == "level" else found
        names = list(rows.cells.columns) if rows.is_named else []
        others = [name for name in names if not isinstance(name, str)]
        if 0 < len(others) < len(names):
            raise DataError(f"names of columns must be all text or none, got {others[0]!r}")
        frame = rows.frame()
        columns: tuple[str | int, ...] = tuple(range(frame.shape[1]))
        if not others and names:
            columns = tuple(map(str, names))
        is_level = policy.missing == "level"
        of_columns = tuple(rows.missing_codes.get(str(column), ()) for column in columns)
        levels = tuple(
            _learned_levels(column_text(column), frame.iloc[:, place], is_level, codes)
            for place, (column, codes) in enumerate(zip(columns, of_columns, strict=True))
        )
        of_columns = of_columns if any(of_columns) else ()
        units = {name: unit for name, (unit, _) in units_of(rows.cells).items()}
        found = cls(columns, levels, policy, missing_codes=of_columns, units=units)
        found = found._with_numbers({j: cells for j, (_, cells) in enumerate(frame.items())})
        return found._with_medians(frame) if is_level else found

    def _with_numbers(self, cells: Mapping[int, Any]) -> "MatrixEncoder":
        """Return the encoder with the columns of integers, if the policy allows it."""
        if not self.policy.keeps_ranges:
            return self
        numbers = (
            number_column(name, cells[place]) if levels is None else None
            for place, (name, levels) in enumerate(zip(self.names, self.levels, strict=True))
        )
        return replace(self, numbers=tuple(numbers))

    def _with_medians(self, frame: pd.DataFrame) -> "MatrixEncoder":
        """Return the encoder with the medians of columns of numbers or ranks with missing cells."""
        medians: list[float | None] = []
        for place, levels in enumerate(self.levels):
            cells = frame.iloc[:, place]
            if levels is not None and levels.kind == "nominal":
                medians.append(None)
                continue
            part = self._encode(place, cells, UnknownCells(), None)
            known = part[~np.isnan(part)]
            # the lower of two in the middle, which occurs in the data
            median = float(np.quantile(known, 0.5, method="lower")) if known.size else 0.0
            medians.append(None if known.size == len(part) else median)
        is_needed = any(median is not None for median in medians)
        return replace(self, medians=tuple(medians)) if is_needed else self

    @property
    def names(self) -> list[str]:
        """Names of the columns in messages."""
        return [column_text(column) for column in self.columns]

    @property
    def is_named(self) -> bool:
        """Whether the columns have names."""
        return isinstance(self.columns[0], str)

    @property
    def is_numeric(self) -> bool:
        """Whether all columns hold numbers, and the matrix has the same columns."""
        has_more = bool(self.medians or self.missing_codes)
        return not has_more and all(levels is None for levels in self.levels)

    @property
    def widths(self) -> list[int]:
        """Number of columns of the matrix for each column."""
        return [
            _width(levels) + (self._median(place) is not None)
            for place, levels in enumerate(self.levels)
        ]

    def _median(self, place: int) -> float | None:
        """Return the number or rank of a column's missing cells."""
        return self.medians[place] if self.medians else None

    def codes_of(self, column: int) -> tuple[Level, ...]:
        """Return the codes of a column's missing cells."""
        return self.missing_codes[column] if self.missing_codes else ()

    @property
    def known(self) -> Iterator[Column]:
        """The columns as files are read for them; those of numbers have one bin."""
        for place, (name, levels) in enumerate(zip(self.names, self.levels, strict=True)):
            column = levels or Column(name, "continuous", (), (0.0, 1.0))
            codes, unit = self.codes_of(place), self.units.get(name, "")
            yield replace(column, missing_codes=codes, unit=unit)

    @property
    def source(self) -> Integers:
        """The column of each column of the matrix, (n_matrix_columns,) int64."""
        return np.repeat(np.arange(len(self.columns)), self.widths)

    @property
    def column_texts(self) -> list[str]:
        """Names of the columns of the matrix: "age" or, for text, "class=1st"."""
        texts = []
        for place, (name, levels) in enumerate(zip(self.names, self.levels, strict=True)):
            if levels is None or levels.kind == "ordinal":
                texts.append(name)
            else:
                shown = [f"{name}={level_text(level)}" for level in levels.levels]
                shown += [f"{name} is missing"] * levels.has_missing_level
                texts += shown[1:] if len(shown) == 2 else shown  # the second of two levels is 1
            if self._median(place) is not None:
                texts.append(f"{name} is missing")
        return texts

    @property
    def missing_texts(self) -> list[str]:
        """The treatment of missing cells in words; empty if there were none."""
        named = list(enumerate(zip(self.names, self.levels, strict=True)))
        treated = {
            "a level of its own": [n for _, (n, name) in named if name and name.has_missing_level],
            "imputed by the median, plus an indicator column": [
                name for place, (name, _) in named if self._median(place) is not None
            ],
        }
        return [f"missing {_listed(names)}: {how}" for how, names in treated.items() if names]

    def treating(self, unknown: str) -> "MatrixEncoder":
        """Return the encoder with another policy for unknown levels; see `CellPolicy`."""
        return replace(self, policy=replace(self.policy, unknown=unknown))

    def codes_up_to(self, column: int, threshold: float) -> tuple[int, ...] | None:
        """Return the codes of levels whose number is at most a threshold; None for numbers."""
        is_of_numbers = self.levels[int(self.source[column])] is None
        return None if is_of_numbers else self.codes_within(column, -np.inf, threshold)

    def codes_within(self, column: int, low: float, high: float) -> tuple[int, ...]:
        """Return the codes of levels whose numbers are in [low, high]."""
        part = self.level_values(column)
        return tuple(np.flatnonzero((part >= low) & (part <= high)).tolist())

    def level_values(self, column: int) -> Matrix:
        """Return the numbers of levels in a column of the matrix, (n_levels,); not for numbers."""
        place = int(self.source[column])
        levels = self.levels[place]
        assert levels is not None
        part = self._part(levels, np.arange(levels.n_levels, dtype=np.int32))
        return part[:, column - int(np.searchsorted(self.source, place))]

    def transform(
        self,
        rows: GivenRows,
        owner: str,
        means: Floats | None = None,
        unknown: UnknownCells | None = None,
    ) -> Matrix:
        """Return rows as a matrix, (n_rows, n_matrix_columns), C-contiguous.

        If the encoder has names, rows with names are matched by name, in any order, and may have
        more columns; else by position. means (n_matrix_columns,) float64 replace unknown levels if
        the policy is "mean"; rows that have some are appended to `unknown`, else warned of.
        DataError names column, value and row.
        """
        array = rows.numbers() if self.is_numeric else None
        is_filled = array is not None and self.policy.missing == "level" and pd.isna(array).any()
        if array is not None and not is_filled:
            check_width(array.shape[1], len(self.columns), owner)
            with np.errstate(over="ignore"):  # an infinity is refused
                return self._complete(
                    check_array(
                        array, dtype=self.policy.dtype, order="C", ensure_all_finite="allow-nan",
                        ensure_min_samples=0,
                    )
                )  # fmt: skip
        frame = rows.frame(self.names, owner)
        if self.is_named and rows.is_named:
            frame = with_date_parts(frame, self.names)
            check_present(self.names, list(frame.columns))
            frame = frame[self.names]
        check_width(frame.shape[1], len(self.columns), owner)
        found = UnknownCells()
        parts = [
            self._encode(place, frame.iloc[:, place], found, means)
            for place in range(frame.shape[1])
        ]
        found.tell(self.policy.meaning_of_unknown, unknown)
        return self._complete(np.ascontiguousarray(np.concatenate(parts, axis=1)))

    def read_cell(self, column: int, value: object) -> Matrix:
        """Return one value as its part of a row; None and NaN are missing."""
        name, levels = self.names[column], self.levels[column]
        if not pd.api.types.is_scalar(value):
            raise DataError(f'column "{name}" must have a single value, got {value!r}')
        cells = without_codes(pd.Series([value], dtype=object), self.codes_of(column))
        if cells.isna()[0]:
            if self.policy.missing == "error":
                raise DataError(f'column "{name}" must have a value, got {value!r}')
            if self.policy.missing == "level":
                return self._encode(column, cells, UnknownCells(), None).ravel()
            return np.full(self.widths[column], np.nan, self.policy.dtype)
        if levels is not None:
            if self.policy.unknown == "error":
                return self._part(levels, np.array(levels.codes_for(value))).ravel()
            unknown = UnknownCells()
            part = self._encode(column, pd.Series([value], dtype=object), unknown, None).ravel()
            unknown.tell(self.policy.meaning_of_unknown)
            return part
        try:
            number = float(value)  # type: ignore[arg-type] # text is refused here
        except (TypeError, ValueError):
            number = np.nan
        if not np.isfinite(number):
            raise DataError(f'column "{name}" must have a finite number, got {value!r}')
        part = self.policy.numbers(np.array([number]))
        return np.pad(part, (0, self.widths[column] - 1))  # the column of missing cells is 0

    def to_dict(self) -> dict[str, Any]:
        """Return the encoder as plain JSON types, without the family's policy."""
        record: dict[str, Any] = stored(self)
        if not any(self.numbers):
            record.pop("numbers", None)
        if self.policy.missing == "level":
            record |= {"missing": "level", "medians": list(self.medians)}
        return record

    @classmethod
    def from_dict(cls, record: Mapping[str, Any], policy: CellPolicy = STRICT) -> "MatrixEncoder":
        """Return the encoder of a record of `to_dict`, with its policy."""
        found: MatrixEncoder = restored(cls, record, {"policy": policy})
        columns, n = found.columns, len(found.columns)
        is_named = all(type(column) is str for column in columns)
        if len(found.levels) != n or not (is_named or columns == tuple(range(n))):
            raise ModelFileError("an encoding's columns must be names, or all indices, with levels")
        if not 0 < n == len(set(columns)):
            raise ModelFileError("an encoding's columns must be different")
        if len(found.missing_codes) not in (0, n) or len(found.numbers) not in (0, n):
            raise ModelFileError("an encoding must have the same columns everywhere")
        for name, levels in zip(found.names, found.levels, strict=True):
            if levels is not None and (levels.name != name or levels.kind == "continuous"):
                raise ModelFileError(f"an encoding's levels must be of {name!r}, got {levels}")
        for name, number in zip(found.names, found.numbers, strict=False):
            if number is not None and (number.name != name or not is_number_column(number)):
                raise ModelFileError(
                    f"an encoding's numbers must be those of {name!r}, got {number}"
                )
        if record.get("missing") is None:
            return found
        medians = restored(tuple[int | float | None, ...], record["medians"], {}, "medians")
        are_possible = all(
            median is None or of is None or of.kind == "ordinal"
            for median, of in zip(medians, found.levels, strict=False)
        )
        if record["missing"] != "level" or len(medians) not in (0, n) or not are_possible:
            raise ModelFileError("an encoding's medians must be numbers of columns without levels")
        return replace(found, policy=replace(policy, missing="level"), medians=medians)

    def _encode(
        self, column: int, cells: Cells, unknown: UnknownCells, means: Floats | None
    ) -> Matrix:
        name, levels = self.names[column], self.levels[column]
        cells = without_codes(cells, self.codes_of(column))
        if levels is None:
            numbers = to_numbers(f'column "{name}"', cells)
            check_numbers(f'column "{name}"', numbers)
            part = self.policy.numbers(numbers).reshape(-1, 1)
            return self._filled(column, part, cells, unknown, means)
        try:
            codes = levels.encode(cells, allow_unknown=self.policy.unknown != "error")
        except UnknownLevelError as error:
            raise error.advising(
                "declare rare levels when fitting, as a Categorical column, or accept unknown ones "
                f"({typed('unknown=', '--unknown')})"
            ) from None
        unknown.note(name, cells, codes)
        part = self._part(levels, codes)
        if self.policy.unknown == "mean" and means is not None:
            part[codes == UNKNOWN] = means[self.source == column][: part.shape[1]]
        return self._filled(column, part, cells, unknown, means)

    def _filled(
        self, column: int, part: Matrix, cells: Cells, unknown: UnknownCells, means: Floats | None
    ) -> Matrix:
        """Return a column's part of the matrix, with missing cells by the policy."""
        if self.policy.missing != "level":
            return part
        median = self._median(column)
        is_missing = np.isnan(part[:, 0])
        if median is not None:
            part[is_missing] = median
            both: Matrix = np.concatenate([part, is_missing[:, np.newaxis]], 1, dtype=part.dtype)
            return both
        if self.policy.unknown == "mean" and means is not None:
            unknown.note(self.names[column], cells, np.where(is_missing, UNKNOWN, 0))
            part[is_missing] = means[self.source == column]
        elif self.policy.unknown == "missing":
            is_new = is_missing & np.asarray(cells.isna())
            unknown.note(self.names[column], cells, np.where(is_new, UNKNOWN, 0))
        return part

    def _complete(self, matrix: Matrix) -> Matrix:
        """Return a matrix after a check: only NaN may be missing."""
        if not self.policy.may_be_nan and np.isnan(matrix).any():
            row, place = np.argwhere(np.isnan(matrix))[0].tolist()
            had = ", of which fit had none" if self.policy.missing == "level" else ""
            raise DataError(
                f'column "{self.names[self.source[place]]}" has a missing cell (NaN) in row '
                f"{row + 1}{had}: fill it or drop the column"
            )
        return matrix

    def _part(self, levels: Column, codes: NDArray[np.integer]) -> Matrix:
        """Return the columns of the matrix for codes, NaN for missing cells."""
        part: Matrix = codes[:, np.newaxis].astype(self.policy.dtype)
        if _width(levels) > 1:
            part = (part == np.arange(levels.n_levels)).astype(self.policy.dtype)
        part[codes < 0] = np.nan
        return part


ENCODER = As(MatrixEncoder.to_dict, MatrixEncoder.from_dict)
"""How an encoder with the strict policy is saved."""


def _learned_levels(
    name: str, cells: Cells, is_level: bool, codes: tuple[Level, ...]
) -> Column | None:
    """Return a column's levels, with one for missing cells if needed; None for numbers."""
    if holds_numbers(cells) or pd.api.types.is_bool_dtype(cells.dtype):
        return None
    factor = factorize(name, cells)
    levels = tidy_levels(factor.values)
    if not levels:
        return None
    if factor.is_ordered:
        return Column(name, "ordinal", tuple(levels), missing_codes=codes)
    has_missing_level = is_level and bool(cells.isna().any())
    return Column(name, "nominal", tuple(sorted(levels)), (), has_missing_level, False, codes)


def _width(levels: Column | None) -> int:
    """Return the number of columns of the matrix: one per level if there are more than two."""
    if levels is None or levels.kind == "ordinal" or levels.n_levels <= 2:
        return 1
    return levels.n_levels


def _listed(names: Sequence[str]) -> str:
    """Return the first names, and the number of the others."""
    shown = ", ".join(names[:_MOST_LISTED])
    return f"{shown} and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else shown
