"""Functions of rows: of a kernel, a forest, a logistic regression, or a sum.

Functions of a kernel are vectors of whitened coefficients, for

    K(x, z) = constant + sum_j slope_j x_j z_j + height exp(-sum_j (x_j - z_j)^2 / (2 length_j^2))

or (constant + x . z)^degree. A function is sum_k c_k phi_k(x) with K(x, z) = phi(x) . phi(z), so
that its squared norm is |c|^2: phi(x) = K(x, landmarks) U S^(-1/2), where U S U' is the kernel of
the landmarks. It is exact with all rows as landmarks, and Nystroem's approximation with some.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, eigh
from scipy.linalg.lapack import dpotri
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from scipy.special import expit

from bayescascade.base.arrays import Floats, Integers
from bayescascade.base.store import Of, Within

_NEGLIGIBLE = 1e-8  # share of the largest eigenvalue
_FIRST = 250  # maximum number of rows for the start of choosing scales
_REACH = 5.0  # maximum distance of logarithms of scales from typical ones
_SPREAD = 1.5  # prior standard deviation of logarithms of scales
_HEIGHTS, _LONGER = (-1.0, 0.0, 1.0, 2.0), (-1.0, -0.5, 0.0)  # steps to average over


@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel over rows of d columns; degree 1 is the sum above, 2 and 3 are polynomials."""

    # > 0, inf for columns without effect
    lengths: Annotated[Floats, Of("columns", above=0)]
    height: float = 1.0
    slopes: Annotated[Floats, Of("columns")] | None = None  # >= 0
    degree: Annotated[int, Within(1, 3)] = 1

    def between(self, other: "Kernel") -> "Kernel":
        """Return a kernel with the geometric mean of the scales of two sums."""
        return Kernel(
            np.sqrt(self.lengths * other.lengths),
            float(np.sqrt(self.height * other.height)),
            np.sqrt(np.asarray(self.slopes) * np.asarray(other.slopes)),
        )

    def gram(self, left: Floats, right: Floats) -> Floats:
        """Return K of all pairs, (n_left, n_right)."""
        if self.degree > 1:
            return np.asarray((1.0 + left @ right.T) ** self.degree)
        found = np.zeros((len(left), len(right)))
        if self.height > 0.0:
            squares = cdist(left / self.lengths, right / self.lengths, "sqeuclidean")
            found = self.height * np.exp(-0.5 * squares)
        return found if self.slopes is None else found + (left * self.slopes) @ right.T


def named_kernel(name: str, length: float, n_columns: int) -> Kernel:
    """Return a kernel: "linear", "quadratic", "cubic", or "rbf" with a length."""
    lengths = np.full(n_columns, length)
    if name == "linear":
        return Kernel(lengths, 0.0, np.ones(n_columns))
    return Kernel(lengths, degree={"rbf": 1, "quadratic": 2, "cubic": 3}[name])


@dataclass(frozen=True, eq=False)
class KernelBasis:
    """Whitened functions of a kernel at landmarks (m, d)."""

    kernel: Kernel
    landmarks: Floats
    projection: Floats = field(init=False)  # (m, r)

    def __post_init__(self) -> None:
        values, vectors = eigh(self.kernel.gram(self.landmarks, self.landmarks))
        kept = values > _NEGLIGIBLE * values[-1]
        object.__setattr__(self, "projection", vectors[:, kept] / np.sqrt(values[kept]))

    @property
    def size(self) -> int:
        """Number of coefficients."""
        return int(self.projection.shape[1])

    def features(self, rows: Floats) -> Floats:
        """Return phi of rows, (n, r)."""
        return np.asarray(self.kernel.gram(rows, self.landmarks) @ self.projection)


def choose_landmarks(rows: Floats, rng: np.random.Generator, most: int) -> Floats:
    """Return at most `most` random distinct rows, (m, d)."""
    distinct = np.unique(rows, axis=0)
    if len(distinct) <= most:
        return distinct
    return np.asarray(distinct[rng.choice(len(distinct), most, replace=False)])


# -- scales of maximum marginal likelihood ---------------------------------------------------------


