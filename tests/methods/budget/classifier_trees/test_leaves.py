"""Leaves: Newton's steps end where scikit-learn's solvers do, whatever the columns."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from bayescascade.methods.budget.classifier_trees import leaves


@pytest.mark.parametrize("kind", ["plain", "separable", "copies", "rare", "weighed", "outlier"])
@pytest.mark.parametrize("seed", range(3))
def test_newton_is_scikit_learns(kind, seed, monkeypatch):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(200, 5))
    y = X[:, 0] - X[:, 1] + generator.normal(size=200) > 0
    weights = np.ones(200)
    if kind == "separable":
        y = X[:, 0] > 0.1
    elif kind == "copies":
        X[:, 1:3] = X[:, :1]
    elif kind == "rare":
        y = np.arange(200) == 7
    elif kind == "weighed":
        weights = 10.0 ** generator.uniform(-6, 6, 200)
    elif kind == "outlier":
        X[0] = 1e3
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    monkeypatch.setattr(leaves, "_TOLERANCE", 1e-12)
    slopes, intercept = leaves.newton(X, y, weights)
    peer = LogisticRegression(C=leaves._STRENGTH, solver="newton-cholesky", tol=1e-12, max_iter=500)
    peer.fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(slopes, peer.coef_, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(intercept, peer.intercept_, rtol=1e-4, atol=1e-5)
