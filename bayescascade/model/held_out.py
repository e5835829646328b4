"""Accuracy of a classifier on held-out rows, with two baselines: measured, printed, saved.

Rows are split into folds, stratified by class. Each fold is predicted by models that learned from
the other folds: the classifier itself, a logistic regression, and the shares of the classes. A
class that is missing in the other folds gets the probability ``1 / (n + 1)`` from all three, with n
their number of rows.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import BayesCascadeError
from bayescascade.base.store import MaybeNaN, Within, stored
from bayescascade.data.cell_policy import CellPolicy, Matrix
from bayescascade.data.given import GivenRows
from bayescascade.data.labels import check_labels, class_number, find_classes
from bayescascade.data.levels import level_text
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.data.splitting import split_by_class
from bayescascade.model.label_details import LabelDetails
from bayescascade.model.scores import LabelScores
from bayescascade.model.standard_errors import folds_error, share_error
from bayescascade.report.numbers import diagnostic_text, share_with_error
from bayescascade.report.page import BLANK, Numbers, Page, Pieces, PrintedTable, count_of

DEFAULT_FOLDS = 5

_MOST_ROWS, _MOST_CELLS = 60_000, 10_000_000  # cells times classes; with more, one fold is held out
_LEAST_PROBABILITY = 1e-15  # keeps the log loss finite
_MOST_ITERATIONS = 100  # of the logistic regression


class Figures(NamedTuple):
    """The accuracy and the mean log loss of one model."""

    name: str
    accuracy: Annotated[float, Within(0, 1)]
    standard_error: MaybeNaN  # of the accuracy; NaN for one row
    log_loss: MaybeNaN  # nats


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Measures on held-out rows."""

    n_rows: int = 0  # predicted rows
    n_folds: int = 0  # number of folds
    is_once: bool = False  # whether only the first part was held out
    effort: str = ""  # words for how folds were fitted
    figures: tuple[Figures, ...] = ()  # the model first; empty without measures
    details: LabelDetails | None = None  # of the model
    reason: str = ""  # why there are no measures; otherwise empty

    @property
    def extent(self) -> str:
        """The held-out rows in words."""
        if self.is_once:
            return f"1 of {self.n_folds} folds held out: the table is large"
        return f"{self.n_folds} folds, each held out once"

    def page(self) -> Page:
        """Return the figures as a table, or the reason why there are none."""
        if self.reason:
            return (Pieces([f"accuracy on held-out rows: not measured, {self.reason}"]),)
        accuracies = [
            share_with_error(figure.accuracy, figure.standard_error) for figure in self.figures
        ]
        losses = [diagnostic_text(figure.log_loss, 3) for figure in self.figures]
        table = PrintedTable(
            [figure.name for figure in self.figures],
            [Numbers("accuracy", accuracies), Numbers("log loss", losses)],
            count_of(self.n_rows, "held-out row"),
        )
        texts = [self.extent, self.effort, "±: standard error", "log loss: nats a row"]
        return (BLANK, table, Pieces(texts, "dim"), BLANK)

    def of_class(self, c: int) -> list[str]:
        """Return precision and recall of the class at position c in words, and of which rows."""
        if self.details is None:
            return [f"precision and recall on held-out rows: not measured, {self.reason}"]
        confusion, texts = self.details.confusion, []
        for name, those in (("precision", confusion[:, c]), ("recall", confusion[c])):
            n = float(those.sum())
            share = float(confusion[c, c]) / n if n else 0.0
            error = share_error(share, n) if self.is_once else folds_error(share, n, self.n_folds)
            texts.append(f"{name} {share_with_error(share, error)}")
        texts[0] = f"on {count_of(self.n_rows, 'held-out row')}: {texts[0]}"
        return [*texts, self.extent, *filter(None, [self.effort])]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        record: dict[str, Any] = stored(self)
        return record


def default_folds(X: pd.DataFrame, n_classes: int) -> tuple[int, bool]:
    """Return the number of folds, and whether only one is held out, because the table is large."""
    return DEFAULT_FOLDS, len(X) > _MOST_ROWS or X.size * n_classes > _MOST_CELLS


