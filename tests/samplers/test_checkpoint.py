"""Checkpoint files: resumed to the same bytes, refused when wrong, never in the way."""

import hashlib
import json
import warnings

import numpy as np
import pytest

import samplers
from tests.samplers.targets import ENGINES, MOVES, FastRing, FullRing, Ring, Turn

pytestmark = pytest.mark.usefixtures("small_rounds")


@pytest.fixture(params=list(ENGINES))
def engine(request):
    """Return an engine as a function of the target and further parameters."""
    function, settings = ENGINES[request.param]
    usual = {"seed": 11, "n_steps": 120, **settings}
    return lambda target, **more: function(target, **{**usual, **more})


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.json"


def stop_at(done):
    """Return a callback that ends a run as Ctrl-C would."""

    def callback(progress):
        if progress.done >= done:
            raise KeyboardInterrupt

    return callback


@pytest.fixture
def small_rounds(monkeypatch):
    """Make rounds of one block, so that a run can be stopped anywhere."""
    monkeypatch.setattr("samplers.chains.ROUND_SECONDS", 0.0)


@pytest.mark.parametrize("target", [FullRing(), FastRing()], ids=["moves", "advance"])
@pytest.mark.parametrize("done", [1, 75])
def test_resumed_run_ends_in_the_same_bytes(engine, target, done, path, tmp_path):
    """Wherever it was stopped: in warm-up, at a restart's end, while sampling."""
    whole = engine(target, checkpoint=tmp_path / "whole.json")
    assert whole == engine(target)
    part = engine(target, checkpoint=path, progress=stop_at(done))
    assert part.interrupted
    assert engine(target, checkpoint=path, resume=True) == whole
    assert path.read_bytes() == (tmp_path / "whole.json").read_bytes()


class Never:
    """A move that must not be made."""

    def propose(self, rng, state):
        raise NotImplementedError


def test_finished_run_is_returned_without_computing(engine, path):
    """Resuming twice must not cost, and must not need the file to be writable."""
    whole = engine(FullRing(), checkpoint=path)
    before = path.stat().st_mtime_ns

    class Idle(FullRing):
        def moves(self):
            return dict.fromkeys(MOVES, Never())

    assert engine(Idle(), checkpoint=path, resume=True) == whole
    assert path.stat().st_mtime_ns == before
    engine(FullRing(), checkpoint=str(path), seed=12)  # without resume, it is written anew
    assert path.stat().st_mtime_ns > before


def test_unfinished_runs_are_neither_overwritten_nor_mixed_with_others(engine, path):
    """Hours of computing must not be lost to a forgotten option, nor go on with other settings."""
    engine(FullRing(), checkpoint=path, progress=stop_at(5))
    before = path.read_bytes()
    with pytest.raises(samplers.CheckpointError, match=r"run.json holds an unfinished run: resume"):
        engine(FullRing(), checkpoint=path)
    for change, message in (
        ({"n_steps": 130}, "its n_steps is 120, not 130"),
        ({"n_chains": 3}, "its n_chains is 4, not 3"),
        ({"seed": 12}, "another seed: .*11.*, not .*12"),
        ({"moves": {"turn": Turn()}}, "its moves is .*, not "),
        ({"initial_states": [1, 1, 1, 1]}, "its initial_states is None, not "),
    ):
        with pytest.raises(samplers.CheckpointError, match=message):
            engine(FullRing(), checkpoint=path, resume=True, **change)
    with pytest.raises(samplers.CheckpointError, match=r"of another model .*: its fingerprint"):
        engine(FullRing([1, 2, 3, 4, 5, 6]), checkpoint=path, resume=True)
    assert path.read_bytes() == before


def test_settings_of_one_engine_are_named(path):
    samplers.tempering(FullRing(), n_steps=50, seed=1, checkpoint=path, progress=stop_at(5))
    for change in ({"swap_target": 0.5}, {"n_temperatures": 4}, {"warmup": 0.5}, {"n_draws": 5}):
        with pytest.raises(samplers.CheckpointError, match=r"of a run with other settings: its"):
            samplers.tempering(
                FullRing(), n_steps=50, seed=1, checkpoint=path, resume=True, **change
            )
    with pytest.raises(samplers.CheckpointError, match=r"run.json is of tempering, not of anneal"):
        samplers.anneal(FullRing(), n_steps=50, seed=1, checkpoint=path, resume=True)
    path.unlink()  # what is not there is begun
    resumed = {"n_steps": 50, "checkpoint": path, "resume": True}
    samplers.anneal(FullRing(), progress=stop_at(5), **resumed)
    with pytest.raises(samplers.CheckpointError, match=r"its schedule is .*Geometric"):
        samplers.anneal(FullRing(), schedule=samplers.GeometricSchedule(9.0), **resumed)


