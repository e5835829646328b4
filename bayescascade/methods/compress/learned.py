"""Prototypes and their metric: as one vector of numbers, in the units of the rows, and in words.

The nearest prototype decides, or a vote, or the probabilities of the likelihood; see `VoteRule`.
The distance of a row x from a prototype z is |A (x - z)|, with a matrix A of one of three kinds.
"scaled": one number times the identity, the paper's gamma. "diagonal": a number for each column.
"linear": any matrix of `rank` rows. The vector has logarithms of the first two, which are positive,
and the entries of a matrix.
"""

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree
from sklearn.neighbors import KNeighborsClassifier

from bayescascade.base.arrays import Floats, Integers
from bayescascade.base.errors import ParameterError
from bayescascade.base.store import Of, Within
from bayescascade.base.validation import check_integer
from bayescascade.data.levels import level_text
from bayescascade.data.units import Units
from bayescascade.methods.compress.neighborhoods import class_probabilities, nearest_prototypes
from bayescascade.model.view import OF_ROWS
from bayescascade.report.numbers import count_texts, share_text
from bayescascade.report.page import Numbers, Page, PrintedTable

State = Floats
"""(n_parameters,) float64: the prototypes row by row, and the numbers of the metric."""

_APART = 1e-9  # share of the largest coordinate: nearer prototypes are in the same place


@dataclass(frozen=True, slots=True, eq=False)
class StateLayout:
    """The meaning of the numbers of a state."""

    labels: Integers  # (n_prototypes,), the position of each prototype's class, sorted
    n_columns: int
    metric: str  # "scaled", "diagonal" or "linear"
    rank: int  # rows of the matrix A; `n_columns` unless the metric is "linear"
    # the metric's numbers, (n_metric,), if fixed: then states are prototypes only
    fixed_metric: Floats | None = None

    @property
    def n_prototypes(self) -> int:
        """Number of prototypes."""
        return len(self.labels)

    @property
    def n_metric(self) -> int:
        """Number of parameters of the metric."""
        linear = self.rank * self.n_columns
        return {"scaled": 1, "diagonal": self.n_columns, "linear": linear}[self.metric]

    @property
    def n_parameters(self) -> int:
        """Number of parameters of a state."""
        n_metric = self.n_metric if self.fixed_metric is None else 0
        return self.n_prototypes * self.n_columns + n_metric

    def state(self, points: Floats, metric: Floats) -> State:
        """Return a state of prototypes (n_prototypes, n_columns) and the metric's numbers.

        The numbers of a fixed metric are left out.
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
        """Return the numbers of the metric `scale` > 0 times the identity.

        A linear metric with fewer rows than columns keeps the first columns.
        """
        if self.metric == "linear":
            return scale * np.eye(self.rank, self.n_columns).ravel()
        return np.full(self.n_metric, np.log(scale))

    def factor(self, metric: Floats) -> Floats:
        """Return A: its diagonal, (n_columns,), or the whole, (rank, n_columns), if linear."""
        if self.metric == "linear":
            return metric.reshape(self.rank, self.n_columns)
        return np.exp(metric) * np.ones(self.n_columns)

    def applied(self, metric: Floats, rows: Floats) -> Floats:
        """Return A x for each row x, (n_rows, rank), whose distances are Euclidean."""
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
        `posterior`, because the log likelihood depends on A through the sum of -w_ij |A v_ij|^2.
        """
        factor = self.factor(metric)
        if self.metric == "linear":
            return (-2.0 * factor @ scatter).ravel()
        of_columns = -2.0 * factor**2 * scatter
        return of_columns if self.metric == "diagonal" else of_columns.sum(keepdims=True)


