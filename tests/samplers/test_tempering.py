"""Replica exchange: right draws, a ladder that adapts and then stands still."""

import numpy as np
import pytest

import samplers
from tests.samplers.exhaustive import normalize
from tests.samplers.targets import (
    BROKEN,
    FastRing,
    FullRing,
    Modes,
    Walk,
    all_draws,
)
from tests.statistical.chi_square import fits


@pytest.mark.parametrize(
    ("target", "moves", "is_right"),
    [(FullRing(), None, True), (FastRing(), None, True), (FullRing(), BROKEN, False)],
    ids=["moves", "advance", "broken"],
)
def test_visits_of_the_cold_replica_follow_the_posterior(target, moves, is_right):
    """Draws are 20 steps apart, which makes them all but independent on this ring."""
    run = samplers.tempering(
        target, n_steps=4_000, n_draws=150, n_temperatures=3, moves=moves, seed=8
    )
    exact = normalize(target, range(6))
    assert fits(all_draws(run), exact) == is_right


@pytest.mark.slow
def test_crosses_between_modes_where_a_plain_chain_does_not():
    """The reason to use it: both modes in the right proportion from a start in the wrong one."""
    search = {
        "n_steps": 40_000, "n_draws": 400, "moves": {"walk": Walk()}, "n_chains": 2,
        "initial_states": [0, 0], "seed": 4,
    }  # fmt: skip
    exact = normalize(Modes(), range(21))
    run = samplers.tempering(Modes(), n_temperatures=6, min_inverse_temperature=0.02, **search)
    share = float((np.array(run.draws) > 10).mean())
    # between 15 and 20 round trips a chain would give a standard error of 0.08
    assert abs(share - exact[11:].sum()) < 0.25
    stuck = samplers.metropolis(Modes(), **search)
    assert float((np.array(stuck.draws) > 10).mean()) == 0.0


@pytest.mark.slow
def test_ladder_adapts_to_the_swap_rate_asked_for():
    """Without adaptation the user would have to guess temperatures."""

    class Bits:
        def log_density(self, state):
            return -2.0 * sum(state)

    class Flip:
        def propose(self, rng, state):
            flipped = list(state)
            flipped[int(rng.random() * len(state))] ^= 1
            return samplers.Proposal(tuple(flipped), 0.0)

    search = {
        "n_steps": 30_000, "moves": {"flip": Flip()}, "n_chains": 2,
        "initial_states": [(0,) * 40] * 2,
        "n_temperatures": 3, "min_inverse_temperature": 0.01, "seed": 4,
    }  # fmt: skip
    for swap_target in (0.3, 0.7):
        extras = samplers.tempering(Bits(), swap_target=swap_target, **search).extras
        assert extras["inverse_temperatures"].shape == (2, 3)
        assert (extras["inverse_temperatures"][:, 0] == 1.0).all()
        assert (np.diff(extras["inverse_temperatures"]) < 0).all()
        assert np.abs(extras["swap_acceptance"] - swap_target).max() < 0.15
    # no hotter than is allowed, and then even
    cool = samplers.tempering(Bits(), **search | {"min_inverse_temperature": 0.9}).extras
    assert cool["inverse_temperatures"].min() == pytest.approx(0.9)
    assert np.ptp(cool["swap_acceptance"], axis=1).max() < 0.15
    frozen = samplers.tempering(Bits(), warmup=0.0, **search).extras
    assert np.abs(frozen["swap_acceptance"] - 0.3).max() > 0.2


def test_ladder_is_frozen_while_sampling_and_each_pair_has_its_turns():
    """A ladder that adapts makes draws wrong; pairs that never swap are as slow as plain chains."""
    search = {"n_temperatures": 4, "warmup": 0.0, "n_draws": 1, "seed": 1}
    extras = samplers.tempering(FullRing(), n_steps=500, **search).extras
    expected = np.tile(np.geomspace(1.0, 0.1, 4), (4, 1))
    np.testing.assert_allclose(extras["inverse_temperatures"], expected)
    assert np.isfinite(extras["swap_acceptance"]).all()


def test_untried_swaps_are_not_called_rejected():
    run = samplers.tempering(FullRing(), n_steps=1, n_temperatures=3, warmup=0.0, seed=1)
    assert np.isfinite(run.extras["swap_acceptance"][:, 0]).all()
    assert np.isnan(run.extras["swap_acceptance"][:, 1]).all()


def test_best_state_of_hot_replicas_counts():
    """Hot replicas see more; what they find is found."""

    class Needle(Modes):
        def log_density(self, state):
            return 60.0 if state == 12 else super().log_density(state)

    run = samplers.tempering(
        Needle(), n_steps=1000, moves={"walk": Walk()}, initial_states=[0] * 4,
        min_inverse_temperature=0.001, seed=3, keep_states=False,
    )  # fmt: skip
    assert (run.best_state, run.best_log_density) == (12, 60.0)
