"""Fitting rules for rows: the additive classifier, and the rule, which validation rows choose.

The order of a row's features depends on the neighbors' margins, on the number of neighbors and on
the tradeoff, not on the stop rule. So the routes of the validation rows are followed to their ends
once for each of these, and give the results of all stop rules and predictions: a whole path of
budgets costs one fit.

Within a time limit, the classifier has fewer stumps, and the margins of its own rows serve as those
of other rows: few stumps do not adapt to many rows. Validation rows are followed in blocks, each of
which is spread over all of them, so that the first blocks can judge if there is no time for more.

The classifier learns from all rows. Neighbors are sought among `MOST_KEPT` of them, so that the
work for a row and the size of a file do not grow with the table.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bayescascade.base.arrays import Flags, Floats, Integers
from bayescascade.base.errors import ParameterError
from bayescascade.base.watch import Watch
from bayescascade.costs.choice import FEW_ROWS, PurchaseChoice, weighted_mean
from bayescascade.costs.items import CostItems
from bayescascade.costs.limits import is_within
from bayescascade.data.labels import TrainingRows
from bayescascade.data.splitting import split_by_class
from bayescascade.methods.budget.neighbors.kernels.steps import Routes
from bayescascade.methods.budget.neighbors.margins import (
    N_FOLDS,
    Standardized,
    default_classifier,
    fit_additive,
    out_of_fold,
    probabilities_of,
)
from bayescascade.methods.budget.neighbors.nearest import NearestPolicy
from bayescascade.methods.budget.neighbors.rule import NEVER, Neighborhoods, Rule

_N_VALUES = 40  # values of accuracy or gain for stop rules
_N_HALVINGS = 50  # halvings of the interval of an offset
_MOST_OFFSET = 20.0  # nats

MOST_VALIDATION_ROWS = 2000
"""Maximum number of validation rows: each takes a way through all kept rows."""

MOST_KEPT = 20_000
"""Number of rows to seek neighbors among, if there are more; see `some_of_each_class`."""

_OF_CLASSIFIER, _OF_FOLDS = 0.4, 0.5
"""Shares of the time left for the classifier of all rows, and then for those of the folds."""

_BLOCK = 50  # validation rows that are followed between two looks at the time
_MOST_LATE = 100  # rows to measure the cost of, if the time is up

_NEIGHBORS = (10, 50)
_GAINS = (0.0, 0.02)
"""Tradeoffs to try, as the accuracy that a feature of mean cost must add."""


class NeighborValidation(NamedTuple):
    """Validation rows, (m, p) of the matrix, and the contributions of their features.

    own (m,): indices of training rows, -1 for others; weights (m,), 1 for others; n_settling: the
    first n_settling rows decide whether anything is bought, and give the reported costs.
    """

    rows: Floats
    labels: Integers
    own: Integers
    weights: Floats
    parts: Floats
    words: str
    n_settling: int

    def part(self, places: Integers) -> "NeighborValidation":
        """Return some of the rows, given their places, ascending."""
        return NeighborValidation(
            self.rows[places], self.labels[places], self.own[places], self.weights[places],
            self.parts[places], self.words, int((places < self.n_settling).sum()),
        )  # fmt: skip


class RuleGrid(NamedTuple):
    """The choices to try: a single one if it is given."""

    n_neighbors: Sequence[int]
    tradeoffs: Sequence[float]
    stops: Sequence[str]
    values: Sequence[float] | None
    predict_by: Sequence[str]


class ValidationRoutes(NamedTuple):
    """Routes of the validation rows, with the rule's margins, neighbors and tradeoff."""

    rule: Rule
    accuracy: Floats  # (m, d + 1), as the next ones
    gains: Floats
    costs: Floats
    order: Integers  # (m, d)
    wrong: dict[str, Flags]  # by prediction

    @classmethod
    def of(cls, rule: Rule, routes: Routes, labels: Integers) -> "ValidationRoutes":
        """Return the ways of routes that were followed to their ends."""
        by_margin = probabilities_of(routes.scores).argmax(axis=2)
        wrong = {
            "margin": by_margin != labels[:, np.newaxis],
            "vote": routes.votes.argmax(axis=2) != labels[:, np.newaxis],
        }
        return cls(rule, routes.accuracy, routes.gains, routes.costs, routes.order, wrong)

    def ends(self, stop: str, value: float) -> Integers:
        """Return the step after which each row stops, (m,)."""
        last = self.accuracy.shape[1] - 1
        if stop == "number":
            return np.full(len(self.accuracy), min(int(value), last))
        is_over = self.accuracy > value if stop == "threshold" else self.gains <= value
        is_over[:, last] = True
        ends: Integers = is_over.argmax(axis=1)
        return ends

    def at_ends(self, rule: Rule) -> tuple[Floats, Flags]:
        """Return the cost and error of each row under a rule, (m,) each."""
        at = np.arange(len(self.accuracy)), self.ends(rule.stop, rule.value)
        return self.costs[at], self.wrong[rule.predict_by][at]

    def used(self, rule: Rule) -> Flags:
        """Return the features that each row measures under a rule, (m, d)."""
        used = np.zeros(self.order.shape, np.bool_)
        ends = self.ends(rule.stop, rule.value)
        row, step = np.nonzero(np.arange(self.order.shape[1]) < ends[:, np.newaxis])
        used[row, self.order[row, step]] = True
        return used

    def by_step(self, rule: Rule) -> Floats:
        """Return the share of rows that reach each step, and estimated and actual accuracy."""
        ends = self.ends(rule.stop, rule.value)
        going = (ends[:, np.newaxis] >= np.arange(self.accuracy.shape[1])).mean(axis=0)
        return np.stack([going, self.accuracy.mean(axis=0), 1 - self.wrong["margin"].mean(axis=0)])

    def offsets(self) -> Floats:
        """Return finite shifts (d + 1,) of log odds that make the means of estimates right."""
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
        """Return the values to try for one kind of stop rule."""
        last = self.accuracy.shape[1] - 1
        if stop == "number":
            return [float(number) for number in range(last + 1)]
        shares = np.linspace(0.0, 1.0, _N_VALUES)
        reached = self.accuracy if stop == "threshold" else self.gains[:, :last]
        found = np.quantile(reached, shares, method="lower")
        more = [1.0] if stop == "threshold" else [0.0]
        values: list[float] = np.unique([*found[np.isfinite(found)], *more]).tolist()
        return values


