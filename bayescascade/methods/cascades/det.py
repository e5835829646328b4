"""The density estimation tree of Ram and Gray (KDD 2011), to compare with and to start chains from.

*Growth*, section 3, is by greedy two-way splits. Of a density that is constant on the leaves,
``n_t / (n v_t)`` on a leaf of weight ``n_t`` and volume ``v_t``, the integrated squared error less
what does not depend on the tree is estimated by the sum over leaves of ::

    R(t) = -(n_t / n)^2 / v_t

A split of ``t`` into ``l`` and ``r`` lessens it by ``R(t) - R(l) - R(r)``. With ``p`` the part of
the rows of ``t`` that go left and ``q`` the part of its volume, that is ::

    -R(t) (p - q)^2 / (q (1 - q))

so at a node the split with the largest last factor is taken; of equal ones the earliest column's
first cut.

*Departures.* Volumes are those of this package, numbers of cells times widths of bins, as in Goh
(2018), section 3.3. Columns that are not ordered are split in any two sets of levels: the gain is
a convex function of the left side's weight and width, so its largest value is found at an extreme
point of what sums of levels can be, and those set off the densest levels. Hence levels are ordered
by density and only cuts of that order are looked at. That is exact, except that a least weight of
a leaf may forbid the best cut and leave some other set as good as the next; it is not looked for.

*Pruning*, section 3.2, is after Breiman et al. (1984), chapter 3. The pruned tree for a
complexity ``alpha >= 0`` is the subtree with the least ``sum over leaves of R(t) + alpha``. As
``alpha`` grows, nodes become leaves in the order of their links ::

    g(t) = (R(t) - sum of R over the leaves below t) / (number of leaves below t - 1)

and each pruned tree is a subtree of those for smaller ``alpha``. So one number a node, the
``alpha`` from which on it is no longer split, tells all of them: `weakest_links`.

*Choice.* The complexity is the one that predicts best in folds: on each fold's other rows a tree is
grown and pruned to every complexity of interest, and the rows of the fold are scored. The paper's
own criterion there, an estimate of the integrated squared error, is ``choose_by="squared_error"``
and takes fewer leaves than predict best; log likelihood decides unless it is asked for, as it is
what densities are compared by here. Goh (2018), section 3.3, tries least sizes {0, 3, 5} of a leaf
and largest {10, n / 2, n}, and reports the best; here they are 0 and 10. Larger ones end the growth
early, but the pruning can end it anywhere, and on none of this package's tables did a least size of
3 or 5 predict better.

The paper's density of a leaf, ``n_l / (n v_l)``, is 0 on an empty leaf, and one row there makes a
log likelihood of -inf. What is reported, and scored in the folds, is the leaf cascade's posterior
mean for the same tree, ``(n_l + alpha) / (n + K alpha) / v_l``, unless the paper's is asked for.
"""

import heapq
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.validation import check_choice, check_integer, check_real
from bayescascade.data.dealing import deal
from bayescascade.data.schema import Schema
from bayescascade.data.table import Table
from bayescascade.methods.cascades.counted_tree import CountedTree
from bayescascade.methods.cascades.density import DensityTree
from bayescascade.methods.cascades.models import LeafModel, empirical_probabilities
from bayescascade.methods.cascades.split_gains import split_shares
from bayescascade.methods.cascades.tree import LEAF, Tree, pack_block
from bayescascade.model.density_estimator import DENSITIES
from bayescascade.model.reporting import AS_COMMON
from bayescascade.model.row_densities import Baseline
from bayescascade.model.search import Seed
from bayescascade.report.page import Page

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["DensityEstimationTree", "GrownTree", "grow", "leaf_totals", "prune", "weakest_links"]

Floats = NDArray[np.float64]

CRITERIA = ("likelihood", "squared_error")

_LEAST_GAIN = 1e-12  # below, it is what rounding left of zero
_TIE = 1e-9  # gains that differ by this part are equal but for rounding
_LEAST_LOG_VOLUME = -600.0  # of the domain's; the error of a smaller leaf might overflow


