"""Scores of predicted labels: accuracy, log loss, AUC and confusion matrix.

Rows are added in blocks and only sums are kept: by predicted and true class, and for the AUC by
distinct predicted probabilities. A list of rules has as many of these as parts.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayescascade.base.arrays import Flags, Floats, Integers
from bayescascade.base.texts import printable
from bayescascade.model.standard_errors import share_error
from bayescascade.report.layout import longest
from bayescascade.report.numbers import count_texts
from bayescascade.report.page import Fitting, Numbers, Page, Pieces, PrintedTable

_GAP = 3  # columns before each number of a table


class LabelScores:
    """Sums over rows with labels."""

    def __init__(self, n_classes: int, positive: int | None = None) -> None:
        """Start without rows.

        `positive` is the position of the class whose probability is judged; None: the second of two
        classes, otherwise all.
        """
        self.positive = 1 if positive is None and n_classes == 2 else positive
        self.n_rows = 0
        self.confusion = np.zeros((n_classes, n_classes))  # weights, true (rows) by predicted class
        self._log_probability = 0.0
        self._probabilities = np.empty((0, n_classes))  # distinct probabilities
        self._weights = np.empty((0, n_classes))  # weights of the rows of each class that got them

    def add(
        self,
        labels: NDArray[np.integer],
        probabilities: Floats,
        weights: Floats | None = None,
        predicted: NDArray[np.integer] | None = None,
    ) -> None:
        """Add a block of rows; a weight is the number of equal rows.

        labels, predicted (n,) int, positions of the true and the chosen class, by default the most
        probable one; probabilities (n, n_classes) float64; weights (n,) float64 >= 0.
        """
        predicted = probabilities.argmax(axis=1) if predicted is None else predicted
        weights = np.ones(len(labels)) if weights is None else weights
        self.n_rows += len(labels)
        np.add.at(self.confusion, (labels, predicted), weights)
        of_label = probabilities[np.arange(len(labels)), labels]
        counts = weights > 0
        with np.errstate(divide="ignore"):  # an impossible class occurred: the loss is infinite
            self._log_probability += float(np.dot(weights[counts], np.log(of_label[counts])))
        by_class = np.zeros(probabilities.shape)
        by_class[np.arange(len(labels)), labels] = weights
        different, position = _different_rows(probabilities)
        added = np.zeros_like(different)
        np.add.at(added, position, by_class)
        together = np.concatenate([self._probabilities, different])
        self._probabilities, position = np.unique(together, axis=0, return_inverse=True)
        self._weights, old = np.zeros_like(self._probabilities), self._weights
        np.add.at(self._weights, position.reshape(-1), np.concatenate([old, added]))

    @property
    def weight(self) -> float:
        """Weight of all rows."""
        return float(self.confusion.sum())

    @property
    def accuracy(self) -> float:
        """Share of the weight with a correct prediction; NaN without weight."""
        return float(np.trace(self.confusion)) / self.weight if self.weight else math.nan

    @property
    def accuracy_error(self) -> float:
        """Standard error of the accuracy, by `share_error`; NaN for a weight below 2."""
        return share_error(self.accuracy, self.weight)

    @property
    def log_loss(self) -> float:
        """Minus the mean log probability of the true class, nats; NaN without weight.

        Infinite if a true class had probability 0.
        """
        return 0.0 - self._log_probability / self.weight if self.weight else math.nan

    @property
    def auc(self) -> float:
        """Area under the ROC curve of the judged class, or the mean of each against the rest.

        NaN unless there are rows of every class that is compared.
        """
        c, has_rows = self.positive, self._weights.sum(axis=0) > 0.0
        if c is not None:
            is_defined = bool(has_rows[c] and np.delete(has_rows, c).any())
            return self.area(c) if is_defined else math.nan
        if not has_rows.all():
            return math.nan
        return float(np.mean([self.area(c) for c in range(len(self.confusion))]))

    def area(self, c: int) -> float:
        """Return the area under the ROC curve of a class, if both it and others have rows."""
        from sklearn.metrics import roc_auc_score  # slow to import, and no fit needs it

        is_class, probabilities, weights = self.against_rest(c)
        return float(roc_auc_score(is_class, probabilities, sample_weight=weights))

    def against_rest(self, c: int) -> tuple[Flags, Floats, Floats]:
        """Return membership in a class, its probabilities and weights, with equal rows merged."""
        everyone = self._weights.sum(axis=1)
        probabilities = np.tile(self._probabilities[:, c], 2)
        weights = np.concatenate([self._weights[:, c], everyone - self._weights[:, c]])
        return np.arange(probabilities.size) < everyone.size, probabilities, weights

    def confidences(self, names: Sequence[str]) -> tuple[str, Floats, Floats, Floats]:
        """Return words for the predicted event, its probabilities, weights of hits and of all."""
        rows, c = np.arange(len(self._weights)), self.positive
        best = self._probabilities.argmax(axis=1) if c is None else np.full_like(rows, c)
        words = "P(predicted class)" if c is None else f"P({names[c]})"
        hits = self._weights[rows, best]
        return words, self._probabilities[rows, best], hits, self._weights.sum(axis=1)


def positive_of(model: Any) -> int | None:
    """Return the position of the class that a classifier describes, `positive_`; None if none."""
    label = getattr(model, "positive_", None)
    return None if label is None else int(model.classes_.tolist().index(label))


def confusion_page(confusion: Floats, target: str, names: Sequence[str]) -> Page:
    """Return the confusion matrix: true classes downward, predicted ones to the right.

    If the predicted classes do not fit side by side, each true class is followed by its
    predicted classes, the most frequent first. `target` is the name of the labels, `names` are
    those of the classes.
    """
    target, names = printable(target), [printable(name) for name in names]
    texts = np.reshape(count_texts(confusion.ravel().tolist()), confusion.shape)
    columns = list(map(Numbers, names, texts.T.tolist()))
    table = PrintedTable(names, columns, target, least_label=0, gaps=(_GAP, _GAP))
    label_width = longest([target, *names])
    above = Pieces(["predicted"], "dim", first=" " * (label_width + _GAP))
    names_page = []
    for name, row, weights in zip(names, texts.tolist(), confusion, strict=True):
        order = [c for c in np.argsort(-weights, kind="stable").tolist() if weights[c] > 0]
        pieces = [f"{names[c]} {row[c]}" for c in order] or ["no rows"]
        names_page.append(Pieces([f"{name}:", *pieces], indent=4))
    legend = Pieces([f"{target}:", "predicted, and how often"], "dim", indent=4)
    return (Fitting(table, label_width, (above, table), (legend, *names_page)),)


def _different_rows(values: Floats) -> tuple[Floats, Integers]:
    """Return distinct rows, and the position of each row among them; by hashing, not sorting."""
    position = np.zeros(len(values), np.int64)
    for column in values.T:
        codes, found = pd.factorize(column)
        position, _ = pd.factorize(position * max(len(found), 1) + codes)
    first = np.zeros(int(position.max(initial=-1)) + 1, np.int64)
    first[position[::-1]] = np.arange(len(values))[::-1]
    return values[first], position
