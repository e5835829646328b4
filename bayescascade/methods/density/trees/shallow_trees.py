"""All trees of few fixed columns, exactly: sum, maximum, average density.

Each level of a split has its own branch (`partitions="levels"`), so a box is a set of columns with
a fixed level of each, and trees that fix at most `max_depth` columns on a path have no more boxes
than there are such sets times their observed levels. Boxes without rows need no table: the trees
below them have their prior probability.

With `BranchModel` the factor of a split depends only on its own branches, so one pass from the
smallest boxes up sums over all trees. Let ``Z(S)`` be the sum of the priors of all subtrees below a
box that fixes columns S, and ``pi`` the prior probability of a leaf there or of a split of column
j, by ``Z``. Then the log of the average likelihood of the rows in box x is ::

    U(x) = log[ pi(leaf) L_leaf(x) + sum_j pi(j) B_j(x) prod_c exp U(x, j = c) ]

with ``L_leaf`` of `dependence` or `models` and ``B_j = B(alpha + n_c) / B(alpha, ..)``. The
summands, divided by their sum, are the posterior probabilities of a leaf or a split in the box.
From the root down they give the probability that a new row ends in each box, and a row's density,
averaged over all trees, is a sum over the boxes that hold it.

**Tempered** by `temper` = c, likelihoods in a box of n > c rows are taken to the power c / n, and
``U`` is divided by this power again. So the box is split as if it had c rows like its own. This is
not Bayesian: with many rows, a posterior is as certain as if one of the trees were true, and it
then averages over too few trees. `score_tempers` helps to choose c by the score of held-out rows.
"""

from collections.abc import Callable, Sequence
from copy import copy
from functools import cached_property, reduce
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from bayescascade.base.arrays import Codes, Floats, Integers
from bayescascade.base.errors import ParameterError
from bayescascade.base.jit import sparing
from bayescascade.base.validation import check_integer, check_real
from bayescascade.base.watch import check_time
from bayescascade.methods.density.trees.dependence import integrate_missing
from bayescascade.methods.density.trees.kernels.dependence import count_pairs, score_leaves
from bayescascade.methods.density.trees.kernels.layout import new_dependence_workspace
from bayescascade.methods.density.trees.product_leaves import weigh_products
from bayescascade.methods.density.trees.rounding import rounding_of_all
from bayescascade.methods.density.trees.shallow_extent import steps_a_row
from bayescascade.methods.density.trees.tree import LEAF, Tree, pack_block
from bayescascade.model.guard import certified

if TYPE_CHECKING:
    from bayescascade.data.table import Table
    from bayescascade.methods.density.trees.tree_posterior import CascadePosterior

Subset = tuple[int, ...]

TEMPERS = (None, 400.0, 200.0, 100.0, 50.0, 25.0, 12.5)
"""Candidate tempers; held-out rows choose one."""

_LEAST, _LEAST_CHOOSING = 1e-9, 1e-5
"""Largest share of a row's density in skipped boxes, and the same for the choice of a temper."""

_ROWS_AT_ONCE = 1 << 24  # rows times subsets of columns times tempers
_CELLS_AT_ONCE = 1 << 22  # pairs of levels in boxes


