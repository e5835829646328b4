"""Functions of rows and their records: of a kernel, a forest, a logistic regression, or a sum."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from bayescascade.base.arrays import Floats, Integers
from bayescascade.base.saved_arrays import read_array
from bayescascade.base.validation import check_real
from bayescascade.methods.effects.kernels import Kernel


@dataclass(frozen=True, slots=True, eq=False)
class KernelFunction:
    """h(x) = intercept + sum_j coefficient_j K(x, landmark_j) of standardized rows."""

    kernel: Kernel
    center: Floats  # (d,)
    scale: Floats  # (d,) > 0
    landmarks: Floats  # (m, d), standardized
    coefficients: Floats  # (m,)
    intercept: float

    words: ClassVar[str] = "kernel"

    def values(self, rows: Floats) -> Floats:
        """Return h of rows of the matrix, (n,)."""
        gram = self.kernel.gram((rows - self.center) / self.scale, self.landmarks)
        return np.asarray(gram @ self.coefficients + self.intercept)

    @property
    def n_held(self) -> int:
        """Number of rows that it contains."""
        return len(self.landmarks)

    def to_record(self) -> dict[str, Any]:
        """Return plain JSON types."""
        kernel, slopes = self.kernel, self.kernel.slopes
        arrays = ("center", "scale", "landmarks", "coefficients")
        return {
            "kind": "kernel",
            "kernel": {
                "lengths": kernel.lengths.tolist(), "height": kernel.height,
                "slopes": None if slopes is None else slopes.tolist(), "degree": kernel.degree,
            },
            **{name: getattr(self, name).tolist() for name in arrays},
            "intercept": self.intercept,
        }  # fmt: skip

    @classmethod
    def from_record(cls, record: Mapping[str, Any], n_columns: int) -> "KernelFunction":
        """Rebuild one from `to_record`; errors such as ValueError if parts do not fit."""
        given, n = record["kernel"], len(record["landmarks"])
        lengths, slopes = read_array(given, "lengths", (n_columns,)), None
        if given["slopes"] is not None:
            slopes = read_array(given, "slopes", (n_columns,))
        kernel = Kernel(lengths, float(given["height"]), slopes, int(given["degree"]))
        shapes = {
            "center": (n_columns,), "scale": (n_columns,), "landmarks": (n, n_columns),
            "coefficients": (n,),
        }  # fmt: skip
        arrays = {name: read_array(record, name, shape) for name, shape in shapes.items()}
        numbers = [float(record["intercept"]), kernel.height]
        if not (np.isfinite(numbers).all() and min(lengths.min(), arrays["scale"].min()) > 0.0):
            raise ValueError("a saved function's numbers must be finite, its scales > 0")
        if kernel.degree not in (1, 2, 3):
            raise ValueError(f"a saved kernel's degree must be 1, 2 or 3, got {kernel.degree}")
        return cls(kernel=kernel, intercept=numbers[0], **arrays)


@dataclass(frozen=True, slots=True, eq=False)
class ForestFunction:
    """The mean of trees, whose nodes follow each other; a leaf is its own child."""

    roots: Integers  # (n_trees,)
    feature: Integers  # (n_nodes,)
    threshold: Floats
    left: Integers  # for features at most the threshold
    right: Integers
    value: Floats
    depth: int

    n_held: ClassVar[int] = 0
    words: ClassVar[str] = "forest"

    @classmethod
    def of(cls, forest: Any) -> "ForestFunction":
        """Return the function of a fitted scikit-learn forest."""
        trees = [one.tree_ for one in forest.estimators_]
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

    def to_record(self) -> dict[str, Any]:
        """Return plain JSON types."""
        names = ("roots", "feature", "threshold", "left", "right", "value")
        told = {name: getattr(self, name).tolist() for name in names}
        return {"kind": "forest", **told, "depth": self.depth}

    @classmethod
    def from_record(cls, record: Mapping[str, Any], n_columns: int) -> "ForestFunction":
        """Rebuild one from `to_record`; errors such as ValueError if parts do not fit."""
        n = len(record["value"])
        limits = {"roots": n, "feature": n_columns, "left": n, "right": n}
        whole = {
            name: read_array(
                record, name, (None if name == "roots" else n,), np.int64, least=0, most=limit - 1
            )
            for name, limit in limits.items()
        }
        if not whole["roots"].size:
            raise ValueError("a saved forest must have trees")
        threshold, value = (read_array(record, name, (n,)) for name in ("threshold", "value"))
        return cls(threshold=threshold, value=value, depth=int(record["depth"]), **whole)


@dataclass(frozen=True, slots=True, eq=False)
class LogisticFunction:
    """The probability of a logistic regression."""

    coefficients: Floats  # (d,)
    intercept: float

    n_held: ClassVar[int] = 0
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

    def to_record(self) -> dict[str, Any]:
        """Return plain JSON types."""
        numbers = {"coefficients": self.coefficients.tolist(), "intercept": self.intercept}
        return {"kind": "logistic", **numbers}

    @classmethod
    def from_record(cls, record: Mapping[str, Any], n_columns: int) -> "LogisticFunction":
        """Rebuild one from `to_record`; errors such as ValueError if parts do not fit."""
        coefficients = read_array(record, "coefficients", (n_columns,))
        return cls(coefficients, check_real("intercept", record["intercept"]))


@dataclass(frozen=True, slots=True, eq=False)
class SumFunction:
    """A weighted sum of functions, plus a constant.

    The T-learner is the sum of expected outcomes of both arms, with weights 1 and -1.
    """

    parts: tuple[Any, ...]  # of `FUNCTIONS`
    weights: tuple[float, ...]
    shift: float = 0.0

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
        weights = tuple(factor * one for one in self.weights)
        return replace(self, weights=weights, shift=factor * self.shift + shift)

    def to_record(self) -> dict[str, Any]:
        """Return plain JSON types."""
        parts = [part.to_record() for part in self.parts]
        return {"kind": "sum", "parts": parts, "weights": list(self.weights), "shift": self.shift}

    @classmethod
    def from_record(cls, record: Mapping[str, Any], n_columns: int) -> "SumFunction":
        """Rebuild one from `to_record`; errors such as ValueError if parts do not fit."""
        parts = tuple(read_function(part, n_columns) for part in record["parts"])
        weights = read_array(record, "weights", (len(parts),)).tolist()
        return cls(parts, tuple(weights), check_real("shift", record["shift"]))


def read_function(record: Mapping[str, Any], n_columns: int) -> Any:
    """Rebuild any function from its record; errors such as ValueError if parts do not fit."""
    kinds: Mapping[str, Any] = {
        "kernel": KernelFunction, "forest": ForestFunction, "logistic": LogisticFunction,
        "sum": SumFunction,
    }  # fmt: skip
    return kinds[record["kind"]].from_record(record, n_columns)
