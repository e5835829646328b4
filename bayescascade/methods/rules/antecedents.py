"""Candidates for the rules of a list: conjunctions of conditions on columns.

A condition holds on a range of a column's codes: one level of a nominal column, any run of levels
or bins of an ordered one, or the missing level alone; never on all codes. Hence no two candidates
are satisfied by the same cells, and none need be removed for being another's double.

`mining` finds them in a table.

In words, a density ends at the outer edges of a column's bins; labels do not: a classifier takes a
value beyond the range that it learned from for one of the outer bin, and says so.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bayescascade.data.column import Column
from bayescascade.data.schema import Schema
from bayescascade.methods.rules.kernels.layout import CandidateArrays


class Condition(NamedTuple):
    """A column's code is in the half-open range [low, high), which is not all of its codes."""

    column: int
    low: int
    high: int


Antecedent: TypeAlias = tuple[Condition, ...]
"""Conditions on different columns, in the columns' order; at least one."""


@dataclass(frozen=True, eq=False)
class Antecedents:
    """All candidates for rules over the columns of a schema, by size, then by condition."""

    schema: Schema
    items: NDArray[np.int32]  # (n_items, 3): the conditions that occur, ascending
    # (n_candidates, max_size): the items of each, ascending, -1 behind them
    members: NDArray[np.int32]

    def __len__(self) -> int:
        return int(self.members.shape[0])

    def __getitem__(self, index: int) -> Antecedent:
        if not 0 <= index < len(self):
            raise IndexError(f"a candidate must be from 0 to {len(self) - 1}, got {index}")
        members = self.members[index]
        return tuple(Condition(*told) for told in self.items[members[members >= 0]].tolist())

    def __iter__(self) -> Iterator[Antecedent]:
        return (self[index] for index in range(len(self)))

    def words(self, index: int, *, is_open: bool) -> str:
        """Return a candidate in words; see `antecedent_words`."""
        return antecedent_words(self.schema, self[index], is_open=is_open)

    @property
    def max_size(self) -> int:
        """Most conditions of a candidate."""
        return int(self.members.shape[1])

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Number of conditions of each candidate, (n_candidates,) int64."""
        sizes: NDArray[np.int64] = (self.members >= 0).sum(axis=1)
        return sizes

    @cached_property
    def n_of_size(self) -> NDArray[np.int64]:
        """Number of candidates of 0 (none), 1, .. max_size conditions, (max_size + 1,) int64."""
        return np.bincount(self.sizes, minlength=self.max_size + 1)

    @cached_property
    def arrays(self) -> CandidateArrays:
        """The candidates as kernels read them."""
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
    """Return every condition on a column, its index among the columns given, ascending."""
    n_levels = column.n_levels
    n_present = n_levels - column.has_missing_level
    if column.kind == "nominal":
        ranges = [(code, code + 1) for code in range(n_levels)]
    else:
        ranges = [(low, high) for low in range(n_present) for high in range(low + 1, n_present + 1)]
        ranges += [(n_present, n_levels)] * column.has_missing_level
    return [Condition(index, low, high) for low, high in ranges if high - low < n_levels]


def n_conditions(column: Column) -> int:
    """Return how many conditions there are on a column, without listing them."""
    n_levels = column.n_levels
    if column.kind == "nominal":
        return n_levels if n_levels > 1 else 0
    n_present = n_levels - column.has_missing_level
    n_runs = n_present * (n_present + 1) // 2
    return n_runs + (1 if column.has_missing_level and n_present else -1)


def candidate_arrays(schema: Schema, antecedents: Sequence[Antecedent]) -> CandidateArrays:
    """Return a few antecedents, in any order, as kernels read candidates."""
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
    """Return an antecedent as plain data: what each column must be, by name.

    That is a list of levels, neighbors if the column is ordinal; ``{"interval": [low, high]}`` if
    it is continuous; ``[None]`` for the missing level of any. With `is_open` an end of an interval
    at the end of the range is None, for there is no end.
    """
    record: dict[str, Any] = {}
    for index, low, high in antecedent:
        column = schema.columns[index]
        if _is_missing(column, low):
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
    """Return an antecedent in words, such as "age is below 25 and sex is male".

    With `is_open` a bin at the end of a column's range has no end there.
    """
    return " and ".join(
        schema.columns[index].condition_words(range(low, high), is_open=is_open)
        for index, low, high in antecedent
    )


def _is_missing(column: Column, low: int) -> bool:
    return column.has_missing_level and low == column.n_levels - 1
