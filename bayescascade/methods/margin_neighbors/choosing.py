"""Which margins, neighborhood, stop rule and prediction: by rows that judge, each led through once.

The order of a row's features depends on the neighbors' margins, on how many neighbors there are and
on the tradeoff, not on when it stops. So the ways of the rows that judge are followed to their ends
once for each of these, and every stop rule and prediction is read off them: a whole path of budgets
costs one fit.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayescascade.costs.limits import is_within
from bayescascade.methods.margin_neighbors.kernels.steps import Routes
from bayescascade.methods.margin_neighbors.margins import probabilities_of
from bayescascade.methods.margin_neighbors.rule import NEVER, Neighborhoods, Rule

Numbers = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_N_VALUES = 40  # of accuracy or gain, at which rows may stop
_N_HALVINGS = 50  # of the interval in which an offset is sought
_MOST_OFFSET = 20.0  # nats


class Judges(NamedTuple):
    """Rows that judge, (m, p) of the matrix, and what their features add.

    own (m,): which training rows they are, -1 of others; n_settling: how many of them, the first,
    decide whether anything is bought, and are what costs are reported of.
    """

    rows: Numbers
    labels: Ints
    own: Ints
    parts: Numbers
    words: str
    n_settling: int


class Asked(NamedTuple):
    """What is chosen among: single ones where they are given."""

    n_neighbors: Sequence[int]
    tradeoffs: Sequence[float]
    stops: Sequence[str]
    values: Sequence[float] | None
    predict_by: Sequence[str]


class Followed(NamedTuple):
    """Ways of the rows that judge to their ends, by the rule's margins, neighbors and tradeoff."""

    rule: Rule
    accuracy: Numbers  # (m, d + 1), as all below
    gains: Numbers
    costs: Numbers
    order: Ints  # (m, d)
    wrong: dict[str, Bools]  # by what predicts

    @classmethod
    def of(cls, rule: Rule, routes: Routes, labels: Ints) -> "Followed":
        """Return ways that were followed to their ends."""
        by_margin = probabilities_of(routes.scores).argmax(axis=2)
        wrong = {
            "margin": by_margin != labels[:, np.newaxis],
            "vote": routes.votes.argmax(axis=2) != labels[:, np.newaxis],
        }
        return cls(rule, routes.accuracy, routes.gains, routes.costs, routes.order, wrong)

    def ends(self, stop: str, value: float) -> Ints:
        """Return the step after which each row stops, (m,)."""
        last = self.accuracy.shape[1] - 1
        if stop == "number":
            return np.full(len(self.accuracy), min(int(value), last))
        is_over = self.accuracy > value if stop == "threshold" else self.gains <= value
        is_over[:, last] = True
        ends: Ints = is_over.argmax(axis=1)
        return ends

    def at_ends(self, rule: Rule) -> tuple[Numbers, Bools]:
        """Return what each row pays by a rule, and whether it is wrong, (m,) each."""
        at = np.arange(len(self.accuracy)), self.ends(rule.stop, rule.value)
        return self.costs[at], self.wrong[rule.predict_by][at]

    def used(self, rule: Rule) -> Bools:
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

    def offsets(self) -> Numbers:
        """Return shifts (d + 1,) of log odds by which means of estimates are right; finite."""
        n_rows = len(self.accuracy)
        right = ((~self.wrong["margin"]).sum(axis=0) + 0.5) / (n_rows + 1.0)
        low = np.full(right.shape, -_MOST_OFFSET)
        high = -low
        for _ in range(_N_HALVINGS):
            middle = (low + high) / 2
            is_low = self.rule.calibrated(self.accuracy, middle).mean(axis=0) < right
            low, high = np.where(is_low, middle, low), np.where(is_low, high, middle)
        return (low + high) / 2

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


class Judged(NamedTuple):
    """A rule, its errors and costs on the rows that judge, and their ways."""

    rule: Rule
    error: float
    cost: float
    ways: Followed


def follow_all(
    around: Mapping[str, Neighborhoods], asked: Asked, judges: Judges
) -> Iterator[Followed]:
    """Yield the ways of the rows that judge, by the margins, numbers and tradeoffs asked for."""
    for n_neighbors in asked.n_neighbors:
        for tradeoff in asked.tradeoffs:
            for margins, each in around.items():
                rule = Rule(n_neighbors, tradeoff, "threshold", 1.0, "margin", margins)
                routes = each.routes(judges.rows, rule, NEVER, judges.own, judges.parts)
                yield Followed.of(rule, routes, judges.labels)


def judge(followed: Sequence[Followed], asked: Asked, n_settling: int) -> Iterator[Judged]:
    """Yield every rule that is asked for, with what the rows that judge say of it.

    Its cost is that of all of them, or of the first `n_settling` if that is more.
    """
    for ways in followed:
        for stop in asked.stops:
            for value in ways.values(stop) if asked.values is None else asked.values:
                for by in asked.predict_by:
                    rule = ways.rule._replace(stop=stop, value=value, predict_by=by)
                    costs, wrong = ways.at_ends(rule)
                    cost = float(max(costs.mean(), costs[:n_settling].mean()))
                    yield Judged(rule, float(wrong.mean()), cost, ways)


def best_within(judged: Sequence[Judged], budget: float | None) -> Judged | None:
    """Return the rule that errs least within a budget, of equals the cheapest; None if none is."""
    within = [one for one in judged if budget is None or is_within(one.cost, budget)]
    return min(within, key=lambda one: (one.error, one.cost), default=None)
