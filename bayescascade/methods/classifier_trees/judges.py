"""The rows that choose among classifiers in trees, and what was tried."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.watch import Watch
from bayescascade.costs.items import CostItems
from bayescascade.data.cell_policy import Matrix
from bayescascade.data.labels import TrainingRows
from bayescascade.data.splitting import split_by_class
from bayescascade.methods.classifier_trees.growing import GrowingRows
from bayescascade.methods.classifier_trees.tree import ClassifierTree

_HELD_OUT = 0.25
"""Share of the rows that choose where none are given for that.

Cross-validation of few rows, as of forests, was no better (errors in percent within 10, 20, 30, 50
and 100 % of Turney's prices, five splits; a quarter first): trees on hepatitis 17.4, 16.8, 16.1,
14.8, 14.8 against 20.6 always, standard errors .8 to 2.2; on pima 32.1, 31.7, 31.7, 22.7, 24.9
against 32.9, 31.2, 31.2, 23.4, 23.9, standard errors 1.3 to 2.1; for six times the work. Trees that
are grown on all rows have no rows left to be pruned by.
"""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Candidate:
    """What was tried, and how it does on the rows that choose."""

    tree: ClassifierTree
    error: float  # share of the rows that it gets wrong
    cost: float  # mean cost of a row


class Judges(NamedTuple):
    """The rows that choose."""

    rows: Matrix
    labels: NDArray[np.int64]
    words: str
    learns: NDArray[np.bool_]  # (n_training_rows,), which of those are learned from

    def judge(self, tree: ClassifierTree, items: CostItems) -> dict[str, Any]:
        """Return what a `Candidate` has: a tree, its error and its mean cost."""
        wrong = tree.predict_proba(self.rows).argmax(axis=1) != self.labels
        costs = items.total(items.paid(tree.has))[tree.apply(self.rows)]
        return {"tree": tree, "error": float(wrong.mean()), "cost": float(costs.mean())}


class Trial(NamedTuple):
    """What `fit` tried."""

    candidates: tuple[Candidate, ...]
    training: TrainingRows
    everything: GrowingRows
    judges: Judges
    watch: Watch


def judges_of(training: TrainingRows, chooses: bool, random_state: Any) -> Judges:
    """Return the rows that choose, if there is anything to choose: validation rows, or held out."""
    learns = np.ones(len(training.rows), np.bool_)
    if training.validation_labels is not None:
        return Judges(
            training.validation_rows, training.validation_labels, "validation rows", learns
        )
    if not chooses:
        return Judges(training.rows, training.labels, "rows", learns)
    generator = np.random.default_rng(random_state)
    held_out = split_by_class(training.labels, [1 - _HELD_OUT, _HELD_OUT], generator) == 1
    return Judges(training.rows[held_out], training.labels[held_out], "held-out rows", ~held_out)
