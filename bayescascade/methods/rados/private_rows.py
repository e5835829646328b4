"""Reading rows such that only values hidden by noise depend on protected cells.

**A feature**: neighbors differ in that feature of one row. Its two values are declared, and
everything else is read from a table with equal cells of the feature.

**Rows**: neighbors differ in any cells and the label of one row, so nothing is learned from them.
Columns of categories have the levels declared by their type; all others contain numbers between
declared bounds. The two classes are declared, too. A cell that is missing, infinite or not a number
is an error that names it: a row with such a cell is not among the protected neighbors.

The reading is published with the sums. So its levels, centers and classes must not come from
protected cells: they are declared by the caller, by a type of truth values or of two categories, or
by other rados. A cell with neither value is an error, too.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import column_or_1d

from bayescascade.base.arrays import Floats, Integers
from bayescascade.base.errors import DataError, ParameterError
from bayescascade.base.validation import check_bounds
from bayescascade.data.arrow_frames import as_column
from bayescascade.data.column import Column
from bayescascade.data.given import GivenRows, column_text
from bayescascade.data.levels import (
    Cells,
    Level,
    check_numbers,
    factorize,
    level_text,
    plain_level,
    tidy_levels,
    to_numbers,
)
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.data.read_as import check_row_by_row
from bayescascade.methods.rados.reading import OWNER, RadoRows, Reading, by_column, read_rows

Two = tuple[Level, Level]

Bounds = tuple[float, float] | Mapping[str, tuple[float, float]]


def two_levels(name: str, given: Any) -> Two:
    """Return two declared levels, sorted: two texts, two numbers or two truth values.

    For numbers, the mean and half of the difference must be exact as floats. Then cells are exactly
    -1 and 1 in these units, and the last digits of a sum reveal nothing. Raises ParameterError
    otherwise, with `name` in the message.
    """
    wrong = ParameterError(
        f"{name} must be two different texts, numbers or truth values, such as ('no', 'yes'), "
        f"got {given!r}"
    )
    if isinstance(given, str) or not np.iterable(given):
        raise wrong
    try:
        levels = [plain_level(name, value) for value in given]
    except DataError:
        raise wrong from None
    kinds = {float if type(level) is int else type(level) for level in levels}
    if len(levels) != 2 or len(kinds) != 1 or len(set(map(level_text, levels))) != 2:
        raise wrong
    low, high = tidy_levels(sorted(levels))
    if kinds == {float}:
        try:
            center, unit = middle_of(low, high)
        except OverflowError:
            raise wrong from None
        if not is_exact(center, unit) or (center - unit, center + unit) != (low, high):
            raise ParameterError(
                f"{name} must be numbers whose mean and half difference are exact as floats, "
                f"such as 0 and 1, got {low!r} and {high!r}"
            )
    return low, high


def declared_two(name: str, what: str, of: str, given: Any, cells: Cells) -> Two:
    """Return two given levels, or those declared by the type of cells; ParameterError without."""
    found = two_of_type(cells) if given is None else given
    if found is None:
        raise ParameterError(
            f"{name} must be {what}, such as ('no', 'yes'), unless {of} is of truth values or two "
            "categories: the values that occur are not public, got None"
        )
    return two_levels(name, found)


def two_of_type(cells: Cells) -> list[Any] | None:
    """Return the two values declared by the type of a column, or None."""
    if isinstance(cells.dtype, pd.CategoricalDtype):
        categories: list[Any] = cells.cat.categories.tolist()
        return categories if len(categories) == 2 else None
    return [False, True] if pd.api.types.is_bool_dtype(cells.dtype) else None


def codes_of_two(label: str, cells: Cells, levels: Two) -> Integers:
    """Return 0 or 1 for each cell, which may be text; `label` names cells in errors."""
    if isinstance(levels[0], str):
        factor = factorize(label, cells)
        texts: list[Level] = [level_text(value) for value in factor.values]
        places = [levels.index(text) if text in levels else -1 for text in texts]
        codes = np.array([*places, -1], np.int64)[factor.positions]
    else:
        parsed: Any = pd.to_numeric(with_truth_values(cells).astype(object), errors="coerce")
        numbers = parsed.to_numpy(np.float64, na_value=np.nan)
        codes = np.select([numbers == levels[0], numbers == levels[1]], [0, 1], -1)
    if (codes < 0).any():
        row = int(np.argmax(codes < 0))
        cell: Any = cells.iloc[row]
        got = "a missing cell" if pd.isna(cell) else f'"{cell}"'
        raise DataError(
            f'{label} must be "{level_text(levels[0])}" or "{level_text(levels[1])}", as was '
            f"declared, got {got} in row {row + 1}"
        )
    return codes


def with_truth_values(cells: Cells) -> Cells:
    """Return cells with truth values in text form as 0 and 1."""
    if not (cells.dtype == object or pd.api.types.is_string_dtype(cells.dtype)):
        return cells
    truth = cells.astype(str).str.strip().str.lower().map({"true": 1.0, "false": 0.0})
    return cells.astype(object).where(truth.isna(), truth)


def middle_of(low: Any, high: Any) -> tuple[float, float]:
    """Return the middle of two numbers and half of their difference, without overflow."""
    return float(low) / 2 + float(high) / 2, float(high) / 2 - float(low) / 2


def is_exact(center: float, unit: float) -> bool:
    """Return whether values one unit from the center are exactly -1 and 1 in floats."""
    with np.errstate(all="ignore"):
        middle, half = np.float64(center), np.float64(unit)
        return bool(
            ((middle - half - middle) / half, (middle + half - middle) / half) == (-1.0, 1.0)
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
) -> tuple[RadoRows, int]:
    """Read rows with a protected feature, -1 or 1, and return the place of its column.

    `feature` is a column's name, or its index; `values` are its two levels, or None if its type
    declares them, or `like` does; the others as in `read_rows`.
    """
    check_row_by_row(X)
    texts = GivenRows.of_texts(X, y)
    given = texts.typed()
    frame, names = by_column(given, like)
    if feature not in names or isinstance(feature, bool):
        raise ParameterError(
            f"feature must be one of {', '.join(map(repr, names[:20]))}, got {feature!r}"
        )
    at = names.index(feature)
    cells = frame.iloc[:, at]
    if texts.is_text:  # then no cell affects the type
        cells = by_column(texts, like)[0].iloc[:, at]
    if like is None:
        levels = declared_two("values", "the two values of the feature", "it", values, cells)
    else:
        levels = _values_of_others(like, at, feature, values)
    codes = codes_of_two(f'column "{column_text(feature)}"', cells, levels)
    alike: Level = 0.0
    if like is not None and like.encoder.levels[at] is not None:
        alike = levels[0]
    frame = frame.copy(deep=False)
    frame.isetitem(at, [alike] * len(frame))
    rows = read_rows(frame, given.labels, standardize=standardize, intercept=intercept, like=like)
    reading, matrix = rows.reading, rows.matrix.copy()
    place = int(np.flatnonzero(reading.encoder.source == at)[0])
    if like is None:
        reading = _with_values(reading, at, place, levels)
    center, unit = reading.center[place], reading.units[place]
    matrix[:, place] = np.where(codes, center + unit, center - unit)
    return replace(rows, reading=reading, matrix=matrix), place


def _values_of_others(like: Reading, at: int, feature: str | int, values: Any) -> Two:
    if values is not None:
        raise ParameterError(f"values must be None with like, which has them, got {values!r}")
    places = np.flatnonzero(like.encoder.source == at)
    center, unit = (float(each[places[0]]) for each in (like.center, like.units))
    levels = like.encoder.levels[at]
    is_two = len(places) == 1
    if levels is not None:  # a missing level is not one of two
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


def read_declared(
    X: Any, y: Any, classes: Any, bounds: Bounds | None, *, intercept: bool, like: Reading | None
) -> RadoRows:
    """Read rows without learning from them, in units in which declared bounds are -1 and 1.

    `classes` may be None if the type of `y` declares them, or `like` does; `bounds` of columns of
    numbers are not needed with `like`; X, y, intercept and like as in `read_rows`.
    """
    check_row_by_row(X)
    given = GivenRows.of_texts(X, y)
    known, labels = _classes(given.labels, classes, like)
    frame, names = by_column(given, like)
    frame = frame.copy(deep=False)
    for at in range(len(names)):
        has_levels = isinstance(frame.dtypes.iloc[at], pd.CategoricalDtype)
        if like is not None:
            has_levels = like.encoder.levels[at] is not None
        if not has_levels:
            numbers = _numbers(f'column "{column_text(names[at])}"', frame.iloc[:, at])
            frame.isetitem(at, numbers)
    if like is None:
        encoder = MatrixEncoder.learn(GivenRows(frame))  # from types only
        center, units = _scales(encoder, bounds)
        like = Reading(encoder, np.array(known), center, units, intercept)
    matrix = np.asarray(like.encoder.transform(GivenRows(frame), OWNER), np.float64)
    codes = codes_of_two("y", labels, known)
    if len(codes) != len(matrix):
        raise DataError(f"y must have a label per row of X, {len(matrix)}, got {len(codes)}")
    return RadoRows(like, matrix, np.where(codes, 1.0, -1.0))


def _classes(y: Any, classes: Any, like: Reading | None) -> tuple[Two, Cells]:
    if y is None:
        raise ParameterError(f"{OWNER} requires y to be passed, but the target y is None")
    y = pd.Series(y) if isinstance(y, pd.api.extensions.ExtensionArray) else as_column(y)
    labels = y if isinstance(y, pd.Series) else pd.Series(column_or_1d(y, warn=True))
    if like is not None:
        if classes is not None:
            raise ParameterError(f"classes must be None with like, which has them, got {classes!r}")
        low, high = like.classes.tolist()
        return (low, high), labels
    levels = declared_two("classes", "the two classes", "y", classes, labels)
    if any(isinstance(level, float) for level in levels):
        raise ParameterError(
            f"classes must be texts, whole numbers or truth values, got {levels[0]} and {levels[1]}"
        )
    return levels, labels


def _numbers(label: str, cells: Cells) -> Floats:
    """Return a column of numbers, which may be text, with truth values as 0 and 1."""
    try:
        numbers = to_numbers(label, with_truth_values(cells))
    except OverflowError:
        raise DataError(f"{label} must be numbers that fit into floats, got larger ones") from None
    except DataError as error:
        raise DataError(
            f"{error}; levels must be those of a Categorical, which declares them"
        ) from None
    check_numbers(label, numbers)
    return numbers


def _scales(encoder: MatrixEncoder, bounds: Bounds | None) -> tuple[Floats, Floats]:
    """Return the units in which declared bounds are -1 and 1: center and half width."""
    lows, highs = (np.empty(len(encoder.source)) for _ in range(2))
    for place, (column, levels) in enumerate(zip(encoder.names, encoder.levels, strict=True)):
        if levels is None:
            given = bounds.get(column) if isinstance(bounds, Mapping) else bounds
            low, high = check_bounds("edge_bounds", given, f', for column "{column}"')
        else:
            low, high = 0.0, max(1.0, levels.n_levels - 1.0) if levels.kind == "ordinal" else 1.0
        lows[encoder.source == place], highs[encoder.source == place] = low, high
    return lows / 2.0 + highs / 2.0, highs / 2.0 - lows / 2.0
