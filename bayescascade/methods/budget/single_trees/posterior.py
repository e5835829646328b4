"""The posterior of single trees with costs of features.

With C columns that can be split, M_j thresholds of column j, s = `split_probability`, K classes,
a = `concentration` and W the weight of all rows, the density of a tree is, up to a constant::

    prior       (1 - s)^leaves  prod_splits s / (C M_j)  exp(-tradeoff x expected cost)
    likelihood  prod_leaves  G(K a) / G(K a + n) prod_k G(a + n_k) / G(a)

where n_k is the weight of class k among the rows of a leaf, n their sum, and G the gamma function:
labels are drawn from each leaf's own distribution, which is drawn from a symmetric Dirichlet and
integrated out. Without costs, the prior splits every node with probability s, by a random column
and then a random one of its thresholds.

The *expected cost* is the mean over the rows given, 1 / W sum_i w_i c(x_i), where c(x) is the sum
of the cost items of the splits on the path of x, each item once. So `tradeoff` is in nats per unit
of mean cost, for any number of rows: a tree that costs one unit more is exp(tradeoff) times less
probable a priori. The likelihood grows with the rows and finally dominates this prior, as any
other; for a fixed price of p nats per row and unit of cost, set tradeoff to p W.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import DataError, ParameterError
from bayescascade.base.validation import check_real
from bayescascade.costs.feature_costs import Costs
from bayescascade.methods.budget.forests.base import ReadRows, read_rows
from bayescascade.methods.budget.forests.forest import Forest
from bayescascade.methods.budget.single_trees.kernels import layout
from bayescascade.methods.budget.single_trees.kernels.sweep import MOVES, sweep
from bayescascade.methods.budget.single_trees.parameters import CostTreeParameters
from bayescascade.methods.budget.single_trees.tree import LEAF, BudgetTree, SplitCandidates
from bayescascade.model.compiled import CompiledPosterior
from bayescascade.model.draws import TraceLegend
from samplers.types import StepCounts

MOVE_WEIGHTS = {"grow": 0.3, "prune": 0.3, "change": 0.3, "regrow": 0.1}
"""Probability of each move of `kernels.sweep`; equal for grow and prune, which are reverse."""

_MOST_TABLED = 1 << 20
_START_SPLITS = 6  # a random start has fewer splits
_START_TRIES = 50


class BudgetTreePosterior(CompiledPosterior[BudgetTree]):
    """The posterior of trees whose features have costs; the module has the formulas.

    Parameters
    ----------
    X : DataFrame, (n_rows, n_features) array or list of rows
        Cells are numbers, truth values, text or categories; NaN or None is missing. They are coded
        by a `MatrixEncoder` as columns of float32, which trees split.
    y : (n_rows,) array
        Labels, of at least two classes.
    sample_weight : (n_rows,) array of float >= 0, optional
        Weights of the rows, 1 each by default. Rows with weight 0 do not count.
    costs : FeatureCosts, mapping, sequence of float or None
        What features cost; None: 1 each. See `FeatureCosts`.
    tradeoff : float >= 0
        Nats per unit of mean cost.
    concentration : float > 0
        Dirichlet parameter of each class in a leaf.
    split_probability : float in (0, 1)
        Prior probability that a node is split, if there were no costs.
    max_leaves : int >= 1
        Larger trees have density zero.
    min_leaf_weight : float > 0
        Trees with a leaf of smaller weight have density zero.
    n_thresholds : int from 1 to 65,536
        Maximum number of thresholds of a column, evenly among its values.

    Attributes
    ----------
    classes : (n_classes,) array
        The labels, ascending.
    candidates : SplitCandidates
    items : CostItems
        Costs of the columns.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.
    DataError
        If rows, labels or weights cannot be used, or if all rows of positive weight have the same
        class.

    Examples
    --------
    >>> import numpy as np
    >>> import samplers
    >>> from bayescascade import BudgetTreePosterior
    >>> X = np.random.default_rng(0).normal(size=(300, 4))
    >>> posterior = BudgetTreePosterior(X, X[:, 2] > 0.5, costs=[1, 1, 5, 1], tradeoff=2.0)
    >>> run = samplers.metropolis(posterior, n_steps=20_000, n_draws=50, n_chains=2, seed=0)
    >>> forest = posterior.forest([tree for chain in run.draws for tree in chain])
    >>> forest.predict_proba([[0, 0, 2, 0]]).argmax()
    np.int64(1)
    """

    moves_compiled: ClassVar[tuple[str, ...]] = MOVES
    tries: ClassVar[Mapping[str, float]] = MOVE_WEIGHTS
    _parameter_names: ClassVar[tuple[str, ...]] = (
        "tradeoff",
        "concentration",
        "split_probability",
        "max_leaves",
        "min_leaf_weight",
    )
    state_name: ClassVar[str] = "tree"

    def __init__(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        costs: Costs = None,
        tradeoff: float = 1.0,
        concentration: float = CostTreeParameters.concentration.default,
        split_probability: float = CostTreeParameters.split_probability.default,
        max_leaves: int = CostTreeParameters.max_leaves.default,
        min_leaf_weight: float = CostTreeParameters.min_leaf_weight.default,
        n_thresholds: int = CostTreeParameters.n_thresholds.default,
        _read: ReadRows | None = None,  # instead of X, y, weights and costs
    ) -> None:
        self.tradeoff = check_real("tradeoff", tradeoff, minimum=0.0)
        self.concentration = CostTreeParameters.concentration.check(concentration)
        self.split_probability = CostTreeParameters.split_probability.check(split_probability)
        self.max_leaves = CostTreeParameters.max_leaves.check(max_leaves)
        self.min_leaf_weight = CostTreeParameters.min_leaf_weight.check(min_leaf_weight)
        CostTreeParameters.n_thresholds.check(n_thresholds)
        encoder, priced, training = _read or read_rows(
            X, y, costs, type(self).__name__, sample_weight=sample_weight
        )
        has_weight = training.weights > 0
        self._weights = training.weights[has_weight]
        found, self._labels = np.unique(training.labels[has_weight], return_inverse=True)
        self.classes = training.classes[found]
        if found.size < 2:
            raise DataError("sample_weight must be > 0 for rows of at least two classes")
        self._features, self._source = tuple(encoder.names), encoder.source
        self.items = priced.resolve(encoder.columns).of_features(encoder.source)
        self.candidates = SplitCandidates.of(training.rows[has_weight], n_thresholds)
        self._total = float(self._weights.sum())

    # -- the contract ------------------------------------------------------------------------------

    def log_prior(self, state: BudgetTree) -> float:
        """Return the log prior of a tree, nats; -inf if the tree or a leaf has a wrong size."""
        rows = self._node_rows(state)
        smallest = min(self._weights[rows[leaf]].sum() for leaf in state.leaves)
        if state.n_leaves > self.max_leaves or smallest < self.min_leaf_weight:
            return -math.inf
        splits = [state.nodes[split] for split in state.splits]
        log_shape = state.n_leaves * math.log1p(-self.split_probability)
        log_shape += float(self._log_candidate[splits].sum())
        log_shape += len(splits) * math.log(self.split_probability)
        return log_shape - self.tradeoff * self.expected_cost(state, rows)

    def log_likelihood(self, state: BudgetTree) -> float:
        """Return the log marginal likelihood of the labels, nats."""
        counts = self.node_counts(state)[state.leaves]
        alpha, n_classes = self.concentration, self.classes.size
        per_leaf = gammaln(n_classes * alpha) - gammaln(n_classes * alpha + counts.sum(axis=1))
        return float(per_leaf.sum() + (gammaln(alpha + counts) - gammaln(alpha)).sum())

    def log_density(self, state: BudgetTree) -> float:
        """Return log prior plus log likelihood, nats; compiled, because chains call it often."""
        if state.n_leaves > self.max_leaves:
            return -math.inf
        work = layout.new_workspace(self._model, self.classes.size)
        log_density = layout.density(self._model, work, np.array(state.nodes, np.int64))
        return log_density + math.log1p(-self.split_probability)

    def initial_state(self, rng: np.random.Generator) -> BudgetTree:
        """Return a random tree of up to five splits, grown without looking at the labels."""
        state = BudgetTree()
        n_wanted = int(rng.integers(_START_SPLITS))
        for _ in range(_START_TRIES if self.candidates.n_candidates else 0):
            if state.n_splits >= n_wanted:
                break
            leaf = state.leaves[int(rng.integers(state.n_leaves))]
            grown = state.grown(leaf, self.candidates.draw(rng))
            if self.log_prior(grown) > -math.inf:
                state = grown
        return state

    def describe(self, state: BudgetTree) -> Mapping[str, float]:
        """Return leaves, depth, features used, expected cost and log prior."""
        return {
            "n_leaves": float(state.n_leaves),
            "depth": float(state.depth()),
            "n_features": float(len(self._features_of(state))),
            "expected_cost": self.expected_cost(state),
            "log_prior": self.log_prior(state),
        }

    def advance(
        self, rng: np.random.Generator, state: BudgetTree, n_steps: int, inverse_temperature: float
    ) -> tuple[BudgetTree, StepCounts[BudgetTree]]:
        """Run compiled steps for ``exp(inverse_temperature * log_density)``.

        `kernels.sweep` has the moves. The work of a step is proportional to the number of rows of
        the changed node. If its subtree is drawn again, it is also proportional to the number of
        columns and candidates.
        """
        work = layout.new_workspace(self._model, self.classes.size)
        layout.load(self._model, work, np.array(state.nodes, np.int64))
        counts = self.new_counts()
        nodes = np.empty(2 * self.max_leaves - 1, np.int64)
        n_best = sweep(
            rng, self._model, work, n_steps, float(inverse_temperature), self.move_cdf, counts[0],
            counts[1], nodes,
        )  # fmt: skip
        best = BudgetTree(tuple(nodes[:n_best].tolist()))
        state = BudgetTree(tuple(nodes[: layout.export(work, nodes)].tolist()))
        return state, self.step_counts(
            counts, self.log_density(state), best, self.log_density(best)
        )

    def encode_state(self, state: BudgetTree) -> object:
        """Return a tree as a JSON-ready list."""
        return list(state.nodes)

    def _read_state(self, encoded: Any) -> BudgetTree:
        return BudgetTree.from_list(encoded, self.candidates.n_candidates)

    def _problem(self, state: BudgetTree) -> str | None:
        return "its prior is zero" if self.log_prior(state) == -math.inf else None

    def legend(self) -> TraceLegend:
        """Return the legend of the traces."""
        return TraceLegend(
            size="n_leaves",
            diagnosed=("n_leaves", "depth", "expected_cost"),
            columns=self._features,
            columns_of=self._features_of,
        )

    def _features_of(self, state: BudgetTree) -> list[int]:
        candidates = [state.nodes[split] for split in state.splits]
        features: list[int] = np.unique(self._source[self.candidates.columns[candidates]]).tolist()
        return features

    def _identity(self) -> tuple[list[Any], Iterable[ArrayLike]]:
        return [self.classes.tolist()], self._model

    # -- rows in trees -----------------------------------------------------------------------------

    def expected_cost(
        self, state: BudgetTree, _rows: list[NDArray[np.intp]] | None = None
    ) -> float:
        """Return the mean cost of the rows, which pay for each item once."""
        rows = self._node_rows(state) if _rows is None else _rows
        used = np.zeros((self._labels.size, self.items.n_columns), np.bool_)
        for split in state.splits:
            used[rows[split], self.candidates.columns[state.nodes[split]]] = True
        paid = self.items.total(self.items.paid(used))
        return float(self._weights @ paid) / self._total

    def node_counts(self, state: BudgetTree) -> Floats:
        """Return the weight of each class among the rows of each node, (n_nodes, n_classes)."""
        counts = np.empty((len(state.nodes), self.classes.size))
        for node, rows in enumerate(self._node_rows(state)):
            counts[node] = np.bincount(self._labels[rows], self._weights[rows], self.classes.size)
        return counts

    def forest(self, states: Sequence[BudgetTree]) -> Forest:
        """Return trees as a forest, which predicts by the mean of their predictions.

        `concentration` is added to the counts, so the shares of a leaf are posterior mean
        probabilities. A forest of posterior draws predicts by the posterior predictive
        distribution.

        Raises
        ------
        ParameterError
            If there is no tree.
        """
        if not states:
            raise ParameterError("states must have at least one tree, got none")
        nodes = np.array([node for state in states for node in state.nodes])
        return Forest.from_preorder(
            np.append(self.candidates.columns, LEAF)[nodes].astype(np.int32),  # LEAF is the last
            np.append(self.candidates.thresholds, np.nan)[nodes],
            np.zeros(nodes.size, np.bool_),
            np.concatenate([self.node_counts(state) for state in states]) + self.concentration,
        )

    def _node_rows(self, state: BudgetTree) -> list[NDArray[np.intp]]:
        """Return the rows that reach each node."""
        ends = state.ends()
        rows = [np.arange(self._labels.size)] * len(state.nodes)
        for split in state.splits:
            candidate = state.nodes[split]
            column = self.candidates.columns[candidate]
            limit = candidate - self.candidates.starts[column]
            is_left = self.candidates.codes[column][rows[split]] <= limit
            rows[split + 1] = rows[split][is_left]
            rows[ends[split + 1]] = rows[split][~is_left]
        return rows

    # -- arrays for kernels ------------------------------------------------------------------------

    @cached_property
    def _log_candidate(self) -> Floats:
        return self.candidates.log_probabilities()

    @cached_property
    def _model(self) -> layout.TreeModel:
        weights = np.arange(min(int(self._total), _MOST_TABLED) + 1)
        log_odds = math.log(self.split_probability) + math.log1p(-self.split_probability)
        return layout.TreeModel(
            codes=self.candidates.codes,
            labels=self._labels,
            weights=self._weights,
            open_columns=self.candidates.open_columns,
            starts=self.candidates.starts,
            column=self.candidates.columns,
            log_candidate=self._log_candidate,
            log_split=self._log_candidate + log_odds,
            item_starts=self.items.starts,
            items=self.items.items,
            item_price=self.tradeoff * self.items.costs / self._total,
            alpha=self.concentration,
            min_weight=self.min_leaf_weight,
            max_leaves=self.max_leaves,
            of_label=gammaln(self.concentration + weights),
            of_all=gammaln(self.concentration * self.classes.size + weights),
        )