class ShallowTrees:
    """The posterior over all trees of depth at most `max_depth`.

    Parameters
    ----------
    posterior : BranchPosterior
        A posterior with partitions "levels" and without `feature_inclusion`, which would make
        branches dependent.
    max_depth : int >= 0
        Maximum number of splits on a path from the root.
    temper : float > 0 or None
        Cap on the number of rows that count when a split is chosen; None for the posterior.
    columns : sequence of int, optional
        Columns that trees may split; None for all.

    Attributes
    ----------
    n_boxes : int
        Number of boxes with rows.
    log_normalizer : float
        Log of the sum over all trees of prior times likelihood, nats; see `BranchModel`.
    log_evidence : float
        Log probability of the data under the normalized prior: `log_normalizer` minus the same sum
        without data. If tempered, neither is an evidence.
    n_columns : int
        Number of columns with two or more levels that trees may split.
    is_complete : bool
        Whether these are all trees.

    Raises
    ------
    ParameterError
        If a number is out of its range, or there is a `feature_inclusion`.
    """

    def __init__(
        self,
        posterior: "CascadePosterior",
        max_depth: int,
        temper: float | None = None,
        columns: Sequence[int] | None = None,
    ) -> None:
        inclusion = posterior.parameters()["feature_inclusion"]
        if inclusion is not None:
            raise ParameterError(f"feature_inclusion must be None for all trees, got {inclusion}")
        check_integer("max_depth", max_depth, minimum=0)
        self.posterior, self.table, self._arrays = posterior, posterior.table, posterior.arrays
        self._n_levels, self._starts = self._arrays.n_levels, self._arrays.offsets
        self._column = np.repeat(np.arange(self._n_levels.size), self._n_levels)
        self._log_widths = np.log(self._arrays.widths)
        leaf_alpha = posterior.model_arrays.leaf_alpha
        self._work = new_dependence_workspace(leaf_alpha, self._n_levels.size)
        self._open = can_split = np.flatnonzero(self._n_levels > 1).tolist()
        if columns is not None:
            self._open = sorted(set(can_split) & set(columns))
        self.n_columns = len(self._open)
        self.max_depth = min(int(max_depth), self.n_columns)
        self.is_complete = self.max_depth == len(can_split)
        self._root = np.zeros(self.table.n_distinct, np.int64)  # boxes without fixed columns
        self._subsets: list[Subset] = []
        for size in range(self.max_depth + 1):
            self._subsets += combinations(self._open, size)
        self._find_boxes()
        self._weigh(temper)

    def tempered(self, temper: float | None) -> "ShallowTrees":
        """Return the result for another `temper`, in a fraction of the time: it counts no rows."""
        other = copy(self)
        for known in ("tree", "_best", "rounding", "_untempered"):
            other.__dict__.pop(known, None)
        other._weigh(temper)
        return other

    # -- boxes -------------------------------------------------------------------------------------

    def _find_boxes(self) -> None:
        """Find the boxes with rows, subset by subset, and add one without rows for each subset.

        This sets, for each subset, its first box and the subsets with one more column (-1: none);
        for each box, its subset, weight, log evidence and the boxes with one more fixed level.
        """
        table, weights, n_subsets = self.table, self.table.weights, len(self._subsets)
        in_rows = self._log_widths[table.codes + self._starts[:-1, np.newaxis]].sum(axis=0)
        in_rows *= weights
        number = {subset: i for i, subset in enumerate(self._subsets)}
        self._subset_below = np.full((n_subsets, self._n_levels.size), -1)
        firsts, counts, log_leaf, below = [0], [], [], []
        boxes: dict[Subset, Integers] = {}  # box of each row
        for size in range(self.max_depth + 1):
            above, boxes = boxes, {}
            for subset in combinations(self._open, size):
                box = self._refined(above[subset[:-1]], subset[-1]) if subset else self._root
                if size < self.max_depth:
                    boxes[subset] = box
                rows, edges = _grouped(box, int(box.max(initial=-1)) + 1)
                heads, nobody = rows[edges[:-1]], (table.codes[:, :0], np.zeros_like(edges))
                log_likelihoods, _ = self._weigh_leaves(subset, rows, edges, *nobody)
                counts.append(np.bincount(box, weights).astype(np.float64))
                inside = np.add.reduceat(in_rows[rows], edges[:-1])  # pairwise, unlike bincount
                log_leaf.append(log_likelihoods - inside)
                below.append(np.full((heads.size, self._column.size), -1, np.int32))
                for j in subset:
                    parent = tuple(i for i in subset if i != j)
                    levels = self._starts[j] + table.codes[j, heads]
                    numbers = firsts[-1] + np.arange(heads.size)
                    below[number[parent]][above[parent][heads], levels] = numbers
                    self._subset_below[number[parent], j] = number[subset]
                firsts.append(firsts[-1] + heads.size)
        self.n_boxes, self._first = firsts[-1], np.array(firsts)
        self._subset = np.concatenate(
            [np.repeat(np.arange(n_subsets), np.diff(firsts)), np.arange(n_subsets)]
        )
        self._counts = np.concatenate([*counts, np.zeros(n_subsets)])
        self._log_leaf = np.concatenate([*log_leaf, np.zeros(n_subsets)])
        empty = (self.n_boxes + self._subset_below[:, self._column]).astype(np.int32)
        found = np.concatenate([*below, empty])
        self._below = np.where(found < 0, empty[self._subset], found)
        sizes = np.array([len(subset) for subset in self._subsets])[self._subset]
        self._layers = [np.flatnonzero(sizes == size) for size in range(self.max_depth + 1)]

    def _refined(self, box: Integers, j: int) -> Integers:
        """Return each row's box, among those with rows, if column j is fixed, too."""
        key = box * self._n_levels[j] + self.table.codes[j]
        numbers: Integers = (np.cumsum(np.bincount(key) > 0) - 1)[key]
        return numbers

    # -- sums --------------------------------------------------------------------------------------

    def _weigh(self, temper: float | None) -> None:
        """Set boxes' log probabilities (n, p + 1), the leaf's last, and the log sums."""
        self.temper = None if temper is None else check_real("temper", temper, above=0.0)
        alpha, b, n_subsets = self.posterior.model.concentration, self._n_levels, len(self._subsets)
        n = self._counts.size
        values, self._log_choices = np.zeros(n), np.empty((n, b.size + 1))
        log_trees, log_prior = np.zeros(n_subsets), np.empty((n_subsets, b.size + 1))
        distinct, place = np.unique(self._counts, return_inverse=True)
        log_part = (gammaln(distinct + alpha) - gammaln(alpha))[place]
        log_all = gammaln(b * alpha) - gammaln(distinct[:, np.newaxis] + b * alpha)
        for at in reversed(self._layers):
            own = at[at >= self.n_boxes] - self.n_boxes  # subsets; their priors are computed first
            log_split, log_stop = self._log_terms(len(self._subsets[own[0]]))
            log_split = log_split + b * log_trees[self._subset_below[own]]
            log_prior[own, :-1] = np.where(self._subset_below[own] >= 0, log_split, -np.inf)
            log_prior[own, -1] = log_stop
            log_trees[own] = np.logaddexp.reduce(log_prior[own], axis=1)
            log_prior[own] -= log_trees[own, np.newaxis]
            below, counts = self._below[at], self._counts[at, np.newaxis]
            log_split = np.add.reduceat(log_part[below] + values[below], self._starts[:-1], axis=1)
            log_split += log_all[place[at]]
            likelihoods = np.column_stack([log_split, self._log_leaf[at]])
            power = np.ones_like(counts)
            if self.temper is not None:
                power = self.temper / np.maximum(counts, self.temper)
            logs = log_prior[self._subset[at]] + power * likelihoods
            sums = np.logaddexp.reduce(logs, axis=1, keepdims=True)
            values[at] = (sums / power)[:, 0]
            self._log_choices[at] = logs - sums
        self._choices = np.exp(self._log_choices)
        self.log_evidence = float(values[0])
        self.log_normalizer = self.log_evidence + float(log_trees[0])

    def _log_terms(self, depth: int) -> tuple[Floats, float]:
        """Return log priors of splits of each column, (p,), and of leaves, at a depth.

        Under the generative prior, omitted splits count like splits that are not chosen.
        """
        model, b = self.posterior.model, self._n_levels
        if not model.is_generative:
            rate = model.rate
            return -rate + b * np.log(rate) - gammaln(b + 1), -rate
        n_open = int((b > 1).sum()) - depth
        if n_open <= self.posterior.splits.n_kept:
            return np.full(b.size, -np.inf), 0.0
        return np.full(b.size, np.log1p(-model.stop) - np.log(n_open)), float(np.log(model.stop))

    # -- what it says ------------------------------------------------------------------------------

    def log_predictive(self, codes: Codes) -> Floats:
        """Return the log density of (p, n) coded rows averaged over all trees, (n,) float64 nats.

        Cells coded -1 are integrated out by summing over their levels; see `integrate_missing`.
        """
        schema = self.table.schema
        return integrate_missing(lambda cells: self._score(cells, [self.temper])[0], schema, codes)

    def score_tempers(self, rows: "Table", tempers: Sequence[float | None] = TEMPERS) -> Floats:
        """Return the log densities of rows with each temper, (n_tempers, n) float64 nats."""
        n = self.table.total_weight
        used = [None if c is None or c >= n else c for c in tempers]  # None: no effect
        own = list(dict.fromkeys(used))
        scores = self._score(rows.codes.astype(np.int32), own, _LEAST_CHOOSING)
        return scores[[own.index(c) for c in used]]

    @property
    def steps_a_row(self) -> float:
        """Approximate number of steps to score a row."""
        return steps_a_row(self.table.schema, len(self._subsets))

    def _score(
        self, codes: Codes, tempers: Sequence[float | None], least: float = _LEAST
    ) -> Floats:
        """Return the log densities of complete rows with some tempers, (.., n)."""
        n_at_once = max(1, _ROWS_AT_ONCE // len(self._subsets) // len(tempers))
        those = [self if c == self.temper else self.tempered(c) for c in tempers]
        parts = [
            self._score_part(codes[:, first : first + n_at_once], those, least)
            for first in range(0, codes.shape[1], n_at_once)
        ]
        return np.concatenate([np.empty((len(tempers), 0)), *parts], axis=1)

    def _score_part(self, codes: Codes, those: Sequence["ShallowTrees"], least: float) -> Floats:
        boxes, log_mass = self._locate(codes, those)
        log_least = np.log(least / len(self._subsets))
        scores = np.full((len(those), codes.shape[1]), -np.inf)
        for i in np.argsort(-log_mass.max(axis=(0, 2)), kind="stable"):
            inside = np.flatnonzero((log_mass[:, i] > scores + log_least).any(axis=0))
            if inside.size == 0:
                continue
            found, at = np.unique(boxes[i, inside], return_inverse=True)
            known, first = found[found < self.n_boxes], self._first[i]
            place = np.full(self._first[i + 1] - first, -1)
            place[known - first] = np.arange(known.size)
            box = place[reduce(self._refined, self._subsets[i], self._root)]
            order, edges = _grouped(at, found.size)
            inside, table_rows = inside[order], _grouped(box, found.size)
            _, added = self._weigh_leaves(self._subsets[i], *table_rows, codes[:, inside], edges)
            added = log_mass[:, i, inside] + added
            scores[:, inside] = np.logaddexp(scores[:, inside], added)
        log_widths: Floats = self._log_widths[codes + self._starts[:-1, np.newaxis]].sum(axis=0)
        return scores - log_widths

    def _weigh_leaves(
        self, subset: Subset, rows: Integers, edges: Integers, codes: Any, code_edges: Integers
    ) -> tuple[Floats, Floats]:
        """Return log evidences of boxes, and log densities of (p, n) rows, without widths.

        Box i holds the table's ``rows[edges[i]:edges[i + 1]]``; scored rows have `code_edges`.
        """
        model = self.posterior.model
        if model.leaf != "dependent":
            free = [j for j in range(self._n_levels.size) if j not in subset]
            return weigh_products(self.table, model, free, (rows, edges), (codes, code_edges))
        left, n_levels = self._n_levels.copy(), self._column.size
        left[list(subset)] = 1
        evidences, densities = np.empty(edges.size - 1), np.empty(codes.shape[1])
        scored = np.ascontiguousarray(codes.T, np.int32)
        n_at_once = 1 + _CELLS_AT_ONCE // n_levels**2
        for i in range(0, evidences.size, n_at_once):
            check_time()
            part, found = slice(i, i + n_at_once + 1), evidences[i : i + n_at_once]
            pairs = np.zeros((found.size, n_levels, n_levels))
            n_counted, n_scored = np.ptp(edges[part]), np.ptp(code_edges[part])
            with sparing(float(n_counted * left.size**2)):
                count_pairs(self._arrays, self._work, left, rows, edges[part], pairs)
            with sparing(float(pairs.size + (found.size + n_scored) * left.size**3 / 6)):
                score_leaves(
                    self._starts, self._work, left, pairs, scored, code_edges[part], found,
                    densities,
                )  # fmt: skip
        return evidences, densities

    def _locate(self, codes: Codes, those: Sequence["ShallowTrees"]) -> tuple[Codes, Floats]:
        """Return each row's box in each subset, and log probabilities over trees to end there."""
        shape, alpha = (len(self._subsets), codes.shape[1]), self.posterior.model.concentration
        boxes, reached = np.zeros(shape, np.int32), np.zeros((len(those), *shape))
        reached[:, 0] = 1.0
        for i, below in enumerate(self._subset_below):
            open_columns = np.flatnonzero(below >= 0)
            if open_columns.size == 0:
                continue  # rows that reach it end here
            choices = np.array([trees._choices[boxes[i]].T for trees in those])
            choices *= reached[:, np.newaxis, i]
            reached[:, i] = choices[:, -1]
            for j in open_columns:
                boxes[below[j]] = self._below[boxes[i], self._starts[j] + codes[j]]
                shares = self._counts[boxes[below[j]]] + alpha
                shares /= self._counts[boxes[i]] + alpha * self._n_levels[j]
                reached[:, below[j]] += choices[:, j] * shares
        with np.errstate(divide="ignore"):
            return boxes, np.log(reached, out=reached)

    @property
    def first_splits(self) -> Floats:
        """Probability that each column is split first, (p + 1,); the last one is for no split."""
        shares: Floats = self._choices[0].copy()
        return shares

    @cached_property
    def _best(self) -> tuple[Tree, float]:
        """The most probable tree, and the log of its probability, tempered or not."""
        values, best = np.zeros(self._counts.size), np.zeros(self._counts.size, np.int64)
        for at in reversed(self._layers):
            worth = self._log_choices[at]
            worth[:, :-1] += np.add.reduceat(values[self._below[at]], self._starts[:-1], axis=1)
            values[at], best[at] = worth.max(axis=1), worth.argmax(axis=1)
        return self._tree(lambda boxes: best[boxes]), float(values[0])

    @property
    def n_leaves(self) -> int:
        """Number of leaves of the most probable tree."""
        return self._best[0].n_leaves

    @cached_property
    def tree(self) -> Tree:
        """The most probable tree; if tempered, under the tempered distribution."""
        tree, log_probability = self._best
        if self.temper is None:  # otherwise there is no density of trees
            claimed = log_probability + self.log_normalizer
            certified(self.posterior.log_density, tree, claimed, self.rounding)
        return tree

    @cached_property
    def rounding(self) -> float:
        """Bound on how much more probable another tree may be because of rounding, nats.

        It includes rounding of the density of the best tree, and of the recursion for all trees.
        """
        of_all = rounding_of_all(self.posterior.model, self.table, self.max_depth, self.n_boxes)
        return 2 * of_all + self.posterior.rounding(self._best[0])

    @property
    def log_density(self) -> float:
        """Log prior plus log likelihood of `tree`, nats."""
        return self.posterior.log_density(self.tree)

    def log_density_of(self, tree: Tree) -> float:
        """Return the log prior plus log likelihood of one of these trees, nats, by its boxes."""
        own, above = self._untempered, np.maximum(tree.parent, 0)
        column = tree.feature[above]
        levels = self._starts[column] + tree.lowest_codes(self.posterior.is_nominal)
        boxes, nodes = np.zeros(above.size, np.int64), np.flatnonzero(tree.parent == 0)
        while nodes.size:
            boxes[nodes] = self._below[boxes[above[nodes]], levels[nodes]]
            nodes = np.flatnonzero(np.isin(tree.parent, nodes))
        chosen = np.where(tree.feature == LEAF, self._n_levels.size, tree.feature)
        return float(own.log_normalizer + own._log_choices[boxes, chosen].sum())

    @cached_property
    def _untempered(self) -> "ShallowTrees":
        return self if self.temper is None else self.tempered(None)

    def sample(self, n: int, rng: np.random.Generator | int | None = None) -> list[Tree]:
        """Return n >= 0 independent draws from the posterior, tempered or not."""
        check_integer("n", n, minimum=0)
        generator, logs = np.random.default_rng(rng), self._log_choices

        def choose(boxes: Integers) -> Integers:
            check_time()
            noise = generator.gumbel(size=(boxes.size, logs.shape[1]))
            chosen: Integers = (logs[boxes] + noise).argmax(axis=1)
            return chosen

        return [self._tree(choose) for _ in range(n)]

    def _tree(self, choose: Callable[[Integers], Integers]) -> Tree:
        """Return the tree of the choices for boxes: columns, or for a leaf their number."""
        features = np.append(np.arange(self._n_levels.size), LEAF)
        boxes, blocks, layers = np.zeros(1, np.int64), np.zeros(1, np.uint64), []
        while boxes.size:
            chosen = choose(boxes)
            n_children = np.append(self._n_levels, 0)[chosen]
            layers.append((features[chosen], n_children, blocks))
            first = self._starts[chosen] - np.cumsum(n_children) + n_children
            level = np.repeat(first, n_children) + np.arange(n_children.sum())
            boxes, blocks = self._below[np.repeat(boxes, n_children), level], self._blocks[level]
        return Tree.from_layers(layers)

    @cached_property
    def _blocks(self) -> NDArray[np.uint64]:
        """The block of each level alone, (n_levels,)."""
        codes = np.arange(self._column.size) - self._starts[self._column]
        is_nominal = [self.posterior.is_nominal[j] for j in self._column]
        pairs = zip(is_nominal, codes.tolist(), strict=True)
        return np.array([pack_block(one, [code]) for one, code in pairs], np.uint64)


def _grouped(box: NDArray[np.integer], n_boxes: int) -> tuple[Integers, Integers]:
    """Return rows by box, (n,), and where the rows of each box start, (n_boxes + 1,)."""
    order = np.argsort(box, kind="stable")
    return order, np.searchsorted(box[order], np.arange(n_boxes + 1))
