"""Classifiers that are sums over columns: the contribution of each column to each score.

A score is ``offset + sum over columns of weight * z + sum of jumps at cuts below z``, where z is
the standardized cell: linear classifiers have weights, boosted stumps have jumps. Thesis 2.2 calls
the sum over the measured columns the decision (2.1). The contribution of a column is centered on
the training rows, so a column that is not measured counts with its mean there (for linear
classifiers of standardized columns, this is a column at 0, as printed; the printed rule lacks it
for stumps). The offset is kept (Nan's example needs it).
"""

from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingClassifier

from bayescascade.base.arrays import Floats, Integers
from bayescascade.base.errors import ParameterError
from bayescascade.base.store import Of
from bayescascade.base.threads import single_threaded
from bayescascade.base.timed_fit import fit_in_time
from bayescascade.base.watch import watch_in_use
from bayescascade.data.splitting import split_by_class

N_FOLDS = 5
_LEAST_LEAD = 1e-6  # lead of the predicted class over the next one
_MOST_OFF = 1e-6  # maximum relative difference of a score between sums and the classifier


class Standardized(NamedTuple):
    """Center and scale of each column; the scale is 1 if the column is constant."""

    center: Annotated[Floats, Of("columns")]
    scale: Annotated[Floats, Of("columns", above=0)]

    @classmethod
    def of(cls, rows: NDArray[Any], weights: Floats) -> Self:
        """Return weighted means and deviations of columns (n, p), without missing cells."""
        cells = rows.astype(np.float64)
        sizes = np.where(np.isnan(cells), 0.0, weights[:, np.newaxis])
        totals = np.maximum(sizes.sum(axis=0), np.finfo(float).tiny)
        center = np.nansum(sizes * cells, axis=0) / totals
        scale = np.sqrt(np.nansum(sizes * (cells - center) ** 2, axis=0) / weights.sum())
        scale[scale <= 1e-12 * np.abs(center)] = 1.0
        return cls(center, scale)

    def cells(self, rows: NDArray[Any]) -> Floats:
        """Return rows of the matrix (m, p), standardized."""
        return np.ascontiguousarray((rows.astype(np.float64) - self.center) / self.scale)


@dataclass(frozen=True, slots=True, eq=False)
class Additive:
    """Scores of classes that add up over columns; one score for two classes.

    columns, ascending, cuts and jumps, for cells above the cut; means: subtracted from the
    contribution of each column to center it.
    """

    offset: Annotated[Floats, Of("scores")]
    weights: Annotated[Floats, Of("columns", "scores")]
    columns: Annotated[Integers, Of("cuts", kind=np.int64, below="columns")]
    cuts: Annotated[Floats, Of("cuts")]
    jumps: Annotated[Floats, Of("cuts", "scores")]
    means: Annotated[Floats, Of("columns", "scores")]

    def __post_init__(self) -> None:
        order = np.lexsort((self.cuts, self.columns))
        if not np.array_equal(order, np.arange(order.size)):
            raise ValueError("cuts must ascend, column by column")

    @classmethod
    def of(cls, fitted: Any, cells: Floats, sizes: Floats) -> Self:
        """Return a fitted classifier as a sum, centered on weighted standardized cells (n, p)."""
        scores = _scores(fitted, cells)
        found = _extracted(fitted, cells.shape[1], scores.shape[1])
        if found is None:
            raise _no_sum(fitted)
        added = cls(np.zeros(scores.shape[1]), *found, np.zeros_like(found[0]))
        by_column = added.of_cells(cells)
        rest = scores - by_column.sum(axis=1)
        offset = np.average(rest, axis=0, weights=sizes)
        if np.abs(rest - offset).max() > _MOST_OFF * (1.0 + np.abs(scores).max()):
            raise _no_sum(fitted)
        means = np.average(by_column, axis=0, weights=sizes)
        return replace(added, offset=offset + means.sum(axis=0), means=means)

    def of_cells(self, cells: Floats) -> Floats:
        """Return contributions of columns, (n, p, c), for standardized cells (n, p); 0 for NaN."""
        added: Floats = cells[:, :, np.newaxis] * self.weights
        starts = np.searchsorted(self.columns, np.arange(cells.shape[1] + 1))
        single = cells.astype(np.float32)  # as in scikit-learn's trees
        for column in np.unique(self.columns):
            part = slice(starts[column], starts[column + 1])
            sums = np.concatenate([np.zeros((1, self.offset.size)), self.jumps[part].cumsum(0)])
            places = np.searchsorted(self.cuts[part], single[:, column].astype(np.float64), "left")
            added[:, column] += sums[places]
        added -= self.means
        added[np.isnan(cells)] = 0.0
        return added

    def of_features(self, cells: Floats, starts: Integers) -> Floats:
        """Return contributions of features, (n, d, c), whose columns begin at starts (d + 1,)."""
        return np.ascontiguousarray(np.add.reduceat(self.of_cells(cells), starts[:-1], axis=1))


