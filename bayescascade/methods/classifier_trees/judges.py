"""The rows that choose among classifiers in trees, and what was tried."""

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.watch import Watch
from bayescascade.data.cell_policy import Matrix
from bayescascade.data.labels import TrainingRows
from bayescascade.data.splitting import split_by_class
from bayescascade.methods.classifier_trees.growing import GrowingRows
from bayescascade.methods.classifier_trees.tree import ClassifierTree

_HELD_OUT = 0.25  # of the rows, where none are given to choose by


class Candidate(Protocol):
    """What was tried, and how it does on the rows that choose."""

    @property
    def tree(self) -> ClassifierTree:
        """What it learned."""

    @property
    def error(self) -> float:
        """Share of the rows that it gets wrong."""

    @property
    def cost(self) -> float:
        """Mean cost of a row."""


class Judges(NamedTuple):
    """The rows that choose."""

    rows: Matrix
    labels: NDArray[np.int64]
    words: str
    learns: NDArray[np.bool_]  # (n_training_rows,), which of those are learned from

    def judge(self, tree: ClassifierTree, costs: NDArray[np.float64]) -> tuple[float, float]:
        """Return error and mean cost of a tree whose nodes cost (n_nodes,) with all above them."""
        wrong = tree.predict_proba(self.rows).argmax(axis=1) != self.labels
        return float(wrong.mean()), float(costs[tree.apply(self.rows)].mean())


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
