"""The objective of a union of boxes, and why its sides need only be values of positives.

With weights w_i, the worth of a union f is (Goh 2018, the objective before (2.1), and C_S)::

    sum_{i positive} w_i [i in f] + C_I sum_{i negative} w_i [i not in f]
        - C_E (number of boxes) - C_S (number of closed sides)

`negative_weight` is C_I, `box_cost` C_E and `side_cost` C_S, all >= 0. C_S is an addition; the
thesis has C_S = 0. Margin, M and epsilon of (2.1) to (2.21) are not needed, because of this

Lemma. For every union there is one that is worth at least as much, with at most as many boxes, in
which every closed side of a box has the value of a positive that is inside this box and inside no
other.

Proof. Take one box after another. If all its positives are in other boxes too, drop it: no positive
is lost, no negative enters, and neither cost grows. Otherwise move each closed side inward to the
first of the positives that are in this box alone. None of these is lost, the other positives are in
another box, no row enters, and open sides stay open. Later steps only make other boxes smaller, so
these positives stay in this box alone, and its sides still touch them.

So a side is a *level*: side 2 j of a box is its lower one in column j, side 2 j + 1 its upper one.
Level 0 is open, and level L >= 1 of a lower (upper) side is the L-th smallest (largest) of the
different values v that positives have in this column. The *depth* of a row at a side is the number
of the v that are at most (at least) its own value. A row is in a box if its depth is at least the
box's level, at every side: ties, and negatives between two values, are no special cases. Where C_S
= 0, level 1 is never worse than level 0, which is then left out.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bayescascade.base.arrays import Codes, Flags, Floats, Integers
from bayescascade.base.errors import DataError
from bayescascade.base.validation import check_weights
from bayescascade.base.watch import Watch
from bayescascade.data.distinct_rows import distinct_places
from bayescascade.methods.boxes.parameters import MOST_BOXES, ObjectiveParameters
from bayescascade.methods.boxes.union import BoxUnion
from bayescascade.model.guard import UNIT, share_of_sums

Levels = Codes  # (n_boxes, 2 n_columns), see the module

_ROUNDED = 24.0  # operations besides the sums


@dataclass(frozen=True, slots=True)
class Costs:
    """The costs of the objective; ParameterError if one is out of its range."""

    negative_weight: float
    box_cost: float = 0.0
    side_cost: float = 0.0

    def __post_init__(self) -> None:
        for name, parameter in ObjectiveParameters.declared().items():
            object.__setattr__(self, name, parameter.check(getattr(self, name)))

    def worth(self, inside: float, outside: float, n_boxes: int, n_sides: int) -> float:
        """Return the worth of a union from weights of positives inside and negatives outside."""
        costs = self.box_cost * n_boxes + self.side_cost * n_sides
        return inside + self.negative_weight * outside - costs


def balanced(is_positive: Flags, weights: Floats) -> float:
    """Return the weight of a negative for which both classes have the same weight."""
    return float(weights[is_positive].sum() / weights[~is_positive].sum())


class LevelRows:
    """Finite rows (n_rows, n_columns) with their depths at every side; see the module.

    values: the different values of positives in each column, ascending. positives, negatives (n, 2
    n_columns) int32: depths of distinct rows; equal rows are merged, and their weights added up.
    """

    def __init__(self, rows: Floats, is_positive: Flags, weights: Floats, costs: Costs) -> None:
        self.rows, self.is_positive, self.weights, self.costs = rows, is_positive, weights, costs
        positives = self.rows[self.is_positive]
        self.values = [np.unique(column) for column in positives.T]
        self.positives, self.positive_weights = self._distinct(self.is_positive)
        self.negatives, self.negative_weights = self._distinct(~self.is_positive)

    def _distinct(self, chosen: Flags) -> tuple[Codes, Floats]:
        rows = self.rows[chosen]
        places = np.empty((rows.shape[1], len(rows)), np.int64)  # twice the first depth, + is at it
        for column, values in enumerate(self.values):
            upper = np.searchsorted(values, rows[:, column], "right")
            places[column] = 3 * upper - np.searchsorted(values, rows[:, column], "left")
        n_values = np.array([len(values) for values in self.values])
        first, of_rows = distinct_places(places, (2 * n_values + 2).tolist())
        upper, is_at = np.divmod(places[:, first].T, 2)
        depths = np.stack([upper, n_values - upper + is_at], axis=2).reshape(len(first), -1)
        summed = np.bincount(of_rows, self.weights[chosen], len(first))
        return depths.astype(np.int32), summed.astype(np.float64)

    def with_costs(self, costs: Costs) -> "LevelRows":
        """Return the same rows with other costs."""
        other = copy(self)
        other.costs = costs
        other.__dict__.pop("rounding", None)
        return other

    @property
    def n_levels(self) -> Integers:
        """Number of levels of each side, without level 0, (2 n_columns,)."""
        return np.repeat([len(values) for values in self.values], 2)

    @property
    def constant(self) -> float:
        """The worth of the empty union."""
        return self.costs.negative_weight * float(self.negative_weights.sum())

    @cached_property
    def rounding(self) -> float:
        """Bound on the effect of rounding on a bound and its comparisons, for up to 64 boxes.

        Let T be the weight of positives, plus C_I times that of negatives, plus costs. A bound of
        `kernels.ranges` subtracts sums over disjoint sets of rows from the positives covered: 2 T
        `share_of_sums`. The worth of a union adds T `share_of_sums`. Each side that pays keeps out
        a negative, and every operation is off by a unit of T. If costs are more than the positives'
        weight, no union is worth more than the empty one, which rounding does not change.
        """
        both = np.concatenate([self.positive_weights, self.negative_weights])
        n_sides = 2 * self.rows.shape[1]
        most = self.positive_weights.sum() + self.constant
        costs = self.costs.box_cost + n_sides * self.costs.side_cost
        n_paid = min(len(self.negatives), MOST_BOXES * n_sides)
        return float((3.0 * share_of_sums(both) + (_ROUNDED + n_paid) * UNIT) * (most + costs))

    def gain(self, levels: Levels) -> float:
        """Return the worth of a union of these boxes, minus that of the empty union."""
        covered, entered = (
            float(weights[_inside(depths, levels)].sum())
            for depths, weights in (
                (self.positives, self.positive_weights),
                (self.negatives, self.negative_weights),
            )
        )
        spent = self.costs.box_cost * len(levels) + self.costs.side_cost * (levels > 0).sum()
        return covered - self.costs.negative_weight * entered - float(spent)

    def outside(self, levels: Levels) -> "LevelRows | None":
        """Return the rows that no box of a union contains; None if no positive is left."""
        left = ~self.tight(levels).contains(self.rows)
        if not (left & self.is_positive).any():
            return None
        return LevelRows(self.rows[left], self.is_positive[left], self.weights[left], self.costs)

    def polished(self, levels: Levels, watch: Watch) -> Levels:
        """Return levels, with as many boxes, that no change of a single level improves, in time."""
        levels = np.array(levels, np.int32)
        gain = -np.inf
        while self.gain(levels) > gain + self.rounding:
            gain = self.gain(levels)
            for box, side in np.ndindex(levels.shape):
                if watch.is_over():
                    return levels
                levels[box, side] = self._best_level(levels, box, side)
        return levels

    def _best_level(self, levels: Levels, box: int, side: int) -> int:
        others, own = np.delete(levels, box, axis=0), levels[box].copy()
        own[side] = 0
        changes = np.zeros(int(self.n_levels[side]) + 1)
        changes[1:] -= self.costs.side_cost
        for depths, weights, sign in (
            (self.positives, self.positive_weights, 1.0),
            (self.negatives, self.negative_weights, -self.costs.negative_weight),
        ):
            is_own = _inside(depths, own[np.newaxis]) & ~_inside(depths, others)
            by_depth = np.bincount(depths[is_own, side], weights[is_own], len(changes))
            changes += sign * by_depth[::-1].cumsum()[::-1]
        best = int(np.argmax(changes))
        return best if changes[best] > changes[levels[box, side]] else int(levels[box, side])

    def worth(self, union: BoxUnion) -> float:
        """Return the worth of any union, from its sides."""
        inside = union.contains(self.rows)
        covered = self.weights[inside & self.is_positive].sum()
        outside = self.weights[~inside & ~self.is_positive].sum()
        return self.costs.worth(float(covered), float(outside), union.n_boxes, union.n_sides)

    def tight(self, levels: Levels) -> BoxUnion:
        """Return the union with these levels; its sides are at values of positives."""
        lower, upper = (np.full((len(levels), len(self.values)), s) for s in (-np.inf, np.inf))
        for box, sides in enumerate(np.asarray(levels).tolist()):
            for column, values in enumerate(self.values):
                at_least, at_most = sides[2 * column : 2 * column + 2]
                if at_least > 0:
                    lower[box, column] = values[at_least - 1]
                if at_most > 0:
                    upper[box, column] = values[-at_most]
        return BoxUnion(lower, upper)

    def levels(self, union: BoxUnion) -> Levels:
        """Return the levels of a union's boxes, tight around positives, without empty boxes."""
        inside = union.inside(self.rows[self.is_positive])
        found = []
        for box in np.flatnonzero(inside.any(axis=0)):
            cells = self.rows[self.is_positive][inside[:, box]]
            sides = np.zeros(2 * len(self.values), np.int32)
            for column, values in enumerate(self.values):
                least, most = cells[:, column].min(), cells[:, column].max()
                if self.costs.side_cost == 0.0 or np.isfinite(union.lower[box, column]):
                    sides[2 * column] = np.searchsorted(values, least) + 1
                if self.costs.side_cost == 0.0 or np.isfinite(union.upper[box, column]):
                    sides[2 * column + 1] = len(values) - np.searchsorted(values, most)
            found.append(sides)
        return np.array(found, np.int32).reshape(len(found), 2 * len(self.values))


def checked_rows(
    X: ArrayLike, is_positive: ArrayLike, weights: ArrayLike | None
) -> tuple[Floats, Flags, Floats]:
    """Return rows of positive weight, their flags and weights; DataError if they cannot be used."""
    rows = np.asarray(X, np.float64)
    if rows.ndim != 2 or not rows.size or not np.isfinite(rows).all():
        raise DataError(f"X must be a matrix of finite numbers, got shape {rows.shape}")
    flags: Any = np.asarray(is_positive)
    if flags.shape != rows.shape[:1] or flags.dtype != np.bool_:
        raise DataError(f"is_positive must have a truth value per row of X, {len(rows)}")
    weighed = np.ones(len(rows))
    if weights is not None:
        weighed = check_weights("sample_weight", weights, len(rows))
    kept = weighed > 0.0
    if not (kept & flags).any() or not (kept & ~flags).any():
        raise DataError("rows must be of both kinds, positive and negative, with some weight")
    return rows[kept], flags[kept], weighed[kept]


def _inside(depths: Codes, levels: Sequence[Any] | Levels) -> Flags:
    found = np.zeros(len(depths), np.bool_)
    for sides in levels:
        found |= (depths >= sides).all(axis=1)
    return found