def test_unseeded_run_goes_on_with_its_own_generators(engine, path):
    """No seed was given, so none is compared: the states of the generators are in the file."""
    engine(FullRing(), seed=None, checkpoint=path, progress=stop_at(5))
    stopped = path.read_bytes()
    first = engine(FullRing(), seed=None, checkpoint=path, resume=True)
    path.write_bytes(stopped)
    assert engine(FullRing(), seed=None, checkpoint=path, resume=True) == first


def test_targets_without_a_fingerprint_are_told_by_their_densities(engine, path):
    """Those of the states in the file."""
    plain = {"checkpoint": path, "moves": MOVES, "initial_states": [1, 2, 3, 4]}
    engine(Ring(), progress=stop_at(5), **plain)
    with pytest.raises(samplers.CheckpointError, match=r"is of another target: a state's log dens"):
        engine(Ring([1, 2, 3, 4, 5, 6]), resume=True, **plain)
    assert not engine(Ring(), resume=True, **plain).interrupted


def reseal(path, change):
    """Edit the body of a checkpoint file and make its checksum right again, as a forger would."""
    whole = json.loads(path.read_text())
    change(whole["body"]["sections"]["run"])
    whole["sha256"] = hashlib.sha256(json.dumps(whole["body"]).encode()).hexdigest()
    path.write_text(json.dumps(whole) + "\n")


def set_at(*keys, value):
    def change(section):
        for key in keys[:-1]:
            section = section[key]
        section[keys[-1]] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        set_at("chains", value=[]),
        set_at("chains", value={}),
        set_at("chains", 0, "records", value=[]),
        set_at("chains", 0, "records", 0, "values", value={"log_density": "x"}),
        set_at("chains", 0, "snapshot", "block", value=10**9),
        set_at("chains", 0, "snapshot", "block", value=1),
        set_at("chains", 0, "snapshot", "bit_generator", value={"bit_generator": "MT19937"}),
        set_at("chains", 0, "snapshot", "replicas", 0, value=[2]),
        set_at("chains", 0, "snapshot", "best", 0, value={"eval": "1"}),
        set_at("chains", 0, "snapshot", "best", 0, value=None),
        set_at("chains", 0, "snapshot", "best", 0, value=99),
        set_at("chains", 0, "snapshot", "memory", value=None),
        set_at("chains", 0, "snapshot", "memory", value={"other": [1.0]}),
        set_at("chains", 0, "snapshot", "replicas", value=[[1, 1.3862943611198906]] * 9),
        set_at("chains", 0, "records", 0, "proposed", value={"other": 1}),
        set_at("chains", 0, "records", 0, "proposed", "turn", value=10**30),
        set_at("settings", value={}),
        lambda section: section.pop("engine"),
    ],
)
def test_forged_content_is_an_error_of_one_line(change, path):
    """Not a traceback from the depths, and never a run that goes on with nonsense."""
    search = {"n_steps": 120, "n_draws": 20, "seed": 11, "checkpoint": path}
    samplers.metropolis(FullRing(), progress=stop_at(80), **search)
    reseal(path, change)
    with pytest.raises(samplers.CheckpointError) as caught:
        samplers.metropolis(FullRing(), resume=True, **search)
    assert str(caught.value).startswith(f"checkpoint {path} is damaged: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text[:-200], "is damaged: its content does not fit its checksum"),
        (lambda text: text[:40], "is not a checkpoint file"),
        (lambda text: '{"tree": 1}', "is not a checkpoint file"),  # noqa: ARG005
        (lambda text: text.replace("0.", "1.", 1), "is damaged: its content does not fit"),
        (lambda text: text.replace("n 1", "n 2").replace('n": 1', 'n": 2', 1), "version 2, this"),
    ],
)
def test_damaged_files_are_refused(damage, message, path):
    """Whether it is to be resumed or overwritten: it may be somebody's only copy."""
    samplers.metropolis(FullRing(), n_steps=20, seed=1, checkpoint=path)
    path.write_text(damage(path.read_text()))
    for resume in (True, False):
        with pytest.raises(samplers.CheckpointError, match=message):
            samplers.metropolis(FullRing(), n_steps=20, seed=1, checkpoint=path, resume=resume)


def test_unreadable_files_are_refused(tmp_path):
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(samplers.CheckpointError, match="binary is not a checkpoint file"):
        samplers.Checkpoint(tmp_path / "binary")
    with pytest.raises(samplers.CheckpointError, match="cannot be read: Is a directory"):
        samplers.Checkpoint(tmp_path)


def test_unwritable_path_is_an_error_before_anything_is_computed(engine, tmp_path):
    """A run of hours must not find out at its end that it was never saved."""
    missing = tmp_path / "missing" / "run.json"
    with pytest.raises(samplers.CheckpointError, match=r"run.json cannot be written: No such file"):
        engine(FullRing(), checkpoint=missing, moves={"never": Never()})


class _Tag(int):
    """A number that the built-in codec does not know: it would come back as another type."""


class _Tagged(FullRing):
    def initial_state(self, rng):
        return _Tag(super().initial_state(rng))


class _Encoded(FullRing):
    def encode_state(self, state):
        return {"tag": int(state)}

    def decode_state(self, encoded):
        return int(encoded["tag"])


