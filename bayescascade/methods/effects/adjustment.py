"""Propensities and expected outcomes of rows, estimated from other rows.

With e = P(treated | x), mu_a = E(y | x, arm a), y in {0, 1}, the doubly robust pseudo-outcome

    g = mu_1 - mu_0 + t (y - mu_1) / e - (1 - t) (y - mu_0) / (1 - e)

has E(g | x) = the effect at x if e or both mu are right (Robins, Rotnitzky and Zhao 1994). Its
variance at x is about 1 / (e (1 - e)), so learners use the weights e (1 - e). Each of the three is
a mixture of a logistic regression and a forest. The regression's penalty and the forest's share
have the least log loss on held-out rows: with folds, and with the trees that did not draw the row.
mu_1 - mu_0 is itself an estimate of effects, the "T-learner" of Kuenzel et al. (2019).
"""

from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bayescascade.base.arrays import Flags, Floats
from bayescascade.methods.effects.functions import ForestFunction, LogisticFunction, SumFunction

MOST_ROWS = 8_000
"""Maximum number of rows of a tree, drawn with replacement."""

_CHOOSING = 30  # trees for choosing the minimum leaf

N_FOLDS = 5
LEAST_PROPENSITY = 0.01
"""Estimated propensities are between this and one minus it."""

_LEAVES, _LEAST_LEAF = 400, 5  # for a forest; see `Growth`
_SHARES = np.linspace(0.0, 1.0, 21)  # shares of the forest
_STRENGTHS = (0.03, 0.1, 0.3, 1.0)  # inverse penalties of logistic regressions
_LEAST = 1e-3  # probability of an outcome


class Growth(NamedTuple):
    """How trees grow."""

    n_trees: int
    leaves: tuple[int, ...]  # choices: a leaf has at least one in this many rows
    least_leaf: int
    max_features: float
    seed: int
    n_jobs: int | None


