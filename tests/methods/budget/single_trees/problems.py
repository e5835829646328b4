"""Tiny problems whose budgeted trees can all be listed, and their densities in plain words."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np

from bayescascade.costs.feature_costs import FeatureCosts
from bayescascade.methods.budget.single_trees.posterior import BudgetTreePosterior
from bayescascade.methods.budget.single_trees.tree import BudgetTree
from tests.methods.lists.problems import each as each

Nested = tuple | None
"""A tree in plain words: None is a leaf, a split is (column, threshold, left, right)."""


@dataclass(frozen=True)
class TreeProblem:
    """Some rows of small whole numbers, labels that follow them loosely, and costs.

    groups: sets of columns that share a price besides their own.
    """

    name: str
    n_levels: tuple[int, ...]
    max_leaves: int
    n_rows: int = 14
    n_classes: int = 2
    prices: tuple[float, ...] = (1.0, 0.5, 0.0)
    groups: tuple[tuple[int, ...], ...] = ()
    tradeoff: float = 0.5
    noise: float = 0.15
    concentration: float = 0.8
    split_probability: float = 0.55
    min_leaf_weight: float = 1.0
    fractional: bool = False

    @cached_property
    def rows(self) -> tuple[list[list[int]], list[int], list[float]]:
        rng = np.random.default_rng([self.n_rows, *self.n_levels])
        rows = rng.integers(0, self.n_levels, (self.n_rows, len(self.n_levels)))
        for column, size in enumerate(self.n_levels):  # every value is seen
            rows[:size, column] = rng.permutation(size)
        labels = (rows.sum(axis=1) + (rng.random(self.n_rows) < self.noise)) % self.n_classes
        labels[: self.n_classes] = range(self.n_classes)
        weights = rng.random(self.n_rows) + 0.5 if self.fractional else np.ones(self.n_rows)
        return rows.tolist(), labels.tolist(), weights.tolist()

    def posterior(
        self, kind: type[BudgetTreePosterior] = BudgetTreePosterior, **settings: object
    ) -> BudgetTreePosterior:
        rows, labels, weights = self.rows
        names = [f"group {number}" for number in range(len(self.groups))]
        costs = FeatureCosts(
            {**dict(enumerate(self.prices[: len(self.n_levels)])), **dict.fromkeys(names, 0.9)},
            groups=dict(zip(names, self.groups, strict=True)),
        )
        chosen = {
            "costs": costs,
            "tradeoff": self.tradeoff,
            "concentration": self.concentration,
            "split_probability": self.split_probability,
            "max_leaves": self.max_leaves,
            "min_leaf_weight": self.min_leaf_weight,
            **settings,
        }
        return kind(rows, labels, weights, **chosen)

    # -- the twin ----------------------------------------------------------------------------------

    @property
    def candidates(self) -> list[tuple[int, float]]:
        """Every column with each of its thresholds, halfway between values."""
        return [
            (column, value + 0.5)
            for column, size in enumerate(self.n_levels)
            for value in range(size - 1)
        ]

    def weight(self, rows: list[int]) -> float:
        return sum(self.rows[2][row] for row in rows)

    def log_density(self, tree: Nested, **changes: float) -> float:
        """Return the log density of a nested tree."""
        problem = replace(self, **changes)
        everyone = list(range(self.n_rows))
        return problem._log_density(tree, everyone, frozenset())

    def _log_density(self, tree: Nested, rows: list[int], above: frozenset[int]) -> float:
        a, k, s = self.concentration, self.n_classes, self.split_probability
        if tree is None:
            total = math.log(1 - s) + math.lgamma(k * a) - math.lgamma(k * a + self.weight(rows))
            for label in range(k):
                n = self.weight([row for row in rows if self.rows[1][row] == label])
                total += math.lgamma(a + n) - math.lgamma(a)
            return total
        column, threshold, left, right = tree
        cost = 0.0 if column in above else self.prices[column]
        for group in self.groups:
            if column in group and not above & set(group):
                cost += 0.9
        share = self.weight(rows) / sum(self.rows[2])
        n_columns = sum(size > 1 for size in self.n_levels)
        total = math.log(s / n_columns / (self.n_levels[column] - 1)) - self.tradeoff * share * cost
        is_left = {row: self.rows[0][row][column] <= threshold for row in rows}
        lefts = [row for row in rows if is_left[row]]
        rights = [row for row in rows if not is_left[row]]
        total += self._log_density(left, lefts, above | {column})
        return total + self._log_density(right, rights, above | {column})

    def _nested(self, rows: list[int], most: int) -> Iterator[tuple[Nested, int]]:
        """Yield every tree of up to `most` leaves over some rows, with its number of leaves."""
        yield None, 1
        if most == 1:
            return
        for column, threshold in self.candidates:
            lefts = [row for row in rows if self.rows[0][row][column] <= threshold]
            rights = [row for row in rows if self.rows[0][row][column] > threshold]
            if min(self.weight(lefts), self.weight(rights)) < self.min_leaf_weight:
                continue
            for left, n_left in self._nested(lefts, most - 1):
                for right, n_right in self._nested(rights, most - n_left):
                    yield (column, threshold, left, right), n_left + n_right

    @cached_property
    def nested(self) -> list[Nested]:
        """Every tree of positive density, smallest first."""
        found = list(self._nested(list(range(self.n_rows)), self.max_leaves))
        return [tree for tree, _ in sorted(found, key=lambda pair: pair[1])]

    def flat(self, tree: Nested) -> tuple[int, ...]:
        """Return a nested tree's candidates in preorder."""
        if tree is None:
            return (-1,)
        column, threshold, left, right = tree
        return (
            self.candidates.index((column, threshold)), *self.flat(left), *self.flat(right),
        )  # fmt: skip

    @cached_property
    def trees(self) -> list[BudgetTree]:
        return [BudgetTree(self.flat(tree)) for tree in self.nested]

    def log_densities(self, **changes: float) -> np.ndarray:
        return np.array([self.log_density(tree, **changes) for tree in self.nested])

    def probabilities(self, inverse_temperature: float = 1.0, **changes: float) -> np.ndarray:
        """Return the probability of each tree by the twin."""
        heated = inverse_temperature * self.log_densities(**changes)
        return np.exp(heated - np.logaddexp.reduce(heated))


TWO = TreeProblem("two", (3, 2), 4)
GROUPED = TreeProblem(
    "grouped", (2, 2, 2), 4, groups=((0, 1), (1, 2)), noise=0.0, n_rows=40, tradeoff=1.0
)
THREE_CLASSES = TreeProblem("three-classes", (4,), 3, n_classes=3, min_leaf_weight=3.0)
WEIGHED = TreeProblem(
    "weighed", (2, 3), 3, n_rows=18, noise=0.05, fractional=True, min_leaf_weight=1.7
)
CONSTANT = TreeProblem("constant", (1, 3), 3)
PROBLEMS = (TWO, GROUPED, THREE_CLASSES, WEIGHED, CONSTANT)


class Remembered(BudgetTreePosterior):
    """A posterior that computes once what it says of each tree, in plain Python."""

    def __init__(self, *arguments: object, **settings: object) -> None:
        super().__init__(*arguments, **settings)
        self._log_density = cache(super().log_density)
        self._described = cache(super().describe)

    def log_density(self, state: BudgetTree) -> float:
        return self._log_density(state)

    def describe(self, state: BudgetTree) -> Mapping[str, float]:
        return self._described(state)
