"""Algorithm 1 against a slow twin and its bound, and lemma 2 by all rados."""

import math

import numpy as np
import pytest

from bayescascade import LogisticPosterior, ParameterError, RadoPosterior, explore
from bayescascade.methods.rados.boosting import LARGEST_EDGE, boost
from tests.methods.rados.problems import all_rados, blobs, slow_radoboost


def log_risks(thetas, rados):
    return np.array([np.logaddexp.reduce(-rados @ t) - math.log(len(rados)) for t in thetas])


@pytest.fixture(scope="module")
def rados():
    X, y = blobs(9, 4, shift=0.4)
    rng = np.random.default_rng(5)
    return all_rados(X, y)[rng.choice(512, 60, replace=False)] * [1.0, 100.0, 0.01, 3.0]


def median(sizes):
    return sizes.index(sorted(sizes)[(len(sizes) - 1) // 2])


@pytest.mark.parametrize("learner", ["best", "prudential"])
def test_rounds_are_those_of_the_paper(rados, learner):
    """Weights by logarithms are those by products; the best so far is kept; (12) holds."""
    choose = median if learner == "prudential" else lambda sizes: int(np.argmax(sizes))
    thetas, edges, weights = slow_radoboost(rados.tolist(), 60, choose)
    found = boost(rados, 60, weak_learner=learner)
    np.testing.assert_allclose(found.edges, edges, rtol=1e-9)
    risks = log_risks(thetas, rados)
    np.testing.assert_allclose(found.log_risks, risks, rtol=1e-9, atol=1e-9)
    assert weights.sum() == pytest.approx(1.0)
    best = int(np.argmin(risks))
    assert found.best_round == best + 1
    np.testing.assert_allclose(found.theta, thetas[best], rtol=1e-9)
    assert (found.log_risks <= found.log_bounds + 1e-12).all()
    assert (found.log_bounds <= -0.5 * np.cumsum(edges**2) + 1e-12).all()


def test_the_last_round_need_not_be_the_best():
    """Rados are no signs: a round may raise the risk, and is then not what is returned."""
    n_worse = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        vectors = rng.normal(size=(10, 1)) + rng.normal()
        found = boost(vectors, 12)
        assert found.log_risk == found.log_risks.min()
        assert log_risks([found.theta], vectors)[0] == pytest.approx(found.log_risk, abs=1e-12)
        n_worse += found.best_round < found.n_rounds
    assert n_worse > 0


def test_kappa_divides_and_the_papers_step_would_break_the_bound(rados):
    """With (17)'s own step of log (1 + r) / (1 - r) a round may not lower the risk at all."""
    one, three = boost(rados, 40), boost(rados, 40, kappa=3.0)
    last = slow_radoboost(rados.tolist(), 40, lambda sizes: int(np.argmax(sizes)))[0][-1]
    np.testing.assert_array_equal(one.features, three.features)
    assert three.log_risks[-1] == pytest.approx(log_risks([last / 3], rados)[0], rel=1e-9)
    assert (three.log_risks <= three.log_bounds + 1e-12).all()
    signs = np.array([[1.0], [1.0], [1.0], [-1.0]])
    for factor, holds in ((0.5, True), (1.0, False)):
        step = factor * math.log(1.5 / 0.5)
        assert (log_risks([[step]], signs)[0] <= -0.5 * 0.5**2) == holds


def test_odd_rados_are_boosted_nevertheless():
    """Separable ones, zeros, cells of 1e300, and nothing to learn."""
    every = boost(np.ones((5, 1)), 30)
    assert every.edges[0] == LARGEST_EDGE
    assert every.log_risk < -100
    assert np.isfinite(every.theta).all()
    rng = np.random.default_rng(0)
    vectors = np.column_stack([np.zeros(50), 1e300 * rng.normal(0.5, 1.0, 50), np.zeros(50)])
    huge = boost(vectors, 30)
    assert set(huge.features) == {1}
    assert huge.theta[0] == huge.theta[2] == 0.0 < huge.theta[1] < 1e-298
    for nothing in (np.zeros((5, 2)), np.array([[1.0], [-1.0]])):
        found = boost(nothing, 30)
        assert found.has_converged
        assert (found.n_rounds, found.best_round, found.log_risk) == (0, 0, 0.0)
        assert (found.theta == 0.0).all()


@pytest.mark.parametrize("n_rows", [1, 5, 11])
def test_all_rados_tell_what_the_rows_do(n_rows):
    """Lemma 2, gradients too; of a part of them it is not so."""
    X, y = blobs(n_rows, 3, seed=n_rows)
    every = all_rados(X, y)
    by_rados, by_rows = RadoPosterior(every, n_rows), LogisticPosterior(X, y)
    for scale in (0.1, 1.0, 5.0):
        theta = scale * np.random.default_rng(0).normal(size=3)
        slow = -sum(math.log1p(math.exp(-t * (x @ theta))) for x, t in zip(X, y, strict=True))
        assert by_rows.log_likelihood(theta) == pytest.approx(slow, rel=1e-12)
        assert by_rados.log_likelihood(theta) == pytest.approx(slow, rel=1e-9)
        for ours, theirs in zip(
            by_rados.log_density_and_gradient(theta),
            by_rows.log_density_and_gradient(theta),
            strict=True,
        ):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
    if n_rows > 1:
        part = RadoPosterior(every[: len(every) // 2], n_rows)
        assert abs(part.log_likelihood(theta) - slow) > 1e-3


def test_moments_are_the_second_order_of_the_logistic_loss():
    """By all rados; the maximum is twice least squares', and that of the density."""
    X, y = blobs(11, 3)
    every = all_rados(X, y)
    near = RadoPosterior(every, 11, approximation="moments", prior_scale=1e6)
    rows = LogisticPosterior(X, y)
    direction = np.array([1.0, -2.0, 0.5])
    off = [
        abs(near.log_likelihood(t * direction) - rows.log_likelihood(t * direction))
        for t in (0.02, 0.04)
    ]
    assert off[0] < 1e-4
    assert off[1] / off[0] == pytest.approx(16, rel=0.05)  # the next term is of fourth order
    np.testing.assert_allclose(near.peak(), 2 * np.linalg.lstsq(X, y.astype(float))[0], rtol=1e-6)
    tight = RadoPosterior(every, 11, approximation="moments", prior_scale=[0.3, 1.0, 2.0])
    np.testing.assert_allclose(tight.log_density_and_gradient(tight.peak())[1], 0, atol=1e-9)
    printed = [posterior.parameters()["prior_scale"] for posterior in (near, tight)]
    assert printed == [1e6, "by column"]


@pytest.mark.slow
def test_posteriors_are_climbed_and_sampled():
    """Intervals of coefficients from all rados are those of logistic regression."""
    X, y = blobs(10, 2, shift=0.5)
    both = [RadoPosterior(all_rados(X, y), 10, names=["a", "b"]), LogisticPosterior(X, y)]
    found = [
        explore(p, "ascent+langevin", n_steps=6_000, n_chains=2, n_draws=500, random_state=0)
        for p in both
    ]
    np.testing.assert_allclose(found[0].state, found[1].state, atol=1e-4)
    assert "a" in found[0].run_.traces
    draws = [np.concatenate([np.array(chain) for chain in f.run_.draws]) for f in found]
    np.testing.assert_allclose(*[np.quantile(d, [0.05, 0.95], axis=0) for d in draws], atol=0.15)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: RadoPosterior([[np.nan]], 3), "rados must be a matrix of finite"),
        (lambda: RadoPosterior([1.0], 3), "rados must be a matrix"),
        (lambda: RadoPosterior([[1.0]], 0), "n_rows must be"),
        (lambda: RadoPosterior([[1.0]], 3, prior_scale=0.0), "prior_scale must be"),
        (lambda: RadoPosterior([[1.0]], 3, prior_scale=[1, 2]), "prior_scale must be"),
        (lambda: RadoPosterior([[1.0]], 3, approximation="x"), "approximation must be"),
        (lambda: LogisticPosterior([[1.0]], [1, 2]), "y must have a label"),
        (lambda: LogisticPosterior([[1.0]] * 3, [1, 2, 3]), "3 classes"),
    ],
)
def test_bad_arguments_are_named(make, words):
    with pytest.raises((ParameterError, ValueError), match=words):
        make()