@dataclass(frozen=True, slots=True, eq=False)
class Compressed:
    """Prototypes and the metric of distances from them."""

    points: Annotated[Floats, Of("prototypes", "columns")]  # in the units of the rows
    # the position of each one's class, sorted; every class has one
    labels: Annotated[Integers, Of("prototypes", kind=np.int64)]
    # The matrix A, (rank, n_columns), or its diagonal, (n_columns,): rows x and z are |A (x - z)|
    # apart.
    factor: Annotated[Floats, Of(...)]

    def applied(self, rows: NDArray[Any]) -> Floats:
        """Return transformed rows, (n_rows, rank) float64, whose distances are Euclidean.

        They are centered at the prototypes' mean, for accuracy.
        """
        centered = rows - self.points.mean(axis=0)
        is_matrix = self.factor.ndim == 2
        return np.asarray(centered @ self.factor.T if is_matrix else centered * self.factor)

    @property
    def has_one_scale(self) -> bool:
        """Whether the scale is the same for all columns."""
        return self.factor.ndim == 1 and float(np.ptp(self.factor)) == 0.0

    def nearest(self, rows: NDArray[Any]) -> Integers:
        """Return the position of the prototype that is nearest to each row, (n_rows,)."""
        return nearest_prototypes(self.applied(rows), _weights(self.applied(self.points)))

    def scaled(self, units: Units) -> "Compressed":
        """Return the prototypes and metric for rows in these units."""
        return Compressed(units.scaled(self.points), self.labels, self.factor * units.units)

    def relabeled(
        self, rows: NDArray[Any], labels: Integers, weights: Floats | None = None
    ) -> "Compressed":
        """Return the prototypes, each with the most common class of the rows nearest to it.

        The likelihood has votes of all prototypes. If rows of several classes coincide, so do
        prototypes of several classes, and the likelihood does not depend on which is the nearest.
        Prototypes in the same place count as one. If classes tie, or no row is nearest, a prototype
        keeps its class. One prototype of each class keeps it, with the fewest errors, so every
        class can be predicted.

        rows (n_rows, n_columns); labels (n_rows,) int64, the position of each one's class; weights
        (n_rows,): as how many rows each one counts, 1 by default.
        """
        points, n_classes = self.applied(self.points), int(self.labels[-1]) + 1
        together = KDTree(points).query_ball_point(points, _APART * np.abs(points).max())
        place = np.array([min(others) for others in together])
        votes = np.zeros((place.size, n_classes))
        np.add.at(votes, (place[self.nearest(rows)], labels), 1.0 if weights is None else weights)
        votes = votes[place]
        most, own = votes.max(axis=1), self.labels[place]
        kept = np.where(most > 0, own, self.labels)
        found = np.where(most > votes[np.arange(place.size), own], votes.argmax(axis=1), kept)
        costs = most - votes[np.arange(place.size), self.labels]
        # the prototype that is changed back may be the last one of its new class
        while (absent := np.setdiff1d(np.arange(n_classes), found)).size:
            of_class = np.flatnonzero(self.labels == absent[0])
            found[of_class[costs[of_class].argmin()]] = absent[0]
        order = np.argsort(found, kind="stable")
        return Compressed(self.points[order], found[order], self.factor)

    def to_sklearn(
        self, classes: NDArray[Any], n_neighbors: int, **options: Any
    ) -> KNeighborsClassifier:
        """Return a fitted nearest-neighbor classifier over the prototypes; classes (n_classes,).

        Options are those of `KNeighborsClassifier`; raises ParameterError if they set the metric,
        or ask for a k-d tree if columns have several scales.
        """
        for name in ("metric", "metric_params", "p"):
            if name in options:
                raise ParameterError(
                    f"{name} must not be given, as the metric has been learned, "
                    f"got {options[name]!r}"
                )
        if self.has_one_scale:
            metric: dict[str, Any] = {}  # plain distances are in the same order
        elif self.factor.ndim == 1:
            metric = {"metric": "seuclidean", "metric_params": {"V": self.factor**-2.0}}
        else:
            inverse = self.factor.T @ self.factor
            metric = {"metric": "mahalanobis", "metric_params": {"VI": inverse}}
        if metric and options.get("algorithm") == "kd_tree":
            raise ParameterError(
                'algorithm must be "auto", "ball_tree" or "brute" unless all columns have one '
                'scale, got "kd_tree"'
            )
        voters = KNeighborsClassifier(n_neighbors, **metric, **options)
        return voters.fit(self.points, classes[self.labels])


class VoteRule(NamedTuple):
    """How prototypes classify."""

    name: str  # "nearest": its class; "neighbors": a vote; "stochastic": as in the likelihood
    n_neighbors: int  # >= 1, number of voters

    def probabilities(self, model: Compressed, rows: NDArray[Any]) -> Floats:
        """Return the probability of each class for each row, (n_rows, n_classes)."""
        n_classes = int(model.labels[-1]) + 1
        if self.name == "nearest":
            return np.eye(n_classes)[model.labels[model.nearest(rows)]]
        near, points = model.applied(rows), model.applied(model.points)
        if self.name == "neighbors":
            voters = KNeighborsClassifier(self.n_neighbors, algorithm="brute")
            return np.asarray(voters.fit(points, model.labels).predict_proba(near))
        starts = np.searchsorted(model.labels, np.arange(n_classes + 1))
        return class_probabilities(near, _weights(points), starts)

    def voters(self, model: Compressed) -> dict[str, Any]:
        """Return options of `Compressed.to_sklearn` for a classifier by this rule."""
        if self.name != "stochastic":
            return {"n_neighbors": 1 if self.name == "nearest" else self.n_neighbors}
        scale = float(model.factor[0]) if model.has_one_scale else 1.0
        return {"n_neighbors": len(model.labels), "weights": partial(_votes, scale)}

    def classified(self, model: Compressed, rows: NDArray[Any]) -> Integers:
        """Return the positions of the predicted classes, (n_rows,)."""
        return np.asarray(self.probabilities(model, rows).argmax(axis=1))

    def labeled(
        self, model: Compressed, rows: NDArray[Any], labels: Integers, weights: Floats | None = None
    ) -> Compressed:
        """Return a model with the classes of prototypes for this rule."""
        return model.relabeled(rows, labels, weights) if self.name == "nearest" else model

    def check(self, n_prototypes: int) -> None:
        """Raise ParameterError if there are fewer prototypes than voters."""
        if self.name == "neighbors":
            check_integer("n_neighbors", self.n_neighbors, 1, n_prototypes)


