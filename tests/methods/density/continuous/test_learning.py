"""Learning of continuous mixtures: what it finds, and when it declines."""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bayescascade import Table
from bayescascade.data.splitting import with_weights
from bayescascade.methods.density.continuous import learning
from bayescascade.methods.density.continuous.density import ContinuousDensity
from bayescascade.methods.density.continuous.learning import ContinuousSettings, choose
from bayescascade.methods.density.continuous.network import NetState, Network, chow_liu


def fitted(table, settings, seed):
    density, ended = learning.fitted(table, settings, seed)
    if ended is not None:
        raise ended
    return density


BRIEF = ContinuousSettings(n_steps=40, n_refining_steps=15, decay=0.01, n_points=64)


@cache
def table(n=1_200):
    """Return answers of people of different inclination: columns depend by degrees on a number."""
    rng = np.random.default_rng(2)
    inclination = 2.0 * rng.normal(size=n)
    answers = {
        f"q{j}": np.where(rng.random(n) < 1 / (1 + np.exp(b - inclination)), "yes", "no")
        for j, b in enumerate(np.linspace(-2, 2, 9))
    }
    grade = np.digitize(inclination + rng.normal(size=n), [-2.0, 0.0, 2.0])
    names = np.array(["a", "b", "c", "d"])[grade]
    levels = {name: ["no", "yes"] for name in answers} | {"grade": ["a", "b", "c", "d", "e"]}
    frame = pd.DataFrame(answers | {"grade": names, "only": "x"})
    return Table.from_frame(frame, nominal=levels | {"only": ["x"]})


def halves():
    """Return two tables of the same distinct rows, each with half of the rows."""
    weights = np.random.default_rng(1).binomial(table().weights.astype(int), 0.5).astype(float)
    return with_weights(table(), weights), with_weights(table(), table().weights - weights)


def mean_score(density, held):
    scores = density.score_codes(held.codes.astype(np.int32))
    return float(np.average(scores, weights=held.weights))


def of_tree(seen):
    """Return the Chow-Liu tree of a table."""
    cells, log_odds = chow_liu(seen)
    network = Network.random(log_odds, 4, np.random.default_rng(0))
    network = network._replace(last=np.zeros_like(network.last))
    state = NetState(network, np.zeros((4, 1), np.float32), np.zeros(1, np.float32))
    return ContinuousDensity.of(seen.schema, 1.0, cells, state)


def test_it_scores_rows_that_differ_by_degrees_better_than_a_tree():
    """The mixture must gain what a hidden number gains, although a level and a column are empty."""
    seen, held = halves()
    gain = mean_score(fitted(seen, BRIEF, 0), held) - mean_score(of_tree(seen), held)
    assert gain > 0.1


def test_a_seed_fixes_the_result():
    """The same seed must give the same bits, another one another model."""
    brief = BRIEF._replace(n_steps=5, n_refining_steps=2)
    first, again, other = (fitted(table(), brief, seed) for seed in (0, 0, 1))
    for one, two in zip(first.tables, again.tables, strict=True):
        assert_array_equal(one, two)
    assert abs(first.tables[1] - other.tables[1]).max() > 1e-3


@pytest.mark.parametrize("factor", [1e-9, 1e12])
def test_only_relative_weights_count(factor):
    """Weights in another unit must not change what is learned, but for the tree's pseudo-row."""
    heavy = replace(table(), weights=table().weights * 1e6, total_weight=table().total_weight * 1e6)
    scaled = replace(
        heavy, weights=heavy.weights * factor, total_weight=heavy.total_weight * factor
    )
    brief = BRIEF._replace(n_steps=5, n_refining_steps=2)
    density = fitted(scaled, brief, 0)
    scores = density.score_codes(table().codes.astype(np.int32))
    assert np.isfinite(scores).all()
    if factor > 1:
        expected = fitted(heavy, brief, 0).score_codes(table().codes.astype(np.int32))
        assert_allclose(scores, expected, atol=1e-2)


def test_a_heavy_row_is_in_many_batches():
    """A row of half of the weight must not be missing from most steps."""
    weights = np.ones(300)
    weights[7] = 300.0
    cells, _ = chow_liu(table())
    data = learning._Data(cells, np.arange(300)[:, np.newaxis], weights)
    batches = data.batches(np.random.default_rng(0))
    means = []
    for _ in range(200):
        rows, own = next(batches)
        means.append(own[rows[:, 0] == 7].sum())
    assert np.mean(means) == pytest.approx(0.5, abs=0.02)
    assert min(means) > 0.3


def test_what_is_chosen_fits_and_too_much_work_is_declined(monkeypatch):
    """Settings must be chosen by held-out rows, and nothing tried that exceeds the operations."""
    monkeypatch.setattr(learning, "_STEPS", 25)
    monkeypatch.setattr(learning, "_REFINING_STEPS", 15)
    monkeypatch.setattr(learning, "_MOST_POINTS", 64)
    assert not learning.is_worth(table())  # so few cells are for other models
    found = choose(table(), 0, 1e12)
    assert 0 < found[0][1].n_steps <= 33
    assert found == choose(table(), 0, 1e12) == sorted(found, reverse=True)
    assert choose(table(), 0, 1e6, is_whole=True) == []
    few = with_weights(table(), np.where(np.arange(table().weights.size) < 50, 1.0, 0.0))
    monkeypatch.setattr(learning, "_FEWEST_CELLS", 100)
    assert learning.is_worth(table())
    assert not learning.is_worth(few)
    one_row = with_weights(table(), np.where(np.arange(table().weights.size) < 1, 1.0, 0.0))
    assert choose(one_row, 0, 1e12) == []
    assert np.isfinite(mean_score(fitted(one_row, BRIEF, 0), one_row))
