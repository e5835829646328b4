r"""The posterior of the purchases at the nodes of a tree with fixed gates.

A state says which features each node buys. Features of the gates above a leaf are bought in every
state; all others may be bought or not. Let w_l be the weight of the rows of leaf l, W the sum, S_l
the features bought on the path to it, c(S) the cost of S, with each item paid once, and p(S) the
number of columns of S that vary there. Up to a constant, the log density is

    prior       - tradeoff x sum_l w_l c(S_l) / W
    likelihood  sum_l k_l / 2 [(w_l - 1 - p(S_l)) log(1 + w_l)
                               - (w_l - 1) log(1 + w_l (1 - z_l(S_l)))]

where w_l - 1 is 0 for leaves of less weight than one row, which have no variance to estimate. z_l
is the share of variance that S_l explains at the leaf (see `selection`, ridge included), and k_l
the number of classes there less 1, at least 1. The likelihood is a **working model**: labels are
the numbers -1 and 1 (k contrasts of indicators for several classes), linear in the columns with
normal noise, which has one variance at a leaf. Coefficients, intercepts and the variance are
integrated out, with Zellner's prior with g = w_l, which is worth one row, a flat prior, and 1 /
variance (Liang and others, 2008, equation 5, with k numbers for each row).

Because gates are fixed, the cost and the likelihood of a row depend only on its leaf: **the density
is a product over leaves**. A feature that all rows of a node buy is bought at the highest such
node, so each state is one tree. Hence a state is a set of features for each leaf, which may be any
set that contains those required. If leaves have at most 20 features to choose from, all sets of
each leaf give the most probable state and all probabilities exactly (see `solved`); otherwise there
are chains.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import softmax

from bayescascade.base.arrays import Flags, Floats, Integers
from bayescascade.base.errors import TooLargeError
from bayescascade.base.validation import check_real
from bayescascade.costs.items import CostItems
from bayescascade.methods.budget.classifier_trees.growing import GrowingRows
from bayescascade.methods.budget.classifier_trees.kernels import buying
from bayescascade.methods.budget.classifier_trees.kernels.buying import log_marginals
from bayescascade.methods.budget.classifier_trees.kernels.choosing import ItemCosts
from bayescascade.methods.budget.classifier_trees.rounding import rounding_of_leaf
from bayescascade.methods.budget.classifier_trees.scaling import squares_of
from bayescascade.methods.budget.classifier_trees.selection import MOST_FEATURES, NodeChoices
from bayescascade.methods.budget.classifier_trees.tree import ClassifierTree
from bayescascade.model.compiled import CompiledPosterior
from bayescascade.model.draws import TraceLegend
from bayescascade.model.guard import certified, shown_gap
from bayescascade.model.search import Search
from bayescascade.model.solution import Certificate, Solution
from samplers.types import StepCounts

MOVE_WEIGHTS = {"buy": 0.3, "sell": 0.3, "swap": 0.4}
"""Probabilities of the moves of `kernels.buying`; buying and selling have the same."""

_MOST_BYTES = 1 << 30  # for the sums of all leaves

MOST_WORK = {"auto": 1e9, "exact": 1e12}
"""Maximum number of multiplications for the sets of a leaf."""

_N_DRAWS = 250  # independent draws instead of each chain


@dataclass(frozen=True, slots=True, eq=False)
class Purchases:
    """Features bought at nodes: bought (n_nodes, n_features) bool; read-only."""

    bought: Flags

    def to_list(self) -> list[list[int]]:
        """Return the features of each node."""
        return [np.flatnonzero(node).tolist() for node in self.bought]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Purchases):
            return NotImplemented
        return np.array_equal(self.bought, other.bought)

    def __hash__(self) -> int:
        return hash(self.bought.tobytes())

    def __repr__(self) -> str:
        return f"Purchases({self.to_list()})"


class SubmodularTreePosterior(CompiledPosterior[Purchases]):
    """The posterior of the features that the nodes of a tree buy, given its gates.

    The module has the formulas. The likelihood is a working model: labels are the numbers -1 and 1,
    with normal noise.

    Parameters
    ----------
    tree : ClassifierTree
    rows : GrowingRows
        The rows that reach the leaves of the tree.
    items : CostItems
        Costs of the features.
    tradeoff : float >= 0
        Nats per unit of mean cost of a row.
    names : sequence of str
        Names of the features.

    Raises
    ------
    ParameterError
        If `tradeoff` is out of its range.
    TooLargeError
        If the sums of squares of all leaves would take more than 1 GiB.

    Examples
    --------
    >>> import numpy as np
    >>> from bayescascade import SubmodularTreeClassifier, explore
    >>> X = np.random.default_rng(0).normal(size=(200, 4))
    >>> model = SubmodularTreeClassifier(max_depth=1, random_state=0).fit(X, X[:, 2] > 0.5)
    >>> posterior = model.posterior_.with_tradeoff(2.0)
    >>> explore(posterior, n_steps=500, random_state=0).state
    Purchases([[2]])
    """

    moves_compiled: ClassVar[tuple[str, ...]] = buying.MOVES
    tries: ClassVar[Mapping[str, float]] = MOVE_WEIGHTS
    _parameter_names: ClassVar[tuple[str, ...]] = ("tradeoff",)
    state_name: ClassVar[str] = "set of purchases"

    def __init__(
        self,
        tree: ClassifierTree,
        rows: GrowingRows,
        items: CostItems,
        tradeoff: float = 0.0,
        names: Sequence[str] = (),
    ) -> None:
        self.tradeoff = check_real("tradeoff", tradeoff, minimum=0.0)
        self.tree, self.items = tree, items
        self._rows, self._names = rows, tuple(names)
        self._leaves = np.flatnonzero([node.is_leaf for node in tree.nodes])
        size = rows.made.shape[1] + rows.targets.shape[1]
        if self._leaves.size * size**2 * 8 > _MOST_BYTES:
            needed = f"sums of squares of {size:,} columns at {self._leaves.size} leaves"
            raise TooLargeError(
                f"a posterior of purchases must take less than 1 GiB: {needed}", needed
            )

    def with_tradeoff(self, tradeoff: float) -> "SubmodularTreePosterior":
        """Return the same posterior with another tradeoff, nats per unit of mean cost."""
        return SubmodularTreePosterior(self.tree, self._rows, self.items, tradeoff, self._names)

    # -- the contract ------------------------------------------------------------------------------

    def log_prior(self, state: Purchases) -> float:
        """Return the log prior, nats; -inf for an invalid state."""
        if self._problem(state) is not None:
            return -np.inf
        return -float(self.model.price @ self._parts(state)[:, 1])

    def log_likelihood(self, state: Purchases) -> float:
        """Return the log marginal likelihood of the working model, nats."""
        return float(self._parts(state)[:, 0].sum())

    def initial_state(self, rng: np.random.Generator) -> Purchases:
        """Return features bought greedily at leaves within a random budget."""
        budget = rng.random() * float(self.items.costs.sum())
        has = self.model.required.copy()
        for leaf, node in enumerate(self.nodes):
            bought, _ = node.greedy(budget, by_price=bool(rng.random() < 0.5), skips=True)
            has[leaf, bought] = True
        return self.lifted(has)

    @property
    def greedy_state(self) -> Purchases:
        """The features that the tree itself buys."""
        return self.lifted(self.tree.has[self._leaves])

    def describe(self, state: Purchases) -> Mapping[str, float]:
        """Return the number of purchases, the mean cost of a row, and the log prior."""
        weights = self.model.weights
        cost = float(weights @ self._parts(state)[:, 1] / weights.sum())
        return {
            "n_bought": float(state.bought.sum()),
            "expected_cost": cost,
            "log_prior": self.log_prior(state),
        }

    def advance(
        self, rng: np.random.Generator, state: Purchases, n_steps: int, inverse_temperature: float
    ) -> tuple[Purchases, StepCounts[Purchases]]:
        """Run compiled steps on ``exp(inverse_temperature * log_density)``.

        `kernels.buying` has the moves. A step solves the least squares of one leaf.
        """
        has = self.held(state)
        best, counts = np.empty_like(has), self.new_counts()
        buying.sweep(
            rng, self.model, self._work(), n_steps, float(inverse_temperature), self.move_cdf,
            counts[0], counts[1], np.empty(len(has)), has, best,
        )  # fmt: skip
        after, top = self.lifted(has), self.lifted(best)
        return after, self.step_counts(counts, self.log_density(after), top, self.log_density(top))

    def encode_state(self, state: Purchases) -> object:
        """Return the features that each node buys."""
        return state.to_list()

    def _read_state(self, encoded: Any) -> Purchases:
        bought = np.zeros((len(self.tree.nodes), self.tree.n_features), np.bool_)
        if len(encoded) != len(bought):
            raise ValueError(f"it must be of {len(bought)} nodes, got {len(encoded)}")
        for place, features in enumerate(encoded):
            for feature in features:
                bought[place, range(self.tree.n_features).index(feature)] = True
        return Purchases(bought)

    def _problem(self, state: Purchases) -> str | None:
        has = self.held(state)
        if (self.model.required & ~has).any():
            return "what a gate reads must be bought on its path"
        return None if self.lifted(has) == state else "what all rows of a node buy is bought there"

    def legend(self) -> TraceLegend:
        """Return the legend of the traces."""
        diagnosed = ("n_bought", "expected_cost")
        columns_of = self._features_of if self._names else None
        return TraceLegend(diagnosed=diagnosed, columns=self._names, columns_of=columns_of)

    def _features_of(self, state: Purchases) -> list[int]:
        return np.flatnonzero(state.bought.any(axis=0)).tolist()

    def _identity(self) -> tuple[list[Any], Iterable[ArrayLike]]:
        *arrays, prices = self.model
        children = [node.children for node in self.tree.nodes]
        return [self.tradeoff, children], (*arrays, *prices[:3])

    # -- predictions of states ---------------------------------------------------------------------

    def item_probabilities(self, states: Sequence[Purchases]) -> Floats:
        """Return the probability that a row at a node pays for each item, (n_nodes, n_items).

        It is estimated from draws of states, for a random row that reaches the node. The first line
        is for all rows.
        """
        paid = np.mean([self.items.paid(self.held(state)) for state in states], axis=0)
        return self.by_node(paid)

    def by_node(self, paid: Floats) -> Floats:
        """Return means over the rows of each node, (n_nodes, n_items), from (n_leaves, n_items)."""
        sums = np.zeros((len(self.tree.nodes), paid.shape[1] + 1))
        sums[self._leaves, 0] = self.model.weights
        sums[self._leaves, 1:] = paid * self.model.weights[:, np.newaxis]
        for place in range(len(sums) - 1, -1, -1):
            if not self.tree.nodes[place].is_leaf:
                sums[place] = sums[list(self.tree.nodes[place].children)].sum(axis=0)
        there = np.where(sums[:, :1] > 0, sums[:, :1], 1.0)
        return sums[:, 1:] / there

    def held(self, state: Purchases) -> Flags:
        """Return the features of each leaf, (n_leaves, n_features)."""
        return self.tree.handed_down(state.bought)[self._leaves]

    def lifted(self, held: Flags) -> Purchases:
        """Return the state with these features at leaves, each bought nearest to the root."""
        has = np.zeros((len(self.tree.nodes), held.shape[1]), np.bool_)
        has[self._leaves] = held
        inner = [place for place, node in enumerate(self.tree.nodes) if not node.is_leaf]
        for place in reversed(inner):
            has[place] = has[list(self.tree.nodes[place].children)].all(axis=0)
        bought = has.copy()
        for place in inner:
            for child in self.tree.nodes[place].children:
                bought[child] &= ~has[place]
        return Purchases(bought)

    # -- arrays for kernels ------------------------------------------------------------------------

    @cached_property
    def nodes(self) -> list[NodeChoices]:
        """The choices of leaves among features that no gate above them reads."""
        pairs = zip(self.model.squares, self.model.required, strict=True)
        return [NodeChoices(squares, self.model.starts, self.items, has) for squares, has in pairs]

    @cached_property
    def model(self) -> buying.Leaves:
        """The leaves, as arrays for the kernels."""
        tree, rows = self.tree, self._rows
        size, n_leaves = rows.made.shape[1] + rows.targets.shape[1], self._leaves.size
        squares, weights = np.zeros((n_leaves, size, size)), np.zeros(n_leaves)
        contrasts = np.ones(n_leaves)
        gated = np.zeros((len(tree.nodes), tree.n_features), np.bool_)
        for place, node in enumerate(tree.nodes):
            if not node.is_leaf:
                gated[place, rows.basis.feature[node.gate.columns]] = True
        required = tree.handed_down(gated)[self._leaves]
        for place, there in tree.visited(rows.rows):
            (leaf,) = np.flatnonzero(self._leaves == place) if tree.nodes[place].is_leaf else (-1,)
            there = there[rows.weights[there] > 0]
            if leaf >= 0 and there.size:
                given = rows.weights[there]
                weights[leaf] = given.sum()
                contrasts[leaf] = max(1, np.unique(rows.labels[there]).size - 1)
                squares[leaf] = squares_of(rows.made[there], rows.targets[there], given).squares
        starts = rows.basis.starts(self.items.n_columns)
        paid = np.zeros(self.items.n_items, np.int64)
        prices = ItemCosts(self.items.starts, self.items.items, self.items.costs, paid)
        price = self.tradeoff * weights / weights.sum()
        return buying.Leaves(squares, starts, required, weights, contrasts, price, prices)

    def _parts(self, state: Purchases) -> Floats:
        """Return the log marginal and the cost of a row of each leaf, (n_leaves, 2)."""
        has = self.held(state)
        found = np.empty((len(has), 2))
        buying.all_parts(self.model, self._work(), has, found)
        return found

    def _work(self) -> buying.BuyingWork:
        size, n_columns = self.model.squares.shape[1], int(self.model.starts[-1])
        return buying.BuyingWork(np.empty((n_columns, size)), np.empty(n_columns, np.int64))


def solved(posterior: SubmodularTreePosterior, search: Search) -> Solution[Purchases]:
    """Return the most probable state, and draws; TooLargeError if there are too many sets.

    The values of all sets and the log density of the best state come from two evaluations, each off
    by at most the sum of `rounding_of_leaf`. So no other state is better by more than twice this.
    """
    started = perf_counter()
    model = posterior.model
    generator = np.random.default_rng(search.random_state)
    best = model.required.copy()
    paid = np.zeros((len(best), posterior.items.n_items))
    draws = np.repeat(best[np.newaxis], search.n_chains * _N_DRAWS, axis=0)
    n_sets, claimed, rounding = 0, 0.0, 0.0
    for leaf, node in enumerate(posterior.nodes):
        found = node.explained_by_sets(MOST_WORK[search.search])
        if found is None:
            n_open = int((~model.required).sum(axis=1).max())
            raise TooLargeError(
                f'search must not be "exact" where a leaf has more than {MOST_FEATURES} features '
                f"to choose from, or many columns, got {n_open} features",
                f"the sets of {n_open} features",
            )
        open_features, values = found
        rounding += 2.0 * rounding_of_leaf(model, leaf, float(values.max()))
        pays = _weigh(posterior, leaf, open_features, values)
        bits = np.arange(open_features.size)
        best[leaf, open_features] = (int(values.argmax()) >> bits) & 1
        claimed += float(values.max())
        chances = softmax(values)
        paid[leaf] = [float(chances[each].sum()) for each in pays]
        drawn = generator.choice(values.size, len(draws), p=chances)
        draws[:, leaf, open_features] = (drawn[:, np.newaxis] >> bits) & 1
        n_sets += values.size
    states = [posterior.lifted(draw) for draw in draws]
    state = posterior.lifted(best)
    log_density = certified(posterior.log_density, state, claimed, rounding)
    gap, extent = shown_gap(0.0, rounding), f"{n_sets:,} sets"
    return Solution(
        result=posterior.by_node(paid),
        state=state,
        log_density=log_density,
        certificate=Certificate(gap, extent, None, is_rounding=gap > 0) if isfinite(gap) else None,
        seconds=perf_counter() - started,
        draws=[states[i : i + _N_DRAWS] for i in range(0, len(states), _N_DRAWS)],
    )


def _weigh(
    posterior: SubmodularTreePosterior, leaf: int, open_features: Integers, values: Floats
) -> list[Flags]:
    """Replace the sets' explained shares by log densities; return which sets pay for each item."""
    model, items = posterior.model, posterior.items
    required, starts = model.required[leaf], model.starts
    varies = np.diagonal(model.squares[leaf])[: starts[-1]] > 0
    widths = np.add.reduceat(varies.astype(np.float64), starts[:-1])
    paid = items.paid(required[np.newaxis])[0]
    n_columns = np.array([widths[required].sum()])
    sets = np.arange(values.size)
    for feature in open_features.tolist():
        n_columns = np.concatenate([n_columns, n_columns + widths[feature]])
    log_marginals(values, n_columns, model.weights[leaf], model.contrasts[leaf])
    pays = []
    for item in range(items.n_items):
        asking = (
            1 << b for b, f in enumerate(open_features.tolist()) if item in items.of_column(f)
        )
        is_paid = (sets & sum(asking) != 0) | paid[item]
        values -= np.where(is_paid, model.price[leaf] * items.costs[item], 0.0)
        pays.append(is_paid)
    return pays