def measure(
    fit: Callable[[pd.DataFrame, Any, Floats, int], Any],
    X: pd.DataFrame,
    y: Any,
    weights: Floats | None,
    seeds: np.random.SeedSequence,
    *,
    name: str,
    effort: str,
    n_folds: int,
    is_once: bool = False,
    positive: object = None,
    variants: Mapping[str, Mapping[str, Any]] | None = None,
) -> HeldOut:
    """Measure a classifier and the baselines on held-out rows.

    ``fit(X, y, weights, seed)`` returns a classifier; y, weights (n_rows,). `seeds` are for
    splitting and for each of n_folds >= 2 folds, of which only the first is held out if `is_once`.
    `name` is the model's name; `effort` says in words how a fold is fitted. `positive` is the label
    whose probability is judged; see `LabelScores`. `variants` are parameters of the fitted
    classifier by the name that is printed; details are on the first one.
    """
    variants = variants or {f"this {name}": {}}
    weights = np.ones(len(X)) if weights is None else weights
    counts = weights > 0
    X, weights = X[counts].reset_index(drop=True), weights[counts]
    labels = check_labels(y, "y", name)[counts]
    classes, codes = find_classes(labels, "y")
    splitting, *fold_seeds = seeds.spawn(1 + n_folds)
    parts = split_by_class(codes, [1 / n_folds] * n_folds, np.random.default_rng(splitting))
    rows = standardized(X)
    judged = None if positive is None else class_number(classes, positive)
    scores = [LabelScores(len(classes), judged) for _ in range(len(variants) + 2)]
    for part in range(1 if is_once else n_folds):
        is_held = parts == part
        if not is_held.any():
            continue
        known, held = np.flatnonzero(~is_held), np.flatnonzero(is_held)
        try:
            found = fit(
                X.take(known).reset_index(drop=True),
                pd.Series(labels[known], name=getattr(y, "name", None)),
                weights[known],
                int(fold_seeds[part].generate_state(1)[0]),
            )
            new = X.take(held).reset_index(drop=True)
            probabilities = [
                found.set_params(**each).predict_proba(new) for each in variants.values()
            ]
        except BayesCascadeError as error:
            return HeldOut(reason=f"because a fold cannot be fitted: {error}")
        if hasattr(found, "summary_") and found.summary_.is_partial:
            return HeldOut(reason=f"because a fold was {found.summary_.ending}")
        shares = np.bincount(codes[known], weights[known], len(classes)).astype(np.float64)
        own = np.searchsorted(classes, found.classes_)
        predicted = (
            *((each, own, own[found.decision().choose(each)]) for each in probabilities),
            (*_logistic(rows, codes, weights, known, held), None),
            (np.tile(shares, (held.size, 1)), np.arange(len(classes)), None),
        )
        for score, (of_known, seen, chosen) in zip(scores, predicted, strict=True):
            of_all = aligned(of_known, seen, shares)
            score.add(codes[held], of_all, weights[held], chosen)
    names = (*variants, "logistic regression", "most common class")
    figures = tuple(
        Figures(
            called,
            score.accuracy,
            score.accuracy_error if is_once else folds_error(score.accuracy, score.weight, n_folds),
            score.log_loss,
        )
        for called, score in zip(names, scores, strict=True)
    )
    details = LabelDetails.of(scores[0], [level_text(label) for label in classes.tolist()])
    return HeldOut(scores[0].n_rows, n_folds, is_once, effort, figures, details)


def aligned(probabilities: Floats, seen: NDArray[np.integer], shares: Floats) -> Floats:
    """Return probabilities for all classes, (n_rows, n_classes), given those of some; all > 0."""
    of_all = np.zeros((len(probabilities), shares.size))
    of_all[:, seen] = probabilities / probabilities.sum(axis=1, keepdims=True)
    unseen = shares == 0
    of_all *= 1 - unseen.sum() / (shares.sum() + unseen.sum())
    of_all[:, unseen] = 1 / (shares.sum() + unseen.sum())
    return np.maximum(of_all, _LEAST_PROBABILITY)


def standardized(X: pd.DataFrame) -> Matrix:
    """Return the rows as numbers, text as columns of 0 and 1, each of mean 0 and variance 1."""
    from sklearn.preprocessing import StandardScaler

    given = GivenRows.of(X)
    encoder = MatrixEncoder.learn(given, CellPolicy(missing="level"))
    matrix = encoder.transform(given, "logistic regression")
    rows: Matrix = StandardScaler().fit_transform(matrix)
    return rows


def _logistic(
    rows: Matrix,
    codes: NDArray[np.integer],
    weights: Floats,
    known: NDArray[np.intp],
    held: NDArray[np.intp],
) -> tuple[Floats, NDArray[np.integer]]:
    """Return the probabilities of held-out rows by a logistic regression, and its classes."""
    from sklearn.linear_model import LogisticRegression

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a baseline need not converge completely
        model = LogisticRegression(max_iter=_MOST_ITERATIONS)
        model.fit(rows[known], codes[known], weights[known])
    return model.predict_proba(rows[held]), model.classes_
