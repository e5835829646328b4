"""The state of the posteriors of rule lists: candidates in order.

A draw is kept and saved as `ListedRules`, rules with the weights of their parts, without the data.
"""

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from bayescascade.base.arrays import Floats, Integers
from bayescascade.base.errors import ModelFileError
from bayescascade.base.saved_arrays import read_array
from bayescascade.base.store import restored
from bayescascade.data.schema import Schema
from bayescascade.data.sql import sql_case, sql_condition
from bayescascade.methods.lists.antecedents import (
    Antecedent,
    Condition,
    antecedent_dict,
    antecedent_words,
)
from bayescascade.methods.lists.kernels.layout import MAX_RULES
from bayescascade.model.importances import importance_shares
from bayescascade.report.page import Fold, Numbers, Pieces, PrintedTable
from bayescascade.report.printed import Pictured


@dataclass(frozen=True, slots=True)
class RuleList:
    """An ordered choice of candidates; the final `else` is not listed."""

    rules: tuple[int, ...] = ()  # positions in the posterior's `Antecedents`, in order; no repeats

    @property
    def n_rules(self) -> int:
        """Number of rules, without the `else` part."""
        return len(self.rules)

    def problem(self, n_candidates: int) -> str | None:
        """Return why the list is not valid, or None."""
        for rule in self.rules:
            if type(rule) is not int or not 0 <= rule < n_candidates:
                return f"a rule must be an integer from 0 to {n_candidates - 1}, got {rule!r}"
        if len(set(self.rules)) != len(self.rules):
            return f"rules must be different, got {self.rules}"
        return None

    def inserted(self, position: int, rule: int) -> "RuleList":
        """Return the list with one more rule, at a position from 0 to `n_rules`."""
        return RuleList((*self.rules[:position], rule, *self.rules[position:]))


