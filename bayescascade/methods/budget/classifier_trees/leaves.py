"""Predictors at leaves: logistic regression or least squares on the features bought."""

import warnings

import numpy as np
from scipy.special import expit, logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from bayescascade.base.arrays import Flags, Floats, Integers
from bayescascade.base.threads import single_threaded
from bayescascade.methods.budget.classifier_trees.basis import Basis
from bayescascade.methods.budget.classifier_trees.scaling import NodeSums, Standard
from bayescascade.methods.budget.classifier_trees.tree import Linear

_MOST_STEPS = 30  # for a solver: further steps do not change predictions visibly
_TOLERANCE = 1e-3
_FEW_COLUMNS = 100  # for two classes: up to this number Newton's steps are faster
_FLAT = 1e-12  # share of the curvature that is added to it
_LEAST_STEP = 1e-4  # minimum length of a Newton step
_STRENGTH = 0.1
"""C of scikit-learn, for columns of variance 1.

Test errors in percent with 1, .1 and .02, two splits each, all features affordable: covertype 25.9,
24.4, 24.7; magic 14.9, 14.0, 14.4; spambase 5.8, 4.9, 4.3; letter (A-M) 15.1, 15.3, 14.8; pima
30.2, 31.2, 30.5.
"""


def linear_fit(sums: NodeSums, columns: Integers) -> tuple[Floats, Floats]:
    """Return coefficients (p, c) of z-scores, and the sums (p, p) of columns that vary.

    Coefficients of constant columns are 0; those of others minimize the ridge loss of `selection`.
    """
    n_columns = sums.n_columns
    cross = sums.squares[:n_columns, n_columns:]
    varies = columns[sums.scales[columns] > 0]
    square = sums.squares[np.ix_(varies, varies)]
    found = np.zeros((n_columns, cross.shape[1]))
    if varies.size:
        found[varies] = np.linalg.solve(square, cross[varies])
    return found[columns], sums.squares[np.ix_(columns, columns)]


def gate_of(sums: NodeSums, columns: Integers) -> Linear:
    """Return the score that divides rows: the leading direction of the least-squares fits."""
    fits, square = linear_fit(sums, columns)
    direction = np.ones(1)
    if fits.shape[1] > 1:
        _, vectors = np.linalg.eigh(fits.T @ square @ fits)
        direction = vectors[:, -1] * np.sign(vectors[np.abs(vectors[:, -1]).argmax(), -1])
    coefficients = (fits @ direction) * sums.scales[columns]
    intercept = -float(coefficients @ sums.means[columns])
    return Linear(columns, coefficients[np.newaxis], np.array([intercept]), "shares")


def no_gate() -> Linear:
    """Return the score of a node without children."""
    return Linear(np.zeros(0, np.int64), np.zeros((1, 0)), np.zeros(1), "shares")


def least_squares_leaf(sums: NodeSums, columns: Integers) -> Linear:
    """Return the least-squares fits of the indicators of classes, as in the papers."""
    fits, _ = linear_fit(sums, columns)
    target_scale, means = sums.scales[sums.n_columns :], sums.means[sums.n_columns :]
    undone = np.where(target_scale > 0, 1 / np.where(target_scale > 0, target_scale, 1.0), 0.0)
    coefficients = (fits * sums.scales[columns][:, np.newaxis] * undone).T
    intercepts = means - coefficients @ sums.means[columns]
    return Linear(columns, coefficients, intercepts, "shares")


def logistic_leaf(
    basis: Basis, rows: Floats, labels: Integers, weights: Floats, columns: Integers, n_classes: int
) -> Linear:
    """Return a logistic regression of rows (n, n_matrix_columns) of positive weight.

    A class without rows here is as rare as if there were one row of it.
    """
    counts = np.bincount(labels, weights, n_classes)
    present = np.flatnonzero(counts)
    total = float(counts.sum())
    made = basis.of_rows(rows, columns)
    standard = Standard.of(made, weights)
    varies = standard.scales > 0
    coefficients = np.zeros((n_classes, columns.size))
    intercepts = np.full(n_classes, -np.log1p(total))
    if present.size < 2 or not varies.any():
        intercepts[present] = np.log(counts[present] / total)
    else:
        scaled = standard.scaled(made)[:, varies]
        if present.size == 2 and varies.sum() <= _FEW_COLUMNS:
            slopes, starts = newton(scaled, labels == present[1], weights)
        else:
            slopes, starts = _by_scikit_learn(scaled, labels, weights)
        if present.size == 2:
            slopes = np.vstack([np.zeros_like(slopes), slopes])
            starts = np.array([0.0, starts[0]])
        coefficients[np.ix_(present, varies)] = slopes * standard.scales[varies]
        intercepts[present] = starts - logsumexp(starts)
        intercepts -= coefficients @ standard.means
    if n_classes == 2:
        return Linear(columns, np.diff(coefficients, axis=0), np.diff(intercepts))
    return Linear(columns, coefficients, intercepts)


def newton(rows: Floats, is_second: Flags, weights: Floats) -> tuple[Floats, Floats]:
    """Return slopes (1, p) and intercept (1,) for two classes, as scikit-learn, by Newton's method.

    They minimize the sum of w log(1 + exp(-f)), with f negated for rows of the first class, and
    |slopes|^2 / (2 C). A step that would increase it is halved.
    """
    made = np.column_stack([rows, np.ones(len(rows))])
    penalty = np.append(np.full(rows.shape[1], 1 / _STRENGTH), 0.0)
    signs = np.where(is_second, 1.0, -1.0)

    def loss(found: Floats) -> float:
        losses = weights @ np.logaddexp(0.0, -signs * (made @ found))
        return float(losses + penalty @ found**2 / 2)

    found = np.zeros(made.shape[1])
    least = loss(found)
    for _ in range(_MOST_STEPS):
        chances = expit(made @ found)
        gradient = made.T @ (weights * (chances - is_second)) + penalty * found
        if np.abs(gradient).max() <= _TOLERANCE * weights.sum():
            break
        curvature = made.T @ (made * (weights * chances * (1 - chances))[:, np.newaxis])
        curvature[np.diag_indices_from(curvature)] += penalty + _FLAT * np.trace(curvature)
        step, share = np.linalg.solve(curvature, gradient), 1.0
        while (reached := loss(found - share * step)) > least and share > _LEAST_STEP:
            share /= 2
        if share <= _LEAST_STEP:
            break
        found, least = found - share * step, reached
    return found[np.newaxis, :-1], found[-1:]


def _by_scikit_learn(rows: Floats, labels: Integers, weights: Floats) -> tuple[Floats, Floats]:
    """Return slopes and intercepts for rows of positive weight."""
    model = LogisticRegression(C=_STRENGTH, max_iter=_MOST_STEPS, tol=_TOLERANCE)
    with warnings.catch_warnings(), single_threaded():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(rows, labels, sample_weight=weights)
    return model.coef_, model.intercept_


def constant_leaf(labels: Integers, weights: Floats, n_classes: int) -> Linear:
    """Return a predictor of the shares of the classes, the same for all rows."""
    counts = np.bincount(labels, weights, n_classes)
    with np.errstate(divide="ignore"):
        logs = np.where(counts > 0, np.log(counts / counts.sum()), -np.log1p(counts.sum()))
    none = np.zeros(0, np.int64)
    intercepts = np.diff(logs) if n_classes == 2 else logs
    return Linear(none, np.zeros((intercepts.size, 0)), intercepts)