def grow(rows: Floats, labels: Floats, weights: Floats, how: Growth) -> tuple[Any, Floats]:
    """Return a fitted RandomForestRegressor, and its out-of-bag predictions.

    Rows (n, d), labels and weights (n,); the minimum leaf has the least out-of-bag squared error.

    Trees that drew a row know its label. A row that all trees drew is not held out, but there are
    none with thirty trees or more.
    """
    n_drawn = min(len(rows), MOST_ROWS)
    found = []
    for part in how.leaves:
        forest = RandomForestRegressor(
            how.n_trees if len(how.leaves) == 1 else min(_CHOOSING, how.n_trees),
            min_samples_leaf=max(how.least_leaf, n_drawn // part), oob_score=True,
            max_features=how.max_features, max_samples=n_drawn / len(rows),
            random_state=how.seed, n_jobs=how.n_jobs, warm_start=True,
        ).fit(rows, labels, weights)  # fmt: skip
        found.append((float(weights @ (labels - forest.oob_prediction_) ** 2), forest))
    forest = min(found, key=lambda each: each[0])[1]
    if forest.n_estimators < how.n_trees:
        forest.set_params(n_estimators=how.n_trees).fit(rows, labels, weights)
    forest.set_params(n_jobs=None)  # threads would add up trees in any order
    return forest, np.asarray(forest.oob_prediction_, np.float64)


class Nuisance(NamedTuple):
    """Estimates for comparing arms, (n_rows,) each."""

    propensity: Floats  # in (0, 1)
    untreated: Floats  # P(y = 1 | x, not treated)
    treated: Floats
    function: SumFunction | None = None  # their difference, of any rows


def nuisance(
    X: Floats,
    y: Flags,
    treatment: Flags,
    known_propensity: float | Floats | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    weights: Floats | None = None,
    n_trees: int = 100,
) -> Nuisance:
    """Estimate propensities and outcomes of each row from other rows; X (n, d), the others (n,)."""
    weights = np.ones(len(y)) if weights is None else weights
    how = Growth(n_trees, (_LEAVES,), _LEAST_LEAF, 0.5, random_state, n_jobs)
    found = [_held_out(X, y, weights, among, how) for among in (~treatment, treatment)]
    given = X, treatment, known_propensity, random_state, n_jobs, weights, n_trees
    propensity = propensities(*given)
    (untreated, first), (treated, second) = found
    function = SumFunction((second, first), (1.0, -1.0))
    return Nuisance(propensity, untreated, treated, function)


def propensities(
    X: Floats,
    treatment: Flags,
    known: Any,
    random_state: int,
    n_jobs: int | None,
    weights: Floats,
    n_trees: int,
) -> Floats:
    """Return only the propensities of `nuisance`, (n,)."""
    if known is not None:
        return np.asarray(np.broadcast_to(np.asarray(known, np.float64), treatment.shape))
    everyone = np.ones(len(treatment), np.bool_)
    how = Growth(n_trees, (_LEAVES,), _LEAST_LEAF, 0.5, random_state, n_jobs)
    found = _held_out(X, treatment, weights, everyone, how)[0]
    return np.clip(found, LEAST_PROPENSITY, 1.0 - LEAST_PROPENSITY)


def doubly_robust(
    y: Flags, treatment: Flags, propensity: Floats, untreated: Floats, treated: Floats
) -> Floats:
    """Return pseudo-outcomes g whose mean at x is the effect there, (n,)."""
    return (
        treated
        - untreated
        + np.where(treatment, (y - treated) / propensity, -(y - untreated) / (1.0 - propensity))
    )


def _held_out(
    X: Floats, labels: Flags, weights: Floats, among: Flags, how: Growth
) -> tuple[Floats, SumFunction]:
    """Return P(label) of all rows, (n,), from the rows `among` without the row itself.

    The function is that of all of these rows, for others.
    """
    both = np.empty((2, len(labels)))
    rows, own, weights = X[among], labels[among], weights[among]
    forest, both[1, among] = grow(rows, own.astype(np.float64), weights, how)
    by_folds = np.array([_by_folds(rows, own, weights, how.seed, each) for each in _STRENGTHS])
    best = _log_scores(by_folds, own, weights).argmax()
    both[0, among] = by_folds[best]
    logistic = LogisticFunction.of(_logistic(rows, own, weights, _STRENGTHS[best]))
    if not among.all():
        both[0, ~among] = logistic.values(X[~among])
        both[1, ~among] = forest.predict(X[~among])
    mixed = both[:1] + _SHARES[:, None] * (both[1] - both[0])
    best = _log_scores(mixed[:, among], own, weights).argmax()
    shares = (float(1.0 - _SHARES[best]), float(_SHARES[best]))
    function = SumFunction.of((logistic, ForestFunction.of(forest)), shares)
    return np.clip(mixed[best], _LEAST, 1.0 - _LEAST), function


def _log_scores(said: Floats, labels: Flags, weights: Floats) -> Floats:
    """Return the sums of log P(own label), (n_models,), of probabilities (n_models, n)."""
    right = np.where(labels, said, 1.0 - said)
    return np.asarray(np.log(np.clip(right, _LEAST, 1.0 - _LEAST)) @ weights)


def _by_folds(
    X: Floats, labels: Flags, weights: Floats, seed: int, strength: float = 1.0
) -> Floats:
    """Return P(label) of each row by a logistic regression on the other folds, (n,)."""
    found, fold = np.empty(len(labels)), np.empty(len(labels), np.int64)
    order = np.random.default_rng(seed).permutation(len(labels))
    fold[order[np.argsort(labels[order], kind="stable")]] = np.arange(len(labels)) % N_FOLDS
    for held_out in (fold == k for k in range(N_FOLDS)):
        others = labels[~held_out]
        if others.all() or not others.any():
            found[held_out] = (others.sum() + 0.5) / (len(others) + 1.0)
        else:
            fitted = _logistic(X[~held_out], others, weights[~held_out], strength)
            found[held_out] = fitted.predict_proba(X[held_out])[:, 1]
    return found


def _logistic(X: Floats, labels: Flags, weights: Floats, strength: float) -> Any:
    learner = make_pipeline(StandardScaler(), LogisticRegression(C=strength))
    return learner.fit(X, labels, logisticregression__sample_weight=weights)