def _votes(scale: float, distances: Floats) -> Floats:
    """Return weights of neighbors by their ascending distances, (n_rows, n_neighbors)."""
    squared = (scale * distances) ** 2
    return np.asarray(np.exp(squared[:, :1] - squared))


def _weights(points: Floats) -> Floats:
    """Return the factors of rows for Euclidean distances; see `ClassedRows`."""
    return np.concatenate([2.0 * points.T, -(points**2).sum(axis=1)[np.newaxis]])


HOW_TO_READ = (
    (
        "",
        "A few prototypes are used in place of all rows. A new row gets the class of the nearest "
        "prototypes. The table has a line for each class.",
    ),
    ("misclassified", "the share of its rows for which another class is predicted"),
)
"""Terms of the page, or "", and their meanings."""

CANNOT_TELL = (
    "Misclassified rows are counted among the training rows. The share will be larger for other "
    "rows.",
    "A prototype is not a row. But it may be close to a row if a class has few rows.",
    *OF_ROWS,
)
"""What prototypes do not show."""

WORSE = (
    "the prototypes misclassify more rows than always predicting the most common class: change "
    "n_prototypes, random_state or rule"
)
"""The objection to useless prototypes."""


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """Weights of the rows of each class, and of those misclassified."""

    rows: Annotated[Floats, Of("classes", above=0)]
    wrong: Annotated[Floats, Of("classes", least=0)]

    def __post_init__(self) -> None:
        if (self.wrong > self.rows).any():
            raise ValueError("misclassified rows must be some of the rows of their class")

    @classmethod
    def of(
        cls, labels: Integers, taken: Integers, n_classes: int, weights: Floats | None = None
    ) -> Self:
        """Count rows by their labels and predicted classes."""
        weights = np.ones(len(labels)) if weights is None else weights
        rows = np.bincount(labels, weights, n_classes).astype(np.float64)
        return cls(rows, np.bincount(labels, weights * (taken != labels), n_classes).astype(float))

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(self.rows + other.rows, self.wrong + other.wrong)

    @property
    def is_worse(self) -> bool:
        """Whether always predicting the most common class misclassifies fewer rows."""
        return bool(self.wrong.sum() > self.rows.sum() - self.rows.max())


def class_page(classes: NDArray[Any], tally: Tally, labels: Integers) -> Page:
    """Return each class with its rows, prototypes, and rows misclassified.

    classes (n_classes,); labels (n_prototypes,), positions of classes.
    """
    columns = [
        Numbers("rows", count_texts(tally.rows.tolist())),
        Numbers("prototypes", count_texts(np.bincount(labels).tolist())),
        Numbers("misclassified", list(map(share_text, (tally.wrong / tally.rows).tolist()))),
    ]
    return (PrintedTable([level_text(label) for label in classes.tolist()], columns, "class"),)


@dataclass(frozen=True)
class PriorScale:
    """The prior's scale, None if flat; number of held-out rows that chose it, None if given."""

    scale: Annotated[int | float, Within(above=0)] | None
    n_choosing: Annotated[int, Within(0)] | None

    def __post_init__(self) -> None:
        if self.scale is None and self.n_choosing is not None:
            raise ValueError("a prior's scale that was chosen must be a number")

    def texts(self) -> list[str]:
        """Return in words how it was chosen; nothing if it was given."""
        if self.n_choosing is None:
            return []
        by = f"chosen on {self.n_choosing:,} held-out rows"
        if not self.n_choosing:
            by = "not chosen: there are too few rows to hold some out"
        return [f"prior scale {self.scale:g}, {by}"]