class ListedRules(Pictured):
    """The rules of a list and the weights of its parts, without the data."""

    schema: Schema
    rules: tuple[Antecedent, ...]  # in the order in which they are tried
    counts: Floats  # (n_rules + 1,) or, with labels, (n_rules + 1, n_classes): `else` last
    is_open: ClassVar[bool] = False  # whether outer bins are unbounded

    @property
    def n_rules(self) -> int:
        """Number of rules, without the `else` part."""
        return len(self.rules)

    @property
    def total(self) -> float:
        """Weight of all rows."""
        return float(self.counts.sum())

    def part_words(self, part: int) -> str:
        """Return the conditions of a rule; "no rule applies" for `else` ("any row" if alone)."""
        if part < self.n_rules:
            return antecedent_words(self.schema, self.rules[part], is_open=self.is_open)
        return "no rule applies" if self.rules else "any row"

    @abstractmethod
    def _log_likelihoods(self) -> tuple[Floats, Floats]:
        """Return log likelihoods, nats, of each part, and of the parts from it on taken as one."""

    @property
    def log_gains(self) -> Floats:
        """Gain of each rule, nats, (n_rules,) float64 >= 0.

        The gain is a difference of log likelihoods of the rows that reach the rule: divided by the
        rule, minus undivided.
        """
        apart, together = self._log_likelihoods()
        return apart[:-1] + together[1:] - together[:-1]

    @property
    def column_shares(self) -> Floats:
        """Share of each column in `log_gains`, (n_columns,) float64."""
        columns = [condition.column for rule in self.rules for condition in rule]
        sizes = [len(rule) for rule in self.rules]
        gains = np.repeat(self.log_gains / np.maximum(sizes, 1), sizes)
        return importance_shares(self.schema.n_columns, columns, gains)

    @property
    def labels(self) -> list[str]:
        """The words before each part: "if ..", "else if ..", "else"; or "any row"."""
        labels = [self.part_words(part) for part in range(self.n_rules + 1)]
        if self.rules:
            first, *others, _ = labels
            labels = [f"if {first}", *(f"else if {other}" for other in others), "else"]
        return labels

    def _listed(
        self,
        columns: Sequence[Numbers],
        below: Sequence[Pieces] = (),
        *,
        weights: Floats,
        measure: str,
    ) -> PrintedTable:
        """Return the table "if ..", "else if ..", "else"; long tables fold low `weights`."""
        sizes = self.counts.reshape(self.n_rules + 1, -1).sum(axis=1)
        fold = Fold(weights.tolist(), measure, ("rule", "rules"), sizes.tolist(), keeps_last=True)
        return PrintedTable(
            self.labels, columns, below=below, hanging=3, least_label=0, stacks=True, fold=fold
        )

    def _sql_of(self, values: Sequence[str]) -> list[str]:
        """Return lines of SQL that select the value, an SQL expression, of a row's part."""
        columns, is_open = self.schema.columns, self.is_open
        conditions = (
            [sql_condition(columns[j], range(i, k), is_open=is_open) for j, i, k in rule]
            for rule in self.rules
        )
        parts = zip(map(" AND ".join, conditions), ([value] for value in values), strict=False)
        return sql_case(parts, values[-1:])

    def _part_dicts(self, parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the rules as plain data with the given data of each part."""
        rules = [
            {"if": antecedent_dict(self.schema, rule, is_open=self.is_open), **part}
            for rule, part in zip(self.rules, parts[:-1], strict=True)
        ]
        return {"rules": rules, "else": parts[-1]}

    def to_record(self) -> dict[str, Any]:
        """Return the rules, with conditions [column, low, high] on codes, and the weights."""
        return {"rules": self.rules, "counts": self.counts.tolist()}


def read_rules(
    record: Mapping[str, Any], schema: Schema, n_candidates: Integers, n_classes: int | None = None
) -> tuple[tuple[Antecedent, ...], Floats]:
    """Return rules and counts from the result of `ListedRules.to_record`, checked.

    n_candidates (max_size + 1,): the number of each size; `n_classes` is None without labels.
    """
    rules = restored(tuple[Antecedent, ...], record["rules"], {}, "rules")
    for rule in rules:
        check_rule(rule, schema, len(n_candidates) - 1)
    if len(set(rules)) < len(rules) or len(rules) > MAX_RULES:
        raise ModelFileError(f"a saved list's rules must be different, at most {MAX_RULES}")
    sizes = np.bincount([len(rule) for rule in rules], minlength=n_candidates.size)
    if sizes.size > n_candidates.size or (sizes > n_candidates).any():
        raise ModelFileError("a saved list's rules must be among the candidates")
    shape = (len(rules) + 1,) if n_classes is None else (len(rules) + 1, n_classes)
    counts = read_array(record, "counts", shape, least=0)
    if not 0 < math.fsum(counts.ravel()) < math.inf:
        raise ModelFileError("a saved list's counts must be finite, >= 0 and not all 0")
    return rules, counts


def check_rule(rule: Antecedent, schema: Schema, max_size: int) -> None:
    """Refuse what is no candidate: its conditions are possible, and on ascending columns."""
    for condition in rule:
        if not (0 <= condition.column < schema.n_columns and _is_possible(condition, schema)):
            raise ModelFileError(
                f"a saved condition must be on a column's levels, got {list(condition)}"
            )
    columns = [condition.column for condition in rule]
    if not 0 < len(columns) <= max_size or columns != sorted(set(columns)):
        raise ModelFileError(f"a saved rule must be on ascending columns, got {columns}")


def _is_possible(condition: Condition, schema: Schema) -> bool:
    """Whether a candidate may have the condition: a level, or a run without the missing level."""
    column = schema.columns[condition.column]
    _, low, high = condition
    if not 0 <= low < high <= column.n_levels or high - low == column.n_levels:
        return False
    is_run = column.kind != "nominal" and not (column.has_missing_level and high == column.n_levels)
    return is_run or high - low == 1
