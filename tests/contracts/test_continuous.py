"""What posteriors over numbers promise beside the contract of all: slopes, shifts, fingerprints."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bayescascade import LogisticPosterior, PrototypePosterior, RadoPosterior
from tests.contracts.listed import CONTINUOUS, slopes

each = pytest.mark.parametrize("name", CONTINUOUS)


@each
def test_the_gradient_is_the_slope(name):
    """Of prior and likelihood together; with the other sign, as papers print it, it is not."""
    posterior = CONTINUOUS[name](seed=0)
    lengths = np.asarray(posterior._blocks()[0])
    state = posterior.initial_state(np.random.default_rng(0))
    state = state + 0.3 * lengths * np.random.default_rng(1).normal(size=state.size)
    value, gradient = posterior.log_density_and_gradient(state)
    assert value == pytest.approx(posterior.log_density(state), rel=1e-12)
    expected = slopes(posterior, state, 1e-5 * lengths)
    near = {"rtol": 1e-5, "atol": 1e-6 * float(np.abs(lengths * expected).max())}
    assert_allclose(lengths * gradient, lengths * expected, **near)
    assert not np.allclose(-lengths * gradient, lengths * expected, **near)


@each
def test_shifts_move_one_block_wherever_they_begin(name):
    """Steps that do not depend on the state are as probable the way back."""
    posterior = CONTINUOUS[name](seed=0)
    lengths, bounds = map(np.asarray, posterior._blocks())
    first, other = (posterior.initial_state(np.random.default_rng(k)) for k in range(2))
    seen, rng = set(), np.random.default_rng(2)
    for _ in range(40 * len(bounds)):
        again = np.random.default_rng(0)
        again.bit_generator.state = rng.bit_generator.state
        (move,) = posterior.moves().values()
        proposal = move.propose(rng, first)
        assert proposal.log_q_ratio == 0.0
        moved = proposal.state - first
        assert_allclose(moved, move.propose(again, other).state - other, atol=1e-9)
        seen |= {tuple(np.flatnonzero(moved).tolist())}
    blocks = {tuple(range(a, b)) for a, b in pairwise(bounds)}
    assert seen == blocks
    assert (bounds[0], bounds[-1], lengths.shape) == (0, first.size, first.shape)


def test_fingerprints_tell_data_and_parameters_apart():
    """A run must not go on with other rows; with the same it must."""
    prints = [CONTINUOUS[name](seed=seed).fingerprint() for name in CONTINUOUS for seed in range(2)]
    assert len(set(prints)) == len(prints)
    for name in CONTINUOUS:
        assert CONTINUOUS[name](seed=1).fingerprint() == CONTINUOUS[name](seed=1).fingerprint()
    X, y = np.arange(12.0).reshape(6, 2), np.repeat([0, 1], 3)
    later = np.repeat([0, 1], [4, 2])  # of rows in the same order
    changed = [
        *(RadoPosterior(X, n, prior_scale=s) for n in (6, 7) for s in (1.0, 2.0)),
        RadoPosterior(X, 6, approximation="moments"),
        *(LogisticPosterior(X, labels) for labels in (y, later)),
        *(PrototypePosterior(X, labels, [1, n]) for labels in (y, later) for n in (1, 2)),
        PrototypePosterior(X, y, [1, 1], prior_scale=3.0),
        PrototypePosterior(X, y, [1, 1], metric="diagonal"),
    ]
    assert len({one.fingerprint() for one in changed}) == len(changed)
