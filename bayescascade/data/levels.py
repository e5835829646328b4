"""Levels: the plain values of a counted column, and how cells are matched to them.

A level is a str, bool, int or float. Two values are the same level if their *canonical text*
agrees: 1, 1.0 and NumPy's int64(1) are all "1", True is "True". A column's levels are of one type
(text, truth values or numbers), so that a model fitted on numbers can score the same table read as
text: for such a column, text is parsed before it is compared. The level of a pandas Interval is its
text; "(0, 5]" and "(0.0, 5.0]" are the same.

Words for sets of levels are short. If there are more than six, numbers become runs of the column's
levels, "29 to 54". If few levels are left out, the words name these, perhaps with missing: "not x",
"none of x, y", "neither x nor missing". Both are exact. Sets that are still too long are shortened:
"x, y, ... (18 of 49 levels)".
"""

import csv
import datetime
import io
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from bayescascade.base.arrays import Floats, Integers
from bayescascade.base.errors import DataError
from bayescascade.base.typed_words import typed_setting

OTHER_LEVELS = "other levels"
"""The level of grouped rare levels; in a nominal column, also of unknown levels."""

_NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal")  # of columns of objects

_MIXED = ("mixed", "mixed-integer")

_INTERVAL = re.compile(r"\A([\[(])([-+.\de]+?|-inf)(?:\.0)?, ([-+.\de]+?|inf)(?:\.0)?([\])])\Z")

_PADDED = re.compile(r"[-+]?0\d+", re.ASCII)
_PADDED_LINE = re.compile(r'^"\s*[-+]?0\d+\s*"\r?$', re.ASCII | re.MULTILINE)

_JOINTS = (",", "  ", " and ", " or ", " to ", " is ")  # of conditions and levels in a sentence
_WORDS = ("", "missing", "anything", "not missing")  # used as words for other things than levels
_MOST_NAMED = 6  # up to so few levels, each is named if there is room
_MOST_LEFT_OUT = 3  # levels named because they are left out
_FEWEST_CUT = 5  # levels of which some are left out
_MOST_LETTERS = 50  # of levels in a row
_LETTERS_LEFT = 18  # characters that remain of a longer text: two lines of a tree

Level: TypeAlias = str | int | float | bool
if TYPE_CHECKING:  # at run time pandas' class has no type parameter
    Cells: TypeAlias = pd.Series[Any]
else:
    Cells = pd.Series


class DatesError(DataError):
    """A column holds dates or times, which cannot be levels."""

    def __init__(self, message: str, has_parts: bool = False) -> None:
        super().__init__(message)
        self.has_parts = has_parts  # whether `ReadAs` can read it as year, month and weekday


class Factor(NamedTuple):
    """A column as its distinct values and the position of each cell among them."""

    values: list[Level]  # distinct
    positions: Integers  # (n_rows,), -1 is a missing cell
    is_categorical: bool  # values are declared categories, perhaps unused, in their order
    is_ordered: bool
    intervals: Sequence[Any] = ()  # whose texts are `values`, ascending, if any


def level_text(level: Level) -> str:
    """Return the canonical text of a level: integral numbers without a decimal point."""
    if isinstance(level, float) and level.is_integer():
        return str(int(level))
    return level if isinstance(level, str) else repr(level)


def quoted(text: str) -> str:
    """Return a name or level for a sentence, in quotes if it could be read as something else.

    Texts with separators are also quoted, and texts that are words for missing cells.
    """
    has_joint = any(joint in text for joint in _JOINTS)
    return f'"{text}"' if has_joint or text in _WORDS else text


