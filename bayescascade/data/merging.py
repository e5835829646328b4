"""Merging of the counted rows of several tables.

Each column keeps its kind. Levels of nominal columns, and numbers of ordinal columns, are the union
of all parts. Ordered text and bins must be the same in all parts, because their merged order is not
known.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from bayescascade.base.arrays import Codes, Floats
from bayescascade.base.errors import DataError
from bayescascade.data.column import MAX_NOMINAL_LEVELS, Column
from bayescascade.data.distinct_rows import DistinctRows
from bayescascade.data.levels import Level, level_text, tidy_levels
from bayescascade.data.names import check_present
from bayescascade.data.reading import CountedRows
from bayescascade.data.schema import CodedTable, Schema


class WeightedTable(CodedTable, Protocol):
    """Distinct rows with their weights (`CountedRows`, or a `Table`)."""

    @property
    def weights(self) -> Floats:
        """Weights of the rows, (n_distinct,)."""

    @property
    def n_rows(self) -> int:
        """All rows, as often as they occur."""


def merge_rows(parts: Sequence[WeightedTable]) -> CountedRows:
    """Return the rows of all parts, at least one; their columns must be compatible."""
    first = parts[0].schema
    for part in parts[1:]:
        check_present(first.names, part.schema.names)
        check_present(part.schema.names, first.names)
    schemas = [part.schema for part in parts]
    columns = (
        [schema.columns[schema.names.index(name)] for schema in schemas] for name in first.names
    )
    schema = Schema(tuple(map(_join, columns)))
    largest_weight = max(float(part.weights.max()) for part in parts)
    rows = DistinctRows(schema.n_levels, largest_weight)
    for part in parts:
        codes = np.empty((schema.n_columns, part.codes.shape[1]), np.int32)
        for column, column_codes in zip(schema.columns, codes, strict=True):
            place = part.schema.names.index(column.name)
            theirs = part.schema.columns[place]
            column_codes[:] = _translated(theirs, column)[part.codes[place]]
        rows.add(codes, part.weights)
    return CountedRows(schema, *rows.result(), sum(part.n_rows for part in parts))


def _join(columns: Sequence[Column]) -> Column:
    """Return the column with the levels of all parts."""
    first = columns[0]
    has_missing_level = any(column.has_missing_level for column in columns)
    for other in columns[1:]:
        if other.kind != first.kind:
            raise _different(first, f"{first.kind} and {other.kind}", "declare its kind")
        if other.unit != first.unit:
            units = f"numbers with and without {first.unit or other.unit}"
            raise _different(first, units, "write them alike")
        if other.edges != first.edges:
            texts = (", ".join(column.edge_texts()) for column in (first, other))
            raise _different(first, " and ".join(texts), "declare its bin edges")
    levels = first.levels
    if any(column.levels != levels for column in columns):
        levels = _union(columns)
    if first.kind == "nominal" and len(levels) + has_missing_level > MAX_NOMINAL_LEVELS:
        raise DataError(
            f'column "{first.name}" must have at most {MAX_NOMINAL_LEVELS} levels in all tables '
            f"together, got {len(levels) + has_missing_level:,}: declare it, such as continuous= "
            "or ordinal=, when they are read"
        )
    is_whole = all(column.is_whole for column in columns)
    codes = tuple(dict.fromkeys(code for column in columns for code in column.missing_codes))
    whole = Column(first.name, first.kind, levels, first.edges, has_missing_level, is_whole, codes)
    return replace(whole, unit=first.unit)


def _union(columns: Sequence[Column]) -> tuple[Level, ...]:
    first = columns[0]
    kinds = sorted({_type_words(column.levels) for column in columns if column.levels})
    if len(kinds) > 1:
        raise _different(first, " and ".join(kinds), "declare its levels")
    is_ordered = first.kind == "ordinal"
    listed = [", ".join(map(level_text, column.levels[:4])) for column in columns]
    if is_ordered and any(list(column.levels) != _ascending(column.levels) for column in columns):
        other = next(text for text in listed if text != listed[0])
        raise _different(first, f"the orders {listed[0]} and {other}", "declare its levels")
    if is_ordered and kinds == ["text"]:
        raise _different(first, " and ".join(dict.fromkeys(listed)), "declare its levels in order")
    found = tidy_levels(level for column in columns for level in column.levels)
    return tuple(_ascending(found))


def _ascending(levels: Sequence[Level]) -> list[Level]:
    ascending: list[Level] = sorted(levels)
    return ascending


def _type_words(levels: Sequence[Level]) -> str:
    if isinstance(levels[0], str):
        return "text"
    return "truth values" if isinstance(levels[0], bool) else "numbers"


def _different(column: Column, found: str, advice: str) -> DataError:
    return DataError(
        f'column "{column.name}" must be alike in all tables, got {found}: '
        f"{advice} when they are read"
    )


def _translated(theirs: Column, column: Column) -> Codes:
    """Return the code in `column` of each code of another, (n_levels,) int32."""
    if column.kind == "continuous":
        codes = list(range(len(column.edges) - 1))
    else:
        code_of = {level_text(level): code for code, level in enumerate(column.levels)}
        codes = [code_of[level_text(level)] for level in theirs.levels]
    if theirs.has_missing_level:
        codes.append(column.n_levels - 1)
    return np.array(codes, np.int32)
