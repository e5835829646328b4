"""Stochastic neighbor compression as a posterior over prototypes and the metric around them.

A row's neighbor is drawn from the prototypes, with larger probabilities for nearer ones, and is
right if it has the row's class: the log likelihood is the sum of log p_i (Kusner, "Learning in the
Real World: Constraints on Cost, Space, and Privacy", 2016, equation 3.5, where minus this sum is
the loss; `neighborhoods` has the probabilities). With v_ij = x_i - z_j, w_ij = p_ij (1[y_i = y_j] /
p_i - 1) and B = A'A, its gradients are

    d/dz_j = 2 B sum_i w_ij v_ij,        d/dA = -2 A sum_ij w_ij v_ij v_ij'.

Departures from the paper: in (3.6), (3.8) and (3.9) signs are those of minus the loss, and gamma^2
is missing in the first; here it is as derived, and checked by finite differences.

The paper has no prior. Here prototypes are normal around the mean of their class, each column with
a standard deviation of `prior_scale` times that of the rows within classes. The metric is normal,
too: logarithms of "scaled" and "diagonal" metrics have a standard deviation of 2 nats around a
reference that depends only on the rows' spread; entries of "linear" metrics have twice that
reference around its multiple of the identity. ``prior_scale=None`` is a flat prior, as in the
paper; then the posterior is improper, and only its maximum is meaningful.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayescascade.base.arrays import Floats, Integers
from bayescascade.base.errors import DataError, ParameterError
from bayescascade.base.validation import check_choice, check_integer, check_real, check_weights
from bayescascade.data.labels import check_labels, find_classes, label_codes
from bayescascade.methods.compress.learned import State, StateLayout
from bayescascade.methods.compress.neighborhoods import ClassedRows, class_probabilities
from bayescascade.methods.compress.parameters import METRICS
from bayescascade.model.continuous import ContinuousPosterior
from bayescascade.model.draws import TraceLegend

_METRIC_SPREAD = 2.0  # prior standard deviations of the metric: see above


class PrototypePosterior(ContinuousPosterior):
    """Posterior over prototypes that represent labeled rows.

    Parameters
    ----------
    X : (n_rows, n_columns) array of float
        Finite numbers. Computations are most precise if columns have similar standard deviations
        and means near 0.
    y : (n_rows,) array
        Labels of at least two classes.
    n_prototypes : (n_classes,) sequence of int >= 1
        Number of prototypes of each class, in the order of the sorted classes; at most its number
        of rows.
    metric : {"scaled", "diagonal", "linear"}
        See `learned`.
    rank : int >= 1, optional
        Rows of the matrix of a linear metric. By default the number of columns.
    fixed_metric : (n_metric,) array, optional
        Numbers of a metric that is fixed; see `StateLayout`. States are then prototypes only.
    prior_scale : float > 0 or None
        Prior standard deviation of prototypes around the mean of their class, in standard
        deviations of rows within classes. None: a flat prior.
    around : (points, deviations), optional
        Prior means in place of class means, (n_prototypes, n_columns), and prior standard
        deviations, such as from an earlier fit.
    sample_weight : (n_rows,) array of float > 0, optional
        Number of rows that each row counts as; 1 each by default.
    classes : (n_classes,) array, optional
        The sorted classes. Needed if `y` may lack a class, which is only allowed with `around`.
    dtype : {"float64", "float32"}
        Precision of distances. float32 takes half the time, and has seven digits.
    n_threads : int >= 1
        Cores that share the rows. Densities do not depend on it.

    Attributes
    ----------
    classes : (n_classes,) array
    layout : Layout
        Meaning of the numbers of a state.
    starts : (n_classes + 1,) int64
        First prototype of each class, and the total number.
    reference : float
        Center of the prior on scales of the metric.
    center, scales : (n_parameters,) float64
        Mean and standard deviations of the prior. For a flat prior, those with `prior_scale` 1.
    lengths : (n_parameters,) float64 > 0
        Length scales for steps of chains: the spread of rows within classes in each column, and the
        scales of the metric.
    """

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        n_prototypes: ArrayLike,
        *,
        metric: str = "scaled",
        rank: int | None = None,
        fixed_metric: ArrayLike | None = None,
        prior_scale: float | None = 2.0,
        around: tuple[Floats, Floats] | None = None,
        sample_weight: Floats | None = None,
        classes: NDArray[Any] | None = None,
        dtype: str = "float64",
        n_threads: int = 1,
    ) -> None:
        rows = np.asarray(X, np.float64)
        if rows.ndim != 2 or not rows.size or not np.isfinite(rows).all():
            raise DataError(f"X must be a matrix of finite numbers, got shape {rows.shape}")
        checked = check_labels(y, "y", "PrototypePosterior")
        if classes is None:
            self.classes, codes = find_classes(checked, "y")
            labels = codes.astype(np.int64)
        else:
            self.classes, labels = classes, label_codes(checked, classes, "y")
        if len(labels) != len(rows):
            raise DataError(f"y must have a label per row of X, {len(rows)}, got {len(labels)}")
        check_choice("metric", metric, METRICS)
        check_choice("dtype", dtype, ("float64", "float32"))
        check_integer("n_threads", n_threads, minimum=1)
        n_columns = rows.shape[1]
        if rank is not None and metric != "linear":
            raise ParameterError(f'rank must be None unless metric is "linear", got {rank!r}')
        rank = n_columns if rank is None else check_integer("rank", rank, 1, n_columns)
        if prior_scale is not None:
            prior_scale = check_real("prior_scale", prior_scale, above=0.0)
        sizes = np.bincount(labels, minlength=len(self.classes))
        counts = _checked_counts(n_prototypes, None if around else sizes, self.classes)
        self.metric, self.rank, self.prior_scale, self.dtype = metric, rank, prior_scale, dtype
        self.n_threads = n_threads
        labels_of = np.repeat(np.arange(len(counts)), counts)
        given = None if fixed_metric is None else np.array(fixed_metric, np.float64)
        self.layout = StateLayout(labels_of, n_columns, metric, rank, given)
        if given is not None and (
            given.shape != (self.layout.n_metric,) or not np.isfinite(given).all()
        ):
            raise ParameterError(
                f"fixed_metric must be {self.layout.n_metric} finite numbers, got {fixed_metric!r}"
            )
        self.starts = np.concatenate([[0], np.cumsum(counts)])
        weights = sample_weight
        if weights is not None:
            weights = check_weights("sample_weight", weights, len(rows))
            if not (weights > 0.0).all():
                raise DataError("sample_weight must be > 0, got 0")
        self.rows = ClassedRows.of(rows, labels, len(self.classes), dtype, weights)
        self._set_prior(rows, labels, weights, around)

    def _set_prior(
        self,
        rows: Floats,
        labels: Integers,
        weights: Floats | None,
        around: tuple[Floats, Floats] | None,
    ) -> None:
        layout = self.layout
        sizes = np.bincount(labels, weights, len(self.classes))
        sums = np.zeros((len(sizes), rows.shape[1]))
        np.add.at(sums, labels, rows if weights is None else rows * weights[:, np.newaxis])
        means = sums / np.where(sizes > 0, sizes, 1)[:, np.newaxis]
        squares = np.average(rows**2, axis=0, weights=weights)
        variances = squares - sizes / sizes.sum() @ means**2
        total = float((moments(rows, weights)[1] ** 2).sum())
        floor = 1e-6 * (total or rows.shape[1]) / rows.shape[1]  # for constant columns in classes
        spread = np.sqrt(np.maximum(variances, floor))
        # neighbors are nearer than rows are to each other, especially with many prototypes
        self.reference = float(1.0 / np.sqrt(2.0 * np.sum(spread**2) / rows.shape[1]))
        metric = layout.metric_like(self.reference)
        per = 1.0 if self.prior_scale is None else self.prior_scale
        points = means[layout.labels]
        spreads = np.tile(spread, (layout.n_prototypes, 1))
        deviations = per * spreads
        if around is not None:
            points, deviations = around
        wide = np.full(layout.n_metric, _METRIC_SPREAD)
        if self.metric == "linear":
            wide *= self.reference
        self.center = layout.state(points, metric)
        self.scales = layout.state(deviations, wide)
        self.lengths = layout.state(spreads, wide)

    # -- densities ---------------------------------------------------------------------------------

    def log_prior(self, state: State) -> float:
        """Return the log prior, nats; 0 if it is flat."""
        return self._prior(state)[0]

    def log_likelihood(self, state: State) -> float:
        """Return the sum of log p over the rows, nats."""
        return self.rows.pulls(self.weights(state), self.starts, self.n_threads).log_likelihood

    def log_density_and_gradient(self, state: State) -> tuple[float, Floats]:
        """Return the log density, nats, and its gradient, (n_parameters,) float64."""
        return self.density_of(self.rows, 1.0, state)

    def density_of(self, rows: ClassedRows, factor: float, state: State) -> tuple[float, Floats]:
        """Return log density and gradient, with the log likelihood of `rows` times `factor`.

        With a random sample of the rows, this is an unbiased estimate for all rows.
        """
        layout = self.layout
        points, metric = layout.points(state), layout.metric_of(state)
        found = rows.pulls(self.weights(state), self.starts, self.n_threads)
        # the sum over rows of w_ij v_ij
        moved = found.weighted_rows - found.weights[:, np.newaxis] * points
        if layout.fixed_metric is not None:
            scatter = np.empty(0)
        elif self.metric == "linear":
            scatter = -(found.weighted_rows.T @ points) - points.T @ moved
        else:
            scatter = -((found.weighted_rows + moved) * points).sum(axis=0)
        turned = layout.metric_gradient(metric, scatter) if scatter.size else scatter
        gradient = layout.state(2.0 * layout.squared(metric, moved), turned)
        log_prior, prior_gradient = self._prior(state)
        return log_prior + factor * found.log_likelihood, prior_gradient + factor * gradient

    def weights(self, state: State) -> Floats:
        """Return the factors of rows, (n_columns + 1, n_prototypes); see `ClassedRows`."""
        layout = self.layout
        points = layout.points(state)
        squared = layout.squared(layout.metric_of(state), points)
        return np.concatenate([2.0 * squared.T, -(squared * points).sum(axis=1)[np.newaxis]])

    def _prior(self, state: State) -> tuple[float, Floats]:
        if self.prior_scale is None:
            return 0.0, np.zeros_like(state)
        away = (state - self.center) / self.scales
        return -0.5 * float(away @ away), -away / self.scales

    # -- states ------------------------------------------------------------------------------------

    def initial_state(self, rng: np.random.Generator) -> State:
        """Return random rows of each class, as in the paper, and the reference metric."""
        points = [
            self.rows.rows[first + rng.choice(end - first, count, replace=False), :-1]
            for first, end, count in zip(
                self.rows.ends[:-1], self.rows.ends[1:], np.diff(self.starts), strict=True
            )
        ]
        metric = self.layout.metric_like(self.reference)
        return self.layout.state(np.concatenate(points).astype(np.float64), metric)

    def describe(self, state: State) -> Mapping[str, float]:
        """Return the log prior and, unless it is fixed, the metric's mean log scale."""
        values = {"log_prior": self.log_prior(state)}
        if self.layout.fixed_metric is None:
            factor = self.layout.factor(self.layout.metric_of(state))
            values["log_scale"] = float(0.5 * np.log(np.sum(factor**2) / self.rank))
        return values

    def legend(self) -> TraceLegend:
        """Return the legend of the traces."""
        return TraceLegend(words={"log_scale": "log scale of the metric"})

    def parameters(self) -> Mapping[str, Any]:
        """Return the parameters by name."""
        return {
            "n_prototypes": self.layout.n_prototypes,
            "metric": self.metric,
            "rank": self.rank,
            "prior_scale": self.prior_scale,
        }

    def class_probabilities(self, state: State, X: Floats) -> Floats:
        """Return the probability that the neighbor of each row is of each class.

        state (n_parameters,), X (n_rows, n_columns) float64; returned (n_rows, n_classes).
        """
        return class_probabilities(X, self.weights(state), self.starts)

    def _blocks(self) -> tuple[Floats, ArrayLike]:
        """Return `lengths`, and the blocks: each prototype, and the metric."""
        begins = np.arange(self.layout.n_prototypes + 1) * self.layout.n_columns
        return self.lengths, np.append(begins, len(self.lengths))

    def _identity(self) -> tuple[Sequence[NDArray[Any]], object]:
        fixed = None if self.layout.fixed_metric is None else self.layout.fixed_metric.tolist()
        parts = (self.starts.tolist(), fixed, sorted(self.parameters().items()))
        counts = () if self.rows.counts is None else (self.rows.counts,)
        return (self.rows.rows, self.rows.ends, *counts), parts


def moments(rows: Floats, weights: Floats | None) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of each column, (n_columns,): exact for constants."""
    center = np.average(rows, axis=0, weights=weights)
    is_constant = (rows == rows[0]).all(axis=0)
    center[is_constant] = rows[0, is_constant]  # rounding may give another value
    return center, np.sqrt(np.average((rows - center) ** 2, axis=0, weights=weights))


def _checked_counts(
    n_prototypes: ArrayLike, sizes: Integers | None, classes: NDArray[Any]
) -> Integers:
    """Return the numbers of prototypes, at most the numbers of rows `sizes`, if given."""
    counts = np.asarray(n_prototypes)
    if counts.shape != classes.shape or counts.dtype.kind not in "iu" or counts.min() < 1:
        raise ParameterError(
            f"n_prototypes must be an integer >= 1 for each of {len(classes)} classes, "
            f"got {counts.tolist()}"
        )
    if sizes is not None and (counts > sizes).any():
        c = int(np.argmax(counts > sizes))
        raise ParameterError(
            f'n_prototypes must be at most the number of rows of class "{classes[c]}", {sizes[c]}, '
            f"got {counts[c]}"
        )
    return counts.astype(np.int64)