def plain_level(name: str, value: object) -> Level:
    """Return a value of the column `name` as a plain Python str, bool, int or finite float."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, pd.Interval):
        return str(value)
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, (datetime.date, datetime.time, datetime.timedelta, pd.Period)):
        holds = (
            f'column "{name}" holds dates or times such as {value}: convert it to text or numbers'
        )
        if not isinstance(value, datetime.date):  # times and durations do not have these parts
            raise DatesError(f"{holds}, or drop it")
        parts = typed_setting("dates", "parts", "ReadAs")
        raise DatesError(f"{holds}, drop it, or read its parts ({parts})", has_parts=True)
    if isinstance(value, float) and not math.isfinite(value):
        raise DataError(f'column "{name}" must hold finite numbers, got {value}')
    if isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return str(value)
    raise DataError(
        f'column "{name}" must hold text, numbers or truth values, '
        f"got {value!r} of type {type(value).__name__}"
    )


def tidy_levels(levels: Iterable[Level]) -> list[Level]:
    """Return distinct levels of one type, by first appearance; a mixture of types becomes text."""
    listed = list(levels)
    tidy: Sequence[Level] = listed
    if not all(isinstance(level, bool) for level in listed):
        numbers = [x for x in listed if isinstance(x, (int, float)) and not isinstance(x, bool)]
        if len(numbers) < len(listed):
            tidy = [level_text(level) for level in listed]
        elif all(isinstance(number, int) or number.is_integer() for number in numbers):
            tidy = [int(number) for number in numbers]
        else:
            tidy = [float(number) for number in numbers]
    return list(dict.fromkeys(tidy))


def parse_texts(texts: Iterable[Level]) -> list[Level]:
    """Return a CSV column's distinct texts in the type that pandas.read_csv gives the column.

    One exception: if an integer has leading zeros, as a postal code has, the column stays text.
    """
    listed = list(texts)
    lines = io.StringIO()
    csv.writer(lines, quoting=csv.QUOTE_ALL).writerows(zip(listed))
    lines.seek(0)
    if not lines.getvalue():
        return []
    if _PADDED_LINE.search(lines.getvalue()):
        return [level_text(text) for text in listed]
    column = pd.read_csv(lines, header=None, keep_default_na=False, low_memory=False)[0]
    return list(column.tolist())


def is_padded(text: object) -> bool:
    """Return whether a text is an integer with leading zeros, such as a postal code."""
    return isinstance(text, str) and _PADDED.fullmatch(text.strip()) is not None


def first_padded(cells: Cells) -> str | None:
    """Return the first cell that is an integer with leading zeros, None if there is none."""
    if not pd.api.types.is_string_dtype(cells.dtype):
        return None
    texts = cells.dropna()
    maybe = texts[texts.str.match(r"[-+]?0\d")]  # leaves few for the loop below
    return next(filter(is_padded, maybe.unique()), None)


def factorize(name: str, cells: Cells) -> Factor:
    """Split a column into its distinct values and each cell's position among them.

    Intervals of pandas.cut keep their order, unless they are categories with another order. Raises
    DataError if a cell cannot be a level (see `plain_level`).
    """
    values: Any
    is_categorical = is_ordered = isinstance(cells.dtype, pd.CategoricalDtype)
    if is_categorical:
        positions, values = cells.cat.codes.to_numpy(), cells.cat.categories
        is_ordered = bool(cells.cat.ordered)
    else:
        if cells.dtype == object and pd.api.types.infer_dtype(cells) in _MIXED:
            # Hashing does not distinguish True and 1; text does.
            present = cells.notna()
            texts = cells[present].map(lambda value: level_text(plain_level(name, value)))
            cells = cells.where(~present, texts)
        positions, values = pd.factorize(cells)
    intervals: list[Any] = []
    if not is_ordered and pd.api.types.infer_dtype(values) == "interval":
        order = sorted(range(len(values)), key=values.__getitem__)
        positions = np.append(np.argsort(order), -1)[positions]
        values = intervals = [values[i] for i in order]
        is_ordered = True
    levels = [plain_level(name, value) for value in values]
    return Factor(levels, positions.astype(np.int64), is_categorical, is_ordered, intervals)


def to_numbers(label: str, cells: Cells, first_row: int = 1) -> Floats:
    """Return a column as (n_rows,) float64, NaN for missing cells; messages name it `label`."""
    if isinstance(cells.dtype, pd.CategoricalDtype):
        cells = cells.astype(cells.cat.categories.dtype)
    if pd.api.types.is_numeric_dtype(cells.dtype):
        return np.ascontiguousarray(cells.to_numpy(dtype=np.float64, na_value=np.nan))
    if cells.dtype == object or pd.api.types.is_string_dtype(cells.dtype):
        numbers = pd.to_numeric(cells, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
        wrong = np.isnan(numbers) & cells.notna().to_numpy()
    else:  # such as dates, which pandas would convert to nanoseconds
        wrong = cells.notna().to_numpy()
        numbers = np.full(len(cells), np.nan)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(
            f"{label} must hold numbers, got {str(cells.iloc[row])!r} in row {first_row + row}"
        )
    return numbers


def check_numbers(label: str, numbers: Floats, first_row: int = 1) -> None:
    """Raise DataError if a number is infinite; names `label` and the row."""
    infinite = np.isinf(numbers)
    if infinite.any():
        row = int(np.argmax(infinite))
        raise DataError(
            f"{label} must hold finite numbers, got {numbers[row]} in row {first_row + row}"
        )


def are_numbers(values: Sequence[object]) -> bool:
    """Return whether there are values, and all of them are numbers."""
    return bool(values) and all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in values
    )


def holds_numbers(cells: Cells) -> bool:
    """Return whether a column has only real numbers, also as objects, and missing cells."""
    if cells.dtype == object:
        return pd.api.types.infer_dtype(cells, skipna=True) in _NUMBERS
    types = pd.api.types
    return types.is_numeric_dtype(cells.dtype) and not (
        types.is_bool_dtype(cells.dtype) or types.is_complex_dtype(cells.dtype)
    )


def match_texts(values: Sequence[Level], levels: Sequence[Level]) -> list[str]:
    """Return the canonical text of each value, in the type of `levels`.

    Text is parsed first if the levels are numbers or truth values: "1.0" becomes "1". The ends of
    an interval may be written either way: "(0.0, 5.0]" becomes "(0, 5]" if that is the level.
    """
    texts = [level_text(value) for value in values]
    if not levels or isinstance(levels[0], str):
        if not set(texts).issubset(levels):
            spelled = {_tidy_interval(str(level)): str(level) for level in levels}
            spelled |= {level: level for level in spelled.values()}
            texts = [spelled.get(text, spelled.get(_tidy_interval(text), text)) for text in texts]
        return texts
    is_text = [isinstance(value, str) for value in values]
    if isinstance(levels[0], bool):
        return [
            text.strip().capitalize() if parse else text
            for text, parse in zip(texts, is_text, strict=True)
        ]
    known = {level_text(level) for level in levels}
    # Known texts stay unchanged: parsing would round integers beyond 2**53.
    to_parse = [i for i, parse in enumerate(is_text) if parse and texts[i] not in known]
    numbers = pd.to_numeric(pd.Series([texts[i] for i in to_parse], dtype=str), errors="coerce")
    for i, number in zip(to_parse, numbers.tolist(), strict=True):
        if math.isfinite(number):
            texts[i] = level_text(number)
    return texts


def without_codes(cells: Cells, codes: Sequence[Level]) -> Cells:
    """Return a column in which codes are missing cells; "-9.0" is the code -9."""
    if not codes:
        return cells
    texts = {level_text(code) for code in codes}
    numbers = {_number(code) for code in codes} - {None}
    if pd.api.types.is_float_dtype(cells.dtype) or pd.api.types.is_integer_dtype(cells.dtype):
        gone = cells.isin(numbers).to_numpy(np.bool_)
        if gone.any() and cells.dtype.kind in "iu":  # integers stay integers
            cells = cells.astype("UInt64" if cells.dtype.kind == "u" else "Int64")
        return cells.mask(gone) if gone.any() else cells
    positions, distinct = pd.factorize(cells.astype(object))
    is_code = [str(value) in texts or _number(value) in numbers for value in distinct]
    if not any(is_code):
        return cells
    gone = np.array([*is_code, False])[positions]
    if isinstance(cells.dtype, pd.CategoricalDtype):
        cells = cells.cat.remove_categories(distinct[np.array(is_code)])
    return cells.mask(gone)


def _number(value: object) -> float | None:
    """Return a number, also from its text; None for truth values, codes and other texts."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, str | int | float | Decimal):
        return None
    if is_padded(value):  # "007" is not the number 7
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def _tidy_interval(text: str) -> str:
    """Return an interval with integral ends as ints; other text stays unchanged."""
    return _INTERVAL.sub(r"\1\2, \3\4", text)


