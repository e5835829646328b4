"""Which neighborhood, stop rule and prediction: by rows that judge, each led through once.

The order of a row's features depends on how many neighbors there are and on the tradeoff, not on
when it stops. So the ways of the rows that judge are followed to their ends once for each of these,
and every stop rule and prediction is read off them: a whole path of budgets costs one fit.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayescascade.costs.limits import is_within
from bayescascade.methods.margin_neighbors.kernels.steps import Routes
from bayescascade.methods.margin_neighbors.margins import probabilities_of
from bayescascade.methods.margin_neighbors.rule import NEVER, Neighborhoods, Rule

Numbers = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_JUDGES = 2000
"""Rows that judge at most: a further one takes a way through all training rows."""

_N_VALUES = 40  # of accuracy or gain, at which rows may stop


class Judges(NamedTuple):
    """Rows that judge, (m, p) of the matrix; for training rows, which they are and their parts."""

    rows: Numbers
    labels: Ints
    words: str
    own: Ints | None = None
    parts: Numbers | None = None


class Asked(NamedTuple):
    """What is chosen among: single ones where they are given."""

    n_neighbors: Sequence[int]
    tradeoffs: Sequence[float]
    stops: Sequence[str]
    values: Sequence[float] | None
    predict_by: Sequence[str]


class Judged(NamedTuple):
    """A rule, its errors and costs on the rows that judge, and on which of them it is wrong."""

    rule: Rule
    error: float
    cost: float
    wrong: NDArray[np.bool_]


class Followed(NamedTuple):
    """Ways of the rows that judge, by as many neighbors and such a tradeoff."""

    n_neighbors: int
    tradeoff: float
    accuracy: Numbers  # (m, d + 1), as all below
    gains: Numbers
    costs: Numbers
    order: Ints  # (m, d)
    wrong: dict[str, NDArray[np.bool_]]  # by what predicts

    @classmethod
    def of(cls, rule: Rule, routes: Routes, labels: Ints) -> "Followed":
        """Return ways that were followed to their ends."""
        by_margin = probabilities_of(routes.scores).argmax(axis=2)
        wrong = {
            "margin": by_margin != labels[:, np.newaxis],
            "vote": routes.votes.argmax(axis=2) != labels[:, np.newaxis],
        }
        return cls(
            rule.n_neighbors, rule.tradeoff, routes.accuracy, routes.gains, routes.costs,
            routes.order, wrong,
        )  # fmt: skip

    def ends(self, stop: str, value: float) -> Ints:
        """Return the step after which each row stops, (m,)."""
        last = self.accuracy.shape[1] - 1
        if stop == "number":
            return np.full(len(self.accuracy), min(int(value), last))
        is_over = self.accuracy > value if stop == "threshold" else self.gains <= value
        is_over[:, last] = True
        ends: Ints = is_over.argmax(axis=1)
        return ends

    def used(self, rule: Rule) -> NDArray[np.bool_]:
        """Return the features that each row measures by a rule, (m, d)."""
        used = np.zeros(self.order.shape, np.bool_)
        ends = self.ends(rule.stop, rule.value)
        row, step = np.nonzero(np.arange(self.order.shape[1]) < ends[:, np.newaxis])
        used[row, self.order[row, step]] = True
        return used

    def by_step(self, rule: Rule) -> Numbers:
        """Return by step the share of rows that go so far, accuracy estimated, and actual."""
        ends = self.ends(rule.stop, rule.value)
        going = (ends[:, np.newaxis] >= np.arange(self.accuracy.shape[1])).mean(axis=0)
        return np.stack([going, self.accuracy.mean(axis=0), 1 - self.wrong["margin"].mean(axis=0)])

    def values(self, stop: str) -> list[float]:
        """Return where rows may stop, by one kind of rule."""
        last = self.accuracy.shape[1] - 1
        if stop == "number":
            return [float(number) for number in range(last + 1)]
        shares = np.linspace(0.0, 1.0, _N_VALUES)
        told = self.accuracy if stop == "threshold" else self.gains[:, :last]
        found = np.quantile(told, shares, method="lower")
        more = [1.0] if stop == "threshold" else [0.0]
        values: list[float] = np.unique([*found[np.isfinite(found)], *more]).tolist()
        return values


def follow_all(around: Neighborhoods, asked: Asked, judges: Judges) -> Iterator[Followed]:
    """Yield the ways of the rows that judge, for each number of neighbors and tradeoff."""
    for n_neighbors in asked.n_neighbors:
        for tradeoff in asked.tradeoffs:
            rule = Rule(n_neighbors, tradeoff, "threshold", 1.0, "margin")
            routes = around.routes(judges.rows, rule, NEVER, judges.own, judges.parts)
            yield Followed.of(rule, routes, judges.labels)


def judge(followed: Sequence[Followed], asked: Asked) -> Iterator[Judged]:
    """Yield every rule that is asked for, with what the rows that judge say of it."""
    for ways in followed:
        rows = np.arange(len(ways.accuracy))
        for stop in asked.stops:
            for value in ways.values(stop) if asked.values is None else asked.values:
                at = rows, ways.ends(stop, value)
                cost = float(ways.costs[at].mean())
                for by in asked.predict_by:
                    wrong = ways.wrong[by][at]
                    rule = Rule(ways.n_neighbors, ways.tradeoff, stop, value, by)
                    yield Judged(rule, float(wrong.mean()), cost, wrong)


def best_within(judged: Sequence[Judged], budget: float | None) -> Judged | None:
    """Return the rule that errs least within a budget, of equals the cheapest; None if none is."""
    within = [one for one in judged if budget is None or is_within(one.cost, budget)]
    return min(within, key=lambda one: (one.error, one.cost), default=None)
