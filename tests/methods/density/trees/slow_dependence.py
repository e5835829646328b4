"""Twins of dependent leaves, and of trees over them, by listing every tree there is.

A problem is what `tests.reference` takes; nothing here imports the packages under test.
"""

import math
from itertools import product

import numpy as np
from scipy.special import gammaln, logsumexp

from tests import reference


def spanning_trees(k):
    """Yield the edges of every tree on 0 .. k - 1, from their Pruefer codes."""
    if k < 2:
        yield []
        return
    for code in product(range(k), repeat=k - 2):
        degrees = [1 + code.count(v) for v in range(k)]
        edges = []
        for v in code:
            leaf = degrees.index(1)
            edges.append((leaf, v))
            degrees[leaf] = 0
            degrees[v] -= 1
        one, other = (v for v in range(k) if degrees[v] == 1)
        yield [*edges, (one, other)]


def log_dirichlet(counts, imagined):
    """Log marginal likelihood of counts, `imagined` rows in each."""
    total = imagined * len(counts)
    value = math.lgamma(total) - math.lgamma(total + sum(counts))
    return value + sum(math.lgamma(n + imagined) - math.lgamma(imagined) for n in counts)


def log_evidence(box, problem, a, row=None):
    """Return the log marginal likelihood of the box's rows averaged over all trees of its columns.

    With `row` as if it had been seen once more.
    """
    rows = [*zip(problem["rows"], problem["weights"], strict=True)]
    rows += [] if row is None else [(row, 1.0)]
    inside = [(r, w) for r, w in rows if all(c in b for c, b in zip(r, box, strict=True))]
    columns = [j for j in range(len(box)) if len(box[j]) > 1]

    def of_levels(u):
        counts = [sum(w for r, w in inside if r[u] == c) for c in box[u]]
        return log_dirichlet(counts, a / len(counts))

    def of_pairs(u, v):
        pairs = product(box[u], box[v])
        counts = [sum(w for r, w in inside if (r[u], r[v]) == pair) for pair in pairs]
        return log_dirichlet(counts, a / len(counts))

    width = -sum(w * math.log(problem["widths"][j][r[j]]) for r, w in inside for j in range(len(r)))
    single = {j: of_levels(j) for j in columns}
    double = {(u, v): of_pairs(u, v) for u in columns for v in columns if u != v}
    found = []
    for edges in spanning_trees(len(columns)):
        value, degree = width, [0] * len(columns)
        for s, t in edges:
            value += double[columns[s], columns[t]]
            degree[s] += 1
            degree[t] += 1
        # each column but one of degree 1 is conditioned on as often as it has edges less one
        found.append(value - sum((degree[s] - 1) * single[j] for s, j in enumerate(columns)))
    return log_sum(found) - math.log(len(found))


def log_sum(values):
    """Return the log of the sum of what the logs are of."""
    values = list(values)
    largest = max(values)
    return largest + math.log(sum(math.exp(value - largest) for value in values))


def log_tree_sum(logs):
    """Return the log of the sum over all trees, from logs of weights (.., k, k)."""
    total = np.zeros(logs.shape[:-2])
    for last in range(logs.shape[-1] - 1, 0, -1):
        star = logs[..., last, :last]
        sums = logsumexp(star, axis=-1, keepdims=True)
        mesh = star[..., :, np.newaxis] + (star - sums)[..., np.newaxis, :]
        logs, total = np.logaddexp(logs[..., :last, :last], mesh), total + sums[..., 0]
    return total


