"""What all engines promise: same result anywhere, any target, progress that can be believed."""

from functools import partial

import joblib
import numpy as np
import pytest

import samplers
from tests.samplers.targets import MOVES, FastRing, FullRing, Normal, Ring

ENGINES = {
    "metropolis": (samplers.metropolis, {"n_steps": 600, "n_draws": 50}),
    "anneal": (samplers.anneal, {"n_steps": 600, "n_restarts": 2}),
    "tempering": (samplers.tempering, {"n_steps": 600, "n_draws": 50, "n_temperatures": 3}),
}


@pytest.fixture(params=list(ENGINES))
def engine(request):
    """Return an engine as a function of the target and further parameters."""
    function, settings = ENGINES[request.param]
    return lambda target, **more: function(target, **{"seed": 11, **settings, **more})


@pytest.fixture(params=[*ENGINES, "langevin"])
def search(request):
    """Return an engine as a function of further parameters, its target one with every hook."""
    if request.param == "langevin":
        return partial(samplers.langevin, Normal(), seed=11, n_steps=600, n_draws=50)
    function, settings = ENGINES[request.param]
    return partial(function, FullRing(), seed=11, **settings)


@pytest.mark.parametrize(
    "target",
    [pytest.param(FullRing(), marks=pytest.mark.slow), FastRing()],
    ids=["moves", "advance"],
)
def test_result_does_not_depend_on_workers(engine, target):
    """Else nobody could repeat a run on another machine."""
    alone = engine(target)
    assert engine(target, n_jobs=2) == alone
    with joblib.parallel_config("threading", n_jobs=3):
        assert engine(target, n_jobs=None) == alone
    assert engine(target, seed=12) != alone


def test_result_does_not_depend_on_rounds(search, monkeypatch):
    """Rounds follow the clock; the result must not."""
    alone = search()
    monkeypatch.setattr("samplers.chains.ROUND_SECONDS", 0.0)
    assert search() == alone


def test_seeds_of_every_kind(search):
    """The three ways to say 11 are the same; a generator gives another run when used again."""
    alone = search(n_steps=100)
    assert search(n_steps=100, seed=np.random.SeedSequence(11)) == alone
    generator = np.random.default_rng(11)
    assert search(n_steps=100, seed=generator) == alone
    assert search(n_steps=100, seed=generator) != alone
    assert search(n_steps=100, seed=None) != search(n_steps=100, seed=None)


def test_chains_are_independent(search):
    """Two chains that share a stream would agree, and convergence would look perfect."""
    start = 0 if isinstance(search.args[0], FullRing) else [0.0]
    run = search(initial_states=[start] * 4)
    traces = run.traces["log_density"]
    assert len({row.tobytes() for row in traces}) == 4


def test_a_plain_target_works_with_explicit_moves(engine):
    """A user's target needs one method."""
    run = engine(Ring(), moves={"turn": MOVES["turn"]}, initial_states=[0, 1, 2, 3])
    assert run.best_state == 4
    assert list(run.traces)[:2] == ["log_density", "acceptance_rate"]
    with pytest.raises(samplers.SamplerValueError, match="moves must be given"):
        engine(Ring(), initial_states=[0, 1, 2, 3])
    with pytest.raises(samplers.SamplerValueError, match="initial_states must be given"):
        engine(Ring(), moves=MOVES)


def test_explicit_moves_disable_advance(engine):
    assert list(engine(FastRing()).proposed) == ["redraw"]
    assert list(engine(FastRing(), moves=MOVES).proposed) == ["turn", "jump"]


class _Weighted(FullRing):
    def __init__(self, given):
        super().__init__()
        self.given = given

    def move_weights(self):
        return self.given


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"turn": 1.0}, "move_weights must name every move, got none for 'jump'"),
        ({"turn": 1.0, "jump": -1.0}, "the weight of move 'jump' must be >= 0, got -1.0"),
        ({"turn": 0.0, "jump": 0.0}, "move_weights must have one weight > 0 or more"),
    ],
)
def test_wrong_weights_are_named(engine, given, message):
    with pytest.raises(samplers.SamplerValueError, match=message):
        engine(_Weighted(given))


def test_moves_of_weight_zero_are_not_tried(engine):
    assert list(engine(_Weighted({"turn": 0.0, "jump": 2.0})).proposed) == ["jump"]
    own = {"step": MOVES["turn"]}  # not among the target's: equal weights
    assert list(engine(_Weighted({"turn": 1.0, "jump": 1.0}), moves=own).proposed) == ["step"]


@pytest.mark.parametrize("kept", [True, False])
def test_progress_means_what_it_says(search, kept, monkeypatch):
    """A progress bar must end at its total and show the densities of the states it is at."""
    monkeypatch.setattr("samplers.chains.ROUND_SECONDS", 0.0)
    reports, more = [], {}
    if kept and search().draws[0]:
        more = {"warmup": 0.0}
    run = search(progress=reports.append, **more)
    assert all(one.total == 600 for one in reports)
    assert [one.done for one in reports] == sorted({one.done for one in reports})
    last = reports[-1]
    assert last.done == 600
    assert last.best_log_density == run.best_log_density
    assert last.log_density == pytest.approx(run.traces["log_density"][:, -1].mean())
    assert last.described["square"] == pytest.approx(np.square(run.final_states).mean())
    assert list(last.described) == ["state", "square"]
    assert {one.phase for one in reports} == set(run.seconds)
    if last.phase == "sampling":
        sampled = [one.acceptance_rate for one in reports if one.phase == "sampling"]
        assert sampled == pytest.approx(run.traces["acceptance_rate"].mean(axis=0))


