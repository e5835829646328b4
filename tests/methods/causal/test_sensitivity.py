"""Bounds on what a row can change: never exceeded by a search, and exceeded if they were halved.

Each search starts from rows that are nearly the worst, so that a bound that is too low is found.
"""

import math

import numpy as np
import pytest

from bayescascade.methods.causal.scores import kendall, log_iqr, spearman
from bayescascade.methods.causal.sensitivity import by_test_row, iqr_distance
from tests.methods.causal.problems import slow_hsic_root

BANDWIDTH = 0.05  # so that rows can be strangers to each other
RANKS = {"spearman": spearman, "kendall": kendall}


def root(a, b):
    return slow_hsic_root(a, b, BANDWIDTH, BANDWIDTH)


def replaced(numbers, place, value):
    """Return a neighbor."""
    other = numbers.copy()
    other[place] = value
    return other


def change_found(score, a, b, seed, n_steps=400):
    """Return the largest change by replacing a row that climbing from given rows finds."""
    rng = np.random.default_rng(seed)
    m = len(a)
    best, state = 0.0, (a, b, int(np.argmax(a)), float(a.max()), float(b.min()))
    for _ in range(n_steps):
        a, b, place, u, v = state
        kind = rng.integers(4)
        row, value = (
            int(rng.integers(m)),
            float(rng.choice([rng.uniform(-1, 1), *rng.choice(a, 2)])),
        )
        tried = (
            replaced(a, row, value) if kind == 0 else a,
            replaced(b, row, value) if kind == 1 else b,
            row if kind == 2 else place,
            value if kind == 3 else u,
            value if kind == 2 else v,
        )
        a, b, place, u, v = tried
        change = abs(score(a, b) - score(replaced(a, place, u), replaced(b, place, v)))
        if change >= best:
            best, state = change, tried
    return best


@pytest.mark.parametrize("name", ["spearman", "kendall", "hsic"])
@pytest.mark.parametrize("m", [4, 7, 20])
def test_no_test_row_changes_more_than_proved(name, m):
    """By the bound, which half of it would not survive."""
    score, found = RANKS.get(name, root), 0.0
    line = np.linspace(-1, 1, m)
    clusters = np.where(np.arange(m) < m / 3, -1.0, 1.0)
    lone = np.where(np.arange(m) < 1, -1.0, 1.0)
    rng = np.random.default_rng(m)
    for seed, start in enumerate([line, clusters, lone, rng.uniform(-1, 1, m)]):
        found = max(found, change_found(score, start, start, seed))
    assert found <= by_test_row(name, m) + 1e-7
    assert found > 0.5 * by_test_row(name, m)


def moved_once(numbers, rng):
    """Return a neighbor: one of the numbers is anywhere."""
    value = rng.choice([rng.uniform(-1, 1), rng.choice(numbers) + 1e-3, 5.0, -5.0])
    return replaced(numbers, int(rng.integers(len(numbers))), value)


def test_interquartile_ranges_are_as_stable_as_their_distance_says():
    """Walk to neighbors, as many as the distance allows, and look at what the next one changes."""
    largest, distances, proposed = 0.0, set(), 0.4
    for seed in range(40):
        rng = np.random.default_rng(seed)
        rows = rng.normal(size=101)
        left = iqr_distance([rows], proposed)
        distances.add(left)
        for _ in range(min(left, 6)):
            other = moved_once(rows, rng)
            change = abs(log_iqr(other) - log_iqr(rows))
            assert change <= proposed + 1e-12
            largest = max(largest, change)
            assert abs(iqr_distance([other], proposed) - iqr_distance([rows], proposed)) <= 1
            rows = other
    assert largest > 0.02 * proposed  # something changed
    assert max(distances) >= 2


def test_distances_by_hand():
    """A range that is not there; and places 25 and 75 of 0 .. 100, whose windows grow."""
    assert iqr_distance([np.zeros(50)], 0.1) == 0
    numbers = np.arange(101.0)  # after k rows a window is k + 1 wide, and the range 50 - (k + 1)
    for k in (0, 3, 9):
        exactly = math.log1p((k + 1) / (50 - (k + 1)))
        assert iqr_distance([numbers], exactly) == k + 1
        assert iqr_distance([numbers], exactly - 1e-9) == k
        assert iqr_distance([numbers, np.zeros(50)], exactly) == 0
