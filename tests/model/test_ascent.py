"""Climbing: to the top, kept on the way, and the same way again after an interruption."""

import json

import numpy as np
import pytest

import samplers
from bayescascade import explore
from bayescascade.model.ascent import ascend
from tests.interrupts import interrupted


class Valley:
    """A curved ridge whose top is at (1, 1): minus Rosenbrock's function, less steep or as it is.

    Whatever the steepness, x is normal around 1 with variance 1/2.
    """

    def __init__(self, height=0.0, steepness=100.0):
        self.height, self.steepness, self.seen = height, steepness, []

    def log_density(self, state):
        return self.log_density_and_gradient(state)[0]

    def log_density_and_gradient(self, state):
        x, y = state
        bend = y - x * x
        value = self.height - (1 - x) ** 2 - self.steepness * bend**2
        self.seen.append(value)
        pull = 2 * self.steepness * bend
        return value, np.array([2 * (1 - x) + 2 * x * pull, -pull])

    def initial_state(self, rng):
        return rng.normal(size=2)

    def describe(self, state):
        return {"x": float(state[0])}

    def fingerprint(self):
        return f"valley {self.height}"


START = np.array([-1.2, 1.0])


@pytest.mark.parametrize("optimizer", ["lbfgs", "cg"])
def test_the_top_is_found_and_never_left(optimizer):
    target = Valley()
    run = ascend(target, [START, np.zeros(2)], max_iter=200, optimizer=optimizer)
    np.testing.assert_allclose(run.best_state, [1, 1], atol=1e-3)
    assert run.best_log_density == max(target.seen)
    assert [states for states in run.draws] == [(), ()]
    assert len(run.final_states) == 2


@pytest.mark.parametrize("optimizer", ["lbfgs", "cg"])
def test_ctrl_c_amid_an_iteration_keeps_the_best_that_was_seen(optimizer):
    """A line search looks at worse points on its way."""
    n_worse = 0
    for n in range(2, 30):
        target = Valley()
        target.log_density_and_gradient = interrupted(n, target.log_density_and_gradient)
        run = ascend(target, [START], max_iter=100, optimizer=optimizer)
        assert run.interrupted
        assert run.best_log_density == max(target.seen)
        assert Valley().log_density(run.best_state) == run.best_log_density
        n_worse += target.seen[-1] < run.best_log_density
    assert n_worse > 0


def test_more_iterations_are_better_until_none_are_needed():
    tops = [ascend(Valley(), [START], max_iter=n).best_log_density for n in (0, 3, 10, 100)]
    assert tops[0] == Valley().log_density(START)
    assert tops == sorted(set(tops))
    done = ascend(Valley(), [START], max_iter=10_000)
    assert done.extras["n_iterations"][0] < 200


@pytest.mark.parametrize("after", [1, 2, 3])
def test_an_interrupted_climb_goes_on_the_same_way(after, tmp_path, monkeypatch):
    """Rounds are the units: the end is the same to the last bit."""
    monkeypatch.setattr("bayescascade.model.ascent._ROUND", 5)
    given = {"n_chains": 2, "random_state": 0}
    whole = explore(Valley(), "ascent", **given)
    file = tmp_path / "climb.json"
    stopped = explore(Valley(), "ascent", **given, checkpoint=file, progress=interrupted(after))
    assert stopped.summary_.interrupted
    assert stopped.log_density < whole.log_density
    assert "interrupted: best found so far by gradient ascent in 2 chains" in str(stopped)
    resumed = explore(Valley(), "ascent", **given, checkpoint=file, resume=True)
    assert resumed.log_density == whole.log_density
    np.testing.assert_array_equal(resumed.state, whole.state)


def test_a_climb_of_something_else_is_refused(tmp_path):
    given = {"n_chains": 1, "random_state": 0, "checkpoint": tmp_path / "climb.json"}
    explore(Valley(), "ascent", **given, progress=interrupted(1))
    with pytest.raises(samplers.CheckpointError, match="another model"):
        explore(Valley(height=1.0), "ascent", **given, resume=True)
    record = json.loads(given["checkpoint"].read_text())
    assert record["body"]["sections"]["first"]["ends"]


def test_chains_sample_from_where_they_climbed_to():
    given = {"n_steps": 8_000, "n_chains": 2, "random_state": 0}
    found = explore(Valley(steepness=1.0), "ascent+langevin", **given)
    assert found.log_density > -1e-4
    draws = np.array([state for chain in found.run_.draws for state in chain])
    assert abs(draws[:, 0].mean() - 1) < 0.2
    assert 0.35 < draws[:, 0].var() < 0.65
