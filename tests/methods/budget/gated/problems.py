"""Rows of a gate's tests: Synthetic-2 of A.2.2, and random problems."""

import numpy as np

from bayescascade.methods.budget.gated.objective import GateProblem, State

CENTERS, SIZES = ((1, 1), (-1, 1), (-1, -1), (-1, -3)), (20, 20, 15, 15)


def four_clusters(labels, seed):
    """Return rows (70, 2) around four points, and labels, a sign for each of them."""
    noise = 0.01 * np.random.default_rng(seed).normal(size=(70, 2))
    signs = np.repeat([int(sign == "+") for sign in labels], SIZES)
    return np.repeat(np.array(CENTERS, float), SIZES, axis=0) + noise, signs


def problem(seed, n=60, p=3, n_classes=2, **changed):
    """Return random rows, labels that depend on them, weights and losses of a full model."""
    rng = np.random.default_rng(seed)
    rows = np.column_stack([rng.normal(size=(n, p)), np.ones(n)])
    labels = (rows[:, :n_classes] + 0.7 * rng.normal(size=(n, n_classes))).argmax(axis=1)
    losses, weights = rng.exponential(0.3, n), rng.uniform(0.5, 2.0, n)
    given = {"full_share": 0.3, "ridge": 1.0, **changed}
    return GateProblem(rows, labels, n_classes, weights, losses, **given)


def state(one, seed, size=1.0):
    """Return random coefficients."""
    rng, p = np.random.default_rng(seed), one.rows.shape[1]
    return State(size * rng.normal(size=p), size * rng.normal(size=(p, one.n_outputs)))


def mixed(n, seed):
    """Return rows (n, 4) of which some are easy by the first column, others by two more."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, np.where(np.abs(X[:, 0]) > 0.5, X[:, 0] > 0, X[:, 1] * X[:, 2] > 0).astype(int)