class ScoredRule(NamedTuple):
    """A rule, its error and cost on the validation rows, and their ways."""

    rule: Rule
    error: float
    cost: float
    routes: ValidationRoutes


def follow_all(
    around: Mapping[str, Neighborhoods],
    grid: RuleGrid,
    validation: NeighborValidation,
    watch: Watch,
) -> Iterator[tuple[ValidationRoutes, NeighborValidation]]:
    """Yield routes of the validation rows for all margins, numbers of neighbors and tradeoffs.

    The first are perhaps those of some of the rows, if the time is up; then they are the last.
    """
    is_first = True
    for n_neighbors in grid.n_neighbors:
        for tradeoff in grid.tradeoffs:
            for margins, each in around.items():
                rule = Rule(n_neighbors, tradeoff, "threshold", 1.0, "margin", margins)
                routes, followed = _in_time(each, rule, validation, watch)
                if len(followed.labels) < len(validation.labels) and not is_first:
                    return
                yield ValidationRoutes.of(rule, routes, followed.labels), followed
                if watch.is_over():
                    return
                is_first = False


def _in_time(
    around: Neighborhoods, rule: Rule, validation: NeighborValidation, watch: Watch
) -> tuple[Routes, NeighborValidation]:
    """Return the routes of the validation rows that are followed before the time is up."""
    n_blocks = -(-len(validation.labels) // _BLOCK)
    found: list[Routes] = []
    places: list[Integers] = []
    for block in range(n_blocks):
        if found and watch.is_over():
            break
        places.append(np.arange(block, len(validation.labels), n_blocks))
        part = validation.part(places[-1])
        found.append(around.routes(part.rows, rule, NEVER, part.own, part.parts))
    followed = np.concatenate(places)
    order = np.argsort(followed)
    routes = Routes(*(np.concatenate(each)[order] for each in zip(*found, strict=True)))
    return routes, validation.part(followed[order])


def scored_rules(
    followed: Sequence[tuple[ValidationRoutes, NeighborValidation]],
    grid: RuleGrid,
    n_settling: int,
) -> Iterator[ScoredRule]:
    """Yield every rule to try, judged on the validation rows.

    Its cost is the mean over all of them, or over the first `n_settling` if that is more.
    """
    for routes, part in followed:
        for stop in grid.stops:
            for value in routes.values(stop) if grid.values is None else grid.values:
                for by in grid.predict_by:
                    rule = routes.rule._replace(stop=stop, value=value, predict_by=by)
                    costs, wrong = routes.at_ends(rule)
                    cost = float(max(costs.mean(), costs[:n_settling].mean()))
                    yield ScoredRule(rule, weighted_mean(wrong, part.weights), cost, routes)


def best_within(scored: Sequence[ScoredRule], budget: float | None) -> ScoredRule | None:
    """Return the rule of least error within a budget, the cheapest among ties; None if none is."""
    within = [rule for rule in scored if budget is None or is_within(rule.cost, budget)]
    return min(within, key=lambda rule: (rule.error, rule.cost), default=None)


@dataclass(frozen=True, eq=False)
class NearestFit:
    """Parameters of a fit; see `MarginNeighborsParameters`."""

    items: CostItems
    source: Integers  # the feature of each column of the matrix
    estimator: Any | None
    n_neighbors: int | None
    tradeoff: float | None
    stop: str
    value: float | None  # value of a given stop rule
    predict_by: str
    margins: str
    rest: str
    ties: str

    def learn(
        self, training: TrainingRows, generator: np.random.Generator, watch: Watch
    ) -> "ChosenNearest":
        """Return the rules to choose from, judged on the validation rows."""
        kept = training.weights > 0
        rows, labels, sizes = training.rows[kept], training.labels[kept], training.weights[kept]
        near = some_of_each_class(labels, generator)
        grid = self._grid(float(sizes[near].sum()))
        estimator = self.estimator
        if estimator is None:
            estimator = default_classifier(int(generator.integers(2**31)), training.n_classes)
        standard = Standardized.of(rows, sizes)
        cells = standard.cells(rows)
        starts = np.searchsorted(self.source, np.arange(self.source[-1] + 2)).astype(np.int64)
        is_crossed = self.margins == "out_of_fold"
        share = _OF_CLASSIFIER / N_FOLDS if is_crossed else _OF_CLASSIFIER
        with watch.watching(), watch.part(share, is_final=True):
            full = fit_additive(estimator, cells, labels, sizes)
            is_late = watch.is_over()
        parts = {"in_sample": full.of_features(cells, starts)}
        others, scored = training.validation_rows, training.validation_labels
        n_settling = 0 if scored is None else min(len(others), MOST_VALIDATION_ROWS)
        needs_folds = self.margins != "in_sample" or n_settling < FEW_ROWS
        if is_crossed or (needs_folds and not is_late):
            with watch.watching(), watch.part(_OF_FOLDS, is_final=True):
                parts["out_of_fold"] = out_of_fold(estimator, full, cells, labels, sizes, starts)
        rows, labels, sizes = rows[near], labels[near], sizes[near]
        parts = {margins: each[near] for margins, each in parts.items()}
        around: dict[str, Neighborhoods] = {
            margins: Neighborhoods(
                rows, labels, sizes, standard, self.source, parts[margins], full,
                training.n_classes, self.items, self.rest == "neighbors", self.ties == "all",
            )
            for margins in ("out_of_fold", "in_sample")
            if margins in parts and self.margins in (margins, "auto")
        }  # fmt: skip
        chosen = some(len(others) if n_settling else 0, generator)
        own = np.zeros(0, np.int64)
        if n_settling < FEW_ROWS:
            own = some(
                len(rows), generator, FEW_ROWS - n_settling if n_settling else MOST_VALIDATION_ROWS
            )
        fair = parts.get("out_of_fold", parts["in_sample"])[own]
        added = full.of_features(standard.cells(others[chosen]), starts)
        validation = NeighborValidation(
            np.concatenate([others[chosen], rows[own]]),
            labels[own] if scored is None else np.append(scored[chosen], labels[own]),
            np.append(np.full(chosen.size, -1), own),
            np.append(np.ones(chosen.size), sizes[own]),
            np.concatenate([added, fair]),
            "validation rows" if n_settling else "rows left out one by one",
            n_settling or own.size,
        )  # fmt: skip
        followed = list(follow_all(around, grid, validation, watch))
        validation = followed[-1][1]  # all of them, if there was time
        tried = tuple(scored_rules(followed, grid, validation.n_settling))
        return ChosenNearest(around, tried, validation, training)

    def _grid(self, weight: float) -> RuleGrid:
        """Return the choices to try."""
        if self.n_neighbors is not None and self.n_neighbors > weight:
            raise ParameterError(
                f"n_neighbors must be at most {weight:,.12g}, the weight of the kept rows, "
                f"got {self.n_neighbors}"
            )
        most = max(1, int(weight // 2))
        several = sorted({min(number, most) for number in _NEIGHBORS})
        costs, items = self.items.costs, self.items
        alone = [costs[items.of_column(j)].sum() for j in range(items.n_columns)]
        mean = float(np.mean(alone))
        has_prices = items.n_groups > 0 or not np.allclose(alone, mean)
        tradeoffs = [gain / mean for gain in _GAINS] if has_prices else [0.0]
        value = 0.0 if self.stop == "gain" else self.value
        return RuleGrid(
            several if self.n_neighbors is None else [self.n_neighbors],
            tradeoffs if self.tradeoff is None else [self.tradeoff],
            ["threshold", "gain", "number"] if self.stop == "auto" else [self.stop],
            None if value is None else [value],
            ["margin", "vote"] if self.predict_by == "auto" else [self.predict_by],
        )


class ChosenNearest(NamedTuple):
    """The rules that were tried, and the validation rows."""

    around: Mapping[str, Neighborhoods]
    tried: tuple[ScoredRule, ...]
    validation: NeighborValidation
    training: TrainingRows

    def within(self, budget: float | None) -> tuple[ScoredRule, bool]:
        """Return the rule of least error within a budget and True, or one without features."""
        best = best_within(self.tried, budget)
        if best is not None:
            return best, True
        first = self.tried[0]
        return first._replace(rule=first.rule.of_nothing), False

    def policy(self, scored: ScoredRule) -> NearestPolicy:
        """Return the policy of a rule."""
        rule, routes = scored.rule, scored.routes
        around = self.around[rule.margins]
        return NearestPolicy(around, rule, routes.by_step(rule), routes.offsets())

    def used(self, scored: ScoredRule) -> Flags:
        """Return the features that the settling rows measure under a rule, (m, d)."""
        return scored.routes.used(scored.rule)[: self.validation.n_settling]

    def choice(self, scored: ScoredRule) -> PurchaseChoice:
        """Return the choice between a rule and buying nothing."""
        validation, n_settling = self.validation, self.validation.n_settling
        wrong = scored.routes.at_ends(scored.rule)[1][:n_settling]
        nothing = validation.labels[:n_settling] != self.training.commonest
        weights = validation.weights[:n_settling]
        return PurchaseChoice.of(validation.words, wrong, nothing, self.training, weights)


def measured(n_rows: int, generator: np.random.Generator, watch: Watch) -> Integers:
    """Return the indices of the rows whose cost is measured: few if the time is up."""
    return some(n_rows, generator, _MOST_LATE if watch.is_over() else MOST_VALIDATION_ROWS)


def some_of_each_class(labels: Integers, generator: np.random.Generator) -> Integers:
    """Return the indices of all rows or, of more than `MOST_KEPT`, about this number by class."""
    share = MOST_KEPT / len(labels)
    if share >= 1:
        return np.arange(len(labels))
    return np.flatnonzero(split_by_class(labels, (share, 1 - share), generator) == 0)


def some(n_rows: int, generator: np.random.Generator, most: int = MOST_VALIDATION_ROWS) -> Integers:
    """Return the indices of validation rows, ascending."""
    if n_rows <= most:
        return np.arange(n_rows)
    return np.sort(generator.choice(n_rows, most, replace=False))
