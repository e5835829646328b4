"""Candidates for the rules of a list: conjunctions of conditions on columns.

A condition holds on a range of a column's codes: one level of a nominal column, any run of levels
or bins of an ordered one, or the missing level alone; never on all codes. So no two candidates are
satisfied by the same cells, and there are no duplicates to remove.

In words, the outer bins of a column are bounded for a density, and open for labels: a classifier
puts a value beyond the training range into the outer bin.

The candidates with enough support in a table are found size by size on bits, one bit per distinct
row and condition: if too few rows satisfy an antecedent, so do those of its extensions (Agrawal and
Srikant 1994). Only the bits of conditions are kept. The rows of a candidate are computed when
needed, as the intersection of two or three conditions, so 100,000 candidates over 100,000 rows take
megabytes.

Rows are ordered so that most words of bits are counted at once: rows of one class and one weight
that fill at least one word get words of their own; the other rows of a class share words, which are
counted row by row.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.arrays import Codes, Flags, Floats, Integers
from bayescascade.base.errors import DataError, ParameterError
from bayescascade.base.store import listed
from bayescascade.base.validation import check_integer, check_real
from bayescascade.data.column import Column
from bayescascade.data.schema import Schema
from bayescascade.methods.lists.kernels.bits import extend
from bayescascade.methods.lists.kernels.layout import CandidateArrays, RowArrays

_BATCH = 1 << 22  # maximum number of antecedents from one call of the miner
_ROUNDING = 1e-9  # relative, for sums of weights
_GIGABYTE = 1e9
_WORD = 64


@listed
class Condition(NamedTuple):
    """A column's code is in the half-open range [low, high), which never has all codes."""

    column: int
    low: int
    high: int


Antecedent: TypeAlias = tuple[Condition, ...]
"""Conditions on different columns, in the order of the columns; at least one."""


@dataclass(frozen=True, eq=False)
class Antecedents:
    """All candidates for rules over the columns of a schema, by size, then by condition."""

    schema: Schema
    items: Codes  # (n_items, 3): all conditions, ascending
    # (n_candidates, max_size): the items of each candidate, ascending, padded with -1
    members: Codes

    def __len__(self) -> int:
        return int(self.members.shape[0])

    def __getitem__(self, index: int) -> Antecedent:
        if not 0 <= index < len(self):
            raise IndexError(f"a candidate must be from 0 to {len(self) - 1}, got {index}")
        members = self.members[index]
        return tuple(Condition(*each) for each in self.items[members[members >= 0]].tolist())

    def __iter__(self) -> Iterator[Antecedent]:
        return (self[index] for index in range(len(self)))

    def words(self, index: int, *, is_open: bool) -> str:
        """Return a candidate in words; see `antecedent_words`."""
        return antecedent_words(self.schema, self[index], is_open=is_open)

    @property
    def max_size(self) -> int:
        """Maximum number of conditions of a candidate."""
        return int(self.members.shape[1])

    @cached_property
    def sizes(self) -> Integers:
        """Number of conditions of each candidate, (n_candidates,) int64."""
        sizes: Integers = (self.members >= 0).sum(axis=1)
        return sizes

    @cached_property
    def n_of_size(self) -> Integers:
        """Number of candidates of 0 (none), 1, .. max_size conditions, (max_size + 1,) int64."""
        return np.bincount(self.sizes, minlength=self.max_size + 1)

    @cached_property
    def arrays(self) -> CandidateArrays:
        """The candidates as arrays for kernels."""
        n_of_column = np.bincount(self.items[:, 0], minlength=self.schema.n_columns)
        return CandidateArrays(
            members=self.members,
            sizes=self.sizes.astype(np.int8),
            starts=np.concatenate([[0], np.cumsum(self.n_of_size)]).astype(np.int64),
            items=self.items,
            item_starts=np.concatenate([[0], np.cumsum(n_of_column)]).astype(np.int64),
            offsets=np.concatenate([[0], np.cumsum(self.schema.n_levels)]).astype(np.int64),
            widths=np.concatenate([column.widths for column in self.schema.columns]),
        )


def conditions_of(index: int, column: Column) -> list[Condition]:
    """Return all conditions on a column, given its index, ascending."""
    n_levels = column.n_levels
    n_present = n_levels - column.has_missing_level
    if column.kind == "nominal":
        ranges = [(code, code + 1) for code in range(n_levels)]
    else:
        ranges = [(low, high) for low in range(n_present) for high in range(low + 1, n_present + 1)]
        ranges += [(n_present, n_levels)] * column.has_missing_level
    return [Condition(index, low, high) for low, high in ranges if high - low < n_levels]


