"""Decisions by class probabilities: the most probable class, or the one of least cost."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import ParameterError
from bayescascade.base.validation import check_probability, check_real
from bayescascade.data.levels import level_text


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """A rule that chooses a class for each row: by default the first of the most probable ones."""

    # in [0, 1]: the second of two classes is chosen if its probability is at least this
    threshold: float | None = None
    # (n_classes, n_classes) >= 0, true by chosen: the class of least expected cost is chosen
    costs: Floats | None = None

    @classmethod
    def of(
        cls, classes: NDArray[Any], threshold: Any = None, class_costs: Any = None
    ) -> "Decision":
        """Return the rule of a user's arguments, checked; see `LabeledFiles.predict`."""
        if threshold is not None and class_costs is not None:
            raise ParameterError("class_costs must be None where threshold is given, got both")
        if threshold is not None:
            if len(classes) != 2:
                raise ParameterError(
                    f"threshold must be None where there are {len(classes)} classes, not two, "
                    f"got {threshold!r}: use class_costs"
                )
            return cls(threshold=check_probability("threshold", threshold))
        return cls() if class_costs is None else cls(costs=_costs(classes, class_costs))

    def choose(self, probabilities: Floats) -> NDArray[np.intp]:
        """Return the chosen class of each row, (n_rows,); probabilities (n_rows, n_classes)."""
        if self.threshold is not None:
            return (probabilities[:, 1] >= self.threshold).astype(np.intp)
        worth = probabilities if self.costs is None else -(probabilities @ self.costs)
        best: NDArray[np.intp] = worth.argmax(axis=1)
        return best


def _costs(classes: NDArray[Any], given: Any) -> Floats:
    """Return a matrix of costs, given as a matrix or by class."""
    n = len(classes)
    if not isinstance(given, Mapping):
        try:
            costs = np.array(given, dtype=np.float64)
        except (TypeError, ValueError):
            costs = np.empty(0)
        if costs.shape != (n, n):
            raise ParameterError(
                f"class_costs must be a mapping, or numbers of shape ({n}, {n}), with true "
                f"classes as rows and predicted classes as columns, got {given!r}"
            )
        if not (np.isfinite(costs) & (costs >= 0)).all():
            raise ParameterError(f"class_costs must be finite numbers >= 0, got {given!r}")
        return costs
    costs = 1.0 - np.eye(n)
    for label, of_class in given.items():
        c = _position(classes, label)
        if isinstance(of_class, Mapping):
            for named, cost in of_class.items():
                costs[c, _position(classes, named)] = check_real("class_costs", cost, minimum=0.0)
        else:
            cost = check_real("class_costs", of_class, minimum=0.0)
            costs[c] = cost * (np.arange(n) != c)
    return costs


def _position(classes: NDArray[Any], label: object) -> int:
    """Return the position of a class, given its label or the text of its label."""
    listed = classes.tolist()
    if label in listed:
        return int(listed.index(label))
    texts = [level_text(label) for label in listed]
    if label not in texts:
        raise ParameterError(
            f"class_costs must name classes, {', '.join(map(repr, listed))}, got {label!r}"
        )
    return texts.index(str(label))
