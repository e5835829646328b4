"""Slow twins of scores, pairs with a known direction, and neighbors that change a score much."""

import itertools
import math

import numpy as np


def tanh_pair(n, seed=0):
    """Return a cause and its effect by an additive noise model that has no other direction."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, n)
    return x, np.tanh(3 * x) + 0.3 * rng.uniform(-1, 1, n)


def sign(a, b):
    return int(a > b) - int(a < b)


def slow_kendall(a, b):
    """Concordant less discordant pairs, over all pairs."""
    pairs = list(itertools.combinations(range(len(a)), 2))
    return abs(sum(sign(a[i], a[j]) * sign(b[i], b[j]) for i, j in pairs)) / len(pairs)


def slow_spearman(a, b):
    """Centered ranks by counting, and their products."""
    m = len(a)
    ranks = [[sum(sign(v, w) for w in one) / 2 for v in one] for one in (a, b)]
    return abs(12 * sum(c * d for c, d in zip(*ranks, strict=True)) / (m * (m * m - 1)))


def decayed(u, bandwidth):
    """Return the Gaussian kernel matrix of numbers."""
    u = np.asarray(u, float)
    return np.exp(-((u[:, None] - u) ** 2) / (2 * bandwidth**2))


def slow_hsic_root(a, b, bandwidth, other):
    """Return the root of (4.4), by its matrices."""
    m = len(a)
    centering = np.eye(m) - 1 / m
    product = decayed(a, bandwidth) @ centering @ decayed(b, other) @ centering
    return math.sqrt(max(np.trace(product), 0.0)) / (m - 1)


def slow_ridge(x, y, bandwidth, regularization):
    """Return what minimizes (4.6), as coefficients of kernels; see `numpy.linalg.solve`."""
    n = len(x)
    coefficients = np.linalg.solve(
        decayed(x, bandwidth) + n * regularization / 2 * np.eye(n), np.asarray(y, float)
    )

    def predict(rows):
        apart = np.asarray(rows, float)[:, None] - np.asarray(x, float)
        return np.exp(-(apart**2) / (2 * bandwidth**2)) @ coefficients

    return predict
