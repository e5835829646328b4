"""All trees of few fixed columns over dependent leaves, exactly: sum, maximum, average density.

Splits send every level its own way (`partitions="levels"`), so that a box is a set of columns and
the level that each of them is fixed at, and trees that fix at most `max_depth` columns on a path
meet no more boxes than there are such sets times the levels seen in them. Boxes without rows need
no table: what stands below them is worth its prior.

With `BranchModel` what a split is worth depends on its own branches alone, so one pass from the
smallest boxes up sums over all trees. Let ``Z(S)`` be the sum of the priors of all subtrees below a
box that fixes columns S, and ``pi`` the prior probability of ending there in a leaf or of splitting
column j, given by ``Z``. Then ``U``, the log of the average likelihood of the rows in box x, is ::

    U(x) = log[ pi(leaf) L_leaf(x) + sum_j pi(j) B_j(x) prod_c exp U(x, j = c) ]

with ``L_leaf`` of `dependence` and ``B_j = B(alpha + n_c) / B(alpha, ..)``. The summands, divided
by their sum, are what the box does in a tree drawn from the posterior; going down from the root
they give each box the probability that a new row ends in it, and a row's density, averaged over all
trees, is a sum over the boxes that hold it.

**Tempered** by `temper` = c, the summands of a box of n > c rows are taken to the power c / n, and
``U`` is divided by it again: the box weighs what to do as if it held c rows like its own. This is
not Bayes: likelihoods of many rows make a posterior as sure as if one of the trees were true, and
it then averages over too few. Choose c by the score of rows held out.
"""

from collections.abc import Callable, Iterator
from copy import copy
from functools import cached_property, reduce
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from bayescascade.base.errors import ParameterError, TooLargeError
from bayescascade.base.validation import check_integer, check_real
from bayescascade.methods.cascades.dependence import integrate_missing
from bayescascade.methods.cascades.kernels.dependence import add_densities, weigh_boxes
from bayescascade.methods.cascades.kernels.layout import TableArrays, log_rises, new_dependence_work
from bayescascade.methods.cascades.models import BranchModel
from bayescascade.methods.cascades.tree import Tree, level_starts

if TYPE_CHECKING:
    from bayescascade.data.table import Table