def test_describe_must_not_hide_a_trace(engine):
    class Greedy(FullRing):
        def describe(self, _state):
            return {"log_density": 0.0}

    with pytest.raises(samplers.SamplerValueError, match="got 'log_density'"):
        engine(Greedy())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_steps": 0}, "n_steps must be an integer >= 1, got 0"),
        ({"n_chains": 0}, "n_chains must be an integer >= 1, got 0"),
        ({"n_jobs": 0}, "n_jobs must be None or an integer other than 0, got 0"),
        ({"seed": -1}, "seed must be an integer >= 0, .* got -1"),
        ({"initial_states": [1]}, "initial_states must hold one state per chain, 4, got 1"),
        ({"resume": True}, "checkpoint must be given when resume is True, got None"),
        ({"progress": 3}, "progress must be callable or None, got 3"),
        ({"checkpoint": 3}, "checkpoint must be a path, .* got 3"),
    ],
)
def test_wrong_parameters_are_named(search, wrong, message):
    with pytest.raises(samplers.SamplerValueError, match=message):
        search(**wrong)


@pytest.mark.parametrize(
    ("moves", "message"),
    [
        ({}, "moves must be a mapping of one name or more, got {}"),
        ({"walk": 3}, "move 'walk' must have a propose method, got 3"),
    ],
)
def test_wrong_moves_are_named(engine, moves, message):
    with pytest.raises(samplers.SamplerValueError, match=message):
        engine(FullRing(), moves=moves)


def test_a_target_without_density_is_named(engine):
    with pytest.raises(samplers.SamplerValueError, match="target must have a log_density method"):
        engine("target", moves=MOVES)


@pytest.mark.parametrize(
    ("function", "wrong", "message"),
    [
        (samplers.metropolis, {"warmup": 1.0}, "warmup must be a number >= 0 and < 1, got 1.0"),
        (samplers.metropolis, {"n_draws": 0}, "n_draws must be an integer >= 1, got 0"),
        (samplers.anneal, {"n_restarts": 0}, "n_restarts must be an integer >= 1, got 0"),
        (samplers.anneal, {"n_restarts": 9}, "n_restarts must be <= n_steps, 8, got 9"),
        (samplers.anneal, {"time_limit": -1}, "time_limit must be a number .*>= 0, got -1"),
        (samplers.anneal, {"schedule": "fast"}, "schedule must be a GeometricSchedule, got 'fast'"),
        (samplers.tempering, {"n_temperatures": 1}, "n_temperatures must be an integer >= 2"),
        (samplers.tempering, {"swap_target": 1}, "swap_target must be a number > 0 and < 1, got 1"),
        (samplers.tempering, {"min_inverse_temperature": 0.0}, "> 0 and < 1, got 0.0"),
        (samplers.langevin, {"warmup": 1.0}, "warmup must be a number >= 0 and < 1, got 1.0"),
        (samplers.langevin, {"step_size": 0.0}, "step_size must be a finite number > 0, got 0.0"),
        (
            samplers.langevin,
            {"scales": 1.0},
            r"scales must be an array of shape \(d,\), .* got 1.0",
        ),
        (samplers.langevin, {"scales": [0.0]}, r"finite numbers > 0, got \[0.0\]"),
        (samplers.langevin, {"scales": [[1.0], [1.0, 2.0]]}, "scales must be an array of shape"),
        (samplers.langevin, {"scales": [1.0, 1.0]}, r"state, \(1,\), got \(2,\)"),
        (samplers.langevin, {"initial_states": [0.0] * 4}, r"an array of shape \(d,\), .* got 0.0"),
        (samplers.langevin, {"initial_states": [[]] * 4}, r"an array of shape \(d,\), .* got \[\]"),
        (samplers.langevin, {"initial_states": [["x"]] * 4}, r"finite numbers, got \['x'\]"),
        (samplers.langevin, {"initial_states": [[np.inf]] * 4}, r"finite numbers, got \[inf\]"),
    ],
)
def test_wrong_parameters_of_one_engine_are_named(function, wrong, message):
    target = Normal() if function is samplers.langevin else FullRing()
    with pytest.raises(samplers.SamplerValueError, match=message):
        function(target, n_steps=8, **wrong)


def test_equal_runs_are_equal_and_others_are_not():
    """Resumption is tested by equality, so equality must see every field but the time."""
    run = samplers.metropolis(FullRing(), n_steps=20, seed=1)
    parts = {name: getattr(run, name) for name in run.__dataclass_fields__}
    assert samplers.Run(**{**parts, "seconds": {}}) == run
    changes = {
        "traces": {**run.traces, "state": run.traces["state"] + 1e-9},
        "draws": run.draws[::-1],
        "interrupted": True,
        "extras": {"more": np.array([np.nan])},
        "best_state": 4.0,
    }
    for name, value in changes.items():
        assert samplers.Run(**{**parts, name: value}) != run
    with_nan = samplers.Run(**{**parts, "extras": {"more": np.array([np.nan])}})
    assert with_nan == samplers.Run(**{**parts, "extras": {"more": np.array([np.nan])}})
    assert run != "run"
