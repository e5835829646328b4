"""The formulas of neighbor compression: against themselves written out, and their slopes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bayescascade import DataError, ParameterError, PrototypePosterior
from bayescascade.methods.compress.neighborhoods import ClassedRows
from tests.methods.compress.problems import (
    KINDS,
    blobs,
    posterior,
    slow_log_likelihood,
    slow_probabilities,
)


def some_state(target, seed=1):
    rng = np.random.default_rng(seed)
    return target.initial_state(rng) + 0.3 * rng.normal(size=target.layout.n_parameters)


def test_rows_of_a_class_are_a_unit_apart_by_the_reference():
    """On average over pairs, a row with itself included, and a column."""
    X, y = blobs(n_rows=60, n_classes=3)
    apart = [np.mean((X[y == c][:, None] - X[y == c]) ** 2) for c in np.unique(y)]
    assert posterior().reference ** 2 * np.mean(apart) == pytest.approx(1.0)


@pytest.mark.parametrize("options", KINDS, ids=str)
def test_weights_are_repeated_rows(options, rng):
    """Of prior, likelihood and slope; without weights, all of them differ."""
    X, y = blobs()
    weights = rng.integers(1, 5, len(y))
    weighted = PrototypePosterior(X, y, [2, 3, 1], sample_weight=weights, **options)
    repeated = PrototypePosterior(
        np.repeat(X, weights, 0), np.repeat(y, weights), [2, 3, 1], **options
    )
    state = some_state(weighted)
    (density, slope), found = (one.log_density_and_gradient(state) for one in (repeated, weighted))
    assert found[0] == pytest.approx(density, rel=1e-12)
    assert_allclose(found[1], slope, rtol=1e-9, atol=1e-9)
    assert_allclose(weighted.center, repeated.center, atol=1e-12)
    assert posterior(**options).log_density(state) != pytest.approx(density, rel=0.01)
    parts = np.array_split(np.arange(len(y)), 3)  # as minibatches take them
    sums = [weighted.density_of(weighted.rows.part(one), 1.0, state)[0] for one in parts]
    prior = weighted.log_prior(state)
    assert sum(sums) - 3 * prior == pytest.approx(density - prior, rel=1e-9)


@pytest.mark.parametrize("options", KINDS, ids=str)
def test_likelihood_is_the_papers(options):
    X, y = blobs()
    target = posterior(**options)
    state = some_state(target)
    expected = slow_log_likelihood(target, state, X, y)
    assert target.log_likelihood(state) == pytest.approx(expected, rel=1e-12)
    # 0.3 nats on one prototype are told apart
    assert slow_log_likelihood(target, some_state(target, 2), X, y) != pytest.approx(expected)


def test_likelihood_of_two_rows_by_hand():
    """X = 0 and 1 of classes a and b, prototypes at 0 and 2, gamma = 1."""
    target = PrototypePosterior([[0.0], [1.0]], ["a", "b"], [1, 1])
    state = np.array([0.0, 2.0, 0.0])
    expected = np.log(1.0 / (1.0 + np.exp(-4.0))) + np.log(0.5)
    assert target.log_likelihood(state) == pytest.approx(expected, rel=1e-14)


def test_class_probabilities_are_sums_of_neighbors():
    X, _ = blobs()
    target = posterior(metric="linear")
    state = some_state(target)
    slow = np.array([slow_probabilities(target, state, row) for row in X])
    expected = np.add.reduceat(slow, target.starts[:-1], axis=1)
    assert_allclose(target.class_probabilities(state, X), expected, rtol=1e-11)


def test_rows_far_from_their_class_have_a_finite_density():
    """exp(-1e6) is 0: a row may still be told how improbable it is, and which way to pull."""
    X, y = blobs()
    target = PrototypePosterior(1e3 * X, y, [1, 1, 1])
    state = target.initial_state(np.random.default_rng(0))
    state[-1] = 0.0
    value, gradient = target.log_density_and_gradient(state)
    assert value < -1e5
    assert np.isfinite(gradient).all()
    assert np.abs(gradient).max() > 1.0


def test_threads_and_blocks_change_no_bit(monkeypatch):
    """The same seed must be the same prototypes on every machine of these libraries."""
    monkeypatch.setattr("bayescascade.methods.compress.neighborhoods._LEAST_THREADED", 0)
    X, y = blobs(2_000, 4)
    one = PrototypePosterior(X, y, [5, 5, 5])
    two = PrototypePosterior(X, y, [5, 5, 5], n_threads=2)
    state = some_state(one)
    (value, gradient), (again, other) = (p.log_density_and_gradient(state) for p in (one, two))
    assert value == again
    np.testing.assert_array_equal(gradient, other)


def test_float32_has_seven_digits():
    state = some_state(posterior())
    value, gradient = posterior().log_density_and_gradient(state)
    found, slope = posterior(dtype="float32").log_density_and_gradient(state)
    assert found == pytest.approx(value, rel=1e-5)
    assert found != value
    assert_allclose(slope, gradient, rtol=1e-3, atol=1e-4)


def test_a_sample_of_the_rows_tells_all_of_them():
    """Without bias: the mean over disjoint samples is the density of all rows."""
    target = posterior()
    state = some_state(target)
    rows, ends = target.rows.rows, target.rows.ends
    parts = np.array_split(np.random.default_rng(0).permutation(len(rows)), 3)
    texts = []
    for part in parts:
        part.sort()
        batch = ClassedRows(rows[part], np.searchsorted(part, ends))
        value, gradient = target.density_of(batch, len(rows) / len(part), state)
        texts.append(np.append(gradient, value))
    value, gradient = target.log_density_and_gradient(state)
    assert_allclose(np.mean(texts, axis=0), np.append(gradient, value), rtol=1e-9, atol=1e-9)


def test_prior_is_around_class_means():
    X, y = blobs()
    target = posterior(prior_scale=1.5)
    within = np.sqrt(np.mean([(X[y == c] - X[y == c].mean(axis=0)) ** 2 for c in "abc"], (0, 1)))
    means = np.array([X[y == c].mean(axis=0) for c in "aabbbc"])
    state = target.layout.state(means, target.layout.metric_like(target.reference))
    assert target.log_prior(state) == pytest.approx(0.0, abs=1e-18)
    moved = state.copy()
    moved[:3] += 1.5 * within
    assert target.log_prior(moved) == pytest.approx(-1.5, rel=1e-9)
    moved[-1] += 2.0
    assert target.log_prior(moved) == pytest.approx(-2.0, rel=1e-9)
    assert posterior(prior_scale=None).log_prior(moved) == 0.0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"n_prototypes": (2, 3, 21)},
            'n_prototypes must be at most the number of rows of class "c", 20',
        ),
        ({"n_prototypes": (2, 0, 1)}, "n_prototypes must be an integer >= 1 for each of 3"),
        ({"n_prototypes": (2, 2)}, "n_prototypes must be an integer >= 1 for each of 3"),
        ({"metric": "cosine"}, "metric must be one of"),
        ({"rank": 2}, 'rank must be None unless metric is "linear"'),
        ({"metric": "linear", "rank": 4}, "rank must be an integer"),
        ({"prior_scale": 0.0}, "prior_scale must be a finite number > 0"),
        ({"fixed_metric": [np.nan]}, "fixed_metric must be 1 finite numbers"),
        ({"dtype": "float16"}, "dtype must be one of"),
    ],
)
def test_bad_parameters_are_named(options, words):
    with pytest.raises(ParameterError, match=words):
        posterior(**options)


def test_bad_rows_are_named():
    with pytest.raises(DataError, match="X must be a matrix of finite numbers"):
        PrototypePosterior([[0.0], [np.nan]], ["a", "b"], [1, 1])
    with pytest.raises(DataError, match="at least two classes"):
        PrototypePosterior([[0.0], [1.0]], ["a", "a"], [1])
    with pytest.raises(DataError, match="y must have a label per row of X, 2, got 3"):
        PrototypePosterior([[0.0], [1.0]], ["a", "b", "a"], [1, 1])