def default_classifier(seed: Any, n_classes: int) -> GradientBoostingClassifier:
    """Return the default classifier: 100 boosted stumps, or 60 rounds for several classes."""
    return GradientBoostingClassifier(
        max_depth=1, n_estimators=100 if n_classes == 2 else 60, learning_rate=0.3, subsample=0.5,
        random_state=seed,
    )  # fmt: skip


def fit_additive(estimator: Any, cells: Floats, labels: Integers, sizes: Floats) -> Additive:
    """Return a clone fitted to standardized cells (n, p), as a sum; see `fit_in_time`."""
    model = clone(estimator)
    given = {} if (sizes == sizes[0]).all() else {"sample_weight": sizes}
    with single_threaded():
        fit_in_time(model, cells, labels, **given)
    return Additive.of(model, cells, sizes)


def out_of_fold(
    estimator: Any, full: Additive, cells: Floats, labels: Integers, sizes: Floats, starts: Integers
) -> Floats:
    """Return out-of-fold contributions of features to scores, (n, d, c).

    The folds share the time of the current watch.
    """
    parts = full.of_features(cells, starts)
    folds = split_by_class(labels, [1.0 / N_FOLDS] * N_FOLDS, np.random.default_rng(0))
    n_classes = np.unique(labels).size
    for fold in range(N_FOLDS):
        others, inside = folds != fold, folds == fold
        if inside.any() and np.unique(labels[others]).size == n_classes:
            with watch_in_use().part(1.0 / (N_FOLDS - fold), is_final=True):
                found = fit_additive(estimator, cells[others], labels[others], sizes[others])
            parts[inside] = found.of_features(cells[inside], starts)
    return parts


def probabilities_of(scores: Floats) -> Floats:
    """Return the probability of each class, (..., n_classes), from scores (..., c)."""
    if scores.shape[-1] == 1:
        likely = 0.5 * (1.0 + np.tanh(0.5 * scores[..., 0]))
        return np.stack([1.0 - likely, likely], axis=-1)
    shares: Floats = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares /= shares.sum(axis=-1, keepdims=True)
    return shares


def hedged(scores: Floats, accuracy: Floats) -> Floats:
    """Return probabilities (n, n_classes), with `accuracy` (n,) for the class of largest score.

    The other classes share the rest by their scores, because sums of few columns give extreme
    probabilities.
    """
    shares = probabilities_of(scores)
    rows = np.arange(len(shares))
    named = shares.argmax(axis=1)
    shares[rows, named] = 0.0
    left = shares.sum(axis=1)
    shares[left <= 0] = 1.0
    shares[rows, named] = 0.0
    shares /= shares.sum(axis=1, keepdims=True)
    top = shares.max(axis=1)
    least = top / (1.0 + top) + _LEAST_LEAD
    chance = np.maximum(accuracy, least)
    shares *= (1.0 - chance)[:, np.newaxis]
    shares[rows, named] = chance
    return shares


def _scores(fitted: Any, cells: Floats) -> Floats:
    if not hasattr(fitted, "decision_function"):
        raise _no_sum(fitted)
    scores = np.asarray(fitted.decision_function(cells), np.float64)
    return scores.reshape(len(cells), -1)


def _extracted(fitted: Any, p: int, c: int) -> tuple[Floats, Integers, Floats, Floats] | None:
    """Return weights, columns, cuts and jumps of a classifier of a known kind."""
    none = np.zeros(0, np.int64), np.zeros(0), np.zeros((0, c))
    if hasattr(fitted, "coef_"):
        coefficients = np.asarray(fitted.coef_, np.float64)
        return (coefficients.T.copy(), *none) if coefficients.shape == (c, p) else None
    if not isinstance(fitted, GradientBoostingClassifier):
        return None
    found = []
    for score, trees in enumerate(fitted.estimators_.T):
        for tree in (tree.tree_ for tree in trees):
            if tree.max_depth > 1:
                return None
            if tree.max_depth == 1:
                jump = tree.value[2, 0, 0] - tree.value[1, 0, 0]
                found.append((tree.feature[0], tree.threshold[0], score, jump))
    if not found:
        return (np.zeros((p, c)), *none)
    columns, cuts, scores, sizes = (np.array(each) for each in zip(*found, strict=True))
    pairs, places = np.unique(np.stack([columns, cuts], axis=1), axis=0, return_inverse=True)
    jumps = np.zeros((len(pairs), c))
    np.add.at(jumps, (places.ravel(), scores), fitted.learning_rate * sizes)
    return np.zeros((p, c)), pairs[:, 0].astype(np.int64), pairs[:, 1].copy(), jumps


def _no_sum(fitted: Any) -> ParameterError:
    return ParameterError(
        "estimator must be a sum over columns: a linear classifier of scikit-learn, or a "
        f"GradientBoostingClassifier of max_depth 1, got {type(fitted).__name__}"
    )
