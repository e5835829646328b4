"""Rules for h > 0: the most probable list, or the best tree of depth 2 as a list.

**The tree** divides rows by a condition r, those with r by a condition s, and the others by s',
into leaves of n_l rows with sums t_l of h. It explains ``sum_l t_l^2 / n_l`` of the sum of squares.
The two sides are independent, so the best s and s' for every r come from two products of the matrix
of conditions with itself: no tree with enough rows in its leaves explains more.

**The list** has a label u for each row: "better" with weight ``(1 + v) / 2``, otherwise "not", ``v
= h / (2 mean |h|)`` within [-1, 1]. If h is the effect, that is ``P(u = 1 | x) = (1 + p_1 - p_0) /
2`` except for the scale of the effect. A row with h near 0 has hardly any information. The thesis
uses the sign of h, and CORELS (Goh 2018, 1466-1485). There a row with |h| = 0.001 counts as much as
any other, so a list repeats the errors of h for small effects. Weights are multiples of 1/16.

Of conditions A and a side B, with shares P of the rows: support P(A and B), confidence P(B | A),
lift P(B | A) / P(B). All conjunctions with the minimum support come from the miner of rule lists.
Those of highest confidence, then support, are shown, if they are not narrower than a previous one,
and share at most half of the union of rows with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pandas as pd

from bayescascade.base.arrays import Codes, Flags, Floats, Integers
from bayescascade.base.store import GIVEN, Within
from bayescascade.data.declarations import Declarations
from bayescascade.data.given import GivenRows
from bayescascade.data.labels import LabeledRows
from bayescascade.data.schema import Schema
from bayescascade.methods.lists.antecedents import (
    Antecedent,
    Antecedents,
    Condition,
    antecedent_words,
    conditions_of,
    mine_antecedents,
)
from bayescascade.methods.lists.classifier import RuleListClassifier
from bayescascade.methods.lists.exact import best_list
from bayescascade.methods.lists.parts import parts_of_codes

_SOFTNESS = 0.5  # v of a row with mean |h|
_GRID = 16  # weights of labels are multiples of 1 / this
_STEPS = 20_000  # for annealing a list
_WORK, _MOST_VISITED = 1_000_000_000, 20_000  # limits of a proof: work, prefixes
_MOST_SHARED = 0.5  # share of the union of rows of two


def best_tree(schema: Schema, codes: Codes, h: Floats, least_rows: float) -> tuple[Antecedent, ...]:
    """Return "r and s", "r", "s'" of the best tree for codes (n_columns, n_rows), h (n_rows,).

    A leaf has at least `least_rows` >= 1 rows; a side without a possible cut is a leaf.
    """
    cuts = [
        condition
        for index, column in enumerate(schema.columns)
        for condition in conditions_of(index, column)
        if column.kind == "nominal" or condition.low in (0, column.n_levels - 1)
    ]
    if not cuts:
        return ()
    table = np.array([(codes[j] >= low) & (codes[j] < high) for j, low, high in cuts], np.float64)
    n_both, t_both = table @ table.T, (table * h) @ table.T
    n_with, t_with = table.sum(axis=1), table @ h
    n_without, t_without = len(h) - n_with, h.sum() - t_with
    inside, best_inside = _best_cuts(n_both, t_both, n_with, t_with, least_rows)
    outside, best_outside = _best_cuts(
        n_with[None] - n_both, t_with[None] - t_both, n_without, t_without, least_rows
    )
    is_cut = (n_with >= least_rows) & (n_without >= least_rows)
    if not is_cut.any():
        return ()
    first = int(np.argmax(np.where(is_cut, inside + outside, -np.inf)))
    rules: list[Antecedent] = [(cuts[first],)]
    if best_inside[first] >= 0:
        rules.insert(0, _both(cuts[first], cuts[best_inside[first]]))
    if best_outside[first] >= 0:
        rules.append((cuts[best_outside[first]],))
    return tuple(rules)


def _best_cuts(
    n: Floats, t: Floats, n_all: Floats, t_all: Floats, least_rows: float
) -> tuple[Floats, Integers]:
    """Return the part explained by the best cut of each side, and the cut, -1 for none.

    n, t (n_cuts, n_cuts): rows and sums of side r with condition s; n_all, t_all (n_cuts,).
    """
    rest, t_rest = n_all[:, None] - n, t_all[:, None] - t
    is_cut = (n >= least_rows) & (rest >= least_rows)
    explained = np.where(
        is_cut, t**2 / np.maximum(n, 1.0) + t_rest**2 / np.maximum(rest, 1.0), -np.inf
    )
    best = explained.argmax(axis=1)
    of_best = explained[np.arange(len(n)), best]
    whole: Floats = t_all**2 / np.maximum(n_all, 1.0)
    is_none = ~np.isfinite(of_best)
    return np.where(is_none, whole, of_best), np.where(is_none, -1, best)


def _both(first: Condition, second: Condition) -> Antecedent:
    if first.column != second.column:
        return tuple(sorted((first, second)))
    low, high = max(first.low, second.low), min(first.high, second.high)
    return (Condition(first.column, low, high),)


def soft_labels(frame: pd.DataFrame, h: Floats, n_bins: int, owner: str) -> LabeledRows:
    """Return every row twice, as "better" and as "not", with weights."""
    scale = _SOFTNESS / (np.abs(h).mean() or 1.0)
    better = np.round((1.0 + np.clip(scale * h, -1.0, 1.0)) / 2.0 * _GRID) / _GRID
    twice = pd.concat([frame, frame], ignore_index=True)
    given = GivenRows.labeled(
        twice, np.repeat([True, False], len(h)), np.concatenate([better, 1.0 - better])
    )
    return LabeledRows.of(given, n_bins=n_bins, kinds=Declarations(missing="level"), owner=owner)


def most_probable_list(
    labeled: LabeledRows, max_size: int, min_support: float, memory_limit: float, seed: int
) -> tuple[tuple[Antecedent, ...], float]:
    """Return the rules, and a bound on how much more probable another list may be, nats."""
    first = RuleListClassifier(
        max_size=max_size, min_support=min_support, search="anneal", n_chains=2, n_steps=_STEPS,
        n_jobs=1, random_state=seed, memory_limit=memory_limit,
    ).fit(labeled)  # fmt: skip
    posterior = first.posterior_
    work = len(posterior.antecedents) * labeled.table.n_distinct
    found = best_list(
        posterior, start=first.run_.best_state,
        max_visited=int(np.clip(_WORK // work, 10, _MOST_VISITED)),
        memory_limit=memory_limit * 1e9,
    )  # fmt: skip
    return tuple(posterior.antecedents[index] for index in found.state.rules), float(found.gap)


@dataclass(frozen=True, slots=True)
class RuleAssociation:
    """Conditions, and their association with one side of h."""

    schema: Annotated[Schema, GIVEN]
    conditions: Antecedent
    is_positive: bool  # with h > 0, otherwise with h <= 0
    support: Annotated[float, Within(0, 1)]
    confidence: Annotated[float, Within(0, 1)]
    lift: Annotated[float, Within(0)]

    @property
    def words(self) -> str:
        """The conditions in words."""
        return antecedent_words(self.schema, self.conditions, is_open=True)


def rows_with(codes: Codes, conditions: Antecedent) -> Flags:
    """Return which rows of codes (n_columns, n_rows) fulfill all conditions."""
    return np.asarray(parts_of_codes(codes, (conditions,)) == 0)


def find_associations(
    schema: Schema,
    codes: Codes,
    is_positive: Flags,
    n_shown: int,
    max_size: int,
    min_support: float,
    memory_limit: float,
) -> tuple[RuleAssociation, ...]:
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
            found.append(RuleAssociation(
                schema, mined[index], side, float(support), float(confidence[index]),
                float(confidence[index] / share),
            ))  # fmt: skip
    return tuple(found)


def _shown(
    order: Sequence[int], mined: Antecedents, of_rules: Sequence[Flags], most: int
) -> list[int]:
    """Return the first ones in an order that are not similar to previous ones."""
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
