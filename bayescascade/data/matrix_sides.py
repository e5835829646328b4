"""Intervals of a column of a `MatrixEncoder`'s matrix, in words and SQL.

A side is a number for numbers, and a level for ordered levels. For a column of 0 and 1, which says
whether a cell has a level or is missing, an interval with a closed side is a condition.
"""

import math
from typing import NamedTuple

import numpy as np

from bayescascade.base.arrays import Floats
from bayescascade.data.column import Column
from bayescascade.data.levels import level_text, quoted
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.data.sql import sql_cell, sql_column, sql_condition, sql_literal


class SideWords(NamedTuple):
    """An interval's column, and the words for its lower and upper side; empty for open sides."""

    label: str
    at_least: str
    at_most: str


def side_words(encoder: MatrixEncoder, column: int, low: float, high: float) -> SideWords:
    """Return an interval of a column of the matrix in words."""
    place, is_flag = _place(encoder, column)
    name, levels = encoder.names[place], encoder.levels[place]
    is_one = low > 0.0
    if is_flag:
        return SideWords(f"{quoted(name)} is {'' if is_one else 'not '}missing", "", "")
    if levels is None:
        return SideWords(name, _number_text(low), _number_text(high))
    codes = encoder.codes_within(column, low, high)
    if levels.kind == "ordinal":
        ends = [level_text(levels.levels[code]) for code in (codes[0], codes[-1])] if codes else []
        first, last = ends or ["none", "none"]
        return SideWords(name, first if low > -np.inf else "", last if high < np.inf else "")
    left = set(range(levels.n_levels)) - set(codes)
    if len(left) == 1 < len(codes):
        return SideWords(f"{quoted(name)} is not {levels.describe_codes(left)}", "", "")
    return SideWords(levels.condition_words(codes, is_open=True), "", "")


def side_sql(
    encoder: MatrixEncoder, column: int, low: float, high: float, means: Floats | None
) -> str:
    """Return the condition that a row is in an interval of a column of the matrix, "" for all rows.

    means (n_matrix_columns,) replace unknown levels if these are not an error: see
    `MatrixEncoder.transform`. The condition is NULL or false for missing or unknown cells outside
    the interval.
    """
    name, is_flag, levels, median = _cell_of(encoder, column)

    def holds(value: float | None) -> bool:
        return value is not None and low <= value <= high

    mean = None if means is None else float(means[column])
    if is_flag:
        texts = [f"{name} IS {'NOT ' * (not flag)}NULL" for flag in (False, True) if holds(flag)]
        if len(texts) == 2:
            return ""
    elif levels is None:
        number = f"CAST({name} AS DOUBLE PRECISION)"
        ends = [f"{number} >= {sql_literal(low)}"] if low > -np.inf else []
        ends += [f"{number} <= {sql_literal(high)}"] if high < np.inf else []
        texts = [" AND ".join(ends)]
        texts += [f"{name} IS NULL"] * holds(mean if median is None else median)
    else:
        texts = [sql_condition(levels, encoder.codes_within(column, low, high))]
        if median is not None or not levels.has_missing_level:
            texts += [f"{name} IS NULL"] * holds(mean if median is None else median)
        known = sql_condition(levels, range(levels.n_levels))
        texts += [f"NOT {known}"] * holds(mean)
    return texts[0] if len(texts) == 1 else f"({' OR '.join(texts)})" if texts else "1 = 0"


def value_sql(encoder: MatrixEncoder, column: int, means: Floats | None) -> str:
    """Return a row's number in a column of the matrix, or NULL; means as in `side_sql`."""
    name, is_flag, levels, median = _cell_of(encoder, column)
    if is_flag:
        return f"CASE WHEN {name} IS NULL THEN 1e0 ELSE 0e0 END"
    mean = None if means is None else float(means[column])
    missing = mean if median is None else median
    if levels is None:
        number = f"CAST({name} AS DOUBLE PRECISION)"
        return number if missing is None else f"COALESCE({number}, {sql_literal(missing)})"
    values = encoder.level_values(column)
    cases = [
        f"WHEN {sql_condition(levels, np.flatnonzero(values == value))} THEN {sql_literal(value)}"
        for value in np.unique(values).tolist()
    ]
    if missing is not None and (median is not None or not levels.has_missing_level):
        cases.append(f"WHEN {name} IS NULL THEN {sql_literal(missing)}")
    otherwise = "NULL" if mean is None else sql_literal(mean)
    return f"CASE {' '.join(cases)} ELSE {otherwise} END"


def readable_sql(encoder: MatrixEncoder) -> str:
    """Return the condition that no cell of a row is an error by the policy; "" if none can be."""
    if encoder.policy.unknown != "error":
        return ""
    texts = []
    for place, levels in enumerate(encoder.levels):
        passes = encoder.policy.missing == "nan" or (
            encoder.medians and encoder.medians[place] is not None
        )
        if levels is not None:
            known, name = sql_condition(levels, range(levels.n_levels)), sql_column(levels)
            texts.append(f"({known} OR {name} IS NULL)" if passes else known)
        elif not passes:
            name = sql_cell(encoder.names[place], encoder.codes_of(place), is_text=False)
            texts.append(f"{name} IS NOT NULL")
    return " AND ".join(texts)


def _place(encoder: MatrixEncoder, column: int) -> tuple[int, bool]:
    """Return the column of a column of the matrix, and whether this marks missing cells."""
    source = encoder.source
    place = int(source[column])
    has_median = bool(encoder.medians) and encoder.medians[place] is not None
    return place, has_median and (column + 1 == len(source) or source[column + 1] != place)


def _cell_of(encoder: MatrixEncoder, column: int) -> tuple[str, bool, Column | None, float | None]:
    """Return the cell of a column of the matrix in SQL, its `_place`, levels and median."""
    place, is_flag = _place(encoder, column)
    levels, median = encoder.levels[place], encoder.medians[place] if encoder.medians else None
    is_text = levels is not None and isinstance(levels.levels[0], str)
    name = sql_cell(encoder.names[place], encoder.codes_of(place), is_text=is_text)
    return name, is_flag, levels, median


def _number_text(side: float) -> str:
    return f"{side:.6g}" if math.isfinite(side) else ""
