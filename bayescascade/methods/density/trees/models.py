"""The two cascade models: prior, likelihood and leaf probabilities, formula by formula.

Goh (2018), section 3.2. There are ``K`` leaves with weight ``n_l`` and volume ``v_l``; ``n`` is the
total weight, and ``alpha`` = `concentration`. All log densities are unnormalized, in nats.

* `LeafModel` (Model I), ``lam`` = `expected_leaves`::

      log_prior      = -lam + K ln lam - ln K!              (-inf if K > max_leaves)
      log_likelihood = lnG(K alpha) - lnG(n + K alpha)
                       + sum_l [lnG(n_l + alpha) - lnG(alpha) + inside_l]

* `BranchModel` (Model II), ``lam`` = `expected_branches`, inner nodes ``i`` with ``b_i`` branches
  of weights ``n_c``::

      log_prior      = sum_i [-lam + b_i ln lam - ln b_i!] + sum_l [-lam]
                       (+ ln C(p, d) + d ln gamma + (p - d) ln(1 - gamma), d of p columns used)
      log_likelihood = sum_i [lnB(alpha + n_c) - lnB(alpha, .., alpha)] + sum_l inside_l

The contribution of rows inside a leaf, ``inside_l``, is ``-n_l ln v_l`` in the thesis, where leaves
are *uniform*. In an *independent* leaf each column follows its own Dirichlet-multinomial over its
``m_j`` remaining levels in the leaf's box, with ``a`` = `leaf_concentration` for each; for weights
``n_jc`` and widths ``w_c`` of the levels it is ::

    sum_j [ lnG(a m_j) - lnG(n_l + a m_j)
            + sum_{c left} (lnG(n_jc + a) - lnG(a) - n_jc ln w_c) ]

A *dependent* leaf averages over all trees that connect its columns; `dependence` has the formula.

This prior, "poisson", weights each tree. So the prior probability of a number of leaves is
proportional to the Poisson times the number of such trees, as in the thesis. Another prior
is not from the thesis: with `prior` "generative" a node is a leaf with probability
``s`` = `stop`. Otherwise it is split, with equal probabilities of the ``N_i`` splits that its box
allows (`split_space`). A node whose box allows no split is a leaf. So ::

    log_prior = sum_i [ln(1 - s) - ln N_i] + (leaves whose box allows a split) ln s

sums to one over all trees, and over those below any box.

The thesis's plug-in density ``n_l / (n v_l)`` is zero on an empty leaf; the posterior mean is the
default.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from bayescascade.base.arrays import Floats, Integers
from bayescascade.base.errors import ParameterError
from bayescascade.base.validation import check_choice
from bayescascade.data.schema import Schema
from bayescascade.methods.density.trees.kernels.layout import BRANCH_MODEL, LEAF_MODEL
from bayescascade.methods.density.trees.parameters import (
    LEAVES,
    BranchParameters,
    LeafParameters,
    TreeParameters,
)
from bayescascade.methods.density.trees.tree import LEAF, Tree, level_starts, levels_left


class CascadeModel(ABC):
    """A prior on trees and a likelihood of their nodes' counts.

    `leaf_concentration` > 0 is the Dirichlet parameter of every level of a column inside an
    independent leaf, and the number of pseudo-rows of a dependent one.
    """

    kind: ClassVar[int]  # the kernels' number of the model
    declares: ClassVar[type[TreeParameters]]
    concentration: float  # Dirichlet parameter > 0 of every leaf or branch
    max_leaves: int | None  # larger trees have density 0; None for no bound
    leaf: str  # density inside leaves: "uniform", "independent" or "dependent"
    leaf_concentration: float
    prior: str  # "poisson" or "generative"
    stop: float  # probability of a leaf under the generative prior, in (0, 1)

    def __post_init__(self) -> None:
        declared = self.declares.declared()
        for each in fields(self):  # type: ignore[arg-type] # subclasses are dataclasses  # as plain floats
            value = declared[each.name].check(getattr(self, each.name))
            object.__setattr__(self, each.name, value)
        check_choice("leaf", self.leaf, LEAVES)

    @property
    @abstractmethod
    def rate(self) -> float:
        """Mean of the Poisson, > 0."""

    @property
    def is_generative(self) -> bool:
        """Whether the prior is the process, which is normalized over the trees below any box."""
        return self.prior == "generative"

    def log_prior(self, tree: Tree, n_columns: int, log_splits: Floats | None = None) -> float:
        """Return the log prior of a tree over `n_columns` columns, nats; -inf above `max_leaves`.

        log_splits (n_nodes,) float64: `SplitSpace.log_splits` of the tree, only for the generative
        prior.
        """
        if self.max_leaves is not None and tree.n_leaves > self.max_leaves:
            return -np.inf
        if not self.is_generative:
            return self._log_poisson(tree, n_columns)
        assert log_splits is not None
        drawn = log_splits[tree.feature != LEAF]  # log numbers of splits at inner nodes
        if np.any(drawn == -np.inf):
            return -np.inf
        log_drawn = float(drawn.size * np.log1p(-self.stop) - drawn.sum())
        return float(self.log_stops(tree, log_splits).sum() + log_drawn)

    def log_stops(self, tree: Tree, log_splits: Floats) -> Floats:
        """Return the log probability that each leaf stops, (n_nodes,) float64; 0 at inner nodes."""
        is_drawn = (tree.feature == LEAF) & (log_splits > -np.inf)
        return np.where(is_drawn, np.log(self.stop), 0.0)

    @abstractmethod
    def _log_poisson(self, tree: Tree, n_columns: int) -> float:
        """Return the thesis's log prior of a tree, nats."""

    def log_likelihood(self, tree: Tree, counts: Floats, log_inside: Floats) -> float:
        """Return the log likelihood by nodes' weights and their contributions as leaves, nats."""
        groups = self.dirichlet_groups(tree)
        terms = _log_beta_ratios(counts, groups, self.concentration) if groups else []
        return math.fsum([*terms, *log_inside[tree.leaves].tolist()])

    @abstractmethod
    def probabilities(self, tree: Tree, counts: Floats) -> Floats:
        """Return the posterior-mean probability of every node, (n_nodes,) float64."""

    @abstractmethod
    def dirichlet_groups(self, tree: Tree) -> list[NDArray[np.intp]]:
        """Return groups of nodes with one Dirichlet each, from the root; others are certain."""

    def log_inclusion(self, n_columns: int) -> Floats:
        """Return the log prior of using 0 .. n_columns columns, (n_columns + 1,) float64."""
        return np.zeros(n_columns + 1)

    @abstractmethod
    def branch_log_weights(self, b: Floats) -> Floats:
        """Return log weights for proposals of ``b`` branches; any choice is correct."""


