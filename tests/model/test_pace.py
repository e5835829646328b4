"""Chains with a time limit, if their starts take most of the time."""

import time

import numpy as np
import pytest

import samplers
from bayescascade.base.watch import Watch
from bayescascade.model.pace import run_in_time


class Slow:
    """A walk on 0 .. 9 whose density takes some seconds at the starts of chains."""

    def __init__(self, seconds):
        self.seconds, self.n_starts = seconds, 0

    def initial_state(self, rng):
        self.n_starts += 1
        time.sleep(self.seconds)
        return int(rng.integers(10))

    def log_density(self, state):
        return -0.1 * state


class Step:
    """To a neighbor on the circle."""

    def propose(self, rng, state):
        return samplers.Proposal((state + int(rng.choice([-1, 1]))) % 10, 0.0)


@pytest.mark.parametrize(("seconds", "n_runs"), [(0.0, 2), (0.1, 1)], ids=["quick", "slow"])
def test_slow_starts_are_not_repeated_when_time_is_short(seconds, n_runs):
    """Four starts with 60,000 rows took longer than the rest of the time, and were made twice."""
    target = Slow(seconds)
    run = run_in_time(
        samplers.metropolis, target, Watch(0.7), n_steps=10**7, n_blocks=100, blocks="n_draws",
        seed=np.random.SeedSequence(0), progress=None, checkpoint=None, n_chains=4, n_jobs=1,
        moves={"step": Step()},
    )  # fmt: skip
    assert target.n_starts == 4 * n_runs
    assert run.timed_out


def test_one_chain_is_run_if_the_time_is_too_short_for_all():
    """With 60,000 rows, a block of all replicas of four chains took longer than the limit."""
    target = Slow(0.1)
    given = {
        "n_steps": 10**7, "n_blocks": 100, "blocks": "n_draws", "progress": None,
        "checkpoint": None, "n_chains": 4, "n_jobs": 1, "moves": {"step": Step()},
        "seed": np.random.SeedSequence(0),
    }  # fmt: skip
    run = run_in_time(samplers.metropolis, target, Watch(2.0), **given)
    assert target.n_starts == 4 + 1
    assert run.timed_out
    starts = run.final_states  # of annealing, for the chains after it
    run = run_in_time(samplers.metropolis, target, Watch(0.2), initial_states=starts, **given)
    assert len(run.final_states) == 1
