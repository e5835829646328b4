"""Fitting policies of boxes: bins, tables, and the tradeoff, which judging rows choose."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.arrays import Flags, Floats, Integers
from bayescascade.base.watch import watch_in_use
from bayescascade.costs.choice import Choice
from bayescascade.costs.items import CostItems
from bayescascade.costs.limits import is_within
from bayescascade.costs.tried import coarse_first
from bayescascade.data.labels import TrainingRows
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.data.splitting import split_by_class
from bayescascade.methods.margin_neighbors.box_policy import BoxPolicy
from bayescascade.methods.margin_neighbors.boxes import (
    BoxTable,
    FeatureBins,
    Policy,
    bins_of,
    codes_of,
)
from bayescascade.methods.margin_neighbors.margins import Standardized, fit_additive
from bayescascade.methods.margin_neighbors.policy_posterior import PolicyPosterior

_HELD_OUT = 0.25  # share of the rows, if no validation rows are given
_OF_BOXES = 0.3  # share of the time left for the classifier of all rows, and of those that learn
_TRADEOFFS = tuple(np.geomspace(1e-4, 1.0, 30))
"""Tradeoffs to try, times the mean cost of a feature."""


@dataclass(frozen=True, eq=False)
class BoxFit:
    """How boxes are made: maximum number of bins, temperature, and predictor of leaves."""

    encoder: MatrixEncoder
    items: CostItems
    classes: NDArray[Any]
    n_bins: int
    temperature: float
    estimator: Any | None  # None: leaves predict their commonest class

    def learn(self, rows: NDArray[np.float32], labels: Integers, weights: Floats) -> "BoxRows":
        """Return the boxes of rows (n, p) of the matrix; TooLargeError if they are too many."""
        source = np.asarray(self.encoder.source, np.int64)
        bins = bins_of(rows, weights, source, self.n_bins)
        codes = codes_of(bins, rows, source)
        counts = [each.n_bins for each in bins]
        n_classes = len(self.classes)
        # there may be too many, so this is before any fit
        table = BoxTable.of(codes, counts, labels, weights, n_classes, self.items)
        scores = None
        if self.estimator is not None:
            scores = self._scores(rows, labels, weights, codes, counts)
            table = BoxTable.of(codes, counts, labels, weights, n_classes, self.items, scores)
        return BoxRows(self, bins, table, scores)

    def _scores(
        self,
        rows: NDArray[np.float32],
        labels: Integers,
        weights: Floats,
        codes: Integers,
        counts: Sequence[int],
    ) -> tuple[Floats, list[Floats]]:
        """Return the offset, and the mean contribution of each feature in each of its bins."""
        cells = Standardized.of(rows, weights).cells(rows)
        cells[np.isnan(cells)] = 0.0
        full = fit_additive(self.estimator, cells, labels, weights)
        source = np.asarray(self.encoder.source, np.int64)
        starts = np.searchsorted(source, np.arange(source[-1] + 2)).astype(np.int64)
        added = full.of_features(cells, starts)
        parts = []
        for feature, count in enumerate(counts):
            inside = codes[:, feature] == np.arange(count)[:, np.newaxis]
            weighed = inside * weights
            total = np.maximum(weighed.sum(axis=1, keepdims=True), np.finfo(float).tiny)
            parts.append(weighed @ added[:, feature] / total)
        return full.offset, parts


class BoxRows(NamedTuple):
    """Rows in boxes."""

    fit: BoxFit
    bins: tuple[FeatureBins, ...]
    table: BoxTable
    scores: tuple[Floats, list[Floats]] | None

    def posterior(self, tradeoff: float) -> PolicyPosterior:
        """Return the posterior over policies."""
        return PolicyPosterior(self.table, tradeoff, self.fit.temperature)

    def policy(self, posterior: PolicyPosterior, policy: Policy | None = None) -> BoxPolicy:
        """Return the best policy, or another, as a `BoxPolicy`."""
        chosen = posterior.best if policy is None else policy
        wrong, paid = self.table.errors_and_cost(chosen)
        best = posterior.objective(chosen)
        return BoxPolicy.of(
            chosen, self.table, self.bins, self.scores, error=wrong / posterior.weight,
            cost=paid / posterior.weight, tradeoff=posterior.tradeoff,
            greedy_gap=max(0.0, posterior.objective(posterior.greedy) - best),
            first_questions=posterior.first_questions, encoder=self.fit.encoder,
            classes=self.fit.classes,
        )  # fmt: skip


class ChosenBoxes(NamedTuple):
    """The rows of policies, the tradeoffs that were tried, and the judging rows."""

    rows: BoxRows
    tried: tuple[tuple[float, float, float, Flags], ...]
    nothing: Flags
    words: str

    def within(self, budget: float | None) -> tuple[float, Flags] | None:
        """Return the tradeoff of least error within a budget, and its errors, or None."""
        possible = [one for one in self.tried if budget is None or is_within(one[2], budget)]
        best = min(possible, key=lambda one: (one[1], one[2]), default=None)
        return None if best is None else (best[0], best[3])

    def choice(self, wrong: Flags, training: TrainingRows) -> Choice:
        """Return the choice between a policy and buying nothing."""
        return Choice.of(self.words, wrong, self.nothing, training)


def choose(
    fit: BoxFit, training: TrainingRows, tradeoff: float | None, random_state: Any
) -> ChosenBoxes:
    """Return policies for several tradeoffs, or the one given, judged on rows."""
    kept = training.weights > 0
    rows, labels, weights = training.rows[kept], training.labels[kept], training.weights[kept]
    watch = watch_in_use()
    with watch.part(_OF_BOXES, is_final=True):
        everything = fit.learn(rows, labels, weights)
    items = fit.items
    mean = float(np.mean([items.costs[items.of_column(j)].sum() for j in range(items.n_columns)]))
    tradeoffs = [each / (mean or 1.0) for each in _TRADEOFFS] if tradeoff is None else [tradeoff]
    learned, words = everything, "validation rows"
    judges, judged = training.validation_rows, training.validation_labels
    if judged is None:
        words = "held-out rows"
        generator = np.random.default_rng(random_state)
        chooses = split_by_class(labels, [1 - _HELD_OUT, _HELD_OUT], generator) == 1
        judges, judged = rows[chooses], labels[chooses]
        if not judged.size:
            judges, judged, words = rows, labels, "training rows"
        else:
            with watch.part(_OF_BOXES, is_final=True):
                learned = fit.learn(rows[~chooses], labels[~chooses], weights[~chooses])
    tried: list[tuple[float, float, float, Flags]] = []
    for each in (tradeoffs[place] for place in coarse_first(len(tradeoffs))):
        if tried and watch.is_over():
            break
        policy = learned.policy(learned.posterior(each))
        wrong = policy.forest.predict_proba(judges).argmax(axis=1) != judged
        cost = float(items.total(items.paid(policy.used(judges))).mean())
        if learned is not everything:  # the policy for all rows must be within a budget, too
            cost = max(cost, everything.policy(everything.posterior(each)).cost)
        tried.append((each, float(wrong.mean()), cost, wrong))
    tried.sort(key=itemgetter(0))
    return ChosenBoxes(everything, tuple(tried), judged != training.commonest, words)
