"""The state: prototypes and the metric in which rows are near them, as one vector of numbers.

The distance of a row x from a prototype z is |A (x - z)|, with a matrix A of one of three kinds.
"scaled": one number times the identity, the paper's gamma. "diagonal": a number for each column.
"linear": any matrix of `rank` rows. The first two are positive, and in the vector by their
logarithms; a matrix is there as it is.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
State = Floats
"""(n_parameters,) float64: the prototypes row by row, and what the metric has."""


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """What the numbers of a state are."""

    labels: NDArray[np.int64]  # (n_prototypes,), the position of each prototype's class, sorted
    n_columns: int
    metric: str  # "scaled", "diagonal" or "linear"
    rank: int  # rows of the matrix A; `n_columns` unless the metric is "linear"
    # the metric's numbers, (n_metric,), if given: states are prototypes alone
    fixed_metric: Floats | None = None

    @property
    def n_prototypes(self) -> int:
        """Number of prototypes."""
        return len(self.labels)

    @property
    def n_metric(self) -> int:
        """Numbers that the metric has."""
        linear = self.rank * self.n_columns
        return {"scaled": 1, "diagonal": self.n_columns, "linear": linear}[self.metric]

    @property
    def n_parameters(self) -> int:
        """Numbers of a state."""
        n_metric = self.n_metric if self.fixed_metric is None else 0
        return self.n_prototypes * self.n_columns + n_metric

    def state(self, points: Floats, metric: Floats) -> State:
        """Return a state of prototypes (n_prototypes, n_columns) and the metric's numbers.

        The numbers of a metric that is fixed are left out.
        """
        return np.concatenate([points.ravel(), metric if self.fixed_metric is None else ()])

    def points(self, state: State) -> Floats:
        """Return the prototypes, (n_prototypes, n_columns), a view."""
        n_numbers = self.n_prototypes * self.n_columns
        return state[:n_numbers].reshape(self.n_prototypes, self.n_columns)

    def metric_of(self, state: State) -> Floats:
        """Return the metric's numbers, (n_metric,), a view."""
        return state[-self.n_metric :] if self.fixed_metric is None else self.fixed_metric

    def metric_like(self, scale: float) -> Floats:
        """Return the numbers of the metric that is `scale` > 0 times the identity.

        A linear metric with fewer rows than columns keeps the first columns.
        """
        if self.metric == "linear":
            return scale * np.eye(self.rank, self.n_columns).ravel()
        return np.full(self.n_metric, np.log(scale))

    def factor(self, metric: Floats) -> Floats:
        """Return A: its diagonal, (n_columns,), or all of it, (rank, n_columns), if linear."""
        if self.metric == "linear":
            return metric.reshape(self.rank, self.n_columns)
        return np.exp(metric) * np.ones(self.n_columns)

    def applied(self, metric: Floats, rows: Floats) -> Floats:
        """Return A x for each row x, (n_rows, rank): what distances are Euclidean in."""
        factor = self.factor(metric)
        return rows @ factor.T if self.metric == "linear" else rows * factor

    def squared(self, metric: Floats, rows: Floats) -> Floats:
        """Return the transposed A times A x for each row x, (n_rows, n_columns)."""
        factor = self.factor(metric)
        return (rows @ factor.T) @ factor if self.metric == "linear" else rows * factor**2

    def metric_gradient(self, metric: Floats, scatter: Floats) -> Floats:
        """Return the gradient of the metric's numbers (n_metric,), given the sum of weighted v v'.

        scatter (n_columns, n_columns), or its diagonal (n_columns,) unless linear: the sum over
        rows i and prototypes j of w_ij v_ij v_ij', v_ij = x_i - z_j. This is erratum 4 of
        `posterior`, as the derivative of what is summed is -w_ij |A v_ij|^2.
        """
        factor = self.factor(metric)
        if self.metric == "linear":
            return (-2.0 * factor @ scatter).ravel()
        of_columns = -2.0 * factor**2 * scatter
        return of_columns if self.metric == "diagonal" else of_columns.sum(keepdims=True)
