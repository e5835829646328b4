"""Functions of rows and their records: of a kernel, a forest, or a mixture."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.arrays import Floats, Integers
from bayescascade.base.saved_arrays import read_array
from bayescascade.base.validation import check_probability, check_real
from bayescascade.methods.effects.kernels import Kernel

MIXED = "kernel and forest"


@dataclass(frozen=True, slots=True, eq=False)
class KernelFunction:
    """h(x) = intercept + sum_j coefficient_j K(x, landmark_j) of standardized rows.

    With a Gaussian around it, the variance of h(x) is |spread' (1, k)|^2, plus the part of K(x, x)
    that the landmarks do not determine, K(x, x) - |projection' k|^2, k = K(x, landmarks).
    """

    kernel: Kernel
    center: Floats  # (d,)
    scale: Floats  # (d,) > 0
    landmarks: Floats  # (m, d), standardized
    coefficients: Floats  # (m,)
    intercept: float
    projection: Floats  # (m, r); (m, 0) without standard deviations
    spread: Floats  # (m + 1, r + 1)
    height: float  # prior variance of h(x) = height K(x, x)

    def values(self, rows: Floats) -> Floats:
        """Return h of rows of the matrix, (n,)."""
        return np.asarray(self._gram(rows) @ self.coefficients + self.intercept)

    def deviations(self, rows: Floats) -> Floats:
        """Return standard deviations of h, (n,)."""
        gram = self._gram(rows)
        inside = gram @ self.spread[1:] + self.spread[0]
        known = ((gram @ self.projection) ** 2).sum(axis=1)
        left = self.kernel.diagonal((rows - self.center) / self.scale) - known
        return np.asarray(np.sqrt((inside**2).sum(axis=1) + self.height * np.maximum(left, 0.0)))

    def _gram(self, rows: Floats) -> Floats:
        return self.kernel.gram((rows - self.center) / self.scale, self.landmarks)

    @property
    def has_doubt(self) -> bool:
        """Whether there are standard deviations."""
        return bool(self.projection.shape[1])

    @property
    def n_held(self) -> int:
        """Number of rows that it contains."""
        return len(self.landmarks)

    def to_record(self) -> dict[str, Any]:
        """Return plain JSON types."""
        kernel, slopes = self.kernel, self.kernel.slopes
        arrays = ("center", "scale", "landmarks", "coefficients", "projection", "spread")
        return {
            "kind": "kernel",
            "kernel": {
                "lengths": kernel.lengths.tolist(), "height": kernel.height,
                "slopes": None if slopes is None else slopes.tolist(), "degree": kernel.degree,
            },
            **{name: getattr(self, name).tolist() for name in arrays},
            "intercept": self.intercept, "height": self.height,
        }  # fmt: skip

    @classmethod
    def from_record(cls, record: Mapping[str, Any], n_columns: int) -> "KernelFunction":
        """Rebuild one from `to_record`; errors such as ValueError if parts do not fit."""
        given, n = record["kernel"], len(record["landmarks"])
        lengths, slopes = read_array(given, "lengths", (n_columns,)), None
        if given["slopes"] is not None:
            slopes = read_array(given, "slopes", (n_columns,))
        kernel = Kernel(lengths, float(given["height"]), slopes, int(given["degree"]))
        size = read_array(record, "projection", (n, None)).shape[1]
        shapes = {
            "center": (n_columns,), "scale": (n_columns,), "landmarks": (n, n_columns),
            "coefficients": (n,), "projection": (n, size), "spread": (n + 1, size + 1),
        }  # fmt: skip
        arrays = {name: read_array(record, name, shape) for name, shape in shapes.items()}
        numbers = [float(record["intercept"]), float(record["height"]), kernel.height]
        if not (np.isfinite(numbers).all() and min(lengths.min(), arrays["scale"].min()) > 0.0):
            raise ValueError("a saved function's numbers must be finite, its scales > 0")
        if kernel.degree not in (1, 2, 3):
            raise ValueError(f"a saved kernel's degree must be 1, 2 or 3, got {kernel.degree}")
        return cls(kernel=kernel, intercept=numbers[0], height=numbers[1], **arrays)


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

    has_doubt: ClassVar[bool] = False
    n_held: ClassVar[int] = 0

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
class MixedFunction:
    """A weighted mean of a forest and a kernel; its variance is the kernel's plus the misfit.

    The misfit is the difference of the mean squared errors of kernel and mixture on held-out rows.
    It is small if the function is smooth, and large if it has steps.
    """

    kernel: KernelFunction
    forest: ForestFunction
    share: float  # share of the forest
    misfit: float  # variance

    has_doubt: ClassVar[bool] = True

    @property
    def n_held(self) -> int:
        """Number of rows that the kernel contains."""
        return self.kernel.n_held

    def values(self, rows: Floats) -> Floats:
        """Return h of rows of the matrix, (n,)."""
        kernel, forest = self.kernel.values(rows), self.forest.values(rows)
        return np.asarray(kernel + self.share * (forest - kernel))

    def deviations(self, rows: Floats) -> Floats:
        """Return standard deviations of h, (n,)."""
        return np.asarray(np.sqrt(self.kernel.deviations(rows) ** 2 + self.misfit))

    def to_record(self) -> dict[str, Any]:
        """Return plain JSON types."""
        parts = {"kernel": self.kernel.to_record(), "forest": self.forest.to_record()}
        return {"kind": MIXED, **parts, "share": self.share, "misfit": self.misfit}

    @classmethod
    def from_record(cls, record: Mapping[str, Any], n_columns: int) -> "MixedFunction":
        """Rebuild one from `to_record`; errors such as ValueError if parts do not fit."""
        kernel = KernelFunction.from_record(record["kernel"], n_columns)
        forest = ForestFunction.from_record(record["forest"], n_columns)
        share = check_probability("share", record["share"])
        return cls(kernel, forest, share, check_real("misfit", record["misfit"], minimum=0.0))


FUNCTIONS: Mapping[str, Any] = {
    "kernel": KernelFunction, "forest": ForestFunction, MIXED: MixedFunction,
}  # fmt: skip
"""Kinds of functions in files, by name."""
