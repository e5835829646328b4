"""The nearest neighbor policy for new rows: features, predictions, page and file."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, NamedTuple

import numpy as np

from bayescascade.base.arrays import Flags, Floats
from bayescascade.base.store import Of, Saved
from bayescascade.costs.acquisition import Walk
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.methods.budget.neighbors.kernels.steps import Routes
from bayescascade.methods.budget.neighbors.margins import hedged
from bayescascade.methods.budget.neighbors.rule import Neighborhoods, Rule
from bayescascade.report.numbers import share_text
from bayescascade.report.page import Numbers, Page, PrintedTable

_BLOCK = 2048  # rows whose routes are in memory at the same time
_MOST_LINES = 12

_HOW_TO_READ = (
    (
        "",
        "The first table follows validation rows through all features, even if they would stop "
        "earlier. It compares the estimate from their neighbors with the truth.",
    ),
    ("go so far", "the share of rows that measure this number of features before they stop"),
    ("estimated", "the share of their neighbors that the measured features classify rightly"),
    ("actual", "the share of the rows that the measured features classify rightly"),
)
"""Terms of the page, or "", and their meanings."""


class RouteEnds(NamedTuple):
    """Features measured (m, d) bool, probabilities (m, n_classes), estimated accuracy (m,)."""

    used: Flags
    probabilities: Floats
    accuracy: Floats


@dataclass(frozen=True, eq=False)
class NearestPolicy:
    """A rule among training rows.

    steps: see `MarginNeighborsClassifier.steps_`; offsets: of estimates, for each number of
    measured features, see `ValidationRoutes.offsets`.
    """

    around: Annotated[Neighborhoods, Saved("neighborhoods")]
    rule: Rule
    steps: Annotated[Floats, Of(3, "features+1", least=0, most=1)]
    offsets: Annotated[Floats, Of("features+1")]

    @property
    def of_nothing(self) -> "NearestPolicy":
        """The policy that acquires nothing."""
        steps = self.steps.copy()
        steps[0, 1:] = 0.0
        return NearestPolicy(self.around, self.rule.of_nothing, steps, self.offsets)

    # -- rows --------------------------------------------------------------------------------------

    @property
    def shares(self) -> Floats:
        """Shares of the classes, (n_classes,)."""
        return self.around.start.votes

    def walk(self, encoder: MatrixEncoder) -> Callable[[], Walk]:
        """Return a function that starts a row without known features."""
        return partial(NeighborWalk, self.around, self.rule, encoder, self.offsets)

    def ends(self, rows: Floats) -> RouteEnds:
        """Return the ends of rows (m, p) of the matrix."""
        parts = [
            self._ends(rows[first : first + _BLOCK])
            for first in range(0, max(len(rows), 1), _BLOCK)
        ]
        return RouteEnds(*map(np.concatenate, zip(*parts, strict=True)))

    def _ends(self, rows: Floats) -> RouteEnds:
        found = self.around.routes(rows, self.rule, self.rule.limits)
        used = np.zeros((len(rows), self.around.items.n_columns), np.bool_)
        one, step = np.nonzero(found.order >= 0)
        used[one, found.order[one, step]] = True
        at = np.arange(len(rows)), found.n_steps
        accuracy = self.rule.calibrated(found.accuracy[at], self.offsets[found.n_steps])
        if self.rule.predict_by == "vote":
            return RouteEnds(used, found.votes[at], accuracy)
        return RouteEnds(used, hedged(found.scores[at], accuracy), accuracy)

    def reasons(self, rows: Floats, encoder: MatrixEncoder) -> list[str]:
        """Return in words the features of each row, and its estimated accuracy."""
        ends, names = self.ends(rows), np.array(encoder.names, object)
        return [
            f"acquires {', '.join(names[used]) or 'nothing'}; "
            f"estimated accuracy {100 * right:.0f} %"
            for used, right in zip(ends.used, ends.accuracy.tolist(), strict=True)
        ]

    # -- what a user sees --------------------------------------------------------------------------

    how_to_read = _HOW_TO_READ

    @property
    def size_text(self) -> str:
        """The size in words."""
        return f"{self.rule.n_neighbors} neighbors"

    def facts(self) -> list[list[str]]:
        """Return the choices and the contents, as pieces of lines."""
        rule = self.rule
        by = (
            "the neighbors' labels"
            if rule.predict_by == "vote"
            else "the sum over measured features"
        )
        texts = [self.size_text, f"stops: {rule.stop_text}", f"predicts by {by}"]
        if rule.tradeoff > 0:
            texts.insert(1, f"tradeoff {rule.tradeoff:.3g}")
        margins = f"margins {rule.margins.replace('_', ' ')}"
        n_rows = f"a saved model holds {len(self.around.rows):,} rows"
        return [texts, [margins, "a heuristic: nothing is proved", n_rows]]

    def page(self) -> Page:
        """Return a table of the steps of rows and their accuracies."""
        return (_step_table(self.steps),)


def _step_table(steps: Floats) -> PrintedTable:
    """Return a line for each number of features, or for some of many."""
    n_steps = steps.shape[1]
    shown = np.arange(n_steps)
    if n_steps > _MOST_LINES:
        shown = np.unique(np.geomspace(1, n_steps, _MOST_LINES).round().astype(int)) - 1
    going, estimated, actual = steps[:, shown].tolist()
    columns = [
        Numbers("go so far", list(map(share_text, going))),
        Numbers("estimated", list(map(share_text, estimated))),
        Numbers("actual", list(map(share_text, actual))),
    ]
    return PrintedTable([f"{step}" for step in shown.tolist()], columns, "features")


class NeighborWalk:
    """A row on its way, see `costs.acquisition`; each new value repeats the whole way.

    So results do not depend on the order of values.
    """

    def __init__(
        self, around: Neighborhoods, rule: Rule, encoder: MatrixEncoder, offsets: Floats
    ) -> None:
        self._around, self._rule, self._encoder, self._offsets = around, rule, encoder, offsets
        self._cells = np.full((1, encoder.source.size), np.nan)
        self._order = np.full((1, len(encoder.columns)), -1, np.int64)
        self._n_taken = 0
        self._route = self._followed(None)

    def _followed(self, max_cost: float | None) -> Routes:
        """Return the way so far, and the next feature within a total cost."""
        stop = self._rule.limits
        stop = stop._replace(most_features=min(stop.most_features, self._n_taken))
        if max_cost is not None:
            stop = stop._replace(max_cost=max_cost)
        return self._around.routes(self._cells, self._rule, stop, first=self._order)

    def _next(self, route: Routes) -> int | None:
        """Return the next feature of a way, None if it stops."""
        stop, step, following = self._rule.limits, self._n_taken, int(route.following[0])
        is_over = (
            following < 0
            or step >= stop.most_features
            or route.accuracy[0, step] > stop.threshold
            or route.gains[0, step] <= stop.least_gain
        )
        return None if is_over else following

    @property
    def waiting(self) -> dict[int, int]:
        """The next feature, with the value 1."""
        column = self._next(self._route)
        return {} if column is None else {column: 1}

    def choose(self, max_cost: float | None) -> int | None:
        """Return the next feature among those that fit."""
        return self._next(self._route if max_cost is None else self._followed(max_cost))

    @property
    def probabilities(self) -> Floats:
        """The probabilities given the known features."""
        shares: Floats = self._route.votes[0, self._n_taken]
        if self._rule.predict_by == "margin":
            scores = self._route.scores[:, self._n_taken]
            shares = hedged(scores, np.array([self.accuracy]))[0]
        return shares

    @property
    def accuracy(self) -> float:
        """The estimated accuracy with the known features."""
        return self._calibrated(self._route.accuracy[0, self._n_taken])

    @property
    def promised(self) -> float:
        """The expected accuracy with the last feature, before it was known."""
        return self._calibrated(self._route.promised[0, self._n_taken - 1])

    def _calibrated(self, share: float) -> float:
        offset = self._offsets[self._n_taken]
        return float(self._rule.calibrated(np.array([share]), offset)[0])

    @property
    def reason(self) -> str:
        """Why the row stops."""
        if self.waiting:
            return ""
        is_all = self._n_taken == self._order.shape[1]
        return "all features are known" if is_all else self._rule.stop_text

    def learn(self, column: int, value: object) -> None:
        """Set the value of a feature; NaN if it could not be measured."""
        part = self._encoder.read_cell(column, value)
        self._cells[0, self._encoder.source == column] = part
        self._order[0, self._n_taken] = column
        self._n_taken += 1
        self._route = self._followed(None)
