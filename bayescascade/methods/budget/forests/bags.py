"""The choice between a forest and buying nothing, by rows on which its trees were not grown."""

import copy
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.arrays import Flags, Integers
from bayescascade.base.errors import ParameterError
from bayescascade.costs.choice import CROSSED, PurchaseChoice, fold_of_rows, is_few
from bayescascade.data.labels import TrainingRows
from bayescascade.methods.budget.forests.forest import Forest
from bayescascade.model.matrix_classifier import MatrixClassifier

M = TypeVar("M", bound=MatrixClassifier)
Fold: TypeAlias = tuple[M, TrainingRows, Flags]
"""A copy of a model, the rows to learn from, and whether each of all rows is held out."""


def has_bags(estimator: Any) -> bool:
    """Return whether a fitted estimator has the rows on which each tree was grown."""
    return bool(getattr(estimator, "bootstrap", False)) and hasattr(
        estimator, "estimators_samples_"
    )


def out_of_bag(estimator: Any, n_rows: int, what_for: str) -> Flags:
    """Return whether each row is out of each tree's bag, (n_rows, n_trees)."""
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
    """Return which trees vote for rows out of their bags, (n_rows, n_trees): those with splits."""
    splits = pruned.is_split[pruned.roots]
    return outside & splits if splits.any() else outside


def wrong_out_of_bag(
    pruned: Forest, rows: NDArray[np.float32], labels: Integers, outside: Flags
) -> Flags:
    """Return whether each row is classified wrongly by the trees that were not grown on it.

    `pruned` has all pruned trees; rows (n_rows, n_columns); labels (n_rows,), indices of classes;
    outside (n_rows, n_trees): whether each row is out of each tree's bag. The result is (n,) bool,
    for the rows that are out of the bag of a voting tree. As in predictions, trees without a split
    do not vote if others have one.
    """
    votes = votes_of(pruned, outside)
    leaves = pruned.apply(rows)
    shares = np.zeros((len(rows), pruned.n_classes))
    for tree in range(pruned.n_trees):
        of_tree = pruned.probabilities[leaves[:, tree]]
        shares += np.where(votes[:, tree, np.newaxis], of_tree, 0.0)
    has_votes = votes.any(axis=1)
    wrong: Flags = shares[has_votes].argmax(axis=1) != labels[has_votes]
    return wrong


def choice_of(
    folds_of: Callable[[TrainingRows], Iterable[Fold[M]]],
    training: TrainingRows,
    forest: Forest,
    learn: Callable[[M, TrainingRows], Forest | None] | None,
    outside: Flags | None,
) -> PurchaseChoice | None:
    """Return the comparison of a forest with buying nothing, on held-out rows.

    These are the validation rows, if they have labels. Otherwise, if there are few rows or no
    `outside`, (n_rows, n_trees) bool, they are the rows of each fold, classified by a forest that
    `learn` learns from the other folds. Otherwise they are those out of the bags. None if there are
    no such rows.
    """
    labels = training.labels
    nothing = labels != training.commonest
    if training.validation_labels is not None:
        labels = training.validation_labels
        wrong = forest.predict_proba(training.validation_rows).argmax(axis=1) != labels
        return PurchaseChoice.of("validation rows", wrong, labels != training.commonest, training)
    if learn is not None and (outside is None or is_few(training)):
        wrong = wrong_crossed(folds_of(training), training, learn)
        return PurchaseChoice.of(CROSSED, wrong, nothing, training, training.weights)
    if outside is None:
        return None
    is_judged = votes_of(forest, outside).any(axis=1)
    if not is_judged.any():
        return None
    wrong = wrong_out_of_bag(forest, training.rows, labels, outside)
    return PurchaseChoice.of("out-of-bag rows", wrong, nothing[is_judged], training)


def wrong_crossed(
    folds: Iterable[Fold[M]], rows: TrainingRows, learn: Callable[[M, TrainingRows], Forest | None]
) -> Flags:
    """Return whether each row is wrong in cross-validation; the default is the common class."""
    wrong: Flags = rows.labels != rows.commonest
    for other, part, held in folds:
        forest = learn(other, part)
        if forest is not None:
            places = np.searchsorted(rows.classes, part.classes)
            said = places[forest.predict_proba(rows.rows[held]).argmax(axis=1)]
            wrong[held] = said != rows.labels[held]
    return wrong


def copies_for_folds(model: M, training: TrainingRows) -> Iterator[Fold[M]]:
    """Yield a copy, training rows and held-out rows for each fold with several classes."""
    fold_of = fold_of_rows(training.labels)
    for fold in np.unique(fold_of):
        part, held = training.part(fold_of != fold), fold_of == fold
        if part.n_classes > 1:
            other = copy.copy(model)
            other.classes_ = part.classes
            yield other, part, held
