"""Small problems of what nodes buy: all states, the formula by least squares, moves in words."""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from bayescascade import FeatureCosts, SubmodularTreePosterior
from bayescascade.methods.budget.classifier_trees.basis import Basis
from bayescascade.methods.budget.classifier_trees.growing import GrowingRows, NodeGrowth, grow
from bayescascade.methods.budget.classifier_trees.posterior import Purchases
from samplers.types import Proposal
from tests.statistical.proposals import Listed


def explained(problem, features, ridge):
    """Return z of a set by least squares, each column scaled to variance 1 at the node.

    problem: columns, targets, weights, starts of features, and what is not used.
    """
    columns, targets, weights, starts, *_ = problem
    p = weights / weights.sum()
    places = [c for f in features for c in range(starts[f], starts[f + 1])]
    x = columns[:, places] - p @ columns[:, places]
    deviations = np.sqrt(p @ x**2)
    x = x[:, deviations > 1e-9] / deviations[deviations > 1e-9]
    y = targets - p @ targets
    total = float((p @ y**2).sum())
    root = np.sqrt(p)[:, np.newaxis]
    a = np.vstack([root * x, np.sqrt(ridge) * np.eye(x.shape[1])])
    b = np.vstack([root * y, np.zeros((x.shape[1], y.shape[1]))])
    left = b - a @ np.linalg.lstsq(a, b, rcond=1e-13)[0]
    return 1 - float((left**2).sum()) / total


@dataclass(frozen=True)
class PurchaseProblem:
    """Rows of a few features, two of which share a group, and a tree that is grown on them."""

    name: str
    depth: int
    n_features: int = 4
    n_classes: int = 2
    basis: str = "linear"
    tradeoff: float = 1.5
    n_rows: int = 30
    seed: int = 0

    @cached_property
    def rows(self):
        """The rows; those of the odd features count half, and the last copies the second."""
        generator = np.random.default_rng([self.seed, self.n_features])
        X = generator.normal(size=(self.n_rows, self.n_features))
        X[:, -1] = X[:, 1] + 0.3 * X[:, -1]
        score = X[:, 0] + 0.4 * X[:, 1] + 0.4 * generator.normal(size=self.n_rows)
        labels = np.digitize(
            score, np.quantile(score, np.arange(1, self.n_classes) / self.n_classes)
        )
        basis = Basis.of(self.basis, X, np.arange(self.n_features))
        weights = np.where(generator.random(self.n_rows) < 0.5, 0.5, 1.0) * 2
        return GrowingRows.of(basis, X, labels, weights, self.n_classes)

    @cached_property
    def items(self):
        costs = dict(enumerate([1.0, 0.5, 0.2, 0.3, 0.0][: self.n_features]))
        return FeatureCosts(costs, groups={"blood": [1, 2]}).resolve(range(self.n_features))

    @cached_property
    def tree(self):
        return grow(self.rows, self.items, NodeGrowth((1.0,), "greedy", self.depth))

    def posterior(self, **changed):
        """Return the posterior."""
        tradeoff = changed.get("tradeoff", self.tradeoff)
        names = [f"x{feature}" for feature in range(self.n_features)]
        return SubmodularTreePosterior(self.tree, self.rows, self.items, tradeoff, names)

    @cached_property
    def leaves(self):
        """Of each leaf its rows, and what the gates above it read."""
        found, waiting = [], [(0, np.ones(self.n_rows, bool), frozenset())]
        for place, there, read in waiting:
            node = self.tree.nodes[place]
            if node.is_leaf:
                found.append((place, there, read))
                continue
            made = self.rows.basis.of_rows(self.rows.rows, node.gate.columns)
            above = made @ node.coefficients + node.intercept > node.threshold
            read |= set(self.rows.basis.feature[node.gate.columns].tolist())
            waiting += [
                (child, there & side, read)
                for child, side in zip(node.children, (above, ~above), strict=True)
            ]
        return found

    def state(self, held):
        """Return the state in which the leaves have these sets of features."""
        has = {place: set(one) for (place, _, _), one in zip(self.leaves, held, strict=True)}
        for place in reversed(range(len(self.tree.nodes))):
            if place not in has:
                above, below = self.tree.nodes[place].children
                has[place] = has[above] & has[below]
        bought = np.zeros((len(has), self.n_features), bool)
        bought[0, list(has[0])] = True
        for place, node in enumerate(self.tree.nodes):
            for child in node.children if not node.is_leaf else ():
                bought[child, list(has[child] - has[place])] = True
        return Purchases(bought)

    @cached_property
    def held(self):
        """By state, what its leaves have."""
        every = []
        for _, _, read in self.leaves:
            free = [f for f in range(self.n_features) if f not in read]
            flags = product((False, True), repeat=len(free))
            every.append(
                [read | {f for f, on in zip(free, one, strict=True) if on} for one in flags]
            )
        return {self.state(held): held for held in product(*every)}

    @property
    def states(self):
        return list(self.held)

    def log_density(self, held, tradeoff=None):
        """Return the formula."""
        rows, total = self.rows, 0.0
        tradeoff = self.tradeoff if tradeoff is None else tradeoff
        for (_, there, _), features in zip(self.leaves, held, strict=True):
            weights = rows.weights[there]
            n = weights.sum()
            made, targets = rows.made[there], np.eye(self.n_classes)[rows.labels[there]]
            k = max(1, len(set(rows.labels[there].tolist())) - 1)
            columns = np.isin(rows.basis.feature, list(features))
            p = int((made[:, columns].max(axis=0) > made[:, columns].min(axis=0)).sum())
            z = 0.0
            if len(set(rows.labels[there].tolist())) > 1:
                starts = rows.basis.starts(self.n_features)
                z = explained((made, targets, weights, starts), sorted(features), 1e-6)
            total += k / 2 * ((n - 1 - p) * math.log1p(n) - (n - 1) * math.log1p(n * (1 - z)))
            paid = self.items.paid(np.isin(np.arange(self.n_features), list(features))[None])
            total -= tradeoff * n / rows.weights.sum() * float(self.items.total(paid)[0])
        return total

    def log_densities(self, **changed):
        """Return the formula of each state."""
        return np.array([self.log_density(held, **changed) for held in self.held.values()])


