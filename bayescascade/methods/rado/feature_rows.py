"""Rows with a protected feature, read so that nothing but its coordinate depends on it.

Neighbors differ in that feature of one row. Its two values are declared (see `two_values`), and all
else is read from a table whose cells of the feature are all alike.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from bayescascade.base.errors import ParameterError
from bayescascade.data.column import Column
from bayescascade.data.given import GivenRows, column_text
from bayescascade.data.levels import Cells, Level, tidy_levels
from bayescascade.data.read_as import check_row_by_row
from bayescascade.methods.rado.reading import Reading, Rows, by_column, read_rows
from bayescascade.methods.rado.two_values import (
    Two,
    codes_of_two,
    is_exact,
    middle_of,
    two_levels,
    two_of_type,
)


def read_hiding(
    X: Any,
    y: Any,
    feature: str | int,
    values: Any,
    *,
    standardize: bool,
    intercept: bool,
    like: Reading | None,
    owner: str,
) -> tuple[Rows, int]:
    """Read rows whose protected feature is -1 or 1, and return the place of its column.

    `feature` is a column's name, or its index where columns have none; `values` are its two levels,
    or None if its type declares them, or `like` does; the others as in `read_rows`. Raises
    ParameterError if there is no such feature, or its values are not declared; DataError if a cell
    of it has neither value, or as `read_rows`.
    """
    check_row_by_row(X)
    texts = GivenRows.of_texts(X, y)
    given = texts.typed()
    frame, names = by_column(given, like, owner)
    if feature not in names or isinstance(feature, bool):
        raise ParameterError(
            f"feature must be one of {', '.join(map(repr, names[:20]))}, got {feature!r}"
        )
    at = names.index(feature)
    cells = frame.iloc[:, at]
    if texts.is_text:  # then no cell decides on its type
        cells = by_column(texts, like, owner)[0].iloc[:, at]
    if like is None:
        levels = _values_of(cells, values)
    else:
        levels = _values_of_others(like, at, feature, values)
    codes = codes_of_two(f'column "{column_text(feature)}"', cells, levels)
    alike: Level = 0.0
    if like is not None and like.encoder.levels[at] is not None:
        alike = levels[0]
    frame = frame.copy(deep=False)
    frame.isetitem(at, [alike] * len(frame))
    rows = read_rows(
        frame,
        given.labels,
        standardize=standardize,
        intercept=intercept,
        like=like,
        owner=owner,
    )
    reading, matrix = rows.reading, rows.matrix.copy()
    place = int(np.flatnonzero(reading.encoder.source == at)[0])
    if like is None:
        reading = _with_values(reading, at, place, levels)
    center, unit = reading.center[place], reading.units[place]
    matrix[:, place] = np.where(codes, center + unit, center - unit)
    return replace(rows, reading=reading, matrix=matrix), place


def _values_of(cells: Cells, values: Any) -> Two:
    """Return the two values of a feature, declared by the caller or by its type."""
    if values is not None:
        return two_levels("values", values)
    found = two_of_type(cells)
    if found is None:
        raise ParameterError(
            "values must be the two values of the feature, such as ('no', 'yes'), unless it is of "
            "truth values or two categories: which of them occur is not public, got None"
        )
    return two_levels("values", found)


def _values_of_others(like: Reading, at: int, feature: str | int, values: Any) -> Two:
    """Return the two values that others' rados have for a feature."""
    if values is not None:
        raise ParameterError(f"values must be those of like, and left out, got {values!r}")
    places = np.flatnonzero(like.encoder.source == at)
    center, unit = (float(each[places[0]]) for each in (like.center, like.units))
    levels = like.encoder.levels[at]
    is_two = len(places) == 1
    if levels is not None:  # a missing level is none of two
        is_two = len(levels.levels) == levels.n_levels == 2 and center == unit == 0.5
    if not is_two or not is_exact(center, unit):
        raise ParameterError(
            f"like must be rados whose column {feature!r} is boolean, of two values that are -1 "
            "and 1 in its units, got others"
        )
    if levels is not None:
        return levels.levels[0], levels.levels[1]
    low, high = tidy_levels([center - unit, center + unit])
    return low, high


def _with_values(reading: Reading, at: int, place: int, levels: Two) -> Reading:
    """Return a reading in which a column has these two values, -1 and 1 in its units."""
    center, units = reading.center.copy(), reading.units.copy()
    encoder, ends = reading.encoder, (0.0, 1.0)
    if isinstance(levels[0], str):
        column = Column(encoder.names[at], "nominal", levels)
        known = (*encoder.levels[:at], column, *encoder.levels[at + 1 :])
        encoder = replace(encoder, levels=known)
    else:
        ends = (float(levels[0]), float(levels[1]))
    center[place], units[place] = middle_of(*ends)
    return replace(reading, encoder=encoder, center=center, units=units)