def scales_by_evidence(
    rows: Floats, values: Floats, weights: Floats, rng: np.random.Generator, most: int
) -> tuple[Kernel, float]:
    """Return the kernel of maximum marginal likelihood, and the noise variance at weight 1.

    values are f(row) + noise of variance / weight, f a Gaussian process; rows (n, d) are
    standardized, and `most` of them are used. Logarithms of scales have a normal prior, so
    columns without effect keep long lengths.
    """
    chosen = rng.permutation(len(rows))[:most]
    rows, values, weights = rows[chosen], values[chosen], weights[chosen]
    n_columns = rows.shape[1]
    spread = float(np.average((values - np.average(values, weights=weights)) ** 2, weights=weights))
    parts = [spread * float(np.mean(weights)), 0.05 * spread]
    lengths, slopes = np.full(n_columns, 3.0 * n_columns**0.5), np.full(n_columns, 0.02 * spread)
    typical = np.log(np.concatenate([parts, lengths, slopes]))
    bounds = np.column_stack([typical - _REACH, typical + _REACH])
    state = typical
    stages = [(len(rows), 40)]
    if len(rows) >= 2 * _FIRST:  # few rows give the start
        stages = [(_FIRST, 40), (len(rows), 15)]
    for n_rows, n_steps in stages:
        loss = Evidence(rows[:n_rows], values[:n_rows], weights[:n_rows], typical)
        options = {"maxiter": n_steps}
        state = minimize(loss, state, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
    state = _averaged(loss, state)
    return loss.kernel(state), float(np.exp(state[0]))


def _averaged(loss: "Evidence", state: Floats) -> Floats:
    """Return the state with posterior means of height and log lengths over curvier states.

    At the mode, functions that rows cannot distinguish from lines are lines, and intervals are too
    narrow.
    """
    size = (len(state) - 2) // 2
    tried = np.array([(up, longer) for up in _HEIGHTS for longer in _LONGER])
    found = []
    for up, longer in tried:
        other = state.copy()
        other[1], other[2 : 2 + size] = other[1] + up, other[2 : 2 + size] + longer
        found.append(-loss.value(other))
    shares = np.exp(np.array(found) - max(found))
    shares /= shares.sum()
    state = state.copy()
    state[1] += np.log(shares @ np.exp(tried[:, 0]))
    state[2 : 2 + size] += shares @ tried[:, 1]
    return state


class Evidence:
    """Minus the log marginal likelihood of scales and their log prior, with its gradient.

    A state is the logarithms of noise, height, d lengths and d slopes, around `typical`.
    """

    def __init__(self, rows: Floats, values: Floats, weights: Floats, typical: Floats) -> None:
        self._rows, self._values, self._weights, self._typical = rows, values, weights, typical
        self._constant = 10.0 * float(np.var(values)) + 1e-12

    def kernel(self, state: Floats) -> Kernel:
        """Return the kernel of a state."""
        height, *others = np.exp(state[1:])
        lengths, slopes = np.split(np.array(others), 2)
        return Kernel(lengths, float(height), slopes)

    def value(self, state: Floats) -> float:
        """Return the value."""
        return self._parts(state)[0]

    def __call__(self, state: Floats) -> tuple[float, Floats]:
        """Return the value and its gradient, (2 d + 2,)."""
        value, curved, noise, lower, weighed = self._parts(state)
        rows, kernel = self._rows, self.kernel(state)
        inverse, _ = dpotri(lower, lower=True)  # a third of the work of two triangular solves
        pull = np.tril(inverse) + np.tril(inverse, -1).T
        pull -= np.outer(weighed, weighed)  # (n, n), twice the derivative
        joint = pull * curved
        around = joint.sum(axis=1) @ rows**2 - np.einsum("ij,ij->j", rows, joint @ rows)
        straight = np.einsum("ij,ij->j", rows, pull @ rows)
        gradient: Any = 0.5 * np.concatenate([
            [np.diag(pull) @ noise, joint.sum()], 2.0 * around / kernel.lengths**2,
            straight * np.asarray(kernel.slopes),
        ])  # fmt: skip
        return value, gradient + (state - self._typical) / _SPREAD**2

    def _parts(self, state: Floats) -> tuple[float, Floats, Floats, Floats, Floats]:
        """Return the value, the curved part, noise (n,), a triangular root and K^-1 values."""
        rows, kernel = self._rows, self.kernel(state)
        curved = Kernel(kernel.lengths, kernel.height).gram(rows, rows)
        noise = np.exp(state[0]) / self._weights
        whole = curved + (rows * np.asarray(kernel.slopes)) @ rows.T + self._constant
        whole[np.diag_indices_from(whole)] += noise + 1e-10 * self._constant
        lower = cholesky(whole, lower=True, check_finite=False)
        weighed = cho_solve((lower, True), self._values, check_finite=False)
        prior = (state - self._typical) / _SPREAD
        fit = 0.5 * float(self._values @ weighed)
        value = fit + float(np.log(np.diag(lower)).sum()) + 0.5 * float(prior @ prior)
        return value, curved, noise, lower, weighed


@dataclass(frozen=True, slots=True, eq=False)
class KernelFunction:
    """h(x) = intercept + sum_j coefficient_j K(x, landmark_j) of standardized rows."""

    kernel: Kernel
    center: Annotated[Floats, Of("columns")]
    scale: Annotated[Floats, Of("columns", above=0)]
    landmarks: Annotated[Floats, Of("landmarks", "columns")]  # standardized
    coefficients: Annotated[Floats, Of("landmarks")]
    intercept: float

    kind: ClassVar[str] = "kernel"
    words: ClassVar[str] = "kernel"

    def values(self, rows: Floats) -> Floats:
        """Return h of rows of the matrix, (n,)."""
        gram = self.kernel.gram((rows - self.center) / self.scale, self.landmarks)
        return np.asarray(gram @ self.coefficients + self.intercept)

    @property
    def n_held(self) -> int:
        """Number of rows that it contains."""
        return len(self.landmarks)


Nodes = Annotated[Integers, Of(None, kind=np.int64, below="nodes")]
Children = Annotated[Integers, Of("nodes", kind=np.int64, below="nodes")]


@dataclass(frozen=True, slots=True, eq=False)
class ForestFunction:
    """The mean of trees, whose nodes follow each other; a leaf is its own child."""

    roots: Nodes
    feature: Annotated[Integers, Of("nodes", kind=np.int64, below="columns")]
    threshold: Annotated[Floats, Of("nodes")]
    left: Children  # for features at most the threshold
    right: Children
    value: Annotated[Floats, Of("nodes")]
    depth: int

    n_held: ClassVar[int] = 0
    kind: ClassVar[str] = "forest"
    words: ClassVar[str] = "forest"

    def __post_init__(self) -> None:
        if not self.roots.size:
            raise ValueError("a forest must have trees")

    @classmethod
    def of(cls, forest: Any) -> "ForestFunction":
        """Return the function of a fitted scikit-learn forest."""
        trees = [estimator.tree_ for estimator in forest.estimators_]
        roots = np.concatenate([[0], np.cumsum([tree.node_count for tree in trees])[:-1]])

        def joined(name: str) -> NDArray[Any]:
            return np.concatenate([getattr(tree, name) for tree in trees])

        own = np.arange(sum(tree.node_count for tree in trees))
        shift = np.repeat(roots, [tree.node_count for tree in trees])
        left, right = (
            np.where(each < 0, own, each + shift)
            for each in (joined("children_left"), joined("children_right"))
        )
        return cls(
            roots, np.maximum(joined("feature"), 0), joined("threshold"), left, right,
            joined("value")[:, 0, 0], max(tree.max_depth for tree in trees),
        )  # fmt: skip

    def values(self, rows: Floats) -> Floats:
        """Return h of rows of the matrix, (n,)."""
        seen = rows.astype(np.float32)  # as in scikit-learn
        total, each = np.zeros(len(rows)), np.arange(len(rows))
        for root in self.roots.tolist():
            node = np.full(len(rows), root)
            for _ in range(self.depth):
                goes_left = seen[each, self.feature[node]] <= self.threshold[node]
                node = np.where(goes_left, self.left[node], self.right[node])
            total += self.value[node]
        return total / len(self.roots)


@dataclass(frozen=True, slots=True, eq=False)
class LogisticFunction:
    """The probability of a logistic regression."""

    coefficients: Annotated[Floats, Of("columns")]
    intercept: float

    n_held: ClassVar[int] = 0
    kind: ClassVar[str] = "logistic"
    words: ClassVar[str] = "logistic regression"

    @classmethod
    def of(cls, pipeline: Any) -> "LogisticFunction":
        """Return the function of a fitted pipeline of StandardScaler and LogisticRegression."""
        scaler, regression = pipeline[0], pipeline[1]
        coefficients = regression.coef_[0] / scaler.scale_
        intercept = float(regression.intercept_[0] - scaler.mean_ @ coefficients)
        return cls(coefficients, intercept)

    def values(self, rows: Floats) -> Floats:
        """Return h of rows of the matrix, (n,)."""
        return np.asarray(expit(rows @ self.coefficients + self.intercept))


@dataclass(frozen=True, slots=True, eq=False)
class SumFunction:
    """A weighted sum of functions, plus a constant.

    The T-learner is the sum of expected outcomes of both arms, with weights 1 and -1.
    """

    parts: "tuple[Function, ...]"
    weights: tuple[float, ...]
    shift: float = 0.0

    kind: ClassVar[str] = "sum"

    def __post_init__(self) -> None:
        if len(self.weights) != len(self.parts):
            raise ValueError("a sum of functions must have a weight for each")

    @classmethod
    def of(cls, parts: Sequence[Any], weights: Sequence[float]) -> Self:
        """Return a sum without the parts of weight 0."""
        used = [place for place, weight in enumerate(weights) if weight]
        return cls(tuple(parts[i] for i in used), tuple(weights[i] for i in used))

    @property
    def n_held(self) -> int:
        """Number of rows that it contains."""
        return sum(part.n_held for part in self.parts)

    @property
    def words(self) -> str:
        """Names of the parts; a sum in a sum is a T-learner."""
        are_sums = [isinstance(part, SumFunction) for part in self.parts]
        names = [
            "T-learner" if is_sum else part.words
            for is_sum, part in zip(are_sums, self.parts, strict=True)
        ]
        return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))

    def values(self, rows: Floats) -> Floats:
        """Return h of rows of the matrix, (n,)."""
        parts = zip(self.weights, self.parts, strict=True)
        return sum(
            (w * part.values(rows) for w, part in parts if w), np.full(len(rows), self.shift)
        )

    def scaled(self, factor: float, shift: float) -> Self:
        """Return factor * h + shift."""
        weights = tuple(factor * weight for weight in self.weights)
        return replace(self, weights=weights, shift=factor * self.shift + shift)


Function = KernelFunction | ForestFunction | LogisticFunction | SumFunction