def n_conditions(column: Column) -> int:
    """Return the number of conditions on a column, without listing them."""
    n_levels = column.n_levels
    if column.kind == "nominal":
        return n_levels if n_levels > 1 else 0
    n_present = n_levels - column.has_missing_level
    n_runs = n_present * (n_present + 1) // 2
    return n_runs + (1 if column.has_missing_level and n_present else -1)


def candidate_arrays(schema: Schema, antecedents: Sequence[Antecedent]) -> CandidateArrays:
    """Return a few antecedents, in any order, as arrays for kernels."""
    conditions = sorted({condition for antecedent in antecedents for condition in antecedent})
    position = {condition: i for i, condition in enumerate(conditions)}
    most = max((len(antecedent) for antecedent in antecedents), default=1)
    members = np.full((len(antecedents), most), -1, np.int32)
    for row, antecedent in zip(members, antecedents, strict=True):
        row[: len(antecedent)] = [position[condition] for condition in antecedent]
    items = np.array(conditions, np.int32).reshape(-1, 3)
    return Antecedents(schema, items, members).arrays


def antecedent_dict(
    schema: Schema, antecedent: Antecedent, *, is_open: bool = False
) -> dict[str, Any]:
    """Return an antecedent as plain data, by column: a list of levels, [None] for missing.

    For a continuous column ``{"interval": [low, high]}``; with `is_open`, None for an outer end.
    """
    record: dict[str, Any] = {}
    for index, low, high in antecedent:
        column = schema.columns[index]
        if column.has_missing_level and low == column.n_levels - 1:
            record[column.name] = [None]
        elif column.kind == "continuous":
            ends: list[float | None] = [column.edges[low], column.edges[high]]
            if is_open and low == 0:
                ends[0] = None
            if is_open and high == len(column.edges) - 1:
                ends[1] = None
            record[column.name] = {"interval": ends}
        else:
            record[column.name] = list(column.levels[low:high])
    return record


def antecedent_words(schema: Schema, antecedent: Antecedent, *, is_open: bool = False) -> str:
    """Return text such as "age is below 25 and sex is male"; if open, outer bins are unbounded."""
    return " and ".join(
        schema.columns[index].condition_words(range(low, high), is_open=is_open)
        for index, low, high in antecedent
    )


