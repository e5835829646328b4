"""Pairs without a direction are undecided, by every score; pairs with one are decided."""

from itertools import cycle

import numpy as np
import pytest

from bayescascade import AdditiveNoiseModel
from bayescascade.methods.causal import randomization
from bayescascade.methods.causal.randomization import exceeds_chance
from bayescascade.methods.causal.scores import SCORES
from tests.methods.causal.undirected import KINDS, decided


def most_of(n_pairs):
    """Return 1 % of the pairs, and two standard errors."""
    return 0.01 * n_pairs + 2 * (0.01 * 0.99 * n_pairs) ** 0.5


@pytest.mark.parametrize(
    ("kind", "score", "n"),
    [
        ("Cauchy, independent", "hsic", 60),
        ("Cauchy, dependent", "kendall", 40),
        ("lognormal", "spearman", 40),
        ("two clusters", "variance", 40),
        ("normal, weak line", "variance", 20),
        ("circle", "iqr", 20),
        ("uniform", "shapes", 60),
    ],
)
def test_pairs_without_a_direction_are_undecided(kind, score, n):
    """One constant for all, as before, gives many of them one."""
    now, before = decided(kind, score, n, 60)
    assert now <= most_of(60)
    if kind != "circle" and score != "shapes":
        assert before > most_of(60)


# `tests.benchmarks.undecided` measures every score for every kind
@pytest.mark.slow
@pytest.mark.parametrize(("kind", "score"), list(zip(KINDS, cycle(SCORES), strict=False)))
def test_of_many_pairs_one_percent_may_get_a_direction(kind, score):
    assert decided(kind, score, 40, 200)[0] <= most_of(200)


def test_reversed_units_do_not_matter():
    """A column of losses for one of gains: no score notices, so what decides must not either."""
    found = 0
    for seed in range(60):
        x, y = KINDS["lognormal"](np.random.default_rng(seed), 60)
        found += AdditiveNoiseModel(random_state=seed).fit(x, -5 * y + 2).is_decided_
    assert found <= most_of(60)


def test_many_rows_are_decided_by_some_of_them(monkeypatch):
    """Drawn rows that show the other direction decide nothing."""
    monkeypatch.setattr(randomization, "MOST_ROWS", 50)
    sizes = []

    def difference(x, _):
        sizes.append(len(x))
        return float(len(sizes) == 1)  # the first is that of the drawn rows

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 200))
    assert exceeds_chance(2.0, x, y, difference, rng)
    assert set(sizes) == {50}
    sizes.clear()
    assert not exceeds_chance(-2.0, x, y, difference, rng)
    assert len(sizes) == 1


def test_whole_numbers_are_exchanged_on_one_grid():
    """In other units two grids would mix, whose quartiles are equal less often."""
    x, y = KINDS["whole numbers"](np.random.default_rng(0), 300)
    rng = np.random.default_rng(0)
    for drawn in randomization.pairs_without_direction(x, 7 - y / 3)[1](rng):
        np.testing.assert_allclose(drawn, np.round(drawn), atol=1e-9)


def test_infinite_scores_decide_nothing():
    """Two log spreads of -inf differ by nan."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 50))
    assert not exceeds_chance(1.0, x, y, lambda *_: np.nan, rng)
    assert exceeds_chance(1.0, x, y, lambda *_: 0.9, rng)
    assert not exceeds_chance(1.0, x, y, lambda *_: 1.0, rng)