class Change(Listed):
    """Buy, sell or swap at any leaf: the moves of the sweep, all of their outcomes."""

    def __init__(self, problem, kind):
        self.problem, self.kind = problem, kind

    def proposals(self, state):
        held, everything = self.problem.held[state], set(range(self.problem.n_features))
        found = []
        for leaf, (_, _, read) in enumerate(self.problem.leaves):
            chance = 1 / len(held)
            missing, sold = sorted(everything - held[leaf]), sorted(held[leaf] - read)
            n, m = len(missing), len(sold)
            pairs, log_ratio = {
                "buy": ([({f}, set()) for f in missing], math.log(max(n, 1) / (m + 1))),
                "sell": ([(set(), {f}) for f in sold], math.log(max(m, 1) / (n + 1))),
                "swap": ([({f}, {g}) for f in missing for g in sold], 0.0),
            }[self.kind]
            for more, less in pairs:
                changed = [*held]
                changed[leaf] = held[leaf] - less | more
                proposal = Proposal(self.problem.state(changed), log_ratio)
                found.append((proposal, chance / len(pairs)))
            if not pairs:
                found.append((Proposal(state, -math.inf), chance))
        return found


def moves(problem):
    """Return the moves by name."""
    return {kind: Change(problem, kind) for kind in ("buy", "sell", "swap")}


ROOT = PurchaseProblem("root", 1, n_classes=3, n_rows=16)
TWO_LEAVES = PurchaseProblem("two-leaves", 2)
