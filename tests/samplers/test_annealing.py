"""Cooling, restarts, and the best state ever seen."""

import math
import time

import numpy as np
import pytest
from numpy.testing import assert_allclose

import samplers
from tests.samplers.targets import FullRing, Walk


class Hills:
    """States 0 .. 39: seven local maxima, the highest at the far end."""

    heights = np.sin(np.arange(40.0)) * 4 + np.arange(40.0) / 20

    def log_density(self, state):
        return float(self.heights[state]) if 0 <= state < 40 else -math.inf


SCHEDULE = samplers.GeometricSchedule(5.0, 0.05)


def test_finds_the_most_probable_state():
    """From far away and over many valleys; a walk at the final temperature alone stays behind."""
    best = int(np.argmax(Hills.heights))
    search = {"n_steps": 20_000, "moves": {"walk": Walk()}, "initial_states": [0] * 4, "seed": 1}
    run = samplers.anneal(Hills(), schedule=SCHEDULE, **search)
    assert run.best_state == best
    assert run.best_log_density == Hills.heights[best]
    cold = samplers.anneal(Hills(), schedule=samplers.GeometricSchedule(0.05, 0.05), **search)
    assert cold.best_log_density < run.best_log_density


@pytest.mark.parametrize("n_steps", [1, 3, 2500])
def test_cools_from_the_initial_to_the_final_temperature(n_steps):
    """The budget rules: a search that ended hot would return whatever it passed last."""
    run = samplers.anneal(FullRing(), n_steps=n_steps, schedule=SCHEDULE, seed=3)
    betas = run.traces["inverse_temperature"]
    assert betas.shape == (4, min(n_steps, 1000))
    assert_allclose(betas[:, -1], 1 / 0.05)
    assert (np.diff(betas) >= 0).all()
    if n_steps > 1:
        assert_allclose(betas[:, 0], 1 / 5.0)
    assert sum(run.proposed.values()).sum() == 4 * n_steps


@pytest.mark.parametrize("n_restarts", [1, 3])
def test_temperatures_are_as_many_as_asked_for(n_restarts):
    """A target whose blocks are dear to begin has few of them, and takes every step."""
    run = samplers.anneal(FullRing(), n_steps=300, n_temperatures=20, n_restarts=n_restarts, seed=3)
    betas = run.traces["inverse_temperature"].reshape(4, n_restarts, 20)
    assert_allclose(betas, np.broadcast_to(np.geomspace(0.1, 10.0, 20), betas.shape))
    assert sum(run.proposed.values()).sum() == 4 * 300


def test_restarts_reheat_from_the_best_state():
    """Each cycle begins hot and at the chain's best state, and the best is never forgotten."""
    run = samplers.anneal(
        Hills(), n_steps=301, n_restarts=3, n_chains=2, moves={"walk": Walk()},
        schedule=samplers.GeometricSchedule(10.0, 9.0), initial_states=[0, 20], seed=2,
    )  # fmt: skip
    betas, best = run.traces["inverse_temperature"], run.traces["best_log_density"]
    starts = np.flatnonzero(betas[0] == 0.1)
    assert starts.tolist() == [0, 100, 200]
    assert sum(run.proposed.values()).sum() == 2 * 301
    assert (np.diff(best) >= 0).all()
    assert run.best_log_density == best[:, -1].max()
    # one step from the best state: it or a neighbor of it
    for chain in range(2):
        for start in starts[1:]:
            reheated = int(np.flatnonzero(Hills.heights == best[chain, start - 1])[0])
            near = Hills.heights[max(0, reheated - 1) : reheated + 2]
            assert run.traces["log_density"][chain, start] in near
    assert run.draws == ((), ())


def test_first_of_equals_is_kept():
    """Ties must not depend on which chain or step comes later."""

    class Flat:
        def log_density(self, _state):
            return 0.0

    run = samplers.anneal(
        Flat(), n_steps=50, moves={"walk": Walk()}, initial_states=[7, 8, 9, 10], seed=1
    )
    assert run.best_state == 7
    assert run.final_states != (7, 8, 9, 10)


def test_temperatures_are_checked():
    """A temperature of zero would be a division by zero somewhere inside."""
    for low, message in (
        (0.0, "initial_temperature must be a finite number > 0, got 0.0"),
        (0.01, "final_temperature must be <= initial_temperature, 0.01"),
    ):
        with pytest.raises(samplers.SamplerValueError, match=message):
            samplers.GeometricSchedule(initial_temperature=low)

    class Quench(samplers.GeometricSchedule):
        def temperature(self, _block, _n_blocks):
            return 0.0

    with pytest.raises(samplers.SamplerValueError, match=r"a schedule's temperature must be .* 0"):
        samplers.anneal(FullRing(), n_steps=5, schedule=Quench())


def test_out_of_time_it_keeps_what_was_found_and_can_go_on(tmp_path):
    """The part is the beginning of the whole run, nobody interrupted it, and no step is lost."""
    search = {"n_steps": 40, "seed": 6}
    whole = samplers.anneal(FullRing(), **search)
    saved = {**search, "checkpoint": tmp_path / "run.json"}
    part = samplers.anneal(FullRing(), time_limit=0.5, progress=lambda _: time.sleep(0.5), **saved)
    assert not part.interrupted
    n_blocks = part.traces["log_density"].shape[1]
    assert 0 < n_blocks < 40
    for name, trace in part.traces.items():
        assert (trace == whole.traces[name][:, :n_blocks]).all()
    assert samplers.anneal(FullRing(), resume=True, **saved) == whole
    assert samplers.anneal(FullRing(), time_limit=0.0, **search).traces["log_density"].size == 0
