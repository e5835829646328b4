"""Rows to learn from, and the rows or folds by which methods within budgets are judged."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from bayescascade.base.arrays import Flags, Floats, Integers
from bayescascade.costs.choice import CROSSED, FEW_ROWS, N_FOLDS, fold_of_rows
from bayescascade.data.splitting import split_by_class
from bayescascade.model.standard_errors import gain_error

_HELD_OUT = 0.25  # share of many rows, if no validation rows are given
_FIRST = 0.25  # share of the rows to learn from in the first round, with validation rows


class Sample(NamedTuple):
    """Rows with labels and optional weights."""

    X: Any
    y: NDArray[Any]
    weights: Floats | None = None

    def part(self, chosen: Flags) -> "Sample":
        """Return some of the rows."""
        places = np.flatnonzero(chosen)
        weights = None if self.weights is None else self.weights[places]
        return Sample(_safe_indexing(self.X, places), self.y[places], weights)

    @property
    def commonest(self) -> Any:
        """The commonest label, the first among ties; None without rows."""
        if not self.y.size:
            return None
        labels, codes = np.unique(self.y, return_inverse=True)
        return labels.tolist()[int(np.bincount(codes, self.weights).argmax())]


class ValidationSplit(NamedTuple):
    """Rows to learn from, and validation rows; the same rows in cross-validation."""

    learning: Sample
    validation: Sample | None
    words: str  # the validation rows in words

    @classmethod
    def of(
        cls, rows: Sample, validation: Sample | None, generator: np.random.Generator
    ) -> "ValidationSplit":
        """Return the split of the rows, with validation rows or without."""
        if validation is not None:
            return cls(rows, validation, "validation rows")
        if len(rows.y) < FEW_ROWS:
            return cls(rows, None, CROSSED)
        codes = np.unique(rows.y, return_inverse=True)[1]
        is_out = split_by_class(codes, [1 - _HELD_OUT, _HELD_OUT], generator) == 1
        return cls(rows.part(~is_out), rows.part(is_out), "held-out rows")

    @property
    def validation_rows(self) -> Sample:
        """The validation rows."""
        return self.learning if self.validation is None else self.validation

    @property
    def n_validation(self) -> float:
        """Number of validation rows; a weight is a number of equal rows."""
        weights = self.validation_rows.weights
        return float(len(self.validation_rows.y) if weights is None else weights.sum())

    @property
    def plain(self) -> Flags:
        """Which validation rows are not of the commonest class of the training rows."""
        return np.asarray(self.validation_rows.y != self.learning.commonest)

    def errors(self, wrong: Flags, seen: Any = slice(None)) -> Floats:
        """Return mean errors on the rows seen, from `wrong` (n, n_validation_rows)."""
        weights = self.validation_rows.weights
        return np.average(wrong[:, seen], 1, None if weights is None else weights[seen])

    def gain(self, gains: Floats, seen: Any = slice(None)) -> tuple[float, float]:
        """Return the mean of gains (n_validation_rows,) on rows seen, and its standard error."""
        weights = self.validation_rows.weights
        weights = None if weights is None else weights[seen]
        mean = float(np.average(gains[seen], weights=weights))
        return mean, gain_error(gains[seen], weights)

    @property
    def folds(self) -> Integers:
        """The fold of each row to learn from, for cross-validation."""
        return fold_of_rows(np.unique(self.learning.y, return_inverse=True)[1])

    @property
    def has_first(self) -> bool:
        """Whether a first round is worth it: with few rows, all are learned from at once."""
        return self.validation is None or len(self.learning.y) >= FEW_ROWS

    @property
    def is_learned_first(self) -> Flags:
        """The rows that are learned from in the first round, with validation rows."""
        codes, shares = np.unique(self.learning.y, return_inverse=True)[1], [_FIRST, 1 - _FIRST]
        return np.asarray(split_by_class(codes, shares, np.random.default_rng(0)) == 0)

    def is_judged(self, n_folds: int) -> Flags:
        """Return which validation rows are of the first folds."""
        return self.folds < n_folds if self.validation is None else np.ones_like(self.plain)

    @property
    def n_fits(self) -> int:
        """Number of fits of a method."""
        return N_FOLDS if self.validation is None else 1

    def of_folds(self, n_folds: int) -> "ValidationSplit":
        """Return the split whose validation rows are those of the first folds alone."""
        if self.validation is not None:
            return self
        words = f"rows in {n_folds} of {N_FOLDS} folds"
        return ValidationSplit(self.learning.part(self.is_judged(n_folds)), None, words)
