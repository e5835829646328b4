"""What classifiers by boxes share: the rare class, what is predicted of rows, page and file."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.errors import DataError, ParameterError
from bayescascade.base.validation import check_integer
from bayescascade.data.levels import level_text
from bayescascade.methods.boxes.learned import LearnedBoxes
from bayescascade.methods.boxes.union import BoxUnion, Flags, Floats
from bayescascade.model.importances import importance_shares
from bayescascade.model.matrix_classifier import MatrixClassifier
from bayescascade.model.record import NOT_SAVED
from bayescascade.model.reporting import OF_ROWS
from bayescascade.report.page import Page


class RareRows(NamedTuple):
    """Rows of the matrix, which of them are of the rare class, and their weights, all > 0."""

    rows: Floats
    is_positive: Flags
    weights: Floats


class BoxesClassifier(MatrixClassifier):
    """A classifier of two classes of which the rare one is in a union of boxes.

    Attributes
    ----------
    boxes_ : BoxUnion
        The union that is shown, its sides halfway to the next row that would enter.
    positive_ : label
        The rare class.
    """

    purpose: ClassVar[str] = "Which rows are of a rare class, by a few boxes that hold most of it."
    learned_word: ClassVar[str] = "union"
    _not_saved: ClassVar[tuple[str, ...]] = (*NOT_SAVED, "positive")  # its place is

    positive: Any
    _best: LearnedBoxes
    _place: int  # of the rare class among `classes_`
    _center: Floats

    def _read_rare(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> RareRows:
        """Read rows to learn from, and find the rare class."""
        training = self._read_rows(X, y, sample_weight)
        if training.n_classes > 2:
            shown = ", ".join(f'"{level_text(label)}"' for label in training.classes[:4].tolist())
            raise DataError(
                "y must have two classes. Only binary classification is supported, got "
                f"{training.n_classes} classes, {shown}{', ...' if training.n_classes > 4 else ''}"
            )
        sums = np.bincount(training.labels, training.weights, 2)
        if not (sums > 0.0).all():
            raise DataError("sample_weight must be > 0 for a row of each class")
        labels = training.classes.tolist()
        if self.positive is None:
            self._place = 0 if sums[0] < sums[1] else 1
        elif self.positive in labels:
            self._place = labels.index(self.positive)
        else:
            told = " or ".join(repr(label) for label in labels)
            raise ParameterError(f"positive must be {told}, got {self.positive!r}")
        rows = np.asarray(training.rows, np.float64)
        self._center = np.average(rows, axis=0, weights=training.weights)
        kept = training.weights > 0.0
        return RareRows(rows[kept], (training.labels == self._place)[kept], training.weights[kept])

    # -- classifying -------------------------------------------------------------------------------

    def _rate(self, rows: Floats) -> Floats:
        """Return the probability of the rare class for rows of the matrix, (n_rows,)."""
        return self._best.probabilities(rows)

    def _probabilities(self, rows: NDArray[Any]) -> Floats:
        rate = self._rate(np.asarray(rows, np.float64))
        both = np.stack([1.0 - rate, rate], axis=1)
        return both if self._place == 1 else both[:, ::-1]

    def _reasons(self, X: Any) -> list[str]:
        return self._best.reasons(np.asarray(self._matrix(X), np.float64))

    def _block_words(self, rows: NDArray[Any]) -> Mapping[str, Sequence[object]]:
        return {"box": self._best.reasons(np.asarray(rows, np.float64))}

    @property
    def _means(self) -> Floats:
        return self._center

    # -- what was learned --------------------------------------------------------------------------

    @property
    def boxes_(self) -> BoxUnion:
        """The union that is shown."""
        check_is_fitted(self)
        return self._best.union

    @property
    def positive_(self) -> Any:
        """The label of the rare class."""
        check_is_fitted(self)
        return self.classes_.tolist()[self._place]

    @property
    def feature_importances_(self) -> Floats:
        """Shares of the negatives that a side of each feature alone keeps out of its box."""
        check_is_fitted(self)
        kept_out = self._best.kept_out.sum(axis=(0, 2))
        return importance_shares(self.n_features_in_, self._encoder.source, kept_out)

    def _facts(self) -> list[str]:
        return [*super()._facts(), f'"{level_text(self.positive_)}" in boxes']

    def _page(self) -> Page:
        return self._best.page(self._encoder, level_text(self.positive_), self._doubts())

    def _doubts(self) -> Floats | None:
        """Return the share of draws that close no side of a column, by box and column."""
        return None

    def _how_to_read(self) -> Sequence[tuple[str, str]]:
        return [
            ("", "A row is in a box if it is within all of its sides, and in the union if it is "
                 "in any box. There is a table for each box, and a column without a side is "
                 "not in it."),
            ("keeps out", "other rows that this side alone keeps out of its box"),
            ("rate", "the share of the rare class among rows inside, or outside"),
        ]  # fmt: skip

    def _cannot_tell(self) -> Sequence[str]:
        return [
            "Rates and rows kept out are counted on rows that were learned from.",
            *OF_ROWS,
        ]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_best")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    # -- files -------------------------------------------------------------------------------------

    def _own_record(self) -> dict[str, Any]:
        return {"positive": self._place, "center": self._center.tolist()}

    def _read_own(self, record: Mapping[str, Any]) -> None:
        self._place = check_integer("positive", record["positive"], 0, len(self.classes_) - 1)
        self._center = np.array(record["center"], np.float64)
        is_there = self._center.shape == (len(self._encoder.source),)
        if len(self.classes_) != 2 or not is_there or not np.isfinite(self._center).all():
            raise ValueError("a saved union is of two classes, and a center of numbers")
