"""Whether a forest is better than buying nothing, by rows that its trees were not grown on."""

import copy
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.arrays import Flags, Integers
from bayescascade.base.errors import ParameterError
from bayescascade.costs.choice import CROSSED, Choice, fold_of_rows, is_few
from bayescascade.data.labels import TrainingRows
from bayescascade.methods.forests.forest import Forest
from bayescascade.model.matrix_classifier import MatrixClassifier

M = TypeVar("M", bound=MatrixClassifier)
Fold: TypeAlias = tuple[M, TrainingRows, Flags]
"""A copy of a model, the rows that it may learn from, and whether each of all rows is held out."""


def has_bags(estimator: Any) -> bool:
    """Return whether a fitted estimator says which rows each of its trees was grown on."""
    return bool(getattr(estimator, "bootstrap", False)) and hasattr(
        estimator, "estimators_samples_"
    )


def out_of_bag(estimator: Any, n_rows: int, what_for: str) -> Flags:
    """Return which trees were not grown on which rows, (n_rows, n_trees); they must have bags."""
    if not has_bags(estimator):
        got = " with bootstrap=False" if hasattr(estimator, "bootstrap") else ""
        raise ParameterError(
            f"{what_for} needs a forest of scikit-learn with bootstrap=True, "
            f"got a {type(estimator).__name__}{got}"
        )
    if estimator._n_samples != n_rows:
        raise ParameterError(
            f"{what_for} needs the rows that the forest was fitted on, "
            f"{estimator._n_samples:,}, got {n_rows:,}"
        )
    bags = estimator.estimators_samples_
    outside = np.ones((n_rows, len(bags)), np.bool_)
    for tree, bag in enumerate(bags):
        outside[bag, tree] = False
    return outside


def votes_of(pruned: Forest, outside: Flags) -> Flags:
    """Return which trees vote out of their bags, (n_rows, n_trees); those without splits do not."""
    splits = pruned.is_split[pruned.roots]
    return outside & splits if splits.any() else outside


def wrong_out_of_bag(
    pruned: Forest, rows: NDArray[np.float32], labels: Integers, outside: Flags
) -> Flags:
    """Return whether rows are classified wrongly by the trees that were not grown on them.

    `pruned` has all trees as they were pruned; rows (n_rows, n_columns); labels (n_rows,), places
    of classes; outside (n_rows, n_trees) says which trees were not grown on which rows; what is
    returned (n,) bool, of the rows outside the bag of a tree. As in predictions, trees without a
    split do not vote where others have one.
    """
    votes = votes_of(pruned, outside)
    leaves = pruned.apply(rows)
    shares = np.zeros((len(rows), pruned.n_classes))
    for tree in range(pruned.n_trees):
        of_tree = pruned.probabilities[leaves[:, tree]]
        shares += np.where(votes[:, tree, np.newaxis], of_tree, 0.0)
    is_told = votes.any(axis=1)
    wrong: Flags = shares[is_told].argmax(axis=1) != labels[is_told]
    return wrong


def choice_of(
    folds_of: Callable[[TrainingRows], Iterable[Fold[M]]],
    training: TrainingRows,
    forest: Forest,
    learn: Callable[[M, TrainingRows], Forest | None] | None,
    outside: Flags | None,
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
    folds: Iterable[Fold[M]], rows: TrainingRows, learn: Callable[[M, TrainingRows], Forest | None]
) -> Flags:
    """Return whether rows are classified wrongly without their fold, by default as commonest."""
    wrong: Flags = rows.labels != rows.commonest
    for other, part, held in folds:
        forest = learn(other, part)
        if forest is not None:
            places = np.searchsorted(rows.classes, part.classes)
            said = places[forest.predict_proba(rows.rows[held]).argmax(axis=1)]
            wrong[held] = said != rows.labels[held]
    return wrong


def copies_for_folds(model: M, training: TrainingRows) -> Iterator[Fold[M]]:
    """Yield a copy for each fold, the rows to learn from, of two classes, and which are not."""
    fold_of = fold_of_rows(training.labels)
    for fold in np.unique(fold_of):
        part, held = training.part(fold_of != fold), fold_of == fold
        if part.n_classes > 1:
            other = copy.copy(model)
            other.classes_ = part.classes
            yield other, part, held
