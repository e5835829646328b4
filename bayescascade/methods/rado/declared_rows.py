"""Rows of which nothing is learned: all that their reading says is declared.

Neighbors differ in any cells and the label of one row. Columns of categories have the levels that
their type declares; all others hold numbers, between bounds that are declared, and so are the two
classes (see `two_values`). A cell that is missing, infinite or no number is an error that names it:
a row with such a cell is not among the neighbors that are protected.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import column_or_1d

from bayescascade.base.errors import DataError, ParameterError
from bayescascade.base.validation import check_real
from bayescascade.data.arrow_frames import as_column
from bayescascade.data.given import GivenRows, column_text
from bayescascade.data.levels import Cells, check_numbers, to_numbers
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.data.read_as import check_row_by_row
from bayescascade.methods.rado.reading import Reading, Rows, by_column
from bayescascade.methods.rado.signatures import Floats
from bayescascade.methods.rado.two_values import (
    Two,
    codes_of_two,
    two_levels,
    two_of_type,
    with_truth_values,
)

Bounds = tuple[float, float] | Mapping[str, tuple[float, float]]


def read_declared(
    X: Any,
    y: Any,
    classes: Any,
    bounds: Bounds | None,
    *,
    intercept: bool,
    like: Reading | None,
    owner: str,
) -> Rows:
    """Read rows of which nothing is learned, in units of which declared bounds are -1 and 1.

    `classes` may be None if the type of `y` declares them, or `like` does; `bounds` of columns of
    numbers are not needed with `like`; X, y, intercept, like and owner as in `read_rows`. Raises
    ParameterError if classes or bounds are not declared; DataError if a cell or label is not as
    declared, or rows and labels do not go together.
    """
    check_row_by_row(X)
    given = GivenRows.of_texts(X, y)
    known, labels = _classes(given.labels, classes, like, owner)
    frame, names = by_column(given, like, owner)
    frame = frame.copy(deep=False)
    for at in range(len(names)):
        has_levels = isinstance(frame.dtypes.iloc[at], pd.CategoricalDtype)
        if like is not None:
            has_levels = like.encoder.levels[at] is not None
        if not has_levels:
            numbers = _numbers(f'column "{column_text(names[at])}"', frame.iloc[:, at])
            frame.isetitem(at, numbers)
    if like is None:
        encoder = MatrixEncoder.learn(GivenRows(frame))  # from types alone
        center, units = _scales(encoder, bounds)
        like = Reading(encoder, np.array(known), center, units, intercept)
    matrix = np.asarray(like.encoder.transform(GivenRows(frame), owner), np.float64)
    codes = codes_of_two("y", labels, known)
    if len(codes) != len(matrix):
        raise DataError(f"y must have a label per row of X, {len(matrix)}, got {len(codes)}")
    return Rows(like, matrix, np.where(codes, 1.0, -1.0))


def _classes(y: Any, classes: Any, like: Reading | None, owner: str) -> tuple[Two, Cells]:
    """Return the two classes, and the labels."""
    if y is None:
        raise ParameterError(f"{owner} requires y to be passed, but the target y is None")
    y = pd.Series(y) if isinstance(y, pd.api.extensions.ExtensionArray) else as_column(y)
    labels = y if isinstance(y, pd.Series) else pd.Series(column_or_1d(y, warn=True))
    if like is not None:
        if classes is not None:
            raise ParameterError(f"classes must be those of like, and left out, got {classes!r}")
        low, high = like.classes.tolist()
        return (low, high), labels
    found = two_of_type(labels) if classes is None else classes
    if found is None:
        raise ParameterError(
            "classes must be the two classes, such as ('no', 'yes'), unless y is of truth values "
            "or two categories: which of them occur is not public, got None"
        )
    levels = two_levels("classes", found)
    if any(isinstance(one, float) for one in levels):
        raise ParameterError(
            f"classes must be texts, whole numbers or truth values, got {levels[0]} and {levels[1]}"
        )
    return levels, labels


def _numbers(label: str, cells: Cells) -> Floats:
    """Return a column of numbers, perhaps as text, with truth values as 0 and 1."""
    try:
        numbers = to_numbers(label, with_truth_values(cells))
    except OverflowError:
        raise DataError(f"{label} must hold numbers that floats hold, got larger ones") from None
    except DataError as error:
        raise DataError(
            f"{error}; levels must be those of a Categorical, which declares them"
        ) from None
    check_numbers(label, numbers)
    return numbers


def _scales(encoder: MatrixEncoder, bounds: Bounds | None) -> tuple[Floats, Floats]:
    """Return the units of which declared bounds are -1 and 1: center and half width."""
    lows, highs = (np.empty(len(encoder.source)) for _ in range(2))
    for place, (column, levels) in enumerate(zip(encoder.names, encoder.levels, strict=True)):
        if levels is None:
            given = bounds.get(column) if isinstance(bounds, Mapping) else bounds
            low, high = _checked_bounds(column, given)
        else:
            low, high = 0.0, max(1.0, levels.n_levels - 1.0) if levels.kind == "ordinal" else 1.0
        lows[encoder.source == place], highs[encoder.source == place] = low, high
    return lows / 2.0 + highs / 2.0, highs / 2.0 - lows / 2.0


def _checked_bounds(column: str, given: Any) -> tuple[float, float]:
    try:
        low, high = (check_real("edge_bounds", bound) for bound in given)
        if 0.0 < high / 2.0 - low / 2.0 < np.inf:
            return low, high
    except (TypeError, ValueError):
        pass
    raise ParameterError(
        f'edge_bounds must be (low, high), low < high, for column "{column}", got {given!r}'
    )