@dataclass(frozen=True, slots=True)
class LeafModel(CascadeModel):
    """Model I: a Poisson on the number of leaves, one Dirichlet over all of them."""

    expected_leaves: float = LeafParameters.expected_leaves.default  # unused with "generative"
    concentration: float = LeafParameters.concentration.default
    max_leaves: int | None = LeafParameters.max_leaves.default
    leaf: str = LeafParameters.leaf.default
    leaf_concentration: float = LeafParameters.leaf_concentration.default
    prior: str = LeafParameters.prior.default
    stop: float = LeafParameters.stop.default
    kind = LEAF_MODEL
    declares = LeafParameters

    @property
    def rate(self) -> float:
        """The expected number of leaves."""
        return float(self.expected_leaves)

    def _log_poisson(self, tree: Tree, n_columns: int) -> float:  # noqa: ARG002 - as the other's
        """Return ``log Poisson(K; expected_leaves)``, nats."""
        k, lam = tree.n_leaves, self.expected_leaves
        return float(-lam + k * np.log(lam) - gammaln(k + 1))

    def probabilities(self, tree: Tree, counts: Floats) -> Floats:
        """Return ``(n_l + alpha) / (n + K alpha)`` at the leaves, and sums above."""
        smoothed = counts[tree.leaves] + self.concentration
        return tree.summed(smoothed / smoothed.sum())

    def dirichlet_groups(self, tree: Tree) -> list[NDArray[np.intp]]:
        """Return the leaves, which share one Dirichlet."""
        return [tree.leaves]

    def branch_log_weights(self, b: Floats) -> Floats:
        """Return ``-b ln 2``: each additional branch is an additional leaf."""
        weights: Floats = -b * np.log(2.0)
        return weights


