"""Rules for rows: the classifier that adds up, and the rule that rows which judge choose."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.errors import ParameterError
from bayescascade.base.notices import noticed
from bayescascade.base.watch import Watch
from bayescascade.costs.choice import FEW_ROWS, Choice
from bayescascade.costs.items import CostItems
from bayescascade.data.labels import TrainingRows
from bayescascade.methods.margin_neighbors.choosing import (
    Asked,
    Judged,
    Judges,
    best_within,
    follow_all,
    judge,
)
from bayescascade.methods.margin_neighbors.margins import (
    Standardized,
    default_classifier,
    fit_additive,
    out_of_fold,
)
from bayescascade.methods.margin_neighbors.nearest import NearestPolicy
from bayescascade.methods.margin_neighbors.rule import Neighborhoods

Ints = NDArray[np.int64]

MOST_JUDGES = 2000
"""Rows that judge at most: a further one takes a way through all training rows."""

_NEIGHBORS = (8, 25, 75)
_GAINS = (0.0, 0.01, 0.05)
"""Tradeoffs that are tried, by what a feature of mean cost must add to the accuracy."""


@dataclass(frozen=True, eq=False)
class NearestFit:
    """What is asked for; see `MarginNeighborsParameters`."""

    items: CostItems
    source: Ints  # the feature of each column of the matrix
    estimator: Any | None
    n_neighbors: int | None
    tradeoff: float | None
    stop: str
    value: float | None  # of a stop rule that is given
    predict_by: str
    margins: str
    rest: str
    ties: str

    def learn(
        self, training: TrainingRows, generator: np.random.Generator, watch: Watch
    ) -> "ChosenNearest":
        """Return the rules that are asked for, as rows that judge found them."""
        kept = training.weights > 0
        rows, labels, sizes = training.rows[kept], training.labels[kept], training.weights[kept]
        asked = self._asked(float(sizes.sum()))
        estimator = self.estimator
        if estimator is None:
            estimator = default_classifier(int(generator.integers(2**31)), training.n_classes)
        standard = Standardized.of(rows, sizes)
        cells = standard.cells(rows)
        starts = np.searchsorted(self.source, np.arange(self.source[-1] + 2)).astype(np.int64)
        full = fit_additive(estimator, cells, labels, sizes)
        parts = {"in_sample": full.of_features(cells, starts)}
        others, judged = training.validation_rows, training.validation_labels
        n_settling = 0 if judged is None else min(len(others), MOST_JUDGES)
        if self.margins != "in_sample" or n_settling < FEW_ROWS:
            parts["out_of_fold"] = out_of_fold(estimator, full, cells, labels, sizes, starts)
        around = {
            margins: Neighborhoods(
                rows, labels, sizes, standard, self.source, parts[margins], full,
                training.n_classes, self.items, self.rest == "neighbors", self.ties == "all",
            )
            for margins in ("out_of_fold", "in_sample") if self.margins in (margins, "auto")
        }  # fmt: skip
        chosen = some(len(others) if n_settling else 0, generator)
        own = np.zeros(0, np.int64)
        if n_settling < FEW_ROWS:
            own = some(len(rows), generator, FEW_ROWS - n_settling if n_settling else MOST_JUDGES)
        fair = parts["out_of_fold"][own] if own.size else parts["in_sample"][:0]
        added = full.of_features(standard.cells(others[chosen]), starts)
        judges = Judges(
            np.concatenate([others[chosen], rows[own]]),
            labels[own] if judged is None else np.append(judged[chosen], labels[own]),
            np.append(np.full(chosen.size, -1), own),
            np.concatenate([added, fair]),
            "validation rows" if n_settling else "rows left out one by one",
            n_settling or own.size,
        )  # fmt: skip
        followed = []
        n_parts = len(around) * len(asked.n_neighbors) * len(asked.tradeoffs)
        for ways in noticed(follow_all(around, asked, judges), n_parts, "the trial of more rules"):
            followed.append(ways)
            if watch.is_over():
                break
        tried = tuple(judge(followed, asked, judges.n_settling))
        return ChosenNearest(around, tried, judges, training)

    def _asked(self, weight: float) -> Asked:
        """Return what is chosen among."""
        if self.n_neighbors is not None and self.n_neighbors > weight:
            raise ParameterError(
                f"n_neighbors must be at most {weight:,.12g}, the weight of the rows, "
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
        return Asked(
            several if self.n_neighbors is None else [self.n_neighbors],
            tradeoffs if self.tradeoff is None else [self.tradeoff],
            ["threshold", "gain", "number"] if self.stop == "auto" else [self.stop],
            None if value is None else [value],
            ["margin", "vote"] if self.predict_by == "auto" else [self.predict_by],
        )


class ChosenNearest(NamedTuple):
    """The rules that were tried, and the rows that judge."""

    around: Mapping[str, Neighborhoods]
    tried: tuple[Judged, ...]
    judges: Judges
    training: TrainingRows

    def within(self, budget: float | None) -> tuple[Judged, bool]:
        """Return the rule that errs least within a budget, or that reads nothing, and which."""
        best = best_within(self.tried, budget)
        if best is not None:
            return best, True
        first = self.tried[0]
        return first._replace(rule=first.rule.of_nothing), False

    def policy(self, judged: Judged) -> NearestPolicy:
        """Return a rule as users have it."""
        rule, ways = judged.rule, judged.ways
        around = self.around[rule.margins]
        return NearestPolicy(around, rule, ways.by_step(rule), ways.offsets())

    def used(self, judged: Judged) -> NDArray[np.bool_]:
        """Return the features that the rows which settle measure by a rule, (m, d)."""
        return judged.ways.used(judged.rule)[: self.judges.n_settling]

    def choice(self, judged: Judged) -> Choice:
        """Return what decided between a rule and buying nothing."""
        judges, n_settling = self.judges, self.judges.n_settling
        wrong = judged.ways.at_ends(judged.rule)[1][:n_settling]
        nothing = judges.labels[:n_settling] != self.training.commonest
        return Choice.of(judges.words, wrong, nothing, self.training)


def some(n_rows: int, generator: np.random.Generator, most: int = MOST_JUDGES) -> Ints:
    """Return which rows judge, ascending."""
    if n_rows <= most:
        return np.arange(n_rows)
    return np.sort(generator.choice(n_rows, most, replace=False))
