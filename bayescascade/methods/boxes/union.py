"""Unions of axis-parallel boxes, which describe a rare class.

They are the states of all methods of the family (Goh, "Interpretability by design: new
interpretable machine learning models and methods", 2018, section 2.3). Both sides of a box belong
to it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bayescascade.base.arrays import Flags, Floats
from bayescascade.base.errors import DataError
from bayescascade.base.store import As
from bayescascade.base.validation import check_integer, check_real


@dataclass(frozen=True, slots=True, eq=False)
class BoxUnion:
    """A union of axis-parallel boxes.

    Parameters
    ----------
    lower, upper : (n_boxes, n_columns) float64
        Smallest and largest value inside each box, both included; -inf and inf for open sides.

    Raises
    ------
    DataError
        If they are not matrices of one shape, contain NaN, or a lower side is above its upper side.

    Examples
    --------
    >>> import numpy as np
    >>> from bayescascade import BoxUnion
    >>> union = BoxUnion([[0.0, -np.inf]], [[1.0, 2.0]])
    >>> union.contains([[0.5, -9.0], [1.5, 0.0]]).tolist()
    [True, False]
    >>> union.n_boxes, union.n_sides
    (1, 3)
    """

    lower: Floats
    upper: Floats

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            object.__setattr__(self, name, np.array(getattr(self, name), np.float64))
        if self.lower.ndim != 2 or self.lower.shape != self.upper.shape:
            raise DataError(
                "lower and upper must be matrices of one shape, "
                f"got {self.lower.shape} and {self.upper.shape}"
            )
        if not np.all(self.lower <= self.upper):  # false for NaN
            raise DataError("lower must be at most upper in each box, and neither of them NaN")

    @property
    def n_boxes(self) -> int:
        """Number of boxes. If it is 0, the union is empty."""
        return len(self.lower)

    @property
    def n_sides(self) -> int:
        """Number of closed sides."""
        return int(np.isfinite(self.lower).sum() + np.isfinite(self.upper).sum())

    def inside(self, X: ArrayLike) -> Flags:
        """Return which rows are in each box, (n_rows, n_boxes) bool, for rows of numbers.

        A missing cell (NaN) is inside only if both sides of its column are open.

        Raises
        ------
        DataError
            If the rows have another number of columns.
        """
        rows = np.asarray(X, np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.lower.shape[1]:
            raise DataError(f"X must have {self.lower.shape[1]} columns, got shape {rows.shape}")
        found = np.ones((len(rows), self.n_boxes), np.bool_)
        for box, column in np.argwhere(np.isfinite(self.lower)):
            found[:, box] &= rows[:, column] >= self.lower[box, column]
        for box, column in np.argwhere(np.isfinite(self.upper)):
            found[:, box] &= rows[:, column] <= self.upper[box, column]
        return found

    def contains(self, X: ArrayLike) -> Flags:
        """Return which rows are in at least one box, (n_rows,) bool; see `inside`."""
        return np.asarray(self.inside(X).any(axis=1))

    def halfway(self, X: ArrayLike) -> "BoxUnion":
        """Return the union with sides halfway between rows inside and the next rows outside.

        Sides are moved outward, one after the other, starting from the outermost rows inside. The
        next row outside is the nearest row that only this side keeps out of the current box, so no
        row enters the box. A side that keeps no row out is opened.
        """
        rows = np.asarray(X, np.float64)
        lower, upper = self.lower.copy(), self.upper.copy()
        for box in range(self.n_boxes):
            outside = (rows < lower[box]) | (rows > upper[box])
            n_outside = outside.sum(axis=1)
            inside = rows[n_outside == 0]
            for column in range(rows.shape[1]):
                alone = n_outside == outside[:, column]  # in the box, if this column is ignored
                cells = rows[alone, column]
                for sides, sign in ((lower, 1.0), (upper, -1.0)):
                    side = sides[box, column]
                    if np.isfinite(side):
                        beyond = sign * cells[sign * cells < sign * side]
                        least = sign * (inside[:, column] if len(inside) else side)
                        sides[box, column] = _between(float(np.min(least)), beyond) * sign
                n_outside -= outside[:, column]
                cells = rows[:, column]
                outside[:, column] = (cells < lower[box, column]) | (cells > upper[box, column])
                n_outside += outside[:, column]
        return BoxUnion(lower, upper)

    def to_record(self) -> dict[str, Any]:
        """Return plain JSON types, with the positions of closed sides only."""
        ends = np.stack([self.lower, self.upper], axis=-1)
        closed = np.argwhere(np.isfinite(ends)).tolist()
        sides = [[*place, float(ends[tuple(place)])] for place in closed]
        return {"n_boxes": self.n_boxes, "closed": sides}


def _read_union(record: Mapping[str, Any], n_columns: int) -> BoxUnion:
    """Rebuild a union from `to_record`, which may be damaged."""
    n_boxes = check_integer("n_boxes", record["n_boxes"], 0, 2**16)
    ends = np.tile([-np.inf, np.inf], (n_boxes, n_columns, 1))
    for *place, cut in record["closed"]:
        for number, size in zip(place, ends.shape, strict=True):
            check_integer("closed", number, 0, size - 1)
        ends[tuple(place)] = check_real("closed", cut)
    return BoxUnion(ends[..., 0], ends[..., 1])


UNION = As(BoxUnion.to_record, _read_union, "columns")
"""How a union is saved: by its closed sides."""


def _between(side: float, beyond: Floats) -> float:
    """Return a number halfway between a lower side and the largest value below it."""
    if not beyond.size:
        return -np.inf
    nearest = float(beyond.max())
    middle = nearest / 2 + side / 2
    return middle if nearest < middle <= side else side
