"""Densities of many classes, of which those that are alike are shown as one.

A tree of hidden states has dozens of states, and a continuous mixture a thousand points. Merged by
k-means of the square roots of their levels' probabilities, each with its share, they are a few
classes to read. Scores are of the states or points themselves, and all probabilities of the merged
classes are exact sums over these.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from bayescascade.base.arrays import Codes, Floats, Integers, Reals
from bayescascade.base.errors import ModelFileError
from bayescascade.base.saved_arrays import read_array
from bayescascade.base.validation import check_real
from bayescascade.data.schema import Conditions, Schema, agrees, subtract_widths
from bayescascade.methods.density.mixtures.classes import RowClasses

_MOST_CLASSES, _N_STARTS = 8, 4


@dataclass(frozen=True, eq=False, kw_only=True)
class MergedClasses(RowClasses):
    """A density of many classes, merged to few.

    Parameters
    ----------
    schema : Schema
        The columns.
    total_weight : float
        Weight of the training rows.
    merged : int64 array
        The merged class of each state or point; 0 is the largest. See `with_classes`.
    conditions, condition_numbers, conditions_probability
        See `DensityParts`.
    """

    schema: Schema
    total_weight: float
    merged: Integers
    conditions: Conditions = field(default_factory=dict)
    conditions_probability: float = 1.0
    condition_numbers: Mapping[int, str] = field(default_factory=dict)

    @abstractmethod
    def _log_probabilities(self, codes: Codes) -> Floats:
        """Return the log probability of rows' cells and the conditions, (n,)."""

    @abstractmethod
    def _shares(self, codes: Codes) -> Floats:
        """Return the probability of each state or point for rows, (n, `merged.size`)."""

    @abstractmethod
    def _joint_levels(self) -> Sequence[Floats]:
        """Return for each column P(state or point, level), (`merged.size`, n_levels)."""

    def with_classes(self) -> Self:
        """Return the density with states or points merged that are alike."""
        joint = self._joint_levels()
        shares = np.mean([own.sum(axis=1) for own in joint], axis=0)
        profiles = np.concatenate([own / own.sum(axis=1, keepdims=True) for own in joint], axis=1)
        return replace(self, merged=merge_alike(profiles, shares).reshape(self.merged.shape))

    @property
    def _nothing(self) -> Codes:
        """A row without known cells."""
        return np.full((self.schema.n_columns, 1), -1, np.int32)

    @cached_property
    def _log_left(self) -> float:
        """Log probability of the conditions."""
        return float(self._log_probabilities(self._nothing)[0]) if self.conditions else 0.0

    @cached_property
    def _is_in(self) -> Floats:
        """1 where a state or point is in a merged class, (n_classes, `merged.size`)."""
        every = np.arange(self.merged.max() + 1)[:, np.newaxis]
        found: Floats = (every == self.merged.ravel()).astype(np.float64)
        return found

    @cached_property
    def _of_classes(self) -> list[Floats]:
        """For each column P(class, level), (n_classes, n_levels)."""
        return [self._is_in @ own for own in self._joint_levels()]

    @cached_property
    def probabilities(self) -> Floats:  # type: ignore[override] # fields of others may be written
        """Probabilities of the classes."""
        found: Floats = self.class_probabilities(self._nothing)[0]
        return found

    @property
    def counts(self) -> Floats:  # type: ignore[override]
        """Expected weight of the rows of each class."""
        return self.probabilities * (self.total_weight * self.conditions_probability)

    @cached_property
    def level_probabilities(self) -> Sequence[Floats]:
        """For each column, the probabilities of its levels in each class, (n_classes, n_levels)."""
        # conditions may rule a class out
        possible = [
            np.where(own.any(1, keepdims=True), own, own.sum(0)) for own in self._of_classes
        ]
        return [own / own.sum(axis=1, keepdims=True) for own in possible]

    def overall(self, j: int) -> Floats:
        """Return the probabilities of a column's levels in all rows, (n_levels,)."""
        overall: Floats = self._of_classes[j].sum(axis=0)
        return overall

    def class_probabilities(self, codes: Codes) -> Floats:
        """Return the probability of each class for (n_columns, n) coded rows, (n, n_classes).

        Cells coded -1 are summed out; rows that contradict the conditions are NaN.
        """
        found: Floats = self._shares(codes) @ self._is_in.T
        found[~agrees(self.conditions, codes)] = np.nan
        return found

    def score_codes(self, codes: Codes) -> Floats:
        """Return the log density of coded rows, (n_rows,) float64 nats; -1 is integrated out."""
        scores = self._log_probabilities(codes) - self._log_left
        subtract_widths(scores, self.schema, self.conditions, codes)
        return scores

    def _given(self, known: Conditions) -> tuple[dict[str, Any], float]:
        other = replace(self, conditions=known)
        return {}, float(np.exp(other._log_left - self._log_left))

    def _merged_record(self) -> dict[str, Any]:
        return {"total_weight": self.total_weight, "merged": self.merged.tolist()}


def read_merged(record: Mapping[str, Any], shape: tuple[int, ...]) -> dict[str, Any]:
    """Return the fields of `MergedClasses` in a record; ModelFileError if inconsistent."""
    merged = read_array(record, "merged", shape, np.int64, least=0, most=_MOST_CLASSES - 1)
    if np.unique(merged).size != merged.max() + 1:
        raise ModelFileError("each merged class must have a state or a point")
    return {
        "total_weight": check_real("total_weight", record["total_weight"], above=0.0),
        "merged": merged,
    }


def merge_alike(profiles: Reals, shares: Floats) -> Integers:
    """Return the merged class of each of K classes.

    profiles (K, L): the levels' probabilities in each class; shares (K,) of the classes.
    """
    from sklearn.cluster import KMeans  # takes a while

    roots = np.sqrt(profiles.astype(np.float64))
    n = min(_MOST_CLASSES, len(np.unique(roots, axis=0)))
    found = KMeans(n, n_init=_N_STARTS, random_state=0).fit(roots, sample_weight=shares).labels_
    order = np.argsort(-np.bincount(found, shares, n), kind="stable")
    merged: Integers = np.argsort(order)[found].astype(np.int64)
    return merged