def level_set_words(
    levels: Sequence[Level], codes: Sequence[int], is_missing: bool | None, *, is_full: bool = False
) -> str:
    """Return words for some levels of a nominal column; exact, with nothing cut, if `is_full`.

    `levels` are all of the column, ascending; `codes` the chosen ones, ascending; `is_missing`
    says whether the missing level is one of them, None if the column has none.
    """
    if not codes:
        return "missing" * bool(is_missing)
    texts = [quoted(level_text(level)) for level in levels]
    pieces = [texts[code] for code in codes]
    if len(codes) > _MOST_NAMED or len(", ".join(pieces)) > _MOST_LETTERS:
        if are_numbers(levels):
            pieces = [words for run in runs(codes) for words in run_words(levels, *run)]
        others = sorted(set(range(len(levels))) - set(codes))
        left_out = [texts[code] for code in others] + ["missing"] * (is_missing is False)
        if len(left_out) <= _MOST_LEFT_OUT < len(pieces):
            return "missing or " * bool(is_missing) + _none_of(left_out)
    if not is_full and len(codes) >= _FEWEST_CUT:
        pieces = shortened(pieces, f"({len(codes):,} of {len(levels):,} levels)")
    return ", ".join(pieces) + " or missing" * bool(is_missing)


def _none_of(left_out: Sequence[str]) -> str:
    """Return words for all levels but one to three; "missing" may be the last of these."""
    if len(left_out) == 1:
        return f"not {left_out[0]}"
    if len(left_out) == 2 and left_out[1] == "missing":
        return f"neither {left_out[0]} nor missing"
    return f"none of {', '.join(left_out)}"


def shortened(texts: Sequence[str], count: str, letters: int = _LETTERS_LEFT) -> list[str]:
    """Return texts in one line; of too many only the first ones and their number."""
    if len(", ".join(texts)) <= _MOST_LETTERS:
        return list(texts)
    lengths = itertools.accumulate(len(text) + 2 for text in texts)
    n_kept = max(1, sum(length <= letters for length in lengths))
    return [*texts[:n_kept], f"... {count}"]


def run_words(levels: Sequence[Level], first: int, last: int) -> list[str]:
    """Return a run of levels: "3 to 7", or each of two or one."""
    ends = [quoted(level_text(levels[code])) for code in (first, last)]
    if last - first > 1:
        return [" to ".join(ends)]
    return ends[: 1 + last - first]


def runs(codes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and last of each run of consecutive codes, ascending."""
    chosen = set(codes)
    starts = (code for code in codes if code - 1 not in chosen)
    return zip(starts, (code for code in codes if code + 1 not in chosen), strict=True)