def formula(counts, n_levels, codes, a):
    """Return log evidence and densities of (p, n) rows, of counts of pairs, as the paper has it."""
    starts, k = np.cumsum([0, *n_levels])[:-1], len(n_levels)
    shares = 1 / np.repeat(n_levels, n_levels)
    total, imagined = counts[: n_levels[0], : n_levels[0]].sum(), a * np.outer(shares, shares)
    norm = gammaln(a) - gammaln(a + total)
    rises = gammaln(counts + imagined) - gammaln(imagined)
    pairs = norm + np.add.reduceat(np.add.reduceat(rises, starts, 0), starts, 1)
    rises = gammaln(counts.diagonal() + a * shares) - gammaln(a * shares)
    columns = norm + np.add.reduceat(rises, starts)
    logs = pairs - columns[:, np.newaxis] - columns
    at = (codes + starts[:, np.newaxis]).T
    levels = np.log((counts.diagonal() + a * shares)[at] / (total + a))
    ratios = np.log((counts + imagined)[at[:, :, np.newaxis], at[:, np.newaxis]] / (total + a))
    ratios = ratios - levels[:, :, np.newaxis] - levels[:, np.newaxis]
    before = log_tree_sum(logs)
    densities = log_tree_sum(logs + ratios) - before + levels.sum(axis=1)
    return columns.sum() + before - (k - 2) * np.log(k), densities


def depth(tree):
    """Return the most columns that a path fixes."""
    return 0 if tree is None else 1 + max(depth(child) for _, child in tree[1])


def tree_log_density(tree, problem, rate, alpha, a, row=None):
    """Return log prior plus log likelihood of a tree over dependent leaves, with a row more."""
    if row is not None:
        rows, weights = [*problem["rows"], row], [*problem["weights"], 1.0]
        problem = {**problem, "rows": rows, "weights": weights}
    value = reference.branch_log_density(tree, problem, rate, alpha)
    for box in reference.leaves_of(tree, problem["n_levels"]):
        value -= reference.log_inside(box, problem, "uniform", 1.0)
        value += log_evidence(box, problem, a)
    return value


class TemperedTrees:
    """The recursion over boxes, as its definition reads, box by box and row by row."""

    def __init__(self, problem, rate, alpha, a, max_depth, temper):
        self.problem, self.rate, self.alpha, self.a = problem, rate, alpha, a
        self.max_depth, self.temper = max_depth, temper
        self.root = tuple(tuple(range(q)) for q in problem["n_levels"])
        self.known = {}

    def children(self, box):
        """Return the boxes that each column's split makes."""
        fixed = sum(len(b) == 1 < q for b, q in zip(box, self.problem["n_levels"], strict=True))
        return {
            j: [(*box[:j], (code,), *box[j + 1 :]) for code in codes]
            for j, codes in enumerate(box)
            if len(codes) > 1 and fixed < self.max_depth
        }

    def weight(self, box):
        return reference.weight_in(box, self.problem["rows"], self.problem["weights"])

    def log_priors(self, box):
        """Return the log prior of each choice with all that may follow, not normalized."""
        found = {None: -self.rate}
        for j, below in self.children(box).items():
            b = len(below)
            found[j] = -self.rate + b * math.log(self.rate) - math.lgamma(b + 1)
            found[j] += sum(log_sum(self.log_priors(child).values()) for child in below)
        return found

    def choices(self, box):
        """Return U of a box, and the probability of each choice in it."""
        if box not in self.known:
            priors = self.log_priors(box)
            norm = log_sum(priors.values())
            power = min(1.0, self.temper / max(self.weight(box), 1e-300))
            logs = {None: priors[None] + power * log_evidence(box, self.problem, self.a)}
            for j, below in self.children(box).items():
                value = log_dirichlet([self.weight(child) for child in below], self.alpha)
                value += sum(self.choices(child)[0] for child in below)
                logs[j] = priors[j] + power * value
            total = log_sum(logs.values())
            probabilities = {choice: math.exp(value - total) for choice, value in logs.items()}
            self.known[box] = (total - norm) / power, probabilities
        return self.known[box]

    def density(self, row, box=None):
        """Return a row's density."""
        box = self.root if box is None else box
        seen = log_evidence(box, self.problem, self.a)
        value = 0.0
        for j, probability in self.choices(box)[1].items():
            if j is None:
                more = log_evidence(box, self.problem, self.a, row)
                value += probability * math.exp(more - seen)
                continue
            below = self.children(box)[j]
            child = next(child for child in below if row[j] in child[j])
            share = (self.weight(child) + self.alpha) / (self.weight(box) + len(below) * self.alpha)
            value += probability * share * self.density(row, child)
        return value
