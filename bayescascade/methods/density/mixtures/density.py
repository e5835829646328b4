"""The density of a mixture's classes: scores, draws and conditions; missing cells are summed out.

A column passes the probability of all cells at or below it to its parent, for each of the parent's
levels. A missing cell is summed over its levels, which takes no longer than complete rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from bayescascade.base.arrays import Codes, Floats, Integers, Reals
from bayescascade.base.saved_arrays import are_shares
from bayescascade.base.store import GIVEN, SKIPPED, Of, Saved, Within, restored, stored
from bayescascade.data.schema import Conditions, Schema, subtract_widths
from bayescascade.methods.density.mixtures.classes import RowClasses
from bayescascade.methods.density.mixtures.em import (
    Components,
    Indicators,
    memberships,
    parents_first,
)

_AT_ONCE = 1 << 14  # rows


class RowClass(NamedTuple):
    """The distribution inside a class: a forest of columns."""

    parents: tuple[Annotated[int, Within(-1)], ...]  # -1 for none
    # For each column the probabilities of its levels; if it has a parent, given the parent's level,
    # (parent's levels, own levels).
    tables: tuple[Annotated[Floats, Of(...)], ...]

    @property
    def order(self) -> list[int]:
        """The columns, parents before their children."""
        return parents_first(self.parents)

    def pass_up(self, seen: Sequence[Floats]) -> tuple[Floats, list[Floats]]:
        """Return the log probability of observed cells, (n,), and the messages to each column.

        seen: for each column (n, n_levels), with 1 for possible levels. The message to a column is
        this times the probability of all cells below, up to a factor for each row.
        """
        reached, log_mass = list(seen), np.zeros(seen[0].shape[0])
        for j in reversed(self.order):
            passed = reached[j] @ self.tables[j].T
            if self.parents[j] < 0:
                log_mass += log_of(passed)
                continue
            most = passed.max(axis=1, initial=0.0)
            log_mass += log_of(most)
            passed /= np.where(most > 0, most, 1.0)[:, np.newaxis]
            reached[self.parents[j]] = reached[self.parents[j]] * passed
        return log_mass, reached

    def sample(self, n: int, reached: Sequence[Floats], rng: np.random.Generator) -> Codes:
        """Draw (p, n) codes given the messages to each column for one row."""
        codes = np.empty((len(self.parents), n), np.int32)
        for j in self.order:
            sums = np.cumsum(np.atleast_2d(self.tables[j] * reached[j]), axis=1)
            own = sums[codes[self.parents[j]] if self.parents[j] >= 0 else np.zeros(n, int)]
            codes[j] = drawn_codes(own, rng)
        return codes


@dataclass(frozen=True, eq=False)
class MixtureDensity(RowClasses):
    """A mixture of classes of rows, the largest first.

    Parameters
    ----------
    schema : Schema
        The columns.
    counts : (n_classes,) float64
        Expected weight of the rows of each class.
    probabilities : (n_classes,) float64
        Shares of the classes.
    inside : tuple of RowClass
        Distribution of rows in each class.
    conditions : mapping of int to tuple of int
        Codes on which the density is conditioned, by column.
    conditions_probability : float in (0, 1]
        Probability of the conditions; 1 if there are none.
    condition_numbers : mapping of int to str
        Numbers that were given for continuous columns and that stand for their bins, by column.
    """

    schema: Annotated[Schema, GIVEN]
    counts: Annotated[Floats, Of("components", least=0)]
    probabilities: Annotated[Floats, Of("components"), Saved("shares")]
    inside: Annotated[tuple[RowClass, ...], Saved("classes")]
    conditions: Annotated[Conditions, SKIPPED] = field(default_factory=dict)
    conditions_probability: Annotated[float, SKIPPED] = 1.0
    condition_numbers: Annotated[Mapping[int, str], SKIPPED] = field(
        default_factory=dict, kw_only=True
    )

    def to_record(self) -> dict[str, Any]:
        """Return the record for a saved file."""
        record: dict[str, Any] = stored(self)
        return record

    @property
    def n_components(self) -> int:
        """Number of classes."""
        return len(self.inside)

    @classmethod
    def of(cls, schema: Schema, rows: Indicators, found: Components) -> "MixtureDensity":
        """Build from the result of EM."""
        belongs, _ = memberships(found.log_joint(rows))
        order = np.argsort(-found.log_shares, kind="stable")
        ends = [*rows.starts[1:].tolist(), rows.column.size]
        blocks = [slice(start, end) for start, end in zip(rows.starts, ends, strict=True)]
        inside = []
        for k in order.tolist():
            levels, parents, tables = np.exp(found.log_levels[k]), [-1] * len(blocks), []
            if found.parents is not None and found.log_ratios is not None:
                parents, ratios = found.parents[k].tolist(), found.log_ratios[k]
                ratios = ratios if isinstance(ratios, np.ndarray) else ratios.toarray()
            for own, parent in zip(blocks, parents, strict=True):
                table = levels[own]
                if parent >= 0:
                    table = table * np.exp(ratios[blocks[parent], own])
                tables.append(table / table.sum(axis=-1, keepdims=True))
            inside.append(RowClass(tuple(parents), tuple(tables)))
        shares = np.exp(found.log_shares[order])
        return cls(schema, (rows.weights @ belongs)[order], shares / shares.sum(), tuple(inside))

    # -- probabilities -----------------------------------------------------------------------------

    def _seen(self, codes: Codes) -> list[Floats]:
        """Return the possible levels of each column in rows, (n, n_levels)."""
        seen = []
        for j, column in enumerate(self.schema.columns):
            left = np.zeros(column.n_levels)
            left[list(self.conditions.get(j, range(column.n_levels)))] = 1.0
            own = np.where((codes[j] < 0)[:, np.newaxis], left, 0.0)
            known = np.flatnonzero(codes[j] >= 0)
            own[known, codes[j, known]] = left[codes[j, known]]
            seen.append(own)
        return seen

    def _log_inside(self, codes: Codes) -> Floats:
        """Return the log probability of rows' cells in each class, (n, n_classes)."""
        masses = np.empty((codes.shape[1], len(self.inside)))
        for first in range(0, codes.shape[1], _AT_ONCE):
            part = slice(first, first + _AT_ONCE)
            seen = self._seen(codes[:, part])
            for k, one in enumerate(self.inside):
                masses[part, k] = one.pass_up(seen)[0]
        return masses - self._log_left

    def _log_masses(self, codes: Codes) -> Floats:
        """Return the log of share times probability of rows' cells, (n, n_classes)."""
        return self._log_inside(codes) + log_of(self.probabilities)

    @cached_property
    def _log_left(self) -> Floats:
        """Log probability of the conditions in each class, (n_classes,)."""
        seen = self._seen(np.full((self.schema.n_columns, 1), -1, np.int32))
        left = np.array([one.pass_up(seen)[0][0] for one in self.inside])
        return np.where(self.probabilities > 0, left, 0.0)  # others need no division

    def class_probabilities(self, codes: Codes) -> Floats:
        """Return the probability of each class for (n_columns, n) coded rows, (n, n_classes).

        Cells coded -1 are summed out; rows that contradict the conditions are NaN.
        """
        with np.errstate(invalid="ignore"):
            return memberships(self._log_masses(codes))[0]

    def score_codes(self, codes: Codes) -> Floats:
        """Return the log density of coded rows, (n_rows,) float64 nats; -1 is integrated out.

        Rows that contradict the conditions get -inf.
        """
        scores: Floats = logsumexp(self._log_masses(codes), axis=1)
        subtract_widths(scores, self.schema, self.conditions, codes)
        return scores

    def sample_codes(self, n: int, rng: np.random.Generator) -> Codes:
        """Draw (n_columns, n) codes: for each row a class, and then the row from this class."""
        seen = self._seen(np.full((self.schema.n_columns, 1), -1, np.int32))
        times = rng.multinomial(n, self.probabilities / self.probabilities.sum())
        drawn = [
            one.sample(int(own), [each[0] for each in one.pass_up(seen)[1]], rng)
            for one, own in zip(self.inside, times, strict=True)
        ]
        return rng.permutation(np.concatenate(drawn, axis=1), axis=1)

    def _given(self, known: Conditions) -> tuple[dict[str, Any], float]:
        other = MixtureDensity(self.schema, self.counts, self.probabilities, self.inside, known)
        shares = np.exp(other._log_left - self._log_left)
        probabilities = self.probabilities * shares
        changes = {"counts": self.counts * shares, "probabilities": probabilities}
        return changes, float(probabilities.sum())

    @cached_property
    def level_probabilities(self) -> Sequence[Floats]:
        """For each column, the probabilities of its levels in each class, (n_classes, n_levels)."""
        found = []
        for j, column in enumerate(self.schema.columns):
            codes = np.full((self.schema.n_columns, column.n_levels), -1, np.int32)
            codes[j] = range(column.n_levels)
            found.append(np.exp(self._log_inside(codes).T))
        return found

    # -- as plain data -----------------------------------------------------------------------------

    @classmethod
    def from_record(cls, record: Mapping[str, Any], schema: Schema) -> "MixtureDensity":
        """Rebuild from the result of `to_record`; raises as `restored`."""
        found: MixtureDensity = restored(cls, record, {"schema": schema})
        n_levels = schema.n_levels.tolist()
        for one in found.inside:
            pairs = zip(n_levels, one.parents, strict=True)
            shapes = [(own,) if j < 0 else (n_levels[j], own) for own, j in pairs]
            if [table.shape for table in one.tables] != shapes or not all(
                map(are_shares, one.tables)
            ):
                raise ValueError("tables of a class must be probabilities of its levels")
            if len(one.order) != schema.n_columns:
                raise ValueError(f"parents of columns must form no circle, got {one.parents}")
        if len(found.inside) != found.counts.size or not are_shares(found.probabilities):
            raise ValueError("shares of classes must be probabilities, one for each class")
        if not found.counts.sum() > 0:
            raise ValueError("counts of classes must not all be 0")
        return found


def drawn_codes(sums: Reals, rng: np.random.Generator) -> Integers:
    """Return a code for each row of cumulative weights (n, n_levels)."""
    codes: Integers = (sums[:, :-1] <= rng.random((len(sums), 1)) * sums[:, -1:]).sum(axis=1)
    return codes


def log_of(values: Floats) -> Floats:
    """Return logarithms, -inf for 0."""
    with np.errstate(divide="ignore"):
        logs: Floats = np.log(values)
    return logs
