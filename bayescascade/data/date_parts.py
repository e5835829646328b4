"""Dates as columns of their parts: "start" becomes "start.year", "start.month" and so on.

The names contain the name of the column, so a model of parts finds them in later tables with the
dates.
"""

import datetime
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from bayescascade.base.errors import DataError
from bayescascade.data.levels import Cells

_PARTS: Mapping[str, Sequence[int | str]] = {
    "year": (),
    "month": range(1, 13),
    "weekday": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "hour": range(24),
}
"""The levels of each part, in order; years are numbers and have none."""

_TIME = r"(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?)?"
_ZONE = re.compile(r"(?<=:\d\d)(?:\.\d+)?(?:Z|[+-]\d{2}:?\d{2})$|(?<=:\d\d)[.,]\d+$")
_DAYS = {
    "%d.%m.%Y": r"\d{1,2}\.\d{1,2}\.\d{4}",
    "%Y/%m/%d": r"\d{4}/\d{1,2}/\d{1,2}",
    "%d-%b-%Y": r"\d{1,2}-[A-Za-z]{3}-\d{4}",
    "%d-%b-%y": r"\d{1,2}-[A-Za-z]{3}-\d{2}",
    "%d %b %Y": r"\d{1,2} [A-Za-z]{3} \d{4}",
    "%d %B %Y": r"\d{1,2} [A-Za-z]{4,} \d{4}",
    "%b %d, %Y": r"[A-Za-z]{3} \d{1,2}, \d{4}",
    "%B %d, %Y": r"[A-Za-z]{4,} \d{1,2}, \d{4}",
}
_TIMES = {
    "%H:%M": r"\d{1,2}:\d{2}",
    "%H:%M:%S": r"\d{1,2}:\d{2}:\d{2}",
    "%I:%M %p": r"\d{1,2}:\d{2} [APap][Mm]",
}
_FORMS = {
    "ISO8601": re.compile(r"\d{4}-\d{2}-\d{2}" + _TIME),
    **{form: re.compile(words) for form, words in (*_DAYS.items(), *_TIMES.items())},
    **{
        f"{day} {time}": re.compile(f"{day_words} {time_words}")
        for day, day_words in _DAYS.items()
        for time, time_words in _TIMES.items()
    },
}
"""The forms of dates and times, as Python names them."""

_NO_DAY = pd.Timestamp("1678-01-01")  # the day of times without a day: none that is in use

AMBIGUOUS = re.compile(r"\d{1,2}[/-]\d{1,2}[/-](?:\d{2}|\d{4})\b.*")
"""A date such as 01/02/2024, whose day and month cannot be distinguished."""


class Held(NamedTuple):
    """What a column of dates holds."""

    days: bool
    times: bool


def are_dates(cells: Cells) -> bool:
    """Return whether there are cells and all present ones are dates; see `dates_of`."""
    if pd.api.types.is_datetime64_any_dtype(cells.dtype):
        return True
    if pd.api.types.is_numeric_dtype(cells.dtype) or not cells.notna().any():
        return False
    try:
        dates_of("", cells)
    except DataError:
        return False
    return True


def dates_of(name: str, cells: Cells, first_row: int = 1) -> Cells:
    """Return a column as dates without a time zone, (n_rows,) datetime64, NaT where missing.

    Text is 2024-01-31, 31.01.2024, 2024/01/31, 31-Jan-2024 or January 31, 2024, perhaps with a
    time; or all cells are times, such as 13:45. Other forms are ambiguous.
    """
    if pd.api.types.is_datetime64_any_dtype(cells.dtype):
        return cells.dt.tz_localize(None) if cells.dt.tz is not None else cells
    positions, distinct = pd.factorize(cells.astype(object))
    found = [_date(value) for value in distinct]
    if any(_has_day(date) for date in found):
        found = [date if _has_day(date) else None for date in found]
    for place, (value, date) in enumerate(zip(distinct, found, strict=True)):
        if date is None:
            row = first_row + int(np.argmax(positions == place))
            raise DataError(
                f'column "{name}" must hold dates such as 2024-01-31 or 31.01.2024, or times, '
                f"got {str(value)!r} in row {row}"
            )
    dates = pd.Series([*found, None], dtype="datetime64[ns]")
    return dates.iloc[positions].set_axis(cells.index)


def _has_day(date: pd.Timestamp | None) -> bool:
    return date is not None and date.normalize() != _NO_DAY


def _date(value: object) -> pd.Timestamp | None:
    """Return a text as a date without a time zone; None if it is no date."""
    try:
        if isinstance(value, str):
            text = _ZONE.sub("", value.strip())
            form = next((form for form, words in _FORMS.items() if words.fullmatch(text)), None)
            if form is None:
                return None
            date = pd.Timestamp(pd.to_datetime(text, format=form))
            return _NO_DAY + (date - date.normalize()) if form in _TIMES else date
        if isinstance(value, datetime.date | np.datetime64):
            return pd.Timestamp(value).tz_localize(None)
    except (ValueError, OverflowError):  # such as for 2024-02-31
        pass
    return None


def held_by(dates: Cells) -> Held:
    """Return what dates without missing cells hold."""
    days = dates.dt.normalize()
    return Held(bool((days != _NO_DAY).any()), bool((dates != days).any()))


def parts_of(name: str, held: Held) -> list[str]:
    """Return the names of a column's parts."""
    kept = {part: held.times if part == "hour" else held.days for part in _PARTS}
    return [f"{name}.{part}" for part, is_kept in kept.items() if is_kept]


def part_of(dates: Cells, part: str) -> Cells:
    """Return a part of dates: numbers for years, otherwise ordered categories with all levels."""
    values = dates.dt.day_name() if part == "weekday" else getattr(dates.dt, part)
    if part == "year":
        return values.astype("Int64") if values.isna().any() else values.astype(np.int64)
    levels = list(_PARTS[part])
    codes = pd.Index(levels).get_indexer(pd.Index(values))
    kind = pd.CategoricalDtype(levels, ordered=True)
    return pd.Series(pd.Categorical.from_codes(codes, dtype=kind), dates.index)


def needed_dates(needed: Iterable[str], names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return column and part for each needed name that is not among the names."""
    found = {}
    for name in needed:
        column, dot, part = name.rpartition(".")
        if dot and part in _PARTS and name not in names and column in names:
            found[name] = (column, part)
    return found


def with_date_parts(frame: pd.DataFrame, needed: Iterable[str], first_row: int = 1) -> pd.DataFrame:
    """Return rows with the needed parts of dates added; DataError if a cell is no date."""
    names = [str(name) for name in frame.columns]
    parts = needed_dates(needed, names)
    if not parts:
        return frame
    dates = {
        column: dates_of(column, frame.iloc[:, names.index(column)], first_row)
        for column in dict.fromkeys(column for column, _ in parts.values())
    }
    made = {name: part_of(dates[column], part) for name, (column, part) in parts.items()}
    return pd.concat([frame, pd.DataFrame(made, index=frame.index)], axis=1)
