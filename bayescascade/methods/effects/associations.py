"""Association rules: conditions that often go with h > 0, or with h <= 0 (Goh 2018, table 4.2).

Of conditions A and a side B, with shares P of the rows: support P(A and B), confidence P(B | A),
lift P(B | A) / P(B). All conjunctions with the support come from the miner of rule lists; shown are
those of highest confidence, then support, of which none is narrower than one before it, and no two
share more than half of the rows that they have together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.validation import check_flag, check_probability, check_real
from bayescascade.data.schema import Schema
from bayescascade.methods.rules.antecedents import (
    Antecedent,
    Antecedents,
    Condition,
    antecedent_words,
    mine_antecedents,
)
from bayescascade.methods.rules.parts import parts_of_codes
from bayescascade.methods.rules.rule_list import read_rules

Flags = NDArray[np.bool_]

_MOST_SHARED = 0.5  # of the rows of two that are shown


@dataclass(frozen=True, slots=True)
class Association:
    """Conditions, and how they go with one side of h."""

    schema: Schema
    conditions: Antecedent
    is_positive: bool  # of h > 0, else of h <= 0
    support: float
    confidence: float
    lift: float

    @property
    def words(self) -> str:
        """The conditions in words."""
        return antecedent_words(self.schema, self.conditions, is_open=True)

    def to_record(self) -> dict[str, Any]:
        """Return plain JSON types."""
        names = ("conditions", "is_positive", "support", "confidence", "lift")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_record(cls, record: Mapping[str, Any], schema: Schema, max_size: int) -> Self:
        """Return what `to_record` recorded; raises as `read_rules`."""
        listed = {"rules": [record["conditions"]], "counts": [1.0, 0.0]}
        n_candidates = np.array([0, *[1] * max_size])
        (conditions,), _ = read_rules(listed, schema, n_candidates)
        return cls(
            schema, conditions, check_flag("is_positive", record["is_positive"]),
            check_probability("support", record["support"]),
            check_probability("confidence", record["confidence"]),
            check_real("lift", record["lift"], minimum=0.0),
        )  # fmt: skip


def rows_with(codes: NDArray[np.int32], conditions: Antecedent) -> Flags:
    """Return which rows of codes (n_columns, n_rows) fulfill all conditions."""
    return np.asarray(parts_of_codes(codes, (conditions,)) == 0)


def find_associations(
    schema: Schema,
    codes: NDArray[np.int32],
    is_positive: Flags,
    n_shown: int,
    max_size: int,
    min_support: float,
    memory_limit: float,
) -> tuple[Association, ...]:
    """Return at most `n_shown` associations of h > 0, then of h <= 0; codes (n_columns, n)."""
    mined, _ = mine_antecedents(
        schema, np.asarray(codes, np.uint16), np.ones(len(is_positive)),
        is_positive.astype(np.int64), 2, max_size=max_size, min_support=min_support,
        memory_limit=memory_limit,
    )  # fmt: skip
    items = np.array([rows_with(codes, (Condition(*item),)) for item in mined.items.tolist()])
    of_rules = [np.logical_and.reduce(items[own[own >= 0]]) for own in mined.members]
    n_rows = np.array([rows.sum() for rows in of_rules])
    found = []
    for side in (True, False):
        share = float((is_positive == side).mean())
        n_both = np.array([(rows & (is_positive == side)).sum() for rows in of_rules])
        confidence = n_both / np.maximum(n_rows, 1)
        enough = np.flatnonzero((n_both >= min_support * len(is_positive)) & (confidence > share))
        order = enough[np.lexsort((mined.sizes[enough], -n_both[enough], -confidence[enough]))]
        for index in _shown(order.tolist(), mined, of_rules, n_shown):
            support = n_both[index] / len(is_positive)
            found.append(Association(
                schema, mined[index], side, float(support), float(confidence[index]),
                float(confidence[index] / share),
            ))  # fmt: skip
    return tuple(found)


def _shown(
    order: Sequence[int], mined: Antecedents, of_rules: Sequence[Flags], most: int
) -> list[int]:
    """Return the first of an order that are not like ones before them."""
    shown: list[int] = []
    for index in order:
        rows = of_rules[index]
        if len(shown) < most and not any(
            _is_within(mined[index], mined[other])
            or (rows & of_rules[other]).sum() > _MOST_SHARED * (rows | of_rules[other]).sum()
            for other in shown
        ):
            shown.append(index)
    return shown


def _is_within(narrow: Antecedent, wide: Antecedent) -> bool:
    """Whether each condition of `wide` holds wherever those of `narrow` hold."""
    ranges = {column: (low, high) for column, low, high in narrow}
    return all(
        column in ranges and low <= ranges[column][0] and ranges[column][1] <= high
        for column, low, high in wide
    )