@dataclass(eq=False, repr=False)
class DensityEstimationTree(Baseline):
    """Density tree grown greedily by squared error and pruned by cross-validation.

    Ram and Gray, *Density Estimation Trees*, KDD 2011; the module says what departs from it.

    Parameters
    ----------
    min_leaf_size : float >= 0
        Least weight of a leaf.
    max_leaf_size : float >= 0
        Nodes of at most this weight are not split.
    complexity : float >= 0 or None
        What a leaf must lessen the squared error by, the domain's volume being 1; None for what
        predicts best in folds.
    choose_by : {"likelihood", "squared_error"}
        What tells how a complexity predicts.
    n_folds : int >= 2
        Folds, of which there are no more than rows.
    concentration : float > 0
        As if that many rows had been seen in each leaf.
    density : {"posterior_mean", "empirical"}
        Probability of a leaf: ``(n_l + alpha) / (n + K alpha)``, or ``n_l / n``, which is zero on
        an empty leaf.
    random_state : int, SeedSequence, Generator or None
        Seed of the folds.
    columns, drop, nominal, ordinal, continuous, missing
        Which columns to use and how to read them; see `bayescascade.data.table.Table`.
    unknown : {"other", "missing", "error"}
        What a level unseen in fit is; as in `LeafCascade`.

    Attributes
    ----------
    tree_ : DensityTree
        The tree, with counts, volumes and probabilities. Every split has two branches, which are
        any two sets of the levels of a nominal column.
    complexity_ : float
        What it was pruned to.
    schema_ : Schema
        Columns and levels.
    feature_importances_ : (n_features_in_,) float64
        Share of each column in what the splits win, in log likelihood.
    n_features_in_ : int
    feature_names_in_ : (n_features_in_,) array of str

    Examples
    --------
    >>> import pandas as pd
    >>> from bayescascade import DensityEstimationTree
    >>> frame = pd.DataFrame({"sky": ["grey"] * 30 + ["blue"] * 10, "wind": ["yes", "no"] * 20})
    >>> model = DensityEstimationTree(random_state=0).fit(frame)
    >>> model.tree_.n_leaves
    2
    """

    model_name: ClassVar[str] = "det"
    title: ClassVar[str] = "density estimation tree"
    purpose: ClassVar[str] = (
        "Which groups of rows are common and which are rare, as a tree that divides the rows by "
        "one column after the other."
    )

    min_leaf_size: float = 0.0
    max_leaf_size: float = 10.0
    complexity: float | None = None
    _: KW_ONLY
    choose_by: str = "likelihood"
    n_folds: int = 10
    concentration: float = 2.0
    density: str = "posterior_mean"
    random_state: Seed = None
    _learned: tuple[Tree, Floats] = field(init=False)  # with the counts of its nodes

    @property
    def tree_(self) -> DensityTree:
        """The tree, with counts, volumes and probabilities."""
        check_is_fitted(self, "_learned")
        check_choice("density", self.density, DENSITIES)
        tree, counts = self._learned
        if self.density == "empirical":
            probabilities = empirical_probabilities(tree, counts)
        else:
            probabilities = LeafModel(concentration=self.concentration).probabilities(tree, counts)
        return DensityTree(self.schema_, tree, counts, probabilities)

    @property
    def feature_importances_(self) -> Floats:
        """Share of each column in what splits win, (n_features_in_,) float64; see `LeafCascade`."""
        volumes = self.tree_.log_volumes  # which says if nothing is fitted
        return split_shares(self.schema_, CountedTree(*self._learned), volumes, 1.0)

    def _score_known(self, codes: NDArray[np.int32]) -> Floats:
        return self.tree_.score_codes(codes)

    def _check_parameters(self) -> None:
        check_real("min_leaf_size", self.min_leaf_size, minimum=0.0)
        check_real("max_leaf_size", self.max_leaf_size, minimum=0.0)
        if self.complexity is not None:
            check_real("complexity", self.complexity, minimum=0.0)
        check_choice("choose_by", self.choose_by, CRITERIA)
        check_integer("n_folds", self.n_folds, minimum=2)
        check_real("concentration", self.concentration, above=0.0)
        check_choice("density", self.density, DENSITIES)

    def _fit_table(self, table: Table) -> None:
        grown, links = _grow(table, table.weights[np.newaxis], self)
        complexity = self.complexity
        if complexity is None:
            candidates = _between(links)
            rng = np.random.default_rng(self.random_state)
            n_folds = max(1, min(self.n_folds, int(table.total_weight)))
            scores = np.zeros(candidates.size)
            for held_out in deal(table.weights, n_folds, rng):
                scores += _scores(table, held_out, candidates, self)
            best = scores.max()
            is_best = scores >= best - 1e-9 * abs(best)
            complexity = float(candidates[is_best][-1])  # of equal ones the smallest tree
        tree, kept = prune(grown.tree, links, complexity)
        self._learned = tree, grown.counts[0, kept]
        self.complexity_ = complexity

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the tree, and return the axes; see `DensityTree.plot`."""
        return self.tree_.plot(ax)

    def _own_dict(self) -> dict[str, Any]:
        return {"complexity": self.complexity_, **self.tree_.to_dict()}

    def to_sql(self) -> str:
        """Return the log density of a row as standard SQL; see `DensityTree.to_sql`."""
        return self.tree_.to_sql()

    def to_dot(self) -> str:
        """Return the tree as Graphviz source."""
        return self.tree_.to_dot()

    def page(self) -> Page:
        """Return the tree."""
        return self.tree_.page()

    def _words_lead(self) -> list[str]:
        return [AS_COMMON]

    def _in_words(self) -> list[tuple[str, str]]:
        return self.tree_.parts_in_words()

    def _how_to_read(self) -> list[tuple[str, str]]:
        return [*self.tree_.how_to_read, *self.tree_.columns_in_words()]


@dataclass(frozen=True, slots=True)
class GrownTree:
    """A tree, and what is needed of its nodes to prune it.

    Parameters
    ----------
    tree : Tree
    counts : (n_weights, n_nodes) float64
        Weight of each node, by each of the weights that `grow` was given.
    log_volumes : (n_nodes,) float64 <= 0
        Logarithm of each node's part of the domain's volume.
    """

    tree: Tree
    counts: Floats
    log_volumes: Floats

    @property
    def errors(self) -> Floats:
        """``R(t)`` of every node as a leaf, by the first weights; the domain has volume 1."""
        shares = self.counts[0] / self.counts[0, 0]
        errors: Floats = -(shares**2) * np.exp(-self.log_volumes)
        return errors


def grow(
    schema: Schema,
    codes: NDArray[np.integer],
    weights: Floats,
    *,
    min_leaf_size: float,
    max_leaf_size: float,
) -> GrownTree:
    """Grow a tree until no leaf is left that is too large and can be split to advantage.

    Parameters
    ----------
    schema : Schema
    codes : (n_columns, n_rows) integers
    weights : (n_weights, n_rows) float64 >= 0
        The first decide on the splits, and are not all 0; of the others the nodes' sums are kept.
    min_leaf_size : float >= 0
        Least weight of a leaf.
    max_leaf_size : float >= 0
        A node of at most this weight is not split.
    """
    widths = [column.widths for column in schema.columns]
    is_nominal = [column.kind == "nominal" for column in schema.columns]
    full = [np.arange(column.n_levels) for column in schema.columns]
    feature: list[int] = []
    parent: list[int] = []
    block: list[int] = []
    counts: list[Floats] = []
    log_volumes: list[float] = []
    stack = [_Open(-1, 0, 0.0, full, np.arange(codes.shape[1]))]
    while stack:
        node = stack.pop()
        index = len(feature)
        node_counts = weights[:, node.rows].sum(axis=1)
        parent.append(node.parent)
        block.append(node.block)
        counts.append(node_counts)
        log_volumes.append(node.log_volume)
        split = None
        if node_counts[0] > max_leaf_size and node.log_volume > _LEAST_LOG_VOLUME:
            split = _best_split(node, codes, weights[0], widths, is_nominal, min_leaf_size)
        if split is None:
            feature.append(LEAF)
            continue
        j, sides = split
        feature.append(j)
        width = widths[j][node.box[j]].sum()
        for side in reversed(sides):  # what stands first is put on the stack last
            box = list(node.box)
            box[j] = side
            log_share = float(np.log(widths[j][side].sum() / width))
            word = pack_block(is_nominal[j], side.tolist())
            inside = node.rows[np.isin(codes[j, node.rows], side)]
            stack.append(_Open(index, word, node.log_volume + log_share, box, inside))
    tree = Tree.from_nodes(feature, parent, block)
    return GrownTree(tree, np.array(counts).T, np.array(log_volumes))


class _Open(NamedTuple):
    """A node that may yet be split: where it hangs, its levels of every column, and its rows."""

    parent: int
    block: int
    log_volume: float
    box: Sequence[NDArray[np.intp]]
    rows: NDArray[np.intp]


def _best_split(
    node: _Open,
    codes: NDArray[np.integer],
    weights: Floats,
    widths: Sequence[Floats],
    is_nominal: Sequence[bool],
    min_leaf_size: float,
) -> tuple[int, list[NDArray[np.intp]]] | None:
    """Return the column and the two sides of the split with the largest gain; None if none has any.

    The side with the lowest level stands first.
    """
    best_gain, best = _LEAST_GAIN, None
    for j, levels in enumerate(node.box):
        if levels.size == 1:
            continue
        by_level = np.bincount(codes[j, node.rows], weights[node.rows], widths[j].size)[levels]
        width = widths[j][levels]
        order = np.arange(levels.size)
        if is_nominal[j]:
            order = np.argsort(-by_level / width, kind="stable")
        left = np.cumsum(by_level[order])
        p = left[:-1] / left[-1]
        cut_widths = np.cumsum(width[order])
        q = cut_widths[:-1] / cut_widths[-1]
        gains = (p - q) ** 2 / (q * (1 - q))
        is_large = (left[:-1] >= min_leaf_size) & (left[-1] - left[:-1] >= min_leaf_size)
        gains[~is_large] = -np.inf
        largest = float(gains.max())
        if largest > best_gain * (1 + _TIE):
            best_gain = largest
            cut = int(np.argmax(gains >= largest * (1 - _TIE)))
            sides = [levels[order[: cut + 1]], levels[order[cut + 1 :]]]
            best = j, sorted(sides, key=min)
    return best


def weakest_links(tree: Tree, errors: Floats) -> Floats:
    """Return the complexity from which on each node is a leaf or gone, (n_nodes,) float64 >= 0.

    Parameters
    ----------
    tree : Tree
    errors : (n_nodes,) float64
        ``R(t)`` of every node; that of a node is at least the sum of its children's.

    Returns
    -------
    (n_nodes,) float64 >= 0
        0 at leaves, and nowhere more than at the parent.
    """
    links = np.full(tree.n_nodes, np.inf)
    links[tree.leaves] = 0.0
    below = tree.summed(errors[tree.leaves])
    n_leaves = tree.summed(np.ones(tree.n_leaves))
    end = np.arange(1, tree.n_nodes + 1)  # of each node's subtree, which stands in one piece
    for node in range(tree.n_nodes - 1, 0, -1):
        end[tree.parent[node]] = max(end[tree.parent[node]], end[node])

    def link(node: int) -> float:
        return float((errors[node] - below[node]) / (n_leaves[node] - 1))

    heap = [(link(int(node)), int(node)) for node in np.flatnonzero(tree.feature != LEAF)]
    heapq.heapify(heap)
    complexity = 0.0
    while heap:
        known, node = heapq.heappop(heap)
        if links[node] < np.inf:
            continue  # gone with a node above
        if link(node) > known:  # a link grows as weaker ones below it go
            heapq.heappush(heap, (link(node), node))
            continue
        complexity = max(complexity, known)
        subtree = links[node : end[node]]
        subtree[subtree == np.inf] = complexity
        gained, lost = errors[node] - below[node], n_leaves[node] - 1
        above = node
        while above >= 0:
            below[above] += gained
            n_leaves[above] -= lost
            above = int(tree.parent[above])
    return links


def prune(tree: Tree, links: Floats, complexity: float) -> tuple[Tree, NDArray[np.intp]]:
    """Return the pruned tree for a complexity >= 0, and which nodes of `tree` its nodes are."""
    is_kept = np.ones(tree.n_nodes, np.bool_)
    is_kept[1:] = links[tree.parent[1:]] > complexity
    kept = np.flatnonzero(is_kept)
    position = np.cumsum(is_kept) - 1
    feature = np.where(links[kept] > complexity, tree.feature[kept], LEAF)
    parent = tree.parent[kept]
    parent[1:] = position[parent[1:]]
    pruned = Tree(feature.astype(np.int32), parent.astype(np.int32), tree.block[kept])
    return pruned, kept


def leaf_totals(tree: Tree, links: Floats, values: Floats, complexities: Floats) -> Floats:
    """Return the sum of `values` over the leaves of the pruned tree for each complexity.

    Parameters
    ----------
    tree : Tree
    links : (n_nodes,) float64
        By `weakest_links`.
    values : (n_nodes,) float64
    complexities : (n,) float64 >= 0

    Returns
    -------
    (n,) float64
    """
    # A node is a leaf from its own link on, until its parent's.
    ends = np.append(np.inf, links[tree.parent[1:]])
    return _sums_up_to(complexities, links, values) - _sums_up_to(complexities, ends, values)


def _sums_up_to(limits: Floats, places: Floats, values: Floats) -> Floats:
    """Return the sum of the values whose place is at most each limit."""
    order = np.argsort(places, kind="stable")
    sums = np.append(0.0, np.cumsum(values[order]))
    chosen: Floats = sums[np.searchsorted(places[order], limits, side="right")]
    return chosen


def _grow(
    table: Table, weights: Floats, settings: DensityEstimationTree
) -> tuple[GrownTree, Floats]:
    """Return a tree grown by the first of the weights, and its weakest links."""
    least, most = settings.min_leaf_size, settings.max_leaf_size
    grown = grow(table.schema, table.codes, weights, min_leaf_size=least, max_leaf_size=most)
    return grown, weakest_links(grown.tree, grown.errors)


def _between(links: Floats) -> Floats:
    """Return a complexity for each pruned tree, ascending: the geometric mean of where it is so.

    Trees of other rows change at other complexities, so none is taken where this one changes.
    """
    changes = np.unique(links)
    return np.append(np.sqrt(changes[:-1] * changes[1:]), changes[-1])


def _scores(
    table: Table, held_out: Floats, complexities: Floats, settings: DensityEstimationTree
) -> Floats:
    """Return how well rows held out are predicted by the others' tree, for each complexity."""
    others = table.weights - held_out
    if not others.any():
        return np.zeros(complexities.shape)
    grown, links = _grow(table, np.stack([others, held_out]), settings)
    counts, scored = grown.counts

    def totals(values: Floats) -> Floats:
        return leaf_totals(grown.tree, links, values, complexities)

    if settings.choose_by == "likelihood":
        alpha = settings.concentration
        log_densities = totals(scored * (np.log(counts + alpha) - grown.log_volumes))
        n_leaves = totals(np.ones(counts.shape))
        likelihood: Floats = log_densities - scored[0] * np.log(counts[0] + n_leaves * alpha)
        return likelihood
    # The integral of the squared density less twice its mean over the rows held out.
    densities = counts / counts[0] * np.exp(-grown.log_volumes)
    squared = totals(counts / counts[0] * densities)
    error: Floats = scored[0] * squared - 2 * totals(scored * densities)
    return -error
