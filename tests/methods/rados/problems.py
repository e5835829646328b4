"""Small labeled tables, and the paper's definitions written out rado by rado."""

import itertools
import math

import numpy as np


def blobs(n_rows=200, n_columns=3, seed=0, shift=1.0):
    """Return rows of two overlapping classes, and labels -1 and 1."""
    rng = np.random.default_rng(seed)
    labels = np.where(np.arange(n_rows) % 2, 1, -1)
    means = shift * rng.normal(size=n_columns)
    return labels[:, None] * means + rng.normal(size=(n_rows, n_columns)), labels


def all_rados(X, y):
    """Definition 1, for each of the 2^m signatures."""
    signatures = itertools.product([-1, 1], repeat=len(y))
    return np.array([0.5 * sum((s + t) * x for s, t, x in zip(signature, y, X, strict=True))
                     for signature in signatures])  # fmt: skip


def slow_radoboost(rados, n_rounds, choose):
    """Algorithm 1 with plain weights; returns theta after each round, and each r."""
    n, d = len(rados), len(rados[0])
    largest = [max(abs(pi[k]) for pi in rados) for k in range(d)]
    weights, theta, thetas, edges = [1 / n] * n, [0.0] * d, [], []
    for _ in range(n_rounds):
        r = [sum(w * pi[k] for w, pi in zip(weights, rados, strict=True)) / largest[k]
             for k in range(d)]  # fmt: skip
        k = choose([abs(one) for one in r])
        theta[k] += math.log((1 + r[k]) / (1 - r[k])) / (2 * largest[k])
        weights = [w * (1 - r[k] * pi[k] / largest[k]) / (1 - r[k] ** 2)
                   for w, pi in zip(weights, rados, strict=True)]  # fmt: skip
        thetas.append(list(theta))
        edges.append(r[k])
    return np.array(thetas), np.array(edges), np.array(weights)


def slow_adaboost(edges, n_rounds):
    """Schapire and Singer's with weights by the whole margin, anew in each round."""
    largest = np.abs(edges).max(axis=0)
    theta = np.zeros(edges.shape[1])
    for _ in range(n_rounds):
        weights = np.exp(-edges @ theta)
        weights /= weights.sum()
        r = weights @ edges / largest
        k = int(np.argmax(np.abs(r)))
        theta[k] += math.log((1 + r[k]) / (1 - r[k])) / (2 * largest[k])
    return theta


def agreement_laws(edge_signs, beta):
    """Return what values the protected coordinate has, and how often, over all signatures kept.

    By equation 16: signatures as subsets of agreeing rows, whose edges have these signs.
    """
    m = len(edge_signs)
    plus = sum(sign > 0 for sign in edge_signs) - m / 2
    reach = m / 2 - beta * (m + 1)
    counts = {}
    for agreeing in itertools.product([0, 1], repeat=m):
        value = sum(a * s for a, s in zip(agreeing, edge_signs, strict=True))
        if plus - reach - 1e-9 <= value <= plus + reach + 1e-9:
            counts[value] = counts.get(value, 0) + 1
    total = sum(counts.values())
    return {value: count / total for value, count in counts.items()}


def smallest_delta(one, other, epsilon, n=1):
    """Return the least delta of n draws from either law, by all their outcomes."""
    text = 0.0
    for p, q in ((one, other), (other, one)):
        total = 0.0
        for outcome in itertools.product(p, repeat=n):
            ours = math.prod(p[v] for v in outcome)
            theirs = math.prod(q.get(v, 0.0) for v in outcome)
            total += max(0.0, ours - math.exp(epsilon) * theirs)
        text = max(text, total)
    return text
