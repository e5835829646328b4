"""Names, values and conditions as standard SQL, for most databases.

All names are quoted and all texts escaped. Numbers that are not integers are written as exact
doubles.
"""

import math
from collections.abc import Collection, Iterable, Sequence

import numpy as np

from bayescascade.base.errors import DataError
from bayescascade.data.column import Column
from bayescascade.data.levels import Level, level_text, runs
from bayescascade.data.schema import Schema

_LARGEST = float(np.finfo(np.float32).max)

# SQLite reads the word as 0 and rounds too large numbers to infinity; PostgreSQL refuses these.
_INFINITE = (
    "CAST(CASE WHEN CAST('Infinity' AS DOUBLE PRECISION) > 0 THEN '{0}Infinity' ELSE '{0}9e999' END"
    " AS DOUBLE PRECISION)"
)


def sql_name(name: str) -> str:
    """Return a column's name in quotes."""
    return '"' + _plain(name).replace('"', '""') + '"'


def sql_cell(name: str, missing_codes: Iterable[Level], *, is_text: bool) -> str:
    """Return a row's cell in a column of text or numbers; NULL for codes of missing cells."""
    text = sql_name(name)
    for code in missing_codes:
        if is_text or not isinstance(code, str):
            text = f"NULLIF({text}, {sql_literal(level_text(code) if is_text else code)})"
    return text


def sql_literal(value: Level) -> str:
    """Return a value as a literal; numbers that are not integers as doubles."""
    if isinstance(value, str):
        return "'" + _plain(value).replace("'", "''") + "'"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return str(value)
    if math.isinf(value):
        return _INFINITE.format("-" * (value < 0))
    text = repr(float(value))
    return text if "e" in text else f"{text}e0"


def sql_case(
    branches: Iterable[tuple[str, Sequence[str]]], otherwise: Sequence[str] = ("NULL",)
) -> list[str]:
    """Return the lines of an expression with the value of the first condition that holds.

    Expressions are lists of lines; line breaks within texts are kept.
    """
    texts = []
    for condition, value in branches:
        texts += [f"  WHEN {condition} THEN {value[0]}", *(f"  {line}" for line in value[1:])]
    if not texts:
        return list(otherwise)
    others = [f"  ELSE {otherwise[0]}", *(f"  {line}" for line in otherwise[1:])]
    return ["CASE", *texts, *others, "END"]


def sql_column(column: Column) -> str:
    """Return a row's cell in a column; see `sql_cell`."""
    is_text = bool(column.levels) and isinstance(column.levels[0], str)
    return sql_cell(column.name, column.missing_codes, is_text=is_text)


def sql_condition(column: Column, codes: Collection[int], *, is_open: bool = False) -> str:
    """Return the condition that a cell has one of some codes; if `is_open`, bins have no ends."""
    name = sql_column(column)
    chosen = sorted({int(code) for code in codes})
    parts = []
    if column.has_missing_level and chosen and chosen[-1] == column.n_levels - 1:
        parts.append(f"{name} IS NULL")
        chosen.pop()
    if column.kind == "continuous":
        parts = [_bins(column, *run, is_open) for run in runs(chosen)] + parts
    elif column.other_code in chosen:  # all levels except those that are not chosen
        left = [code for code in range(len(column.levels)) if code not in chosen]
        levels = ", ".join(sql_literal(column.levels[code]) for code in left)
        parts.insert(0, f"{name} NOT IN ({levels})" if left else f"{name} IS NOT NULL")
    elif chosen:
        levels = ", ".join(sql_literal(column.levels[code]) for code in chosen)
        parts.insert(0, f"{name} IN ({levels})")
    if not parts:
        return "1 = 0"
    return parts[0] if len(parts) == 1 else f"({' OR '.join(parts)})"


def sql_domain(schema: Schema) -> str:
    """Return the condition that all cells of a row are present and in their columns' domains."""
    return " AND ".join(sql_condition(c, range(c.n_levels)) for c in schema.columns)


def sql_is_up_to(name: str, threshold: float) -> str:
    """Return the condition that a number, as float32, is at most a finite threshold."""
    if threshold >= _LARGEST:
        return f"{name} IS NOT NULL"
    low = np.float32(max(threshold, -_LARGEST))
    if float(low) > threshold:
        low = np.nextafter(low, np.float32(-np.inf))
    high = np.nextafter(low, np.float32(np.inf))
    middle = (float(low) + float(high)) / 2  # exact; a tie is rounded to the even one
    sign = "<=" if np.float32(middle) == low else "<"
    return f"CAST({name} AS DOUBLE PRECISION) {sign} {sql_literal(middle)}"


def _bins(column: Column, first: int, last: int, is_open: bool) -> str:
    """Return the condition that a cell is in bins, `first` to `last`."""
    name, n_bins, ends = sql_column(column), len(column.edges) - 1, []
    if not (is_open and first == 0):
        ends.append(f"{name} >= {sql_literal(column.edges[first])}")
    if not (is_open and last == n_bins - 1):
        sign = "<=" if last == n_bins - 1 else "<"
        ends.append(f"{name} {sign} {sql_literal(column.edges[last + 1])}")
    return f"({' AND '.join(ends)})" if ends else f"{name} IS NOT NULL"


def _plain(text: str) -> str:
    if "\0" in text:
        raise DataError(f"text for SQL must have no NUL character, got {text!r}")
    return text
