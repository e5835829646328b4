"""Exact answers on spaces that can be listed."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

import samplers
from tests.samplers.exhaustive import enumerate_states, normalize, transition_matrix
from tests.samplers.targets import MOVES, WEIGHTS, FullRing, Jump, Ring, Turn


class _Array:
    """The ring with states that are not hashable, and some of them impossible."""

    def log_density(self, state):
        return math.log(WEIGHTS[state[0]]) if state[0] != 5 else -math.inf


class _Listed:
    def __init__(self, proposals):
        self._proposals = proposals

    def propose(self, rng, state):
        raise NotImplementedError

    def proposals(self, state):
        return self._proposals(state)


def _up(state):
    return [(samplers.Proposal([(state[0] + 1) % 6], 0.0), 1.0)]


def test_enumeration_reaches_everything_once():
    assert sorted(enumerate_states(Ring(), 3, MOVES)) == list(range(6))
    assert enumerate_states(Ring(), 3, {"turn": Turn()})[:3] == [3, 4, 2]
    assert enumerate_states(Ring(), 0, {"jump": Jump()}) == [0]  # only invalid proposals


def test_enumeration_needs_a_key_for_states_that_do_not_hash():
    """And it does not go through states off the support."""
    move = {"up": _Listed(_up)}
    with pytest.raises(samplers.SamplerValueError, match=r"key must map .* got a list"):
        enumerate_states(_Array(), [2], move)
    assert enumerate_states(_Array(), [2], move, key=tuple) == [[2], [3], [4]]


def test_normalization_is_exact():
    """Also for log densities beyond the range of exp."""
    assert_allclose(normalize(Ring(), range(6)), np.array(WEIGHTS) / sum(WEIGHTS))

    class Shifted(Ring):
        def log_density(self, state):
            return super().log_density(state) - 5000.0

    assert_allclose(normalize(Shifted(), range(6)), np.array(WEIGHTS) / sum(WEIGHTS))


def test_transition_matrix_is_a_kernel_with_the_right_stationary_distribution():
    matrix = transition_matrix(MOVES, FullRing(), range(6))
    assert_allclose(matrix.sum(axis=1), 1.0)
    assert (matrix >= 0).all()
    exact = normalize(FullRing(), range(6))
    assert_allclose(exact @ matrix, exact)


def test_weights_mix_the_kernels():
    parts = [transition_matrix(move, FullRing(), range(6)) for move in MOVES.values()]
    by_target = transition_matrix(MOVES, FullRing(), range(6))
    assert_allclose(by_target, 0.75 * parts[0] + 0.25 * parts[1])
    given = transition_matrix(MOVES, Ring(), range(6), weights={"turn": 1, "jump": 3})
    assert_allclose(given, 0.25 * parts[0] + 0.75 * parts[1])


def test_wrong_moves_are_named():
    """A move whose probabilities do not add up cannot be checked, so it must not pass."""
    half = _Listed(lambda state: [(samplers.Proposal(state, 0.0), 0.5)])
    with pytest.raises(samplers.SamplerError, match=r"'move' must sum to probability 1, got 0\.5"):
        transition_matrix(half, Ring(), range(6))
    with pytest.raises(samplers.SamplerError, match="states must be closed under 'move'"):
        transition_matrix(Turn(), Ring(), range(5))
    with pytest.raises(samplers.SamplerValueError, match="states must not repeat, got 1 repeats"):
        transition_matrix(Turn(), Ring(), [0, 1, 2, 3, 4, 5, 5])
    closed = transition_matrix(_Listed(_up), _Array(), [[0], [1], [2], [3], [4]], tuple)
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
