"""Chains go on until they agree, replicas join where they would not, and nothing drawn is lost."""

from typing import Any

import numpy as np
import pytest

import samplers
from bayescascade import explore
from bayescascade.model import search as searches
from bayescascade.model.draws import TraceLegend
from bayescascade.model.explore import explore_by
from bayescascade.model.rounds import Rounds
from bayescascade.model.search import Search
from tests.interrupts import interrupted
from tests.samplers.targets import FastRing


class Islands:
    """Two equal peaks twelve steps apart, which a plain chain never crosses between."""

    def log_density(self, state: int) -> float:
        return -5.0 * min(state, 12 - state) if 0 <= state <= 12 else -np.inf

    def moves(self) -> dict[str, Any]:
        return {"walk": Walk()}

    def initial_state(self, rng: np.random.Generator) -> int:
        return 12 * int(rng.integers(2))

    def describe(self, state: int) -> dict[str, float]:
        return {"place": float(state)}


class Walk:
    def propose(self, rng: np.random.Generator, state: int) -> samplers.Proposal[int]:
        return samplers.Proposal(state + int(rng.choice((-1, 1))), 0.0)


JOINED = Rounds(plain=2, exchange=2, share=1.0, hottest=0.02)


def islands(**changed: Any) -> samplers.Run[int]:
    given = {"search": "metropolis", "n_steps": None, "n_chains": 4, "n_jobs": 1, "random_state": 0,
             "checkpoint": None, "resume": False, "progress": None, "until": "agreed"}  # fmt: skip
    search = Search(**(given | changed))
    return search.run(
        Islands(),
        default_steps=1_000,
        n_blocks=200,
        n_replicas=4,
        rounds=JOINED,
        starts=[0, 0, 12, 12],
    )


def test_chains_go_on_until_they_agree_unless_their_length_is_given():
    """A round is too short for these, and a few are not."""
    again = {"n_chains": 4, "random_state": 1, "search": "metropolis"}
    slow = Slow()
    found = explore(slow, **again)
    assert found.summary_.n_rounds > 1
    assert all(one.is_fine for one in found.summary_.diagnostics.values())
    assert f"from the last of {found.summary_.n_rounds} rounds" in str(
        found.summary_.convergence_pieces
    )
    for fixed in ({"until": "steps"}, {"n_steps": 50_000}):
        with pytest.warns(match="chains do not agree yet, or gave too few draws"):
            assert explore(slow, **again, **fixed).summary_.n_rounds == 1


class Slow(FastRing):
    """A ring that takes one step in 200."""

    def advance(self, rng: Any, state: Any, n_steps: int, inverse_temperature: float) -> Any:
        taken = int(rng.binomial(n_steps, 0.005))
        if taken > 0:
            return super().advance(rng, state, taken, inverse_temperature)
        value = self.log_density(state)
        return state, samplers.StepCounts({"redraw": 0}, {"redraw": 0}, value, state, value)


@pytest.mark.slow
def test_replicas_join_where_chains_stay_apart():
    run = islands()
    assert run.method == "tempering"
    shares = (run.traces["place"] > 6).mean(axis=1)
    assert ((shares > 0.0) & (shares < 1.0)).all()
    alone = islands(until="steps")
    assert (alone.traces["place"] > 6).mean(axis=1).tolist() == [0.0, 0.0, 1.0, 1.0]
    assert islands(n_jobs=2) == run


@pytest.mark.slow
@pytest.mark.parametrize(
    ("search", "method"),
    [
        ("metropolis", "metropolis+tempering"),
        ("anneal+metropolis", "anneal+tempering"),
        ("tempering", "tempering"),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_replicas_that_joined_are_told_from_those_asked_for(search, method):
    """Both have run.method "tempering"; only of the first had chains failed before."""
    how = Search(search, None, 4, 1, 0, None, False, None, until="agreed")
    summary = explore_by(how, Islands(), default_steps=2_000, n_blocks=400, rounds=JOINED).summary_
    assert summary.method == method
    assert "with replica exchange" in summary.found_words("state")
    joined = "after chains without replica exchange did not agree"
    assert (joined in str(summary.convergence_pieces)) == (search != "tempering")


class Costly(Islands):
    """A target whose steps take as many operations as it is large."""

    def describe(self, state):
        return {"n_parts": 40.0 + 0 * state}

    def legend(self):
        return TraceLegend(size="n_parts")

    def operations(self, size):
        return size


@pytest.mark.parametrize(
    ("most", "expected"),
    [(1e9, (500, 3)), (400, (100, 3)), (399, (199, 2)), (100, (100, 1)), (99, (99, 0))],
)
def test_rounds_of_replicas_fit_the_work_that_is_left(most, expected):
    """Lists of forty rules would take minutes, where lists of ten take one."""
    run = samplers.metropolis(Costly(), n_steps=10, n_chains=2, seed=0)
    rounds = Rounds(share=0.5, exchange=3, most=2 * 40 * (1_000 + 4 * most))
    assert rounds.steps_of_replicas(Costly(), run, 1_000, 4, n_draws=2) == expected


@pytest.mark.parametrize(("most", "n_rounds"), [(3e5, 1), (4e5, 2), (1e9, 4)])
def test_chains_end_by_counted_work(most, n_rounds):
    """A fit ends by itself, and at the same round on a busy machine."""
    how = Rounds(plain=4, most=most).of_chains(Costly(), 1_000, 4, 250)
    draws = np.random.default_rng(0).normal(size=(4, 250))
    for now in range(1, 250):  # 300 effective draws
        draws[:, now] += 0.54 * draws[:, now - 1]
    traces = {"log_density": draws, "n_parts": np.full((4, 250), 40.0)}
    taken = [how["enough"](number, traces) for number in range(1, how["n_rounds"])]
    assert [*taken, True].index(True) + 1 == n_rounds, taken


@pytest.mark.parametrize(("most", "is_end"), [(1e9, True), (3.3e5, False)])
def test_chains_go_on_if_no_replicas_can_follow(most, is_end):
    """Chains far apart end for replicas only if the work left lets these swap."""
    rounds = Rounds(plain=4, exchange=2, share=0.5, most=most)
    enough = rounds.of_chains(Costly(), 1_000, 4, 250)["enough"]
    apart = np.random.default_rng(0).normal(size=(4, 250)) + 100.0 * np.arange(4)[:, np.newaxis]
    traces = {"log_density": apart, "n_parts": np.full((4, 250), 40.0)}
    assert enough(1, traces) == is_end


def test_replicas_that_are_ended_early_leave_the_draws_of_chains():
    """Ctrl-C a moment after they joined would leave a handful of draws."""

    def stop(report):
        if report.phase.startswith("replicas"):
            raise KeyboardInterrupt

    run = islands(progress=stop)
    assert run.interrupted
    assert run.method == "metropolis"
    assert run.traces["place"].shape == (4, 200)


def test_ctrl_c_between_chains_and_replicas_keeps_the_chains(monkeypatch):
    monkeypatch.setattr(searches, "are_apart", interrupted(1))
    run = islands()
    assert run.interrupted
    assert run.traces["place"].shape == (4, 200)