class _NotJson(_Encoded):
    def encode_state(self, state):
        return {state}


def test_unknown_states_need_a_codec(engine, path):
    """Said by name, before anything is computed; without a checkpoint, nothing is asked."""
    engine(_Tagged())
    with pytest.raises(samplers.CheckpointError, match=r"_Tag cannot be written .* encode_state"):
        engine(_Tagged(), checkpoint=path)
    with pytest.raises(samplers.CheckpointError, match="encode_state must return JSON: Object of"):
        engine(_NotJson(), checkpoint=path)
    assert not path.exists()
    engine(_Encoded(), checkpoint=path, progress=stop_at(80))
    assert engine(_Encoded(), checkpoint=path, resume=True) == engine(_Encoded())
    reseal(path, set_at("chains", 0, "snapshot", "best", 0, value={}))
    with pytest.raises(samplers.CheckpointError, match="decode_state failed with KeyError"):
        engine(_Encoded(), checkpoint=path, resume=True)


def search_then_sample(path, progress=None, resume=False):
    """Run two engines in succession on one file."""
    checkpoint = samplers.Checkpoint(path, resume)
    found = samplers.anneal(
        FullRing(), n_steps=50, seed=1, checkpoint=checkpoint.section("search"), progress=progress
    )
    run = samplers.metropolis(
        FullRing(), n_steps=50, seed=2, checkpoint=checkpoint.section("draws"),
        initial_states=[found.best_state] * 4, progress=progress, resume=resume,
    )  # fmt: skip
    if not run.interrupted:
        checkpoint.finish()
    return found, run


@pytest.mark.parametrize("phase", ["annealing", "sampling"])
def test_one_file_serves_successive_runs(phase, path, tmp_path):
    """What a model's fit does: the search is not repeated when the sampling was stopped."""
    whole = search_then_sample(tmp_path / "whole.json")

    def stop(progress):
        if progress.phase == phase and progress.done >= 40:
            raise SystemExit  # as abrupt as a killed process

    with pytest.raises(SystemExit):
        search_then_sample(path, stop)
    with pytest.raises(samplers.CheckpointError, match="holds an unfinished run"):
        search_then_sample(path)
    assert search_then_sample(path, resume=True) == whole
    assert path.read_bytes() == (tmp_path / "whole.json").read_bytes()
    assert search_then_sample(path, resume=True) == whole


def test_resume_belongs_to_the_checkpoint_of_a_section(path):
    with pytest.raises(samplers.SamplerValueError, match="resume must be given to the Checkpoint"):
        samplers.anneal(
            FullRing(), n_steps=5, checkpoint=samplers.Checkpoint(path).section("a"), resume=True
        )
    with pytest.raises(samplers.SamplerValueError, match=r"checkpoint_seconds must be .* got 0"):
        samplers.Checkpoint(path, checkpoint_seconds=0)


def test_disk_that_fills_up_costs_the_checkpoint_not_the_run(path, monkeypatch):
    """The old file stays whole, the user is told once, the result is there."""
    old = []

    def fill_disk(progress):
        if progress.done >= 100 and not old:
            old.append(path.read_bytes())

            def full(_descriptor):
                raise OSError(28, "No space left on device")

            monkeypatch.setattr("os.fsync", full)

    section = samplers.Checkpoint(path, checkpoint_seconds=1e-9).section("run")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run = samplers.metropolis(
            FullRing(), n_steps=200, seed=1, checkpoint=section, progress=fill_disk
        )
    assert run == samplers.metropolis(FullRing(), n_steps=200, seed=1)
    assert [str(one.message) for one in caught] == [
        "the run continues, but is no longer saved: "
        f"checkpoint {path} cannot be written: No space left on device"
    ]
    assert [path.read_bytes()] == old
    assert list(path.parent.iterdir()) == [path]
    assert samplers.Checkpoint(path, resume=True).section("run").stored() is not None


def test_records_are_encoded_once(path):
    """Saving every few seconds must not cost more and more as draws pile up."""
    encoded = []

    class Counting(_Encoded):
        def encode_state(self, state):
            encoded.append(state)
            return super().encode_state(state)

    section = samplers.Checkpoint(path, checkpoint_seconds=1e-9).section("run")
    run = samplers.metropolis(
        Counting(), n_steps=120, warmup=0.0, n_draws=60, n_chains=1, seed=1, checkpoint=section
    )
    n_saves = 62  # at the start, after each round, at the end
    assert len(encoded) == run.traces["log_density"].size + 2 * n_saves


def test_nonfinite_descriptions_survive(path):
    class Strange(FullRing):
        def describe(self, _state):
            return {"nan": np.nan, "inf": np.float64(np.inf)}

    run = samplers.metropolis(Strange(), n_steps=10, seed=1, checkpoint=path)
    assert samplers.metropolis(Strange(), n_steps=10, seed=1, checkpoint=path, resume=True) == run
    json.loads(path.read_text(), parse_constant=pytest.fail)  # strict JSON
