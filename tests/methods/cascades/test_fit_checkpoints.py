"""Fits that are interrupted, killed and resumed."""

import os
import signal
import subprocess
import sys
import time

import pytest

import bayescascade
import samplers
from bayescascade import BranchCascade, LeafCascade
from tests.methods.cascades.fits import DECLARED, ESTIMATORS, QUICK, people

both = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda cls: cls.model_name)
LONGER = {**QUICK, **DECLARED, "n_steps": 4000}


class InterruptedAt:
    """A progress callback that is Ctrl-C at the n-th report."""

    def __init__(self, n):
        self.n = n
        self.reports = []

    def __call__(self, progress):
        self.reports.append(progress)
        if len(self.reports) == self.n:
            raise KeyboardInterrupt


@pytest.fixture
def frequent_reports(monkeypatch):
    """Let chains report after every few milliseconds, so that a short fit has several rounds."""
    monkeypatch.setattr("samplers.chains.ROUND_SECONDS", 0.005)


@both
@pytest.mark.parametrize("n", [1, 12])
@pytest.mark.usefixtures("frequent_reports")
def test_interrupted_and_resumed_fit_is_the_whole_one(estimator, n, tmp_path):
    """What was paid for is kept, and the result is the same file, byte for byte."""
    whole, resumed = tmp_path / "whole.json", tmp_path / "resumed.json"
    estimator(**LONGER).fit(people()).save(whole)
    checkpoint = tmp_path / "run.json"
    interrupt = InterruptedAt(n)
    first = estimator(**LONGER, checkpoint=checkpoint, progress=interrupt).fit(people())
    assert first.run_.interrupted
    again = estimator(**LONGER, checkpoint=checkpoint, resume=True).fit(people())
    assert not again.run_.interrupted
    again.save(resumed)
    assert resumed.read_bytes() == whole.read_bytes()


@both
@pytest.mark.parametrize("search", ["anneal+metropolis", "anneal", "metropolis", "tempering"])
@pytest.mark.usefixtures("frequent_reports")
def test_an_interrupted_fit_is_a_model(estimator, search, tmp_path):
    """Ctrl-C means enough, not never mind."""
    model = estimator(**{**LONGER, "search": search}, progress=InterruptedAt(1)).fit(people())
    assert model.run_.interrupted
    assert model.summary_.interrupted
    density = model.posterior_.log_density(model.tree_)
    assert model.log_posterior_ == pytest.approx(density, abs=1e-9)
    assert model.score_samples(people()).shape == (150,)
    assert len(model.sample(5)) == 5
    model.save(tmp_path / "model.json")
    loaded = bayescascade.load(tmp_path / "model.json")
    assert loaded.summary_.to_dict() == model.summary_.to_dict()
    assert loaded.score(people()) == model.score(people())


@both
@pytest.mark.usefixtures("frequent_reports")
def test_a_fit_interrupted_while_sampling_keeps_its_draws(estimator):
    """Half of the draws are half as many, and no draw of another chain."""
    model = estimator(**{**LONGER, "search": "metropolis"}, progress=InterruptedAt(4))
    model.set_params(predictive="average").fit(people())
    assert model.run_.interrupted
    n_draws = {len(chain) for chain in model.run_.draws}
    assert len(n_draws) == 1
    assert model.summary_.n_draws == n_draws.pop()
    if model.summary_.n_draws:
        assert model.score_samples(people()).shape == (150,)


@both
def test_a_finished_checkpoint_gives_the_result_again(estimator, tmp_path):
    """A job that is started twice by mistake costs nothing."""
    checkpoint = tmp_path / "run.json"
    model = estimator(**LONGER, checkpoint=checkpoint).fit(people())
    start = time.perf_counter()
    again = estimator(**LONGER, checkpoint=checkpoint, resume=True).fit(people())
    assert time.perf_counter() - start < 5
    assert again.run_ == model.run_
    assert again.tree_.tree == model.tree_.tree


@pytest.mark.parametrize(
    "other",
    [
        lambda: LeafCascade(**LONGER, expected_leaves=9.0),
        lambda: LeafCascade(**{**LONGER, "random_state": 4}),
        lambda: LeafCascade(**{**LONGER, "n_steps": 5000}),
        lambda: LeafCascade(**{**LONGER, "n_chains": 3}),
        lambda: LeafCascade(**{**LONGER, "search": "tempering"}),
        lambda: LeafCascade(**LONGER, max_branches=3),
        lambda: BranchCascade(**LONGER),
    ],
)
@pytest.mark.usefixtures("frequent_reports")
def test_checkpoints_of_another_fit_are_refused(other, tmp_path):
    """Half a run of one model and half of another are no run."""
    checkpoint = tmp_path / "run.json"
    LeafCascade(**LONGER, checkpoint=checkpoint, progress=InterruptedAt(20)).fit(people())
    before = checkpoint.read_bytes()
    with pytest.raises(samplers.CheckpointError):
        other().set_params(checkpoint=checkpoint, resume=True).fit(people())
    assert checkpoint.read_bytes() == before


@pytest.mark.usefixtures("frequent_reports")
def test_checkpoints_of_other_data_are_refused(tmp_path):
    """One row more is another posterior."""
    checkpoint = tmp_path / "run.json"
    LeafCascade(**LONGER, checkpoint=checkpoint, progress=InterruptedAt(5)).fit(people())
    with pytest.raises(samplers.CheckpointError, match="data"):
        LeafCascade(**LONGER, checkpoint=checkpoint, resume=True).fit(people(151))
    with pytest.raises(samplers.CheckpointError, match="unfinished"):
        LeafCascade(**LONGER, checkpoint=checkpoint).fit(people())
    checkpoint.write_text(checkpoint.read_text()[:-20])
    with pytest.raises(samplers.CheckpointError):
        LeafCascade(**LONGER, checkpoint=checkpoint, resume=True).fit(people())


SCRIPT = """
import sys
from bayescascade import LeafCascade
from tests.methods.cascades.fits import DECLARED, people
model = LeafCascade(
    search="anneal+metropolis", n_steps=int(sys.argv[3]), n_chains=2, random_state=3, **DECLARED,
    checkpoint=sys.argv[1], resume=True,
)
model.fit(people()).save(sys.argv[2])
"""


@pytest.mark.slow
def test_a_killed_fit_is_resumed(tmp_path):
    """Power fails without asking: the same, with SIGKILL."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}

    def start(checkpoint, out):
        command = [sys.executable, "-c", SCRIPT, str(tmp_path / checkpoint), str(tmp_path / out)]
        return subprocess.Popen([*command, "3000000"], env=environment, start_new_session=True)

    assert start("whole.checkpoint", "whole.json").wait(timeout=300) == 0
    process = start("run.checkpoint", "run.json")
    deadline = time.monotonic() + 120
    while not (tmp_path / "run.checkpoint").exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(2.0)
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait(timeout=60) == -signal.SIGKILL
    assert not (tmp_path / "run.json").exists()
    assert start("run.checkpoint", "run.json").wait(timeout=300) == 0
    assert (tmp_path / "run.json").read_bytes() == (tmp_path / "whole.json").read_bytes()
