"""The nearest neighbor policy: features are chosen by the rows with similar measured features.

Algorithm 1 of the thesis. For a row with measured features O, N(O) are the K nearest training rows
by Euclidean distance over the standardized columns of O. A neighbor is right if its partial margin
over O is positive (2.2); for several classes, if its own class has the largest partial score. p
(2.4) is the share of neighbors that are right, p_i (2.5) that with feature i in addition. The next
feature is ``argmax p_i - tradeoff * current cost of i``; among ties the cheapest, then the first
column. Before anything is measured, all rows are neighbors. The rule is a heuristic, which
minimizes no objective over policies.

Departures: rows have weights, so K is a weight; all columns of a feature are measured together; a
value that cannot be measured is paid for, and counts as not measured.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, NamedTuple

import numpy as np

from bayescascade.base.arrays import Floats, Integers
from bayescascade.base.store import GIVEN, INLINE, Of, Saved, Within, Words
from bayescascade.base.threads import for_ranges
from bayescascade.costs.items import CostItems
from bayescascade.methods.budget.neighbors.kernels.steps import (
    Estimate,
    NeighborhoodArrays,
    NeighborWorkspace,
    Routes,
    StoppingRule,
    follow,
    tell_start,
)
from bayescascade.methods.budget.neighbors.margins import Additive, Standardized
from bayescascade.model.packing import Packed

NEVER = StoppingRule(2.0, -np.inf, 1 << 40, np.inf)
"""A rule that stops no row before all features are measured."""


class Rule(NamedTuple):
    """How to choose the next feature of a row and when to stop, as chosen on validation rows."""

    n_neighbors: Annotated[int, Within(1)]
    tradeoff: Annotated[float, Within(0)]
    stop: Annotated[str, Words("threshold", "gain", "number")]
    value: float  # stops above this accuracy, at this gain or less, or after this number
    predict_by: Annotated[str, Words("margin", "vote")]
    margins: Annotated[str, Words("out_of_fold", "in_sample")] = "out_of_fold"  # of neighbors

    @property
    def limits(self) -> StoppingRule:
        """The rule, as numbers for the kernels."""
        if self.stop == "threshold":
            return NEVER._replace(threshold=self.value)
        if self.stop == "gain":
            return NEVER._replace(least_gain=self.value)
        return NEVER._replace(most_features=int(self.value))

    @property
    def of_nothing(self) -> "Rule":
        """The rule that acquires no feature."""
        return self._replace(stop="number", value=0.0, predict_by="vote")

    def calibrated(self, shares: Floats, offsets: Floats) -> Floats:
        """Return estimated accuracies, smoothed by half a right and half a wrong neighbor."""
        right = shares * self.n_neighbors + 0.5
        wrong = (1.0 - shares) * self.n_neighbors + 0.5
        return right / (right + wrong * np.exp(-offsets))

    @property
    def stop_text(self) -> str:
        """The stopping rule in words."""
        if self.stop == "threshold":
            return f"more than {100 * self.value:.3g} % of the neighbors right"
        if self.stop == "gain":
            return f"no feature is expected to gain over {self.value:.2g} more than its cost"
        return f"{self.value:.0f} features"


@dataclass(frozen=True, eq=False)
class Neighborhoods:
    """Training rows to compare with, and the contributions of their features.

    rows: the matrix; standard: how columns are standardized; source: the feature of each column;
    parts: contributions of features to the scores of these rows; full: those for other rows.
    """

    rows: Annotated[Floats, Packed("n", "columns")]
    labels: Annotated[Integers, Of("n", kind=np.int64)]
    weights: Annotated[Floats, Of("n", above=0)]
    standard: Annotated[Standardized, INLINE]
    source: Annotated[Integers, GIVEN]
    parts: Annotated[Floats, Packed("n", "features", "scores")]
    full: Annotated[Additive, Saved("classifier")]
    n_classes: Annotated[int, GIVEN]
    items: Annotated[CostItems, GIVEN] = field(repr=False)
    is_rest_near: Annotated[bool, GIVEN]
    has_ties: Annotated[bool, GIVEN]

    @cached_property
    def starts(self) -> Integers:
        """Starts of the columns of each feature, (d + 1,)."""
        counts = np.bincount(self.source)
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)

    @cached_property
    def columns(self) -> Floats:
        """Standardized columns, (p, n)."""
        return np.ascontiguousarray(self.cells(self.rows).T)

    def cells(self, rows: Floats) -> Floats:
        """Return rows of the matrix (m, p), standardized."""
        return self.standard.cells(rows)

    def around(self, n_neighbors: float, tradeoff: float) -> NeighborhoodArrays:
        """Return the arrays for kernels."""
        items = self.items
        return NeighborhoodArrays(
            self.columns, self.starts, self.parts, self.full.offset, self.labels, self.weights,
            items.starts, items.items, items.costs, float(n_neighbors), float(tradeoff),
            self.is_rest_near, self.has_ties,
        )  # fmt: skip

    def work(self) -> NeighborWorkspace:
        """Return a workspace for one row."""
        n = self.labels.size
        return NeighborWorkspace(
            np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n, np.int64),
            np.zeros(self.full.offset.size), np.zeros(self.items.n_items, np.bool_),
        )  # fmt: skip

    def estimate(self) -> Estimate:
        """Return arrays for estimates."""
        d, c = self.parts.shape[1:]
        return Estimate(np.zeros(1), np.zeros(d), np.zeros(self.n_classes), np.zeros((d + 3, c)))

    @cached_property
    def start(self) -> Estimate:
        """Estimates from all rows, before anything is measured."""
        estimate = self.estimate()
        flags = np.zeros((2, self.parts.shape[1]), np.bool_)
        tell_start(self.around(1.0, 0.0), self.work(), flags, estimate)
        return estimate

    def routes(
        self,
        rows: Floats,
        rule: Rule,
        stop: StoppingRule,
        own: Integers | None = None,
        parts: Floats | None = None,
        first: Integers | None = None,
    ) -> Routes:
        """Return the routes of rows (m, p) of the matrix, NaN for cells that cannot be measured.

        own (m,) int64: the training row that each is; parts (m, d, c): contributions of features;
        first (m, d) int64: features to measure first in any case, then -1.
        """
        m, d = len(rows), self.parts.shape[1]
        cells = self.cells(rows)
        added = self.full.of_features(cells, self.starts) if parts is None else parts
        selves = np.full(m, -1, np.int64) if own is None else own
        c, k = self.full.offset.size, self.n_classes
        found = Routes(
            np.full((m, d), -1, np.int64) if first is None else first.copy(),
            np.zeros(m, np.int64), np.zeros(m, np.int64), np.zeros((m, d + 1)),
            np.zeros((m, d + 1)), np.zeros((m, d + 1)), np.zeros((m, d)),
            np.zeros((m, d + 1, c)), np.zeros((m, d + 1, k)),
        )  # fmt: skip
        around, start = self.around(rule.n_neighbors, rule.tradeoff), self.start
        # one thread must standardize before all threads need it
        _ = self.columns, start

        def lead(a: int, b: int) -> None:
            part = Routes(*(each[a:b] for each in found))
            flags = np.zeros((2, d), np.bool_)
            follow(
                around, start, cells[a:b], added[a:b], selves[a:b], stop, self.work(), flags,
                self.estimate(), part,
            )  # fmt: skip

        for_ranges(lead, m, float(m) * self.labels.size * d)
        return found
