"""A row on its way, one feature after the other, as its neighbors say."""

import numpy as np
from numpy.typing import NDArray

from bayescascade.data.matrix import MatrixEncoder
from bayescascade.methods.margin_neighbors.kernels.steps import Routes
from bayescascade.methods.margin_neighbors.margins import hedged
from bayescascade.methods.margin_neighbors.rule import Neighborhoods, Rule


class NeighborWalk:
    """A row on its way, see `costs.acquisition`; each value leads it the whole way again.

    So no figure depends on the order in which values came.
    """

    def __init__(
        self,
        around: Neighborhoods,
        rule: Rule,
        encoder: MatrixEncoder,
        offsets: NDArray[np.float64],
    ) -> None:
        self._around, self._rule, self._encoder, self._offsets = around, rule, encoder, offsets
        self._cells = np.full((1, encoder.source.size), np.nan)
        self._order = np.full((1, len(encoder.columns)), -1, np.int64)
        self._n_taken = 0
        self._route = self._followed(None)

    def _followed(self, max_cost: float | None) -> Routes:
        """Return the way so far, and what comes next within a total cost."""
        stop = self._rule.limits
        stop = stop._replace(most_features=min(stop.most_features, self._n_taken))
        if max_cost is not None:
            stop = stop._replace(max_cost=max_cost)
        return self._around.routes(self._cells, self._rule, stop, first=self._order)

    def _next(self, route: Routes) -> int | None:
        """Return the feature that a way asks for next, None where it stops."""
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
        """The feature that is asked for next; 1 for it."""
        column = self._next(self._route)
        return {} if column is None else {column: 1}

    def choose(self, max_cost: float | None) -> int | None:
        """Return the feature to acquire next, of those that fit."""
        return self._next(self._route if max_cost is None else self._followed(max_cost))

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """What is predicted by what is known."""
        told: NDArray[np.float64] = self._route.votes[0, self._n_taken]
        if self._rule.predict_by == "margin":
            scores = self._route.scores[:, self._n_taken]
            told = hedged(scores, np.array([self.accuracy]))[0]
        return told

    @property
    def accuracy(self) -> float:
        """How probably what is known is right, as the neighbors that are say."""
        return self._calibrated(self._route.accuracy[0, self._n_taken])

    @property
    def promised(self) -> float:
        """The same with the last feature, before it was known."""
        return self._calibrated(self._route.promised[0, self._n_taken - 1])

    def _calibrated(self, share: float) -> float:
        offset = self._offsets[self._n_taken]
        return float(self._rule.calibrated(np.array([share]), offset)[0])

    @property
    def reason(self) -> str:
        """Why it stops."""
        if self.waiting:
            return ""
        is_all = self._n_taken == self._order.shape[1]
        return "all features are known" if is_all else self._rule.stop_text

    def learn(self, column: int, value: object) -> None:
        """Take the value of a feature; NaN where it could not be measured."""
        part = self._encoder.read_cell(column, value)
        self._cells[0, self._encoder.source == column] = part
        self._order[0, self._n_taken] = column
        self._n_taken += 1
        self._route = self._followed(None)
