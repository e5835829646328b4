"""Propensities and expected outcomes, each from rows other than the one that it is said of.

With e = P(treated | x), mu_a = E(y | x, arm a), y in {0, 1}, the doubly robust pseudo-outcome

    g = mu_1 - mu_0 + t (y - mu_1) / e - (1 - t) (y - mu_0) / (1 - e)

has E(g | x) = the effect at x if e or both mu are right (Robins, Rotnitzky and Zhao 1994). Its
variance at x is about 1 / (e (1 - e)), hence the weights e (1 - e) of those who learn from it.
Each of the three is a mixture of a logistic regression and a forest; its share is the one of least
log loss on rows held out.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

N_FOLDS = 5
LEAST_PROPENSITY = 0.01
"""Estimated propensities lie within this and one minus it."""

_TREES, _LEAF, _ROWS = 100, 5, 10_000  # of a forest: trees, least rows of a leaf, rows of a tree
_SHARES = np.linspace(0.0, 1.0, 21)  # of the forest


class Nuisance(NamedTuple):
    """What is needed of each row to compare arms, (n_rows,) each."""

    propensity: Floats  # in (0, 1)
    untreated: Floats  # P(y = 1 | x, not treated)
    treated: Floats


def nuisance(
    X: Floats,
    y: Flags,
    treatment: Flags,
    known_propensity: float | Floats | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> Nuisance:
    """Estimate, for each row from four fifths of the others, what comparing arms needs.

    X (n, d), y whether the outcome is good, treatment whether treated, each (n,); a propensity
    known by design is kept as it is.
    """
    parts: list[tuple[Flags, Flags]] = [(~treatment, y), (treatment, y)]
    strata = 2 * treatment + y
    folds = list(StratifiedKFold(_n_folds(strata), shuffle=True, random_state=random_state).split(
        X, strata))  # fmt: skip
    found = [_held_out(X, labels, among, folds, random_state, n_jobs) for among, labels in parts]
    propensity = propensities(X, treatment, known_propensity, random_state, n_jobs)
    return Nuisance(propensity, found[0], found[1])


def propensities(
    X: Floats, treatment: Flags, known: Any, random_state: int, n_jobs: int | None
) -> Floats:
    """Return the propensity of each row alone, (n,), as `nuisance` does."""
    if known is not None:
        return np.asarray(np.broadcast_to(np.asarray(known, np.float64), treatment.shape))
    folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=random_state)
    split = list(folds.split(X, treatment))
    everyone = np.ones(len(treatment), np.bool_)
    found = _held_out(X, treatment, everyone, split, random_state, n_jobs)
    return np.clip(found, LEAST_PROPENSITY, 1.0 - LEAST_PROPENSITY)


def doubly_robust(
    y: Flags, treatment: Flags, propensity: Floats, untreated: Floats, treated: Floats
) -> Floats:
    """Return pseudo-outcomes g whose mean at x is the effect there, (n,)."""
    found: Floats = (
        treated
        - untreated
        + np.where(treatment, (y - treated) / propensity, -(y - untreated) / (1.0 - propensity))
    )
    return found


def _held_out(
    X: Floats, labels: Flags, among: Flags, folds: Any, seed: int, n_jobs: int | None
) -> Floats:
    """Return P(label) of all rows, (n,), each by models of the rows `among` of other folds."""
    both = np.empty((2, len(labels)))
    for others, held_out in folds:
        chosen = others[among[others]]
        if labels[chosen].all() or not labels[chosen].any():
            both[:, held_out] = (labels[chosen].sum() + 0.5) / (len(chosen) + 1.0)
            continue
        models = (
            make_pipeline(StandardScaler(), LogisticRegression()),
            RandomForestClassifier(
                _TREES,
                min_samples_leaf=_LEAF,
                max_features=0.5,
                max_samples=min(len(chosen), _ROWS),
                random_state=seed,
                n_jobs=n_jobs,
            ),
        )
        for which, model in enumerate(models):
            model.fit(X[chosen], labels[chosen])
            both[which, held_out] = model.predict_proba(X[held_out])[:, 1]
    mixed = np.clip(both[:1] + _SHARES[:, None] * (both[1] - both[0]), 1e-3, 1.0 - 1e-3)
    right = np.where(labels, mixed, 1.0 - mixed)[:, among]
    chosen_mixture: Floats = mixed[np.log(right).mean(axis=1).argmax()]
    return chosen_mixture


def _n_folds(strata: NDArray[np.int64]) -> int:
    """Return as many folds as the rarest arm and outcome has rows, at most five."""
    return int(np.clip(np.unique(strata, return_counts=True)[1].min(), 2, N_FOLDS))
