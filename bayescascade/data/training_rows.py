"""Rows as a matrix, with labels, weights and rows to validate on: what a classifier learns from."""

from collections.abc import Sized
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayescascade.base.errors import DataError, ParameterError
from bayescascade.base.validation import check_weights
from bayescascade.data.labels import check_labels, find_classes, label_codes
from bayescascade.data.matrix import Matrix, MatrixEncoder

__all__ = ["TrainingRows"]


@dataclass(frozen=True, slots=True, eq=False)
class TrainingRows:
    """Rows of which each has a label; made by `read`.

    Parameters
    ----------
    rows : (n_rows, n_matrix_columns), C-contiguous
        Of the type, and with the missing cells, that the encoder's policy says.
    classes : (n_classes,) array
        The labels that there are, sorted: two or more.
    labels : (n_rows,) int64
        Position of each row's label among `classes`.
    weights : (n_rows,) float64 >= 0
        1 each if none were given; some are positive.
    validation_rows : (n_validation_rows, n_matrix_columns)
        `rows` if there are no others.
    validation_labels : (n_validation_rows,) int64 or None
        None if the labels of validation rows were not given.
    """

    rows: Matrix
    classes: NDArray[Any]
    labels: NDArray[np.int64]
    weights: NDArray[np.float64]
    validation_rows: Matrix
    validation_labels: NDArray[np.int64] | None

    @classmethod
    def read(
        cls,
        encoder: MatrixEncoder,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        X_val: Any = None,
        y_val: Any = None,
        *,
        owner: str,
    ) -> "TrainingRows":
        """Read what `fit` was given.

        Parameters
        ----------
        encoder : MatrixEncoder
            Learned from `X`.
        X, X_val : DataFrame, (n_rows, n_columns) array or list of rows
        y, y_val : (n_rows,) array, Series or sequence
        sample_weight : (n_rows,) array of float >= 0, optional
        owner : str
            The estimator, for messages.

        Raises
        ------
        ParameterError
            If `y` is missing, `y_val` is given without `X_val`, or the weights are of another
            number.
        DataError
            If the rows, labels or weights cannot be used, there is one class, or `y_val` has others
            than `y`.
        """
        if X_val is None and y_val is not None:
            raise ParameterError("X_val must be given with y_val, got None")
        checked = check_labels(y, "y", owner)
        rows = encoder.transform(X, owner)
        _check_length("y", checked, "X", rows)
        classes, labels = find_classes(checked, "y")
        weights = np.ones(len(rows))
        if sample_weight is not None:
            weights = check_weights("sample_weight", sample_weight, len(rows))
        validation_rows, validation_labels = rows, None
        if X_val is not None:
            validation_rows = encoder.transform(X_val, owner)
        if y_val is not None:
            validation_labels = label_codes(check_labels(y_val, "y_val", owner), classes, "y_val")
            _check_length("y_val", validation_labels, "X_val", validation_rows)
        return cls(
            rows, classes, labels.astype(np.int64), weights, validation_rows, validation_labels
        )

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    def needed_validation_labels(self, what_for: str) -> NDArray[np.int64]:
        """Return the labels of the validation rows.

        Raises
        ------
        ParameterError
            If they were not given; says what they are needed for, such as 'errors="validation"'.
        """
        if self.validation_labels is None:
            raise ParameterError(f"X_val and y_val must be given for {what_for}, got None")
        return self.validation_labels


def _check_length(name: str, labels: Sized, rows_name: str, rows: Sized) -> None:
    if len(labels) != len(rows):
        raise DataError(
            f"{name} must have a label per row of {rows_name}, {len(rows)}, got {len(labels)}"
        )