__all__ = ["DependentTrees", "check_fits", "largest_depth"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

_LEAST = 1e-9
"""Of a row's density, how much all boxes that are passed over may make."""

_ROWS_AT_ONCE = 1 << 25  # times subsets of columns
_QUICK = 2e9  # steps, some ten seconds
_MOST_STEPS = 1e13  # hours


class _Layer(NamedTuple):
    """Boxes with rows that fix equally many columns: n of them, of p columns and L levels."""

    first: int  # number of the first among all boxes with rows
    subset: Integers  # (n,): number of the set of columns fixed
    counts: Floats  # (n,): weight of the rows
    log_leaf: Floats  # (n,): their log marginal likelihood as a leaf
    below: NDArray[np.int32]  # (n, L): box where a level is fixed, too; -1 without rows, or not met


class DependentTrees:
    """The posterior over all trees of at most `max_depth` fixed columns with dependent leaves.

    Parameters
    ----------
    table : Table
        Distinct rows and their weights.
    model : BranchModel
        Of leaf "dependent", without `feature_inclusion`, by which what is split in one branch would
        depend on the others.
    max_depth : int >= 0
        Most columns that a path from the root may fix.
    temper : float > 0 or None
        A box of more rows decides as if it held so many; None for the posterior.

    Attributes
    ----------
    n_boxes : int
        Boxes with rows.
    log_normalizer : float
        Log of the sum over all trees of prior times likelihood, nats, as `BranchModel` has them.
    log_evidence : float
        That, less the same sum without data: the log probability of the data under the normalized
        prior. If tempered, both are what stands in its place, and no evidence.

    Raises
    ------
    ParameterError
        If a number is out of its range, or there is a `feature_inclusion`.
    """

    def __init__(
        self, table: "Table", model: BranchModel, max_depth: int, temper: float | None = None
    ) -> None:
        if model.feature_inclusion is not None:
            told = f"got {model.feature_inclusion}"
            raise ParameterError(f"feature_inclusion must be None for all trees, {told}")
        check_integer("max_depth", max_depth, minimum=0)
        if temper is not None:
            check_real("temper", temper, above=0.0)
        self.table, self.model, self.temper = table, model, temper
        schema = table.schema
        self._n_levels = np.asarray(schema.n_levels, np.int64)
        self._starts = level_starts(schema)
        self._column = np.repeat(np.arange(self._n_levels.size), self._n_levels)
        self._open = np.flatnonzero(self._n_levels > 1).tolist()
        self.max_depth = min(int(max_depth), len(self._open))
        self._subsets = [
            subset
            for size in range(self.max_depth + 1)
            for subset in combinations(self._open, size)
        ]
        self._number = {subset: number for number, subset in enumerate(self._subsets)}
        widths = np.concatenate([column.widths for column in schema.columns])
        self._log_widths = np.log(widths)
        self._arrays = TableArrays(
            codes=table.codes,
            row_codes=table.codes.T.copy(order="C"),
            weights=table.weights,
            nominal=np.array([column.kind == "nominal" for column in schema.columns]),
            n_levels=self._n_levels,
            offsets=self._starts,
            widths=widths,
        )
        a = float(model.leaf_concentration)
        self._work = new_dependence_work(
            a, log_rises(self._arrays, a), self._n_levels.size, self._column.size
        )
        self._below = self._subsets_below()
        self._layers, self._first_box = self._find_boxes()
        self.n_boxes = int(self._first_box[-1])
        # the last, here and wherever boxes are looked up, stands for all boxes without rows
        self._counts = np.concatenate([*(layer.counts for layer in self._layers), [0.0]])
        self._log_trees, self._log_prior = self._weigh_priors()
        self._weigh()

    def tempered(self, temper: float | None) -> "DependentTrees":
        """Return what another `temper` gives, for a fraction of the time: no row is counted."""
        other = copy(self)
        other.__dict__.pop("tree", None)
        other.temper = None if temper is None else check_real("temper", temper, above=0.0)
        other._weigh()
        return other

    def _weigh(self) -> None:
        self._log_choices, self.log_evidence = self._weigh_choices()
        self.log_normalizer = self.log_evidence + float(self._log_trees[0])
        self._log_mass, self._flows = self._share_out()

    # -- boxes -------------------------------------------------------------------------------------

    def _find_boxes(self) -> tuple[list[_Layer], Integers]:
        """Return the boxes with rows by layers, and the first one of every subset of columns.

        The latter is (n_subsets + 1,); boxes of smaller subsets come first.
        """
        table, weights = self.table, self.table.weights
        log_volumes = self._log_widths[table.codes + self._starts[:-1, np.newaxis]].sum(axis=0)
        layers: list[_Layer] = []
        firsts = [0]
        above: dict[tuple[int, ...], Integers] = {}
        for size in range(self.max_depth + 1):
            groups: dict[tuple[int, ...], Integers] = {}
            found: list[tuple[Floats, Floats]] = []
            start = firsts[-1]
            for subset in combinations(self._open, size):
                box = self._refined(above[subset[:-1]], subset[-1]) if subset else self._root
                rows, edges = _grouped(box)
                counts: Floats = np.bincount(box, weights).astype(np.float64)
                log_leaf = np.empty(counts.size)
                weigh_boxes(self._arrays, self._work, rows, edges, self._left(subset), log_leaf)
                found.append((counts, log_leaf - np.bincount(box, weights * log_volumes)))
                heads = rows[edges[:-1]]
                for j in subset:
                    parent = tuple(i for i in subset if i != j)
                    parents = above[parent][heads] + firsts[self._number[parent]] - layers[-1].first
                    levels = self._starts[j] + table.codes[j, heads]
                    layers[-1].below[parents, levels] = firsts[-1] + np.arange(heads.size)
                groups[subset] = box
                firsts.append(firsts[-1] + heads.size)
            counts, log_leaf = (np.concatenate(part) for part in zip(*found, strict=True))
            n_boxes = np.diff(firsts[-len(found) - 1 :])
            numbers = np.arange(len(firsts) - 1 - len(found), len(firsts) - 1)
            below = np.full((counts.size, self._column.size), -1, np.int32)
            layers.append(_Layer(start, np.repeat(numbers, n_boxes), counts, log_leaf, below))
            above = groups
        return layers, np.array(firsts, np.int64)

    @property
    def _root(self) -> Integers:
        """The number of each row's box where no column is fixed."""
        return np.zeros(self.table.n_distinct, np.int64)

    def _refined(self, box: Integers, j: int) -> Integers:
        """Return the number of each row's box, of those with rows, where column j is fixed too."""
        key = box * self._n_levels[j] + self.table.codes[j]
        numbers: Integers = (np.cumsum(np.bincount(key) > 0) - 1)[key]
        return numbers

    def _left(self, subset: tuple[int, ...]) -> Integers:
        """Return how many levels of each column are left where some are fixed, (p,)."""
        left = self._n_levels.copy()
        left[list(subset)] = 1
        return left

    def _subsets_below(self) -> Integers:
        """Return the number of each subset with one more column, (n_subsets, p); -1: none."""
        below = np.full((len(self._subsets), self._n_levels.size), -1, np.int64)
        for number, subset in enumerate(self._subsets):
            for j in subset:
                below[self._number[tuple(i for i in subset if i != j)], j] = number
        return below

    # -- sums --------------------------------------------------------------------------------------

    def _weigh_priors(self) -> tuple[Floats, Floats]:
        """Return log sums of the priors of all subtrees by subset, and log priors of each choice.

        (n_subsets,) and (n_subsets, p + 1) float64, the leaf behind the columns.
        """
        rate, b = self.model.rate, self._n_levels
        log_split = -rate + b * np.log(rate) - gammaln(b + 1)
        log_trees = np.zeros(len(self._subsets))
        log_prior = np.full((len(self._subsets), b.size + 1), -np.inf)
        log_prior[:, -1] = -rate
        for number in range(len(self._subsets) - 1, -1, -1):
            splits = np.flatnonzero(self._below[number] >= 0)
            log_prior[number, splits] = log_split[splits]
            log_prior[number, splits] += b[splits] * log_trees[self._below[number, splits]]
            log_trees[number] = np.logaddexp.reduce(log_prior[number])
            log_prior[number] -= log_trees[number]
        return log_trees, log_prior

    def _weigh_choices(self) -> tuple[list[Floats], float]:
        """Return log probabilities of what is done in the boxes of each layer, and the root's U.

        (n, p + 1) float64 each, the leaf behind the columns.
        """
        alpha, b = self.model.concentration, self._n_levels
        values = np.zeros(self.n_boxes + 1)
        found = []
        for layer in reversed(self._layers):
            terms = gammaln(self._counts[layer.below] + alpha) - gammaln(alpha)
            terms += values[layer.below]
            log_split = np.add.reduceat(terms, self._starts[:-1], axis=1)
            log_split += gammaln(b * alpha) - gammaln(layer.counts[:, np.newaxis] + b * alpha)
            likelihoods = np.column_stack([log_split, layer.log_leaf])
            cap = np.inf if self.temper is None else self.temper
            power = np.minimum(1.0, cap / layer.counts)[:, np.newaxis]
            logs = self._log_prior[layer.subset] + power * likelihoods
            sums = np.logaddexp.reduce(logs, axis=1, keepdims=True)
            values[layer.first : layer.first + layer.counts.size] = (sums / power)[:, 0]
            found.append(logs - sums)
        return found[::-1], float(values[0])

    def _share_out(self) -> tuple[Floats, list[Floats]]:
        """Return the log probability that a row ends in each box, and of going on to each level.

        (n_boxes,) float64, and (n, L) float64, no logs, for the boxes of every layer; both for a
        new row, averaged over all trees.
        """
        alpha = self.model.concentration
        reached = np.zeros(self.n_boxes + 1)
        reached[0] = 1.0
        masses, flows = [np.empty(0)], []
        for layer, log_choices in zip(self._layers, self._log_choices, strict=True):
            choices = np.exp(log_choices)
            choices *= reached[layer.first : layer.first + layer.counts.size, np.newaxis]
            masses.append(choices[:, -1])
            totals = layer.counts[:, np.newaxis] + alpha * self._n_levels[self._column]
            flow = choices[:, self._column] * (self._counts[layer.below] + alpha) / totals
            np.add.at(reached, layer.below, flow)
            flows.append(flow)
        with np.errstate(divide="ignore"):
            return np.log(np.concatenate(masses)), flows

    # -- what it says ------------------------------------------------------------------------------

    def log_predictive(self, codes: NDArray[np.int32]) -> Floats:
        """Return the log density of rows averaged over all trees and their parameters, nats.

        Parameters
        ----------
        codes : (p, n) int32
            As of `Schema.encode`; -1 is a missing cell and integrated out: the density is then that
            of the others. Its time is that of all ways to fill it in, of which there may be 65,536.

        Returns
        -------
        (n,) float64
        """
        return integrate_missing(self._score_all, self.table.schema, codes)

    def _score_all(self, codes: NDArray[np.integer]) -> Floats:
        distinct, places = np.unique(codes, axis=1, return_inverse=True)
        n_at_once = max(1, _ROWS_AT_ONCE // len(self._subsets))
        parts = [
            self._score(distinct[:, first : first + n_at_once])
            for first in range(0, distinct.shape[1], n_at_once)
        ]
        scores: Floats = np.concatenate([*parts, np.empty(0)])[places]
        return scores

    def _score(self, codes: NDArray[np.integer]) -> Floats:
        levels = codes + self._starts[:-1, np.newaxis]
        boxes, scores = self._locate(levels)
        log_mass = np.append(self._log_mass, -np.inf)[boxes]
        scored = codes.T.copy(order="C")
        log_least = float(np.log(_LEAST / len(self._subsets)))
        for number in np.argsort(-log_mass.max(axis=1), kind="stable"):
            subset, first = self._subsets[number], self._first_box[number]
            inside = np.flatnonzero(log_mass[number] > scores + log_least)
            if inside.size == 0:
                continue
            n_boxes = self._first_box[number + 1] - first
            box: Integers = reduce(self._refined, subset, self._root)
            rows, edges = _grouped(box)
            scored_rows, scored_edges = _grouped(boxes[number, inside] - first, n_boxes)
            add_densities(
                self._arrays, self._work, rows, edges, self._left(subset),
                self._log_mass[first : first + n_boxes], scored, inside[scored_rows], scored_edges,
                log_least, scores,
            )  # fmt: skip
        scores -= self._log_widths[levels].sum(axis=0)
        return scores

    def _locate(self, levels: Integers) -> tuple[NDArray[np.int32], Floats]:
        """Return the boxes that hold each row, and its log density in boxes without table rows.

        (n_subsets, n) int32, -1 where the table has no row, and (n,) float64, but for the widths:
        whatever the tree below such a box, all its cells are as probable.
        """
        n = levels.shape[1]
        boxes = np.full((len(self._subsets), n), -1, np.int32)
        boxes[0] = min(0, self.n_boxes - 1)
        density = np.full(n, float(self.n_boxes == 0))
        for number, subset in enumerate(self._subsets):
            if len(subset) == self.max_depth:
                break
            inside = np.flatnonzero(boxes[number] >= 0)
            layer, flow = self._layers[len(subset)], self._flows[len(subset)]
            box, at = boxes[number, inside] - layer.first, levels[:, inside]
            below = layer.below[box, at]
            into = np.where(below < 0, flow[box, at], 0.0) * self._n_levels[:, np.newaxis]
            density[inside] += into.sum(axis=0) * self._n_levels[list(subset)].prod()
            for j in self._open:
                if not subset or j > subset[-1]:
                    boxes[self._below[number, j], inside] = below[j]
        with np.errstate(divide="ignore"):
            return boxes, np.log(density) - np.log(self._n_levels).sum()

    @property
    def first_splits(self) -> dict[int, float]:
        """Probability that each column is split first; -1 for none."""
        log_choices = self._log_choices[0][0] if self.n_boxes else self._log_prior[0]
        shares = np.exp(log_choices).tolist()
        return {-1: shares.pop(), **dict(enumerate(shares))}

    @cached_property
    def tree(self) -> Tree:
        """The most probable tree; if tempered, of those that `sample` returns."""
        log_prior = self._log_prior
        empty = np.zeros(len(self._subsets) + 1)  # what a box without rows is worth, by subset
        for number in range(len(self._subsets) - 1, -1, -1):
            rest = self._n_levels * empty[self._below[number]]
            empty[number] = (log_prior[number] + np.append(rest, 0.0)).max()
        values = np.zeros(self.n_boxes + 1)
        for layer, log_choices in zip(self._layers[::-1], self._log_choices[::-1], strict=True):
            worth = self._worth(log_choices, layer.subset, layer.below, values, empty)
            values[layer.first : layer.first + layer.counts.size] = worth.max(axis=1)

        def choose(number: int, box: int) -> int:
            if box < 0:
                rest = self._n_levels * empty[self._below[number]]
                return int(np.argmax(log_prior[number] + np.append(rest, 0.0)))
            layer = self._layers[len(self._subsets[number])]
            i = slice(box - layer.first, box - layer.first + 1)
            log_choices = self._log_choices[len(self._subsets[number])][i]
            return int(
                self._worth(log_choices, layer.subset[i], layer.below[i], values, empty).argmax()
            )

        return self._tree(choose)

    def _worth(
        self,
        log_choices: Floats,
        subset: Integers,
        below: NDArray[np.int32],
        values: Floats,
        empty: Floats,
    ) -> Floats:
        """Return the log probability of the best subtree by what is done first, (n, p + 1)."""
        of_empty = empty[self._below[subset]][:, self._column]
        parts = np.where(below < 0, of_empty, values[below])
        rest = np.add.reduceat(parts, self._starts[:-1], axis=1)
        worth: Floats = log_choices + np.column_stack([rest, np.zeros(subset.size)])
        return worth

    def sample(self, n: int, rng: np.random.Generator | int | None = None) -> list[Tree]:
        """Return independent draws from the posterior, tempered or not.

        Parameters
        ----------
        n : int >= 0
        rng : numpy.random.Generator, int or None
            Or the seed of one.
        """
        check_integer("n", n, minimum=0)
        generator = np.random.default_rng(rng)

        def choose(number: int, box: int) -> int:
            log_choices = self._log_prior[number]
            if box >= 0:
                size = len(self._subsets[number])
                log_choices = self._log_choices[size][box - self._layers[size].first]
            return int(np.argmax(log_choices + generator.gumbel(size=log_choices.size)))

        return [self._tree(choose) for _ in range(n)]

    def _tree(self, choose: Callable[[int, int], int]) -> Tree:
        """Return the tree of what is chosen for a subset's number and a box (-1: without rows)."""

        def below(number: int, box: int) -> Any:
            j = choose(number, box)
            if j == self._n_levels.size:
                return None
            branches = []
            for code in range(self._n_levels[j]):
                layer, child = self._layers[len(self._subsets[number])], -1
                if box >= 0:
                    child = int(layer.below[box - layer.first, self._starts[j] + code])
                branches.append(((code,), below(int(self._below[number, j]), child)))
            return j, branches

        nested = below(0, min(0, self.n_boxes - 1))
        return Tree.from_nested(nested, self._arrays.nominal.tolist())


def _costs(table: "Table") -> Iterator[tuple[float, float]]:
    """Yield about how many steps and bytes trees of depth 0, 1, .. take, until it is too much."""
    levels = np.array([m for m in table.schema.n_levels.tolist() if m > 1], np.float64)
    n, n_levels = table.n_distinct, int(table.schema.n_levels.sum())
    # summed over subsets of so many columns
    products = np.poly(-levels) if levels.size else np.ones(1)
    steps = n_bytes = 0.0
    for size in range(levels.size + 1):
        if steps > _MOST_STEPS:
            return
        n_subsets = float(comb(levels.size, size))
        n_boxes = min(float(products[size]), n_subsets * n)
        k = levels.size - size
        steps += n_subsets * n * (k**2 / 2 + 1) + n_boxes * (k**3 / 3 + 10 * k**2 + 1)
        n_bytes += n_boxes * (20.0 * n_levels + 40) + n_subsets * 40.0 * levels.size
        yield steps, n_bytes


def largest_depth(table: "Table") -> int:
    """Return how many columns paths may fix so that all trees take some ten seconds."""
    return max(0, sum(steps <= _QUICK for steps, _ in _costs(table)) - 1)


def check_fits(table: "Table", max_depth: int, memory_limit: float) -> None:
    """Raise TooLargeError if all trees of that depth take hours, or more memory, in bytes."""
    costs = list(_costs(table))
    steps, n_bytes = costs[min(max_depth, len(costs) - 1)]
    if steps > _MOST_STEPS or n_bytes > memory_limit:
        fitting = [s <= _MOST_STEPS and b <= memory_limit for s, b in costs]
        needed = f"{n_bytes / 1e9:,.1f} GB and {steps:.0e} steps"
        raise TooLargeError(
            f"max_depth must be at most {max(0, sum(fitting) - 1)} for all trees over this table "
            f"to fit, got {max_depth}, which takes {needed}",
            needed,
        )


def _grouped(box: NDArray[np.integer], n_boxes: int = 0) -> tuple[Integers, Integers]:
    """Return rows by box, (n,), and where the rows of each box start, (n_boxes + 1,)."""
    counts = np.bincount(box, minlength=n_boxes)
    edges = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return np.argsort(box, kind="stable"), edges