@dataclass(frozen=True, slots=True)
class BranchModel(CascadeModel):
    """Model II: a Poisson on the branches of every node, a Dirichlet at every split.

    `feature_inclusion`, in (0, 1), is the probability ``gamma`` that a column is used at all; None
    omits the factor, as the generative prior requires.
    """

    expected_branches: float = BranchParameters.expected_branches.default
    concentration: float = BranchParameters.concentration.default
    feature_inclusion: float | None = BranchParameters.feature_inclusion.default
    leaf: str = BranchParameters.leaf.default
    leaf_concentration: float = BranchParameters.leaf_concentration.default
    prior: str = BranchParameters.prior.default
    stop: float = BranchParameters.stop.default
    kind = BRANCH_MODEL
    declares = BranchParameters
    max_leaves = None

    def __post_init__(self) -> None:
        CascadeModel.__post_init__(self)
        if self.feature_inclusion is not None and self.is_generative:
            raise ParameterError(
                'feature_inclusion must be None with prior "generative", got '
                f"{self.feature_inclusion:g}"
            )

    @property
    def rate(self) -> float:
        """The expected number of branches."""
        return float(self.expected_branches)

    def _log_poisson(self, tree: Tree, n_columns: int) -> float:
        """Return the Poisson terms of all nodes and the term of the used columns, nats."""
        lam = self.expected_branches
        branches = _branches(tree)[tree.feature != LEAF]
        inner = float(np.sum(-lam + branches * np.log(lam) - gammaln(branches + 1)))
        included = self.log_inclusion(n_columns)[tree.features_used.shape[0]]
        return inner - lam * tree.n_leaves + float(included)

    def probabilities(self, tree: Tree, counts: Floats) -> Floats:
        """Return the product of ``(n_c + alpha) / (n + b alpha)`` on the path to each node."""
        alpha, branches = self.concentration, _branches(tree)
        probabilities = np.ones(tree.n_nodes)
        for node in range(1, tree.n_nodes):
            above = tree.parent[node]
            share = (counts[node] + alpha) / (counts[above] + branches[above] * alpha)
            probabilities[node] = probabilities[above] * share
        return probabilities

    def dirichlet_groups(self, tree: Tree) -> list[NDArray[np.intp]]:
        """Return the branches of every split, the root's first."""
        nodes = np.argsort(tree.parent[1:], kind="stable") + 1
        sizes = _branches(tree)[tree.feature != LEAF]
        ends = np.cumsum(sizes).tolist()
        return [nodes[end - size : end] for size, end in zip(sizes.tolist(), ends, strict=True)]

    def log_inclusion(self, n_columns: int) -> Floats:
        """Return ``ln C(p, d) + d ln gamma + (p - d) ln(1 - gamma)`` for d = 0 .. p."""
        if self.feature_inclusion is None:
            return np.zeros(n_columns + 1)
        d = np.arange(n_columns + 1)
        rest = n_columns - d
        log_choose = gammaln(n_columns + 1) - gammaln(d + 1) - gammaln(rest + 1)
        gamma = self.feature_inclusion
        inclusion: Floats = log_choose + d * np.log(gamma) + rest * np.log1p(-gamma)
        return inclusion

    def branch_log_weights(self, b: Floats) -> Floats:
        """Return the weights of the Poisson, ``b ln lam - ln b!``."""
        weights: Floats = b * np.log(self.expected_branches) - gammaln(b + 1)
        return weights


def empirical_probabilities(tree: Tree, counts: Floats) -> Floats:
    """Return each node's share of the rows, the thesis's plug-in estimate, (n_nodes,) float64."""
    return counts / counts[0] if counts[0] > 0 else np.zeros(tree.n_nodes)


def _branches(tree: Tree) -> Integers:
    """Return the number of branches of every node."""
    return np.bincount(tree.parent[1:], minlength=tree.n_nodes)


def _log_beta_ratios(counts: Floats, groups: list[NDArray[np.intp]], alpha: float) -> list[float]:
    """Terms, possibly large, of the logs of ``B(alpha + counts) / B(alpha, .., alpha)``."""
    sizes, own = np.array([len(nodes) for nodes in groups]), counts[np.concatenate(groups)]
    totals = np.add.reduceat(own, np.cumsum(sizes) - sizes)
    terms = [
        gammaln(sizes * alpha), -gammaln(totals + sizes * alpha), -sizes * gammaln(alpha),
        gammaln(own + alpha),
    ]  # fmt: skip
    return [value for term in terms for value in term.tolist()]


def independent_log_inside(
    schema: Schema, boxes: NDArray[np.uint64], level_counts: Floats, leaf_concentration: float
) -> Floats:
    """Return each box's contribution as an independent leaf, (n,) float64 nats.

    boxes (n, p) uint64: blocks, as in `Tree.boxes`; level_counts (n, L) float64: weight of each
    level among the rows in each box, 0 for excluded levels; leaf_concentration > 0: Dirichlet
    parameter of every level.
    """
    a, starts = leaf_concentration, level_starts(schema)[:-1]
    left = levels_left(schema, boxes)
    widths = np.concatenate([column.widths for column in schema.columns])
    terms = gammaln(level_counts + a) - gammaln(a) - level_counts * np.log(widths)
    weights = np.add.reduceat(level_counts, starts, axis=1)
    total = a * np.add.reduceat(left.astype(np.float64), starts, axis=1)
    inside: Floats = np.where(left, terms, 0.0).sum(axis=1)
    inside += (gammaln(total) - gammaln(weights + total)).sum(axis=1)
    return inside


def independent_probabilities(
    schema: Schema, boxes: NDArray[np.uint64], level_counts: Floats, leaf_concentration: float
) -> Floats:
    """Return the probability of each level inside boxes as independent leaves, (n, L) float64.

    It is ``(n_jc + a) / (n_l + a m_j)``, and 0 for excluded levels. With ``a = 0`` it is the share
    of the rows or, without rows, of the width.
    """
    starts = level_starts(schema)
    left = levels_left(schema, boxes)
    weights = np.where(left, level_counts + leaf_concentration, 0.0)
    widths = np.concatenate([column.widths for column in schema.columns])
    is_empty = np.add.reduceat(weights, starts[:-1], axis=1) == 0
    weights = np.where(np.repeat(is_empty, schema.n_levels, axis=1), left * widths, weights)
    totals = np.add.reduceat(weights, starts[:-1], axis=1)
    probabilities: Floats = weights / np.repeat(totals, schema.n_levels, axis=1)
    return probabilities
