"""The judge of the statistical tests: right about what fits, and able to reject."""

import numpy as np
import pytest

from tests.statistical.chi_square import fits, independent_steps

SKEWED = np.array([0.7, 0.2, 0.0999, 0.0001, 0.0])


def test_rejections_are_as_rare_as_stated(rng):
    """Rare values must not tip the scale: a share of `p_value` is rejected, no more."""
    rejected = sum(
        not fits(rng.choice(5, size=300, p=SKEWED), SKEWED, p_value=0.01) for _ in range(2000)
    )
    assert rejected < 20 + 5 * np.sqrt(20)


def test_one_draw_of_a_rare_value_decides_nothing():
    """A value expected 0.03 times may turn up once."""
    drawn = [0] * 210 + [1] * 60 + [2] * 29 + [3]
    assert fits(drawn, SKEWED)


@pytest.mark.parametrize("other", [[0.6, 0.3, 0.1, 0, 0], [0.2, 0.2, 0.2, 0.2, 0.2]])
def test_other_frequencies_are_rejected(other, rng):
    """And so is a draw of what is impossible."""
    drawn = rng.choice(5, size=2000, p=other)
    assert not fits(drawn, SKEWED)
    assert not fits([0] * 100 + [4], SKEWED)
    assert not fits([0] * 100 + [5], SKEWED)


def test_steps_between_draws_come_from_the_matrix():
    """A chain that stays where it is with probability 0.9 needs more steps than one of 0.5."""
    half = np.array([0.5, 0.5])
    slow, fast = (np.array([[s, 1 - s], [1 - s, s]]) for s in (0.9, 0.6))
    steps = independent_steps(slow, half)
    assert 0.8**steps <= 0.03 < 0.8 ** (steps - 1)
    assert independent_steps(fast, half) < steps
