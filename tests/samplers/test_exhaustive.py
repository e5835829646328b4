"""Exact answers on spaces that can be listed."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

import samplers
from tests.samplers.exhaustive import enumerate_states, normalize, transition_matrix
from tests.samplers.targets import MOVES, WEIGHTS, FullRing, Jump, Ring, Turn


class _Bounded(Ring):
    """The ring with a state off the support."""

    def log_density(self, state):
        return super().log_density(state) if state != 5 else -math.inf


class _Listed:
    def __init__(self, proposals):
        self.proposals = proposals


UP = _Listed(lambda state: [(samplers.Proposal((state + 1) % 6, 0.0), 1.0)])


def test_enumeration_reaches_everything_once():
    """And it does not go through states off the support."""
    assert sorted(enumerate_states(Ring(), 3, MOVES)) == list(range(6))
    assert enumerate_states(Ring(), 3, {"turn": Turn()})[:3] == [3, 4, 2]
    assert enumerate_states(Ring(), 0, {"jump": Jump()}) == [0]  # only invalid proposals
    assert enumerate_states(_Bounded(), 2, {"up": UP}) == [2, 3, 4]


def test_normalization_is_exact():
    """Also for log densities beyond the range of exp."""
    assert_allclose(normalize(Ring(), range(6)), np.array(WEIGHTS) / sum(WEIGHTS))

    class Shifted(Ring):
        def log_density(self, state):
            return super().log_density(state) - 5000.0

    assert_allclose(normalize(Shifted(), range(6)), np.array(WEIGHTS) / sum(WEIGHTS))


def test_transition_matrix_is_a_kernel_with_the_right_stationary_distribution():
    """Of moves mixed by the target's weights."""
    matrix = transition_matrix(MOVES, FullRing(), range(6))
    assert_allclose(matrix.sum(axis=1), 1.0)
    assert (matrix >= 0).all()
    exact = normalize(FullRing(), range(6))
    assert_allclose(exact @ matrix, exact)
    parts = [transition_matrix(move, FullRing(), range(6)) for move in MOVES.values()]
    assert_allclose(matrix, 0.75 * parts[0] + 0.25 * parts[1])


def test_wrong_moves_are_named():
    """A move whose probabilities do not add up cannot be checked, so it must not pass."""
    half = _Listed(lambda state: [(samplers.Proposal(state, 0.0), 0.5)])
    with pytest.raises(samplers.SamplerError, match=r"'move' must sum to probability 1, got 0\.5"):
        transition_matrix(half, Ring(), range(6))
    with pytest.raises(samplers.SamplerError, match="states must be closed under 'move'"):
        transition_matrix(Turn(), Ring(), range(5))
    with pytest.raises(samplers.SamplerValueError, match="states must not repeat, got 1 repeats"):
        transition_matrix(Turn(), Ring(), [0, 1, 2, 3, 4, 5, 5])
    closed = transition_matrix(UP, _Bounded(), range(5))
    assert closed[4, 4] == 1.0  # the only way out leads off the support


@pytest.mark.parametrize("move", [Turn(), Jump()], ids=["turn", "jump"])
def test_listed_proposals_are_those_that_are_drawn(move, rng):
    """The twins in these tests must be what they claim, or the exact checks check nothing."""
    listed = {(one.state, one.log_q_ratio): weight for one, weight in move.proposals(3)}
    counts = dict.fromkeys(listed, 0)
    for _ in range(4000):
        counts[tuple(move.propose(rng, 3))] += 1
    for proposal, probability in listed.items():
        deviation = abs(counts[proposal] - 4000 * probability)
        assert deviation <= 5 * math.sqrt(4000 * probability * (1 - probability))
