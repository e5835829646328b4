"""Bounds on what a row can change: never exceeded by a search, and exceeded if they were halved.

Each search starts from rows that are nearly the worst, so that a bound that is too low is found.
"""

import math

import numpy as np
import pytest

from bayescascade.methods.causal.scores import kendall, log_iqr, spearman
from bayescascade.methods.causal.sensitivity import (
    by_test_row,
    by_training_row,
    iqr_distance,
    rank_distance,
    residual_shift,
)
from tests.methods.causal.problems import slow_hsic_root, slow_ridge

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


def shift_of(x, y, other_x, other_y, regularization):
    """Return by how much predictions differ at most, anywhere."""
    rows = np.linspace(-1, 1, 41)
    one, other = (
        slow_ridge(*rows_of, 0.5, regularization)(rows) for rows_of in ((x, y), (other_x, other_y))
    )
    return float(np.abs(one.clip(-1, 1) - other.clip(-1, 1)).max())


@pytest.mark.parametrize("regularization", [0.05, 0.5, 5.0])
def test_no_training_row_moves_residuals_more_than_proved(regularization):
    n, rng, found = 6, np.random.default_rng(0), 0.0
    for _ in range(300):
        x, y = rng.choice([-1.0, 0.0, 1.0], (2, n))
        found = max(
            found,
            shift_of(
                x, y, replaced(x, 0, rng.uniform(-1, 1)), replaced(y, 0, -y[0]), regularization
            ),
        )
    assert found <= residual_shift(n, regularization)


def test_the_printed_bound_is_exceeded():
    """Theorem 7 of the thesis says 8 / (n lambda^1.5): all x the same, one y of six flipped."""
    x, y = np.zeros(6), np.ones(6)
    moved = shift_of(x, y, x, replaced(y, 0, -1.0), 8.0)
    assert moved == pytest.approx(4 / (6 * (8.0 + 2)))  # of 2 mean(y) / (lambda + 2)
    assert 8 / (6 * 8**1.5) < moved < residual_shift(6, 8.0)
    assert moved > residual_shift(6, 8.0) / 2


@pytest.mark.parametrize("shift", [0.002, 0.02, 0.3])
def test_moved_residuals_change_hsic_no_more_than_proved(shift):
    rng, found = np.random.default_rng(0), 0.0
    for m in (2, 6, 24):
        for n_clusters in (2, 3, 6):
            cluster = np.arange(m) % n_clusters
            a, b = np.linspace(-1, 1, n_clusters)[cluster], np.zeros(m)
            for step in range(20):
                moves = rng.uniform(-1, 1, m) if step else np.where(cluster % 2, 1.0, -1.0)
                change = abs(root(a, b + shift * moves) - root(a, b))
                bound = by_training_row(m, shift, BANDWIDTH)
                assert change <= bound + 1e-7
                found = max(found, change / bound)
    assert found > 0.5 or shift > BANDWIDTH


def moved_once(numbers, shift, protects_test, rng):
    """Return a neighbor: of training rows all numbers move a little, of test rows one anywhere."""
    if protects_test and (shift == 0.0 or rng.random() < 0.5):
        return replaced(numbers, int(rng.integers(len(numbers))), rng.choice(
            [rng.uniform(-1, 1), rng.choice(numbers) + 1e-3, 5.0, -5.0]
        ))  # fmt: skip
    return numbers + shift * rng.choice([-1.0, 1.0, rng.uniform(-1, 1)], len(numbers))


KINDS = [("train", 0.002), ("both", 0.002)]


@pytest.mark.parametrize("name", RANKS)
@pytest.mark.parametrize(("kind", "shift"), KINDS)
def test_rank_scores_are_as_stable_as_their_distance_says(name, kind, shift):
    """Within that many rows, another changes the score by no more than was proposed."""
    m, protects_test = 60, kind == "both"
    proposed = 5 * by_test_row(name, m) if protects_test else 0.2
    _walk(
        lambda b: RANKS[name](np.linspace(-1, 1, m), b),
        lambda b: rank_distance(name, b, proposed, shift, protects_test=protects_test),
        lambda rng: rng.uniform(-1, 1, m),
        (proposed, shift, protects_test),
    )


@pytest.mark.parametrize(("kind", "shift"), [*KINDS, ("test", 0.0)])
def test_interquartile_ranges_are_as_stable_as_their_distance_says(kind, shift):
    protects_test = kind != "train"
    proposed = 0.4 if protects_test else 0.01
    _walk(
        log_iqr,
        lambda b: iqr_distance([(b, shift)], proposed, protects_test=protects_test),
        lambda rng: rng.normal(size=101),
        (proposed, shift, protects_test),
    )


def _walk(score, distance, draw, how):
    """Walk to neighbors, as many as the distance allows, and look at what the next one changes."""
    proposed, shift, protects_test = how
    largest, distances = 0.0, set()
    for seed in range(40):
        rng = np.random.default_rng(seed)
        rows = draw(rng)
        left = distance(rows)
        distances.add(left)
        for _ in range(min(left, 6)):
            other = moved_once(rows, shift, protects_test, rng)
            change = abs(score(other) - score(rows))
            assert change <= proposed + 1e-12
            largest = max(largest, change)
            assert abs(distance(other) - distance(rows)) <= 1
            rows = other
    assert largest > 0.02 * proposed  # something changed
    assert max(distances) >= 2


def test_distances_by_hand():
    """Ranks: gaps of 0.1 close after 0.1 / (2 R) rows. IQR: a row that is not there."""
    residuals = np.arange(10) / 10
    assert rank_distance("kendall", residuals, 0.0, 0.012, protects_test=False) == 4
    assert rank_distance("kendall", np.zeros(10), 0.0, 1e-9, protects_test=False) == 0
    assert rank_distance("spearman", residuals, 0.1, 1e-9, protects_test=True) == 0
    assert iqr_distance([(np.zeros(50), 0.0)], 0.1, protects_test=True) == 0
    assert iqr_distance([(np.zeros(50), 0.1)], 0.1, protects_test=False) == 0
    # an IQR of 50 that training rows move by 2 R = 1 each: 1 / (49 - k) > 1 / 42 from k = 8
    assert iqr_distance([(np.arange(101.0), 0.5)], math.log1p(1 / 42), protects_test=False) == 8
    # places 25 and 75 of 0..100: after k rows the window is k + 1, and the IQR 50 - (k + 1)
    numbers = np.arange(101.0)
    for k in (0, 3, 9):
        exactly = math.log1p((k + 1) / (50 - (k + 1)))
        assert iqr_distance([(numbers, 0.0)], exactly, protects_test=True) == k + 1
        assert iqr_distance([(numbers, 0.0)], exactly - 1e-9, protects_test=True) == k
