"""Effects in groups: intervals contain them in every world, or are not printed."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bayescascade.base.store import restored, stored
from bayescascade.methods.effects.measured import LEAST_NUMBERS, LEAST_ROWS, MeasuredEffects
from tests.methods.effects.simulated_effects import World, coverage, exact_coverage, pooled_student

RATES, EFFECTS = (0.01, 0.05, 0.1, 0.3, 0.5), (0.0, 0.05, 0.1)
WORLDS = [
    World(0.05, 0.10, 200),
    World(0.10, 0.30, 60),
    World(0.10, 0.02, 200, 0.1),
    World(0.5, 0.01, 20),
    World(0.05, 0.10, 500, 0.05, is_confounded=True),
    World(0.3, 0.30, 200, is_confounded=True),
]


@pytest.mark.parametrize("n_treated", [5, 10, 25, 100])
def test_intervals_of_two_shares_contain_the_effect(n_treated):
    """At least 95 % of them, by all outcomes of both arms, from 20 to 500 rows."""
    sizes = [n for n in (20, 50, 100, 200, 500) if 2 * n_treated <= n]
    covered = [
        exact_coverage(n_treated, n - n_treated, rate, effect)
        for n, rate, effect in product(sizes, RATES, EFFECTS)
    ]
    assert min(covered) >= 0.95


@pytest.mark.parametrize("world", WORLDS, ids=str)
def test_printed_intervals_contain_the_effect(world, rng):
    covered, n_printed = coverage(world, 500, rng)
    assert n_printed >= 100
    assert covered >= 0.93


@pytest.mark.parametrize("world", WORLDS[:3], ids=str)
def test_pooled_intervals_do_not(world, rng):
    """The test above must be able to fail."""
    assert coverage(world, 500, rng, pooled_student)[0] < 0.93


def test_few_rows_have_a_reason_and_no_interval():
    y, treated = np.zeros(40), np.arange(40) < 3
    one = MeasuredEffects.of(y, treated, np.ones(40), np.ones((1, 40), bool))
    assert one.reasons == ["3 treated rows"]
    weights = np.where(np.arange(40) == 6, 20.0, 1.0)
    other = MeasuredEffects.of(y, np.arange(40) >= 8, weights, np.ones((1, 40), bool))
    assert other.reasons == ["1.7 effective untreated rows"]
    numbers = np.arange(40.0)
    third = MeasuredEffects.of(numbers, np.arange(40) < 20, np.ones(40), np.ones((1, 40), bool))
    assert third.reasons == ["20 treated rows"]
    for each in (one, other, third):
        assert np.isnan(each.intervals()).all()
        assert np.isnan(each.effects).all()
        assert not each.is_clear.any()


def test_numbers_have_student_s_intervals(rng):
    """Of skewed outcomes, too, with the fewest rows that are measured in an arm."""
    n_tables, sizes = 500, (9 * LEAST_NUMBERS, LEAST_NUMBERS)
    held = 0
    treated = np.repeat([False, True], sizes)
    whole = np.ones((1, len(treated)), bool)
    for _ in range(n_tables):
        y = rng.exponential(size=len(treated))
        ((low, high),) = MeasuredEffects.of(y, treated, np.ones(len(y)), whole).intervals()
        held += low <= 0.0 <= high
    assert 0.93 <= held / n_tables <= 0.985


def test_stars_are_for_all_groups_together():
    """20 groups are each at the edge of their 95 % interval."""
    sizes = np.full((20, 2), 100)
    means = np.tile([0.3, 0.46], (20, 1))
    many = MeasuredEffects(sizes, sizes.astype(float), means)
    assert (many.intervals()[:, 0] > 0.0).all()
    assert not many.is_clear.any()
    assert MeasuredEffects(sizes[:1], sizes[:1].astype(float), means[:1]).is_clear.all()


def test_weights_are_those_of_rows_and_files_keep_all(rng):
    """Equal weights change nothing; unequal ones have fewer effective rows."""
    y, treated = rng.integers(0, 2, 90).astype(float), rng.random(90) < 0.4
    groups = rng.random((3, 90)) < 0.7
    plain = MeasuredEffects.of(y, treated, np.ones(90), groups)
    assert_allclose(plain.intervals(), MeasuredEffects.of(y, treated, np.full(90, 7.0), groups)
                    .intervals())  # fmt: skip
    uneven = MeasuredEffects.of(y, treated, rng.exponential(size=90), groups)
    assert (uneven.sizes < plain.sizes).all()
    assert plain.sizes.min() >= LEAST_ROWS
    again = restored(MeasuredEffects, stored(uneven), {"groups": 3})
    np.testing.assert_array_equal(again.intervals(), uneven.intervals())
    with pytest.raises(ValueError, match="effective rows"):
        replace(uneven, n_rows=np.ones((3, 2), np.int64))
