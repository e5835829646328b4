"""What all engines promise: same result anywhere, any target, progress that can be believed."""

from functools import partial

import joblib
import numpy as np
import pytest

import samplers
from tests.samplers.targets import ENGINES, MOVES, FastRing, FullRing, Normal, Ring

FEW = {"n_steps": 300, "seed": 11}


@pytest.fixture(params=list(ENGINES))
def engine(request):
    """Return an engine as a function of the target and further parameters."""
    function, settings = ENGINES[request.param]
    return lambda target, **more: function(target, **{**FEW, **settings, **more})


@pytest.fixture(params=[*ENGINES, "langevin"])
def search(request):
    """Return an engine as a function of further parameters, its target one with every hook."""
    if request.param == "langevin":
        return partial(samplers.langevin, Normal(), n_draws=20, **FEW)
    function, settings = ENGINES[request.param]
    return partial(function, FullRing(), **FEW, **settings)


@pytest.mark.parametrize(
    ("name", "target"),
    [
        *((name, FastRing()) for name in ENGINES),
        ("langevin", Normal()),
        *(pytest.param(name, FullRing(), marks=pytest.mark.slow) for name in ENGINES),
    ],
)
def test_result_does_not_depend_on_workers(name, target):
    """Else nobody could repeat a run on another machine."""
    function, settings = ENGINES.get(name, (samplers.langevin, {"n_draws": 20}))
    run = partial(function, target, **{**FEW, **settings})
    alone = run()
    assert run(n_jobs=2) == alone
    with joblib.parallel_config("threading", n_jobs=3):
        assert run(n_jobs=None) == alone
    assert run(seed=12) != alone


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


def test_traces_are_those_of_the_draws(search):
    """A trace that belongs to another draw would spoil every diagnosis made from it."""
    if search.func is samplers.anneal:
        search = partial(samplers.metropolis, *search.args, **FEW, n_draws=20)
    target = search.args[0]
    starts = [np.array([3.0])] * 4 if isinstance(target, Normal) else [3] * 4
    run = search(initial_states=starts)
    draws = np.array(run.draws).reshape(4, 20)
    assert list(run.traces) == ["log_density", "acceptance_rate", "state", "square"]
    np.testing.assert_array_equal(run.traces["state"], draws)
    np.testing.assert_allclose(run.traces["square"], draws**2)
    densities = [[target.log_density(state) for state in chain] for chain in run.draws]
    np.testing.assert_allclose(run.traces["log_density"], densities)
    assert [float(np.ravel(one)[0]) for one in starts] == [3.0] * 4  # left alone
    assert [float(np.ravel(one)[0]) for one in run.final_states] == draws[:, -1].tolist()
    assert run.best_log_density == target.log_density(run.best_state)
    assert run.best_log_density >= run.traces["log_density"].max()
    tried, accepted = (sum(counts.values()) for counts in (run.proposed, run.accepted))
    assert (tried == 225 // 20).all()
    np.testing.assert_allclose(run.traces["acceptance_rate"], accepted / tried)
    assert (np.diff(draws, axis=1)[accepted[:, 1:] == 0] == 0.0).all()
    assert run.acceptance == {
        name: run.accepted[name].sum() / run.proposed[name].sum() for name in run.proposed
    }
    assert (set(run.seconds), run.interrupted) == ({"warmup", "sampling"}, False)


def test_a_plain_target_works_with_explicit_moves(engine):
    """A user's target needs one method."""
    run = engine(Ring(), moves={"turn": MOVES["turn"]}, initial_states=[0, 1, 2, 3])
    assert run.best_state == 4
    assert list(run.traces)[:2] == ["log_density", "acceptance_rate"]
    with pytest.raises(samplers.SamplerValueError, match="moves must be given"):
        engine(Ring(), initial_states=[0, 1, 2, 3])
    with pytest.raises(samplers.SamplerValueError, match="initial_states must be given"):
        engine(Ring(), moves=MOVES)


class _Weighted(FullRing):
    def __init__(self, given):
        super().__init__()
        self.given = given

    def move_weights(self):
        return self.given


class _Greedy(FullRing):
    def describe(self, _state):
        return {"log_density": 0.0}


@pytest.mark.parametrize(
    ("target", "moves", "message"),
    [
        (_Weighted({"turn": 1.0}), None, "move_weights must name every move, got none for 'jump'"),
        (_Weighted({"turn": 1.0, "jump": -1.0}), None, "'jump' must be >= 0, got -1.0"),
        (_Weighted({"turn": 0.0, "jump": 0.0}), None, "move_weights must have one weight > 0"),
        (FullRing(), {}, "moves must be a mapping of one name or more, got {}"),
        (FullRing(), {"walk": 3}, "move 'walk' must have a propose method, got 3"),
        ("target", MOVES, "target must have a log_density method"),
        (_Greedy(), None, "got 'log_density'"),  # it would hide a trace
    ],
)
def test_wrong_targets_and_moves_are_named(engine, target, moves, message):
    with pytest.raises(samplers.SamplerValueError, match=message):
        engine(target, moves=moves)


def test_moves_are_those_that_are_given_and_weigh_something(engine):
    assert list(engine(FastRing()).proposed) == ["redraw"]
    assert list(engine(FastRing(), moves=MOVES).proposed) == ["turn", "jump"]
    assert list(engine(_Weighted({"turn": 0.0, "jump": 2.0})).proposed) == ["jump"]
    own = {"step": MOVES["turn"]}  # not among the target's: equal weights
    assert list(engine(_Weighted({"turn": 1.0, "jump": 1.0}), moves=own).proposed) == ["step"]


def test_progress_means_what_it_says(search, monkeypatch):
    """A progress bar must end at its total and show the densities of the states it is at."""
    monkeypatch.setattr("samplers.chains.ROUND_SECONDS", 0.0)
    for more in [{}] if search.func is samplers.anneal else [{}, {"warmup": 0.0}]:
        reports = []
        run = search(progress=reports.append, **more)
        assert all(one.total == 300 for one in reports)
        assert [one.done for one in reports] == sorted({one.done for one in reports})
        last = reports[-1]
        assert last.done == 300
        assert last.best_log_density == run.best_log_density
        assert last.log_density == pytest.approx(run.traces["log_density"][:, -1].mean())
        assert last.described["square"] == pytest.approx(np.square(run.final_states).mean())
        assert list(last.described) == ["state", "square"]
        assert {one.phase for one in reports} == set(run.seconds)
        if last.phase == "sampling":
            sampled = [one.acceptance_rate for one in reports if one.phase == "sampling"]
            assert sampled == pytest.approx(run.traces["acceptance_rate"].mean(axis=0))


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
