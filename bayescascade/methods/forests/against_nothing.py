"""Whether what a forest reads is better than buying nothing, on rows it was not learned from."""

import copy
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from bayescascade.costs.choice import CROSSED, Choice, fold_of_rows, is_few
from bayescascade.data.labels import TrainingRows
from bayescascade.methods.forests.bags import votes_of, wrong_out_of_bag
from bayescascade.methods.forests.forest import Forest
from bayescascade.model.matrix_classifier import MatrixClassifier

M = TypeVar("M", bound=MatrixClassifier)

Fold: TypeAlias = tuple[M, TrainingRows, NDArray[np.bool_]]
"""A copy of a model, the rows that it may learn from, and whether each of all rows is held out."""


def choice_of(
    folds_of: Callable[[TrainingRows], Iterable[Fold[M]]],
    training: TrainingRows,
    forest: Forest,
    learn: Callable[[M, TrainingRows], Forest | None] | None,
    outside: NDArray[np.bool_] | None,
) -> Choice | None:
    """Return how rows that a forest was not learned from compare it with buying nothing.

    These are the validation rows, if they have labels; else, of few rows or where there are
    none `outside` the bags of the trees, (n_rows, n_trees) bool, those of each fold, which
    `learn` judges by a forest learned from the others; else those outside. None if there are
    no such rows.
    """
    labels = training.labels
    nothing = labels != training.commonest
    if training.validation_labels is not None:
        labels = training.validation_labels
        wrong = forest.predict_proba(training.validation_rows).argmax(axis=1) != labels
        return Choice.of("validation rows", wrong, labels != training.commonest, training)
    if learn is not None and (outside is None or is_few(training)):
        return Choice.of(
            CROSSED, wrong_crossed(folds_of(training), training, learn), nothing, training
        )
    if outside is None:
        return None
    is_judged = votes_of(forest, outside).any(axis=1)
    if not is_judged.any():
        return None
    wrong = wrong_out_of_bag(forest, training.rows, labels, outside)
    return Choice.of("out-of-bag rows", wrong, nothing[is_judged], training)


def wrong_crossed(
    folds: Iterable[Fold[M]],
    training: TrainingRows,
    learn: Callable[[M, TrainingRows], Forest | None],
) -> NDArray[np.bool_]:
    """Return whether each row is classified wrongly by what is learned without its fold.

    That is the commonest class if `learn` finds no forest.
    """
    wrong: NDArray[np.bool_] = training.labels != training.commonest
    for other, part, held in folds:
        forest = learn(other, part)
        if forest is not None:
            places = np.searchsorted(training.classes, part.classes)
            said = places[forest.predict_proba(training.rows[held]).argmax(axis=1)]
            wrong[held] = said != training.labels[held]
    return wrong


def copies_for_folds(model: M, training: TrainingRows) -> Iterator[Fold[M]]:
    """Yield a copy for each fold, the rows that it may learn from, and whether others are not.

    Folds without which there would be one class are left out.
    """
    fold_of = fold_of_rows(training.labels)
    for fold in np.unique(fold_of):
        part, held = training.part(fold_of != fold), fold_of == fold
        if part.n_classes > 1:
            other = copy.copy(model)
            other.classes_ = part.classes
            yield other, part, held
