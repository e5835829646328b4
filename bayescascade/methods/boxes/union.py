"""Unions of axis-parallel boxes, which describe a rare class, and texts about them.

They are the states of all methods of the family (Goh, "Interpretability by design: new
interpretable machine learning models and methods", 2018, section 2.3). Both sides of a box belong
to it.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bayescascade.base.arrays import Flags, Floats
from bayescascade.base.errors import DataError
from bayescascade.base.store import GIVEN, INLINE, As, Of, Saved, Within, listed
from bayescascade.base.validation import check_integer, check_real
from bayescascade.base.watch import watch_in_use
from bayescascade.costs.within_budgets import coarse_first
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.data.matrix_sides import side_sql, side_words
from bayescascade.data.sql import sql_case
from bayescascade.report.numbers import count_texts, share_text
from bayescascade.report.page import BLANK, Numbers, Page, Pieces, PrintedTable, count_of


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


KEPT_OUT = (("keeps out", "rows of the other class that are outside only because of this side"),)
DRAWN = (
    ("in draws", "the share of posterior draws whose most similar box also has this side"),
    ("90 % within", "the range of this side in 90 % of these draws"),
)


@listed
class Side(NamedTuple):
    """A closed side of the printed union.

    kept_out: the weight of negatives that it alone keeps out of its box; drawn: the share of draws
    whose most similar box closes the side, too; low, high: the range of 90 % of these sides. They
    are None without draws, or if none closes it.
    """

    box: Annotated[int, Within(0)]
    column: Annotated[int, Within(0)]
    is_upper: bool
    kept_out: Annotated[float, Within(0)]
    drawn: Annotated[float, Within(0)] | None = None
    low: float | None = None
    high: float | None = None

    def interval(self, cut: float) -> tuple[float, float]:
        """Return the interval within the side if it is at a cut."""
        return (-np.inf, cut) if self.is_upper else (cut, np.inf)


@dataclass(frozen=True, slots=True, eq=False)
class LearnedBoxes:
    """A union of boxes, with counts inside and outside of it.

    counts (2, 2) float64: weights of negatives and positives, outside and inside; prior_weight > 0:
    prior number of rows of each kind in a rate; sides: the closed ones of a printed union.
    """

    union: Annotated[BoxUnion, UNION, INLINE]
    counts: Annotated[Floats, Of(2, 2, least=0)]
    prior_weight: Annotated[float, GIVEN]
    sides: Annotated[tuple[Side, ...], Saved("sides", is_optional=True)] = ()

    def __post_init__(self) -> None:
        if not all(map(math.isfinite, map(self.cut, self.sides))):
            raise ValueError("sides of a union must be closed")

    @classmethod
    def of(
        cls, union: BoxUnion, rows: Floats, is_positive: Flags, weights: Floats, prior_weight: float
    ) -> "LearnedBoxes":
        """Return a union to print, with its counts and sides."""
        inside = union.contains(rows)
        counts = np.zeros((2, 2))
        np.add.at(counts, (inside.astype(int), is_positive.astype(int)), weights)
        negatives, weighed, sides = rows[~is_positive], weights[~is_positive], []
        for box, (lower, upper) in enumerate(zip(union.lower, union.upper, strict=True)):
            beyond = negatives < lower, negatives > upper
            alone = beyond[0].sum(axis=1) + beyond[1].sum(axis=1) == 1
            kept_out = [weighed[alone] @ each[alone] for each in beyond]
            sides += [
                Side(box, column, bool(which), float(kept_out[which][column]))
                for column in range(len(lower))
                for which in range(2)
                if np.isfinite((lower, upper)[which][column])
            ]
        return cls(union, counts, prior_weight, tuple(sides))

    def with_draws(
        self, draws: Sequence["LearnedBoxes"], positives: Floats, weights: Floats
    ) -> "LearnedBoxes":
        """Return the union with the uncertainty of its sides; see `Side`.

        The most similar box shares the largest part of the positives that are in either box. The
        current watch may end this after some of the draws, which are spread over all of them.
        """
        watch, n_used = watch_in_use(), 0
        own = self.union.inside(positives) * weights[:, np.newaxis]
        cuts: list[list[float]] = [[] for _ in self.sides]
        for place in coarse_first(len(draws)):
            if n_used and watch.is_over():
                break
            draw, n_used = draws[place], n_used + 1
            inside = draw.union.inside(positives)
            both = own.T @ inside
            either = own.sum(axis=0)[:, np.newaxis] + weights @ inside - both
            for side, found in zip(self.sides, cuts, strict=True):
                if not both[side.box].any():
                    continue
                box = int(np.argmax(both[side.box] / np.maximum(either[side.box], 1e-300)))
                ends = draw.union.upper if side.is_upper else draw.union.lower
                if np.isfinite(ends[box, side.column]):
                    found.append(float(ends[box, side.column]))
        if not draws:
            return self
        sides = [
            side._replace(drawn=len(found) / n_used) if not found
            else side._replace(
                drawn=len(found) / n_used,
                low=float(np.quantile(found, 0.05, method="lower")),
                high=float(np.quantile(found, 0.95, method="higher")),
            )
            for side, found in zip(self.sides, cuts, strict=True)
        ]  # fmt: skip
        return replace(self, sides=tuple(sides))

    @property
    def rates(self) -> Floats:
        """Rates of positives outside and inside, (2,)."""
        rates: Floats = (self.counts[:, 1] + self.prior_weight) / (
            self.counts.sum(axis=1) + 2.0 * self.prior_weight
        )
        return rates

    def probabilities(self, rows: Floats) -> Floats:
        """Return the rate of each row, (n_rows,)."""
        found: Floats = self.rates[self.union.contains(rows).astype(int)]
        return found

    # -- in words ----------------------------------------------------------------------------------

    @property
    def headings(self) -> Sequence[tuple[str, str]]:
        """Explanations of the columns of the tables."""
        is_drawn = any(side.drawn is not None for side in self.sides)
        return (*(KEPT_OUT if self.sides else ()), *(DRAWN if is_drawn else ()))

    def page(self, encoder: MatrixEncoder, positive: str) -> Page:
        """Return a summary line, and a table of the sides of each box."""
        blocks: list[Any] = [Pieces(self.pieces(positive))]
        for box in range(self.union.n_boxes):
            sides = [side for side in self.sides if side.box == box]
            blocks += [BLANK, self._table(encoder, box, sides)]
        return tuple(blocks)

    def pieces(self, positive: str) -> list[str]:
        """Return the numbers of boxes and sides, and of rows of each kind inside."""
        (negatives, positives), inside = self.counts.sum(axis=0), self.counts[1]
        held = count_texts([inside[1], positives, inside[0], negatives])
        return [
            count_of(self.union.n_boxes, "box", "boxes"),
            count_of(self.union.n_sides, "closed side"),
            f'holds {held[0]} of {held[1]} rows of "{positive}"',
            f"and {held[2]} of {held[3]} others",
            f"posterior mean rate {share_text(self.rates[1])} inside, "
            f"{share_text(self.rates[0])} outside",
        ]

    def _table(self, encoder: MatrixEncoder, box: int, sides: Sequence[Side]) -> Any:
        if not sides:
            return Pieces([f"box {box + 1}: any row"])
        texts = [side_words(encoder, side.column, *side.interval(self.cut(side))) for side in sides]
        numbers = [
            Numbers("at least", [text.at_least for text in texts]),
            Numbers("at most", [text.at_most for text in texts]),
            Numbers("keeps out", count_texts([side.kept_out for side in sides])),
        ]
        if any(side.drawn is not None for side in sides):
            drawn = ["" if side.drawn is None else share_text(side.drawn) for side in sides]
            numbers += [
                Numbers("in draws", drawn),
                Numbers("90 % within", [_range_text(encoder, side) for side in sides]),
            ]
        numbers = [number for number in numbers if any(number.texts)]
        return PrintedTable([text.label for text in texts], numbers, f"box {box + 1}", stacks=True)

    def cut(self, side: Side) -> float:
        """Return the position of a side."""
        ends = self.union.upper if side.is_upper else self.union.lower
        return float(ends[side.box, side.column])

    def reasons(self, rows: Floats, encoder: MatrixEncoder) -> list[str]:
        """Return in words the box of each row, and its sides."""
        inside = self.union.inside(rows)
        texts = [
            f"box {box + 1}: {' and '.join(self._conditions(encoder, box)) or 'any row'}"
            for box in range(inside.shape[1])
        ]
        return [texts[int(np.argmax(each))] if each.any() else "in no box" for each in inside]

    def _conditions(self, encoder: MatrixEncoder, box: int) -> Iterator[str]:
        for column, (low, high) in enumerate(
            zip(self.union.lower[box].tolist(), self.union.upper[box].tolist(), strict=True)
        ):
            if np.isfinite(low) or np.isfinite(high):
                words = side_words(encoder, column, low, high)
                ends = [f"at least {words.at_least}"] * bool(words.at_least)
                ends += [f"at most {words.at_most}"] * bool(words.at_most)
                yield f"{words.label} is {' and '.join(ends)}" if ends else words.label

    def to_sql(
        self, encoder: MatrixEncoder, means: Floats | None, outside: str, inside: str
    ) -> list[str]:
        """Return lines of SQL for the value of a row inside or outside of the boxes."""
        boxes = []
        for lower, upper in zip(self.union.lower.tolist(), self.union.upper.tolist(), strict=True):
            closed = [
                side_sql(encoder, column, low, high, means)
                for column, (low, high) in enumerate(zip(lower, upper, strict=True))
                if np.isfinite(low) or np.isfinite(high)
            ]
            boxes.append(" AND ".join(filter(None, closed)) or "1 = 1")
        return sql_case([(box, [inside]) for box in boxes], [outside])


def _range_text(encoder: MatrixEncoder, side: Side) -> str:
    """Return the range of a side in most draws; "" if there is none."""
    if side.low is None or side.high is None:
        return ""
    ends = (side_words(encoder, side.column, *side.interval(cut)) for cut in (side.low, side.high))
    first, last = (end.at_most if side.is_upper else end.at_least for end in ends)
    return first if first == last else f"{first} to {last}"
