"""The estimator: what it learns from sums, keeps and refuses."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss

import bayescascade
from bayescascade import DataError, ParameterError, RadoBoostClassifier, Rados, explore
from tests.methods.rados.problems import blobs


@pytest.fixture(scope="module")
def tumors():
    X, y = load_breast_cancer(return_X_y=True)
    return X[::2], y[::2], X[1::2], y[1::2]


@pytest.mark.parametrize(("learner", "most"), [("boost", 0.08), ("map", 0.08), ("moments", 0.08)])
def test_sums_are_enough(tumors, learner, most):
    """Rows that it has not seen are classified; by rados of shuffled labels they are not."""
    X, y, X_test, y_test = tumors
    model = RadoBoostClassifier(learner=learner, random_state=0).fit(X, y)
    assert np.mean(model.predict(X_test) != y_test) < most
    shuffled = np.random.default_rng(0).permutation(y)
    twin = RadoBoostClassifier(learner=learner, random_state=0).fit(X, shuffled)
    assert np.mean(twin.predict(X_test) != y_test) > 0.3


def test_small_sums_and_moments_come_near_the_rows(tumors):
    X, y, _, _ = tumors
    rows = LogisticRegression().fit((X - X.mean(axis=0)) / X.std(axis=0), y)
    agreed = {}
    for name, given in (("plain", {"support": None}), ("few", {"n_rados": 4_000})):
        model = RadoBoostClassifier(learner="boost", random_state=0, **given).fit(X, y)
        unlike = model.predict(X) != rows.predict((X - X.mean(axis=0)) / X.std(axis=0))
        agreed[name] = unlike.mean()
    assert agreed["few"] < agreed["plain"]
    model = RadoBoostClassifier(
        learner="moments", n_rados=100_000, support=None, prior_scale=100.0, random_state=0
    ).fit(X[:, :4], y)
    least = LinearRegression().fit(X[:, :4], 2.0 * y - 1.0)
    unlike = np.sign(least.predict(X[:, :4])) != np.sign(model.decision_function(X[:, :4]))
    assert unlike.mean() < 0.01


@pytest.mark.parametrize("learner", ["boost", "map", "moments"])
def test_coefficients_are_in_the_units_of_the_rows(learner):
    X, y = blobs(300)
    X = X * [1.0, 100.0, 0.01] + [0.0, 5.0, 3.0]
    model = RadoBoostClassifier(learner=learner, random_state=0).fit(X, y)
    by_hand = X @ model.coef_ + model.intercept_
    np.testing.assert_allclose(model.decision_function(X), by_hand, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(model.predict(X), np.where(by_hand > 0, 1, -1))
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-by_hand)), rtol=1e-6)
    bare = RadoBoostClassifier(intercept=False, standardize=False, random_state=0).fit(X, y)
    assert bare.intercept_ == 0.0
    np.testing.assert_array_equal(bare.coef_, bare.theta_)


def test_it_learns_from_rados_of_others(tmp_path):
    """Two hospitals hand over files; `fit` is the same as making them by oneself."""
    frame = pd.DataFrame({"sex": ["m", "f"] * 60, "age": np.arange(120.0) % 37})
    labels = np.where((frame["sex"] == "m") & (frame["age"] > 10), "ill", "well")
    first = Rados.sample(frame[:60], labels[:60], 200, random_state=0)
    first.save(tmp_path / "first.npz")
    like = Rados.load(tmp_path / "first.npz")
    second = Rados.sample(frame[60:], labels[60:], 200, like=like, random_state=1)
    model = RadoBoostClassifier(learner="moments").fit_rados(Rados.merge([first, second]))
    assert list(model.classes_) == ["ill", "well"]
    assert np.mean(model.predict(frame) == labels) > 0.8
    assert list(model.feature_names_in_) == ["sex", "age"]
    model.save(tmp_path / "m.json")
    loaded = bayescascade.load(tmp_path / "m.json")
    np.testing.assert_array_equal(loaded.predict(frame[["age", "sex"]]), model.predict(frame))
    own = RadoBoostClassifier(n_rados=200, support=None, random_state=0).fit(
        frame[:60], labels[:60]
    )
    np.testing.assert_array_equal(own.theta_, RadoBoostClassifier().fit_rados(first).theta_)


def test_by_default_sums_are_learned_from_by_their_moments(tumors, tmp_path):
    """Boosting sees the few worst of them only; too few sums have no covariance worth a name."""
    X, y, X_test, y_test = tumors

    def loss(**given):
        model = RadoBoostClassifier(random_state=0, **given).fit(X, y)
        return model, log_loss(y_test, model.predict_proba(X_test))

    (auto, own), (_, boosted) = loss(support=None), loss(support=None, learner="boost")
    assert auto.learner_ == "moments"
    assert own < boosted - 0.02
    few, of_few = loss(n_rados=12)
    assert few.learner_ == "map"
    assert of_few < loss(n_rados=12, learner="moments")[1]
    auto.save(tmp_path / "m.json")
    assert str(bayescascade.load(tmp_path / "m.json")) == str(auto)


def test_its_posterior_has_intervals():
    X, y = blobs(300, shift=0.4)
    model = RadoBoostClassifier(learner="moments", random_state=0).fit(X, y)
    found = explore(
        model.posterior_, "langevin", starts=[model.theta_] * 2, n_chains=2, n_steps=4_000,
        random_state=0,
    )  # fmt: skip
    draws = np.concatenate([np.array(chain) for chain in found.run_.draws])
    low, high = np.quantile(draws, [0.005, 0.995], axis=0)
    assert ((low < model.theta_) & (model.theta_ < high)).all()
    np.testing.assert_allclose(found.state, model.theta_, atol=0.25)
    boosted = RadoBoostClassifier(learner="boost", random_state=0).fit(X, y)
    best = explore(boosted.posterior_, "ascent", n_chains=1, random_state=0)
    assert best.log_density >= boosted.posterior_.log_density(boosted.theta_)


def test_odd_rows_are_classified_or_named():
    X, y = blobs(30)
    with pytest.raises(DataError, match="two classes"):
        RadoBoostClassifier().fit(X, np.arange(30) % 3)
    with pytest.raises(ParameterError, match="support must be an integer from 1 to 30, got 31"):
        RadoBoostClassifier(support=31).fit(X, y)
    with pytest.raises(ParameterError, match="rados must be Rados"):
        RadoBoostClassifier().fit_rados(X)
    zeros = RadoBoostClassifier(intercept=False, random_state=0).fit(np.zeros((30, 2)), y)
    assert (zeros.coef_ == 0).all()
    assert (zeros.predict(np.ones((2, 2))) == -1).all()
    huge = np.where(np.eye(30, 3) > 0, 1e300, X)
    for learner in ("boost", "map", "moments"):
        for standardize in (True, False):
            model = RadoBoostClassifier(learner=learner, standardize=standardize, random_state=0)
            assert np.isfinite(model.fit(huge, y).decision_function(huge)).all()
            assert model.coef_.any()
