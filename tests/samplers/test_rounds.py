"""Runs in rounds: each doubles what was done, and an end that is asked for is the end."""

import numpy as np
import pytest

import samplers
from tests.samplers.exhaustive import normalize
from tests.samplers.targets import FastRing
from tests.samplers.test_checkpoint import small_rounds, stop_at  # noqa: F401 - a fixture

ENGINES = {
    "metropolis": (samplers.metropolis, {}),
    "tempering": (samplers.tempering, {"n_temperatures": 3}),
}
FEW = {"n_steps": 40, "n_draws": 10, "n_rounds": 3, "seed": 5}


@pytest.fixture(params=list(ENGINES))
def engine(request):
    """Return an engine of a ring, in up to three rounds: of 40, 40 and 80 steps."""
    function, settings = ENGINES[request.param]
    return lambda **more: function(FastRing(), **{**FEW, **settings, **more})


def until(last, asked=None):
    """Return what ends a run after a round, and notes the rounds and draws that it saw."""

    def enough(number, traces):
        if asked is not None:
            asked.append((number, traces["log_density"].shape[1]))
        return number == last

    return enough


def test_a_round_goes_on_where_the_one_before_ended(engine):
    """The draws of a longer run are those that a run of two rounds would have gone on to."""
    asked = []
    whole = engine(enough=until(None, asked))
    assert asked == [(1, 10), (2, 10)]  # nobody is asked after the last
    two = engine(enough=until(2))
    assert (two.extras["n_rounds"], whole.extras["n_rounds"]) == (2, 3)
    assert two != whole
    assert sum(two.proposed["redraw"][0]) == 40
    assert sum(whole.proposed["redraw"][0]) == 80
    one = engine(enough=until(1))
    plain = engine(n_rounds=1)
    assert "n_rounds" not in plain.extras
    assert one.draws == plain.draws
    assert two.draws == engine(enough=until(2), n_jobs=2).draws


@pytest.mark.usefixtures("small_rounds")
@pytest.mark.parametrize("done", [20, 45, 110])
def test_resumed_in_an_added_round_it_ends_in_the_same_bytes(engine, done, tmp_path):
    """Killed in any round, the run goes on with the rounds that were to come."""
    enough = until(None)
    whole = engine(checkpoint=tmp_path / "whole.json", enough=enough)
    part = engine(checkpoint=tmp_path / "part.json", progress=stop_at(done), enough=enough)
    assert part.interrupted
    assert engine(checkpoint=tmp_path / "part.json", resume=True, enough=enough) == whole
    assert (tmp_path / "part.json").read_bytes() == (tmp_path / "whole.json").read_bytes()


@pytest.mark.usefixtures("small_rounds")
@pytest.mark.parametrize(("done", "n_rounds", "n_draws"), [(65, 1, 10), (110, 2, 10), (150, 3, 9)])
def test_a_round_that_is_cut_short_counts_once_it_is_the_longest(engine, done, n_rounds, n_draws):
    """Otherwise Ctrl-C soon after a round's begin would leave a handful of draws."""
    part = engine(progress=stop_at(done))
    assert part.interrupted
    assert part.extras.get("n_rounds", 1) == n_rounds
    assert part.traces["log_density"].shape == (4, n_draws)


def test_an_end_that_was_reached_is_not_called_cut_short(engine, tmp_path):
    """A model of chains that agreed would be printed as interrupted, or run again on resuming."""
    run = engine(checkpoint=tmp_path / "run.json", enough=until(2))
    assert not run.is_partial

    reports = []
    again = engine(
        checkpoint=tmp_path / "run.json", resume=True, enough=until(2), progress=reports.append
    )
    assert (again, reports) == (run, [])


def test_progress_tells_of_the_round(engine):
    """The bar would stand at a quarter when the run ends."""
    reports = []
    engine(progress=reports.append, enough=until(2))
    assert (reports[-1].phase, reports[-1].done, reports[-1].total) == ("round 2", 80, 80)
    assert {one.total for one in reports} == {40, 80}


def test_a_run_in_rounds_is_not_resumed_as_another(engine, tmp_path):
    engine(checkpoint=tmp_path / "run.json", progress=stop_at(1))
    with pytest.raises(samplers.CheckpointError, match="its n_rounds is 3, not 2"):
        engine(checkpoint=tmp_path / "run.json", resume=True, n_rounds=2)


@pytest.mark.slow
def test_stopping_when_chains_agree_biases_nothing_that_hundreds_of_runs_show():
    """Rounds are chosen by how alike their chains look, not by what they say."""
    from bayescascade.model.diagnostics import diagnose_array

    target = FastRing()
    exact = normalize(target, range(6))
    values = np.arange(6.0)
    mean = float(exact @ values)
    sd = float(np.sqrt(exact @ (values - mean) ** 2))

    def agreed(_, traces):
        found = diagnose_array(traces["state"])
        return found.r_hat <= 1.02 and found.ess >= 40.0

    def high(_, traces):  # the broken twin: it stops when it likes what it sees
        return traces["state"].mean() > mean

    def means(enough):
        runs = (
            samplers.metropolis(target, **{**FEW, "n_draws": 30, "seed": seed}, enough=enough)
            for seed in range(300)
        )
        return np.array([run.traces["state"].mean() for run in runs])

    def is_unbiased(found):
        return abs(found.mean() - mean) < 4.0 * found.std() / np.sqrt(found.size)

    assert is_unbiased(means(agreed))
    assert not is_unbiased(means(high))
    assert means(agreed).std() < sd
