"""Functions of rows: of a kernel, a forest, a logistic regression, or a sum."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from bayescascade.base.arrays import Floats, Integers
from bayescascade.base.store import Of
from bayescascade.methods.effects.kernels import Kernel


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