def mine_antecedents(
    schema: Schema,
    codes: NDArray[np.unsignedinteger],
    weights: Floats,
    labels: NDArray[np.integer],
    n_classes: int,
    *,
    max_size: int,
    min_support: float,
    memory_limit: float,
) -> tuple[Antecedents, RowArrays]:
    """Return the candidates, and the rows as bits of their conditions.

    A candidate has at most `max_size` >= 1 conditions, on different columns, and at least the share
    `min_support`, in [0, 1), of the rows by weight satisfies it. ParameterError if there is no
    candidate, or if they need more than `memory_limit` gigabytes.
    """
    max_size = min(check_integer("max_size", max_size, minimum=1), schema.n_columns)
    check_real("min_support", min_support, minimum=0.0, below=1.0)
    check_real("memory_limit", memory_limit, above=0.0)
    n_items = [n_conditions(column) for column in schema.columns]
    n_bytes = 8 * math.ceil(weights.size / 64) * sum(n_items)
    if n_bytes > memory_limit * _GIGABYTE:
        raise ParameterError(
            f"memory_limit must be at least {n_bytes / _GIGABYTE:.2g} GB for the rows of "
            f"{sum(n_items):,} conditions, got {memory_limit:g}: use fewer levels or bins, drop "
            "columns, or increase memory_limit"
        )
    bytes_each = 3 * 4 * max_size + 16  # maximum for search, copy and storage
    most = int((memory_limit * _GIGABYTE - n_bytes) // bytes_each)
    least_weight = min_support * float(weights.sum()) * (1 - _ROUNDING)
    n_all = sum(n_items) if min_support > 0 else _n_conjunctions(n_items, max_size)
    if n_all > most:
        raise _too_many(n_all, most, max_size, min_support, memory_limit)
    listed = [c for i, column in enumerate(schema.columns) for c in conditions_of(i, column)]
    items = np.array(listed, np.int32).reshape(-1, 3)
    rows = row_arrays(codes, weights, labels, n_classes, items)
    captured = np.empty((2, rows.everyone.size), np.uint64)
    counts, largest = np.empty(n_classes), np.zeros(1)
    found: list[Codes] = []
    parents = np.empty((1, 0), np.int32)
    batch = max(1, _BATCH // max(1, len(listed)))
    for size in range(1, max_size + 1):
        parts = []
        for start in range(0, len(parents), batch):
            chosen = parents[start : start + batch]
            out = np.empty((len(chosen) * len(listed), size), np.int32)
            n = extend(items, rows, chosen, least_weight, captured, counts, out, largest)
            parts.append(out[:n].copy())
            n_all = sum(map(len, found)) + sum(map(len, parts))
            if n_all > most:
                raise _too_many(n_all, most, max_size, min_support, memory_limit)
        parents = np.concatenate([np.empty((0, size), np.int32), *parts])
        found.append(parents)
    if not listed and min_support > 0:
        raise DataError("at least one column must vary for a rule to have a condition, got none")
    if not len(found[0]) and min_support > 0:
        share = largest[0] / weights.sum()
        raise ParameterError(
            f"min_support must be at most {share:.3g}, the largest share of the rows that "
            f"satisfy a condition, got {min_support:g}"
        )
    wide = [np.pad(m, ((0, 0), (0, max_size - m.shape[1])), constant_values=-1) for m in found]
    return Antecedents(schema, items, np.concatenate(wide)), rows


def _n_conjunctions(n_items: list[int], max_size: int) -> int:
    """Return the number of conjunctions of 1 to `max_size` items of different columns."""
    by_size = [1] + [0] * max_size
    for n in n_items:
        for size in range(max_size, 0, -1):
            by_size[size] += n * by_size[size - 1]
    return sum(by_size[1:])


def _too_many(
    n_found: int, most: int, max_size: int, min_support: float, memory_limit: float
) -> ParameterError:
    known = f"{n_found:,} or more" if min_support > 0 else f"{n_found:,}"
    support = f"raise min_support (now {min_support:g}), " if min_support > 0 else ""
    return ParameterError(
        f"max_size must leave at most {most:,} candidates, for which memory_limit "
        f"{memory_limit:g} GB has room, got {known} with max_size {max_size}: lower max_size, "
        f"{support}use fewer levels or bins, drop columns, or increase memory_limit"
    )


def row_arrays(
    codes: NDArray[np.unsignedinteger],
    weights: Floats,
    labels: NDArray[np.integer],
    n_classes: int,
    items: Codes,
) -> RowArrays:
    """Return arrays for kernels from codes (p, n), weights, labels (n,) and items (n_items, 3)."""
    order = np.lexsort((weights, labels))
    is_new = np.ones(order.size, np.bool_)
    is_new[1:] = np.diff(labels[order]) != 0
    piece = np.cumsum(is_new | (np.diff(weights[order], prepend=np.nan) != 0.0)) - 1
    is_small = np.bincount(piece)[piece] < _WORD  # rows of equal weight that do not fill a word
    others = np.lexsort((is_small, labels[order]))  # last of their class, in one run
    order, piece, is_small = order[others], piece[others], is_small[others]
    is_new[1:] |= np.where(is_small[1:], ~is_small[:-1], np.diff(piece) != 0)
    first = np.flatnonzero(is_new)
    sizes = np.diff(first, append=order.size)
    run_end = np.cumsum(-(-sizes // _WORD))
    n_words = int(run_end.max(initial=0))
    run_start = np.concatenate([[0], run_end[:-1]])
    position = np.empty(order.size, np.int64)  # index of each row's bit
    position[order] = np.arange(order.size) + np.repeat(_WORD * run_start - first, sizes)
    least, most = weights[order[first]], weights[order[first + sizes - 1]]
    n_bits = _WORD * n_words
    row_weights, is_row, rows = np.zeros(n_bits), np.zeros(n_bits, np.bool_), np.zeros(n_bits, int)
    row_weights[position], is_row[position] = weights, True
    rows[position] = np.arange(weights.size)
    bits = np.empty((items.shape[0], n_words), np.uint64)
    for column in np.unique(items[:, 0]):  # few columns have many items
        of_rows, places = codes[column, rows], np.flatnonzero(items[:, 0] == column)
        of_codes = [_pack(is_row & (of_rows == code)) for code in range(items[places, 2].max())]
        for place in places:
            bits[place] = np.bitwise_or.reduce(of_codes[items[place, 1] : items[place, 2]])
    return RowArrays(
        bits=bits,
        everyone=_pack(is_row),
        run_start=run_start,
        run_end=run_end,
        run_class=labels[order[first]].astype(np.int64),
        run_weight=np.where(least == most, least, np.nan),
        row_weights=row_weights,
        n_classes=n_classes,
    )


def _pack(flags: Flags) -> NDArray[np.uint64]:
    return np.packbits(flags, bitorder="little").view("<u8").astype(np.uint64)
