"""Bounds on what a row can change: never exceeded by a search, and nearly met by it.

Each search starts from rows that are nearly the worst, so that a bound that is too low is found.
"""

import math

import numpy as np
import pytest

from bayescascade.methods.causal.protection import by_test_row, iqr_distance
from bayescascade.methods.causal.scores import kendall, spearman
from tests.fuzz.running import search
from tests.fuzz.sensitivities import climbed, stability_distances
from tests.methods.causal.problems import slow_hsic_root

BANDWIDTH = 0.05  # so that rows can be strangers to each other
SCORES = {
    "spearman": spearman,
    "kendall": kendall,
    "hsic": lambda a, b: slow_hsic_root(a, b, BANDWIDTH, BANDWIDTH),
}


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("m", [4, 20])
def test_no_test_row_changes_more_than_proved(name, m):
    """By the bound, which half of it would not survive."""

    def change(state):
        """Return what it changes that the last row takes the place of the highest."""
        (a, u), (b, v) = ((one[:-1], one[-1]) for one in state)
        place = np.arange(m) == np.argmax(a)
        return abs(SCORES[name](a, b) - SCORES[name](np.where(place, u, a), np.where(place, v, b)))

    line, rng = np.linspace(-1, 1, m), np.random.default_rng(m)
    starts = [line, np.where(np.arange(m) < m / 3, -1.0, 1.0), rng.uniform(-1, 1, m)]
    found, n_steps = 0.0, 400 if name == "hsic" else 100  # the others climb fast
    for start in starts:
        rows = np.array([[*start, start.max()], [*start, start.min()]])
        found = max(found, climbed(change, rows, rng, n_steps))
    assert found <= by_test_row(name, m) + 1e-7
    assert found > 0.5 * by_test_row(name, m)


@pytest.mark.parametrize("m", [4, 10])
def test_bounds_of_a_test_row_end_their_proofs(m):
    """Rows that attain them are not known, so that a bound a third too low would not be seen."""
    ranks = np.arange(m) - (m - 1) / 2
    own = np.ptp(np.outer(ranks, ranks))
    moved = 2 * ranks[ranks > 0].sum()
    most = 12 / (m * (m * m - 1)) * (own + moved)
    assert by_test_row("spearman", m) == pytest.approx(most, rel=1e-12)
    e = np.linspace(0, 1, 5)
    assert by_test_row("hsic", m) == pytest.approx(np.sqrt((4 + 2 * np.outer(e, e)).max()) / m)


def test_interquartile_ranges_are_as_stable_as_their_distance_says():
    """Of many neighbors; `tests.fuzz` has the twin whose distances are made up."""
    tried = search({"distances": stability_distances}, 3, problems=range(400))
    assert tried.found == []
    assert tried.numbers["distance"][1] >= 2


def test_distances_by_hand():
    """A range that is not there; and places 25 and 75 of 0 .. 100, whose windows grow."""
    assert iqr_distance([np.zeros(50)], 0.1) == 0
    numbers = np.arange(101.0)  # after k rows a window is k + 1 wide, and the range 50 - (k + 1)
    for k in (0, 3, 9):
        exactly = math.log1p((k + 1) / (50 - (k + 1)))
        assert iqr_distance([numbers], exactly) == k + 1
        assert iqr_distance([numbers], exactly - 1e-9) == k
        assert iqr_distance([numbers, np.zeros(50)], exactly) == 0
