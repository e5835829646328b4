"""What a fit tries, and on what: rows to learn from, rows that judge, and the full model."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.threads import single_threaded
from bayescascade.base.watch import Watch
from bayescascade.costs.items import CostItems
from bayescascade.costs.tried import tried_in_time
from bayescascade.data.labels import TrainingRows
from bayescascade.data.splitting import split_by_class
from bayescascade.methods.adaptive.choosing import AdaptiveFit, Judges, judged
from bayescascade.methods.adaptive.full import FullModel
from bayescascade.methods.adaptive.gated import Gated, Scores
from bayescascade.methods.adaptive.objective import Numbers

_HELD_OUT = 0.25  # of the rows, where none are given to choose by


class Learner(Protocol):
    """What tries gates and local models; a fit is its own, of what `AdaptiveFit` has."""

    def tried(self, learns: NDArray[np.bool_]) -> Iterator[Any]:
        """Yield fits to some of the rows, (n,) bool."""

    def candidates(self, fits: Sequence[Any]) -> Sequence[Any]:
        """Return the fits that other rows judge."""

    def refitted(self, fit: Any) -> Any:
        """Return a fit of all rows, from where it was."""

    def scores(self, fit: Any) -> tuple[Scores, Scores]:
        """Return gate and local model of a fit, in the columns' units."""


class Trial(NamedTuple):
    """What `fit` tried, and on what."""

    fits: list[AdaptiveFit]
    training: TrainingRows  # those that weigh some
    learner: Learner
    nothing: Gated  # that reads nothing, and has the full model
    judges: Judges
    watch: Watch

    def gated(self, fit: Any) -> Gated:
        """Return what rows go through by a fit; nothing is sent."""
        gate, local = self.learner.scores(fit)
        return replace(self.nothing, gate=gate, local=local)

    def try_each(self, items: CostItems, cut: float | None) -> bool:
        """Try what is asked for, until time is up; return whether Ctrl-C ended it."""
        with single_threaded():  # products of few columns
            each = ([fit] for fit in self.learner.tried(self.judges.learns))
            fits, is_interrupted = tried_in_time(each, self.watch)
        for fit in self.learner.candidates(fits):
            self.fits.extend(judged(fit, self.gated(fit), self.judges, items, cut))
        return is_interrupted


def judges_of(
    training: TrainingRows, full: FullModel, fair: Numbers, generator: Any, is_given: bool
) -> Judges:
    """Return the rows that choose: validation rows, else held-out ones unless all is given.

    fair (n_rows, n_classes): what the full model says of rows that it was not fitted on.
    """
    learns = np.ones(len(training.rows), np.bool_)
    if training.validation_labels is not None:
        rows, labels = training.validation_rows, training.validation_labels
        words, chances = "validation rows", full.probabilities(training.validation_rows)
    elif is_given:
        rows, labels, words, chances = training.rows, training.labels, "rows", fair
    else:
        parts = split_by_class(training.labels, [1 - _HELD_OUT, _HELD_OUT], generator)
        learns = parts == 0
        if np.unique(training.labels[learns]).size < training.n_classes or learns.all():
            learns = np.ones(len(training.rows), np.bool_)
        chosen = ~learns if not learns.all() else learns
        rows, labels, chances = training.rows[chosen], training.labels[chosen], fair[chosen]
        words = "held-out rows"
    wrong = chances.argmax(axis=1) != labels
    return Judges(rows, labels, words, learns, wrong, full.used(rows))


def counted(training: TrainingRows) -> TrainingRows:
    """Return the rows that weigh some."""
    kept = training.weights > 0
    if kept.all():
        return training
    validation = training.validation_rows
    if validation is training.rows:
        validation = training.rows[kept]
    return TrainingRows(
        training.rows[kept], training.classes, training.labels[kept], training.weights[kept],
        validation, training.validation_labels,
    )  # fmt: skip
