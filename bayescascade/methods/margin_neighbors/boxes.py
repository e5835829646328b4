r"""Policies over boxes: neighbors are the rows in the same bins of all measured features.

Then a policy is a finite tree: at a box it stops and predicts a class, or it measures a feature and
goes on in the boxes inside. Its objective, with n rows of weights that sum to W, is

    error rate + tradeoff * mean cost,      policy(box) = leaf errors, or
                                            tradeoff * cost * rows + sum over bins of policy(inside)

in rows, times W. Rows in different bins are independent, so the least objective of a box is the
minimum over its features of the sum of the least ones inside: dynamic programming is exact. With
sums of ``exp(-objective / temperature)`` instead of minima, the same recursion sums over all
policies, which gives draws from their Gibbs posterior. Every number is a sum of at most ``d * (bins
+ items + 2)`` terms >= 0, so its relative rounding error is at most this number times 2^-53.

The thesis has this neighborhood in its example (448-455). It has only the greedy policy, which asks
for argmax p_i - tradeoff * cost as long as that exceeds p.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.arrays import Floats, Integers
from bayescascade.base.errors import ModelFileError, TooLargeError
from bayescascade.costs.items import CostItems
from bayescascade.data.bins import equal_frequency_edges
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.methods.forests.reports import split_words
from bayescascade.methods.margin_neighbors.kernels.boxes import sum_boxes

_LARGEST = float(np.finfo(np.float32).max)

LEAF = -1
"""A leaf has this instead of a feature."""

MOST_BOXES = 4_000_000
"""Maximum number of boxes, including those without rows."""


class Comparison(NamedTuple):
    """A step of a chain: a cell is at most a threshold or above, and one side is a bin."""

    column: int
    threshold: float
    is_left: bool  # whether the bin has the cells at most the threshold
    missing_left: bool  # whether NaN is on the left


@dataclass(frozen=True, slots=True)
class FeatureBins:
    """Bins of a feature, by the first true comparison: quantiles, a level, a missing cell."""

    chain: tuple[Comparison, ...]

    @property
    def n_bins(self) -> int:
        """Number of bins, >= 1."""
        return len(self.chain) + 1

    @classmethod
    def of(cls, cells: NDArray[np.float32], weights: Floats, first: int, n_bins: int) -> Self:
        """Return the bins of columns (n, width) of the matrix, which begin at `first`."""
        is_missing = np.isnan(cells[:, 0])
        known, sizes = cells[~is_missing].astype(np.float64), weights[~is_missing]
        steps: list[tuple[int, float, bool]] = []
        if cells.shape[1] > 1:  # a column for each level
            steps = [(first + place, 0.5, False) for place in range(cells.shape[1] - 1)]
        elif len(known):
            steps = [(first, cut, True) for cut in _cuts(known[:, 0], sizes, n_bins)]
        bare = cls(tuple(Comparison(*step, False) for step in steps))
        codes = bare.codes(known.astype(np.float32), first)
        fullest = int(np.bincount(codes, sizes, bare.n_bins).argmax()) if len(known) else 0
        chain = [
            Comparison(*step, step[2] if place == fullest else not step[2])
            for place, step in enumerate(steps)
        ]
        if 0 < len(known) < len(cells):
            chain.insert(0, Comparison(first, _LARGEST, False, False))
        return cls(tuple(chain))

    def codes(self, cells: NDArray[np.float32], first: int) -> Integers:
        """Return the bin of rows, (n,) int64, whose columns (n, width) begin at `first`."""
        found = np.full(len(cells), len(self.chain), np.int64)
        is_open = np.ones(len(cells), np.bool_)
        for place, step in enumerate(self.chain):
            cell = cells[:, step.column - first]
            is_left = (cell <= step.threshold) | (np.isnan(cell) & step.missing_left)
            inside = is_open & (is_left == step.is_left)
            found[inside] = place
            is_open &= ~inside
        return found

    def words(self, encoder: MatrixEncoder, last_column: int) -> list[str]:
        """Return each bin in words, such as "age is above 30 and age is at most 50"."""
        told, below = [], ""
        for step in self.chain:
            own = split_words(encoder, step.column, step.threshold, step.is_left)
            told.append(f"{below} and {own}" if below and step.is_left else own)
            if step.is_left:
                below = split_words(encoder, step.column, step.threshold, False)
        if not below and self.chain and self.chain[-1].threshold < _LARGEST:
            below = split_words(encoder, last_column, 0.5, False)
        return [*told, below or "anything else"]

    @classmethod
    def from_record(cls, record: Sequence[Any], columns: Sequence[int]) -> Self:
        """Rebuild a chain from a record; ModelFileError if it does not fit the columns."""
        chain = tuple(
            Comparison(int(column), float(threshold), bool(left), bool(missing))
            for column, threshold, left, missing in record
        )
        if any(step.column not in columns or not np.isfinite(step.threshold) for step in chain):
            raise ModelFileError("saved bins must compare columns of their features to numbers")
        return cls(chain)


def bins_of(
    rows: NDArray[np.float32], weights: Floats, source: Integers, n_bins: int
) -> tuple[FeatureBins, ...]:
    """Return the bins of each feature of rows (n, p); `source` has the features of columns."""
    groups = columns_of(source)
    return tuple(FeatureBins.of(rows[:, each], weights, each[0], n_bins) for each in groups)


def columns_of(source: Integers) -> list[list[int]]:
    """Return the columns of each feature."""
    return [np.flatnonzero(source == feature).tolist() for feature in range(int(source[-1]) + 1)]


def codes_of(bins: Sequence[FeatureBins], rows: NDArray[np.float32], source: Integers) -> Integers:
    """Return the bin of each feature of rows, (n, d) int64."""
    pairs = zip(bins, columns_of(source), strict=True)
    return np.stack([each.codes(rows[:, columns], columns[0]) for each, columns in pairs], axis=1)


def _cuts(values: Floats, weights: Floats, n_bins: int) -> list[float]:
    """Return at most n_bins - 1 cuts between values, for bins of about the same weight."""
    lowest, highest = float(values.min()), float(values.max())
    if lowest == highest:
        return []
    edges = equal_frequency_edges(values, weights, n_bins, lowest, highest)
    return [float(edge) for edge in edges[1:-1] if lowest < edge < highest]


@dataclass(frozen=True, slots=True)
class Policy:
    """A tree of features to acquire, in preorder: a node is followed by the subtrees of its bins.

    Equal policies compare equal and have the same hash.
    """

    nodes: tuple[int, ...] = (LEAF,)  # the feature that is acquired at each node, -1 at leaves


class Solved:
    """The recursion's results for all boxes, for a tradeoff and a temperature; see `sum_boxes`."""

    def __init__(self, table: "BoxTable", tradeoff: float, temperature: float) -> None:
        n, items = table.weights.size, table.items
        self.best, self.log_sums = np.empty(n), np.empty(n)
        self.choices, self.greedy = np.empty(n, np.int64), np.empty(n, np.int64)
        self.n_filled = sum_boxes(
            table.sizes, table.strides, table.weights, table.errors, items.starts, items.items,
            items.costs, float(tradeoff), float(temperature), np.zeros_like(table.sizes),
            np.zeros(items.n_items, np.bool_), self.best, self.choices, self.log_sums, self.greedy,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class BoxTable:
    """Rows in all boxes, and the class that is predicted in each box if it is a leaf.

    sizes (d,) int64: number of bins of each feature, plus one for "not measured"; counts (n_boxes,
    n_classes) float64; labels (n_boxes,) int64.
    """

    sizes: Integers
    counts: Floats
    labels: Integers
    items: CostItems = field(repr=False)

    @classmethod
    def of(
        cls,
        bins: Integers,
        n_bins: Sequence[int],
        labels: Integers,
        weights: Floats,
        n_classes: int,
        items: CostItems,
        scores: tuple[Floats, Sequence[Floats]] | None = None,
    ) -> "BoxTable":
        """Return the boxes of rows, given the bins (n, d) of their features.

        scores: an offset (c,), and the term of each bin (n_bins, c), predict the class of a box;
        without them it is the most common one, of all rows if the box has none.
        """
        sizes = [count + 1 for count in n_bins]
        total = prod(sizes)
        if total > MOST_BOXES:
            raise TooLargeError(
                f"boxes must be at most {MOST_BOXES:,}, got {total:,} of {len(sizes)} features: "
                "take fewer bins (n_bins) or features",
                f"{total:,} boxes",
            )
        strides = _strides(sizes)
        flat = np.zeros((total, n_classes))
        np.add.at(flat, ((bins + 1) @ strides, labels), weights)
        counts = flat.reshape(*sizes, n_classes)
        for axis in range(len(sizes)):
            inside = np.moveaxis(counts, axis, 0)
            inside[0] = inside[1:].sum(axis=0)
        counts = counts.reshape(total, n_classes)
        if scores is None:
            named = counts.argmax(axis=1)
            named[counts.sum(axis=1) <= 0] = int(counts[0].argmax())
        else:
            named = _by_scores(sizes, *scores)
        return cls(np.array(sizes, np.int64), counts, named.astype(np.int64), items)

    @cached_property
    def strides(self) -> Integers:
        """Place value of the digit of each feature, (d,)."""
        return _strides(self.sizes.tolist())

    @cached_property
    def weights(self) -> Floats:
        """Weight of the rows in each box."""
        total: Floats = self.counts.sum(axis=1)
        return total

    @cached_property
    def errors(self) -> Floats:
        """Weight of the misclassified rows in each box."""
        wrong = self.weights - self.counts[np.arange(self.labels.size), self.labels]
        return np.maximum(wrong, 0.0)  # rounding of weights may give less

    def bins(self, feature: int) -> range:
        """Return the digits of a measured feature."""
        return range(1, int(self.sizes[feature]))

    def measured(self, box: int) -> list[int]:
        """Return the measured features of a box."""
        digits = (box // self.strides) % self.sizes
        return np.flatnonzero(digits).tolist()

    def price(self, box: int, feature: int) -> float:
        """Return the cost of a feature for a row in a box."""
        paid = {item for j in self.measured(box) for item in self._incurred[j]}
        return sum(cost for item, cost in self._incurred[feature].items() if item not in paid)

    def walk(self, policy: Policy) -> Iterator[tuple[int, int, float]]:
        """Yield box, feature and price at each node, in preorder; ValueError if it is no policy."""
        weights, sizes, strides = self.weights, self.sizes.tolist(), self.strides.tolist()
        pending: list[tuple[int, frozenset[int], frozenset[int]]] = [(0, frozenset(), frozenset())]
        for feature in policy.nodes:
            if not pending:
                raise ValueError("nodes must be one tree in preorder")
            box, measured, paid = pending.pop()
            if feature == LEAF:
                yield box, LEAF, 0.0
                continue
            if type(feature) is not int or not 0 <= feature < len(sizes):
                raise ValueError(f"features must be from 0 to {len(sizes) - 1}")
            if feature in measured or weights[box] <= 0:
                raise ValueError("a policy must ask once for a feature, and only where rows are")
            incurred = self._incurred[feature]
            yield box, feature, sum(cost for item, cost in incurred.items() if item not in paid)
            after = measured | {feature}, paid | incurred.keys()
            stride = strides[feature]
            pending += [(box + digit * stride, *after) for digit in reversed(self.bins(feature))]
        if pending:
            raise ValueError("nodes must be one tree in preorder")

    @cached_property
    def _incurred(self) -> list[dict[int, float]]:
        """Costs of each feature, by item."""
        items = self.items
        return [
            {item: float(items.costs[item]) for item in items.of_column(j).tolist()}
            for j in range(items.n_columns)
        ]

    def errors_and_cost(self, policy: Policy) -> tuple[float, float]:
        """Return the weight of misclassified rows, and the total cost; see `walk`."""
        wrong = paid = 0.0
        for box, feature, price in self.walk(policy):
            if feature == LEAF:
                wrong += float(self.errors[box])
            else:
                paid += price * float(self.weights[box])
        return wrong, paid

    def policy_by(self, choices: Integers) -> Policy:
        """Return the policy that acquires feature `choices` (n_boxes,) in each box."""
        nodes, pending = [], [0]
        while pending:
            box = pending.pop()
            feature = int(choices[box])
            nodes.append(feature)
            if feature != LEAF:
                stride = int(self.strides[feature])
                pending += [box + digit * stride for digit in reversed(self.bins(feature))]
        return Policy(tuple(nodes))


def _strides(sizes: Sequence[int]) -> Integers:
    return np.array([prod(sizes[j + 1 :]) for j in range(len(sizes))], np.int64)


def _by_scores(sizes: Sequence[int], offset: Floats, parts: Sequence[Floats]) -> Integers:
    """Return the class of each box by the sum of its bins' terms, the first among ties."""
    total = np.broadcast_to(offset, (*sizes, offset.size)).copy()
    for axis, part in enumerate(parts):
        added = np.concatenate([np.zeros((1, offset.size)), part])
        shape = [1] * len(sizes) + [offset.size]
        shape[axis] = sizes[axis]
        total += added.reshape(shape)
    flat = total.reshape(-1, offset.size)
    return (flat[:, 0] > 0).astype(np.int64) if offset.size == 1 else flat.argmax(axis=1)
