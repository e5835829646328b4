"""A trace says the same whether it comes from a run, from ArviZ or from a file."""

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bayescascade.base.errors import DataError
from bayescascade.model.diagnostics import diagnose_array
from bayescascade.model.trace import Trace, read_trace
from bayescascade.report.page import render
from tests.report.runs import toy_run


def interrupt(_: Any) -> None:
    raise KeyboardInterrupt


def test_equal_runs_give_equal_files(tmp_path):
    """A file that changes with the clock cannot be compared."""
    toy_run().save_trace(tmp_path / "a.nc")
    time.sleep(1.1)  # HDF5 counts seconds
    toy_run().save_trace(tmp_path / "b.nc")
    assert (tmp_path / "a.nc").read_bytes() == (tmp_path / "b.nc").read_bytes()


def test_equal_shares_are_in_order():
    trace = Trace.of(toy_run(n_chains=1))
    rules = np.array([[10.0, 9.0, 10.0, 9.0]])
    equal = replace(
        trace,
        quantities={**trace.quantities, "n_rules": rules},
        codes={"first_rule": np.array([[1001, 1000, 1001, 1000]])},
        feature_used=np.ones((1, 4, 2), np.bool_),
    )
    assert {title: list(text) for title, text in equal.shares().items()} == {
        "rules": ["9", "10"],
        "first rule": ["age is high", "sex is high"],
        "columns used": ["sex", "age"],
    }


def test_many_long_labels_survive_the_file(tmp_path):
    """Thousands of first rules of a hundred letters are more than an attribute may hold."""
    run = toy_run()
    codes = np.arange(1800.0).reshape(3, 600)
    words = {"first_rule": lambda code: f"{code} " + "crew and adult " * 10}
    legend = replace(run.legend, labels=words)
    many = replace(run, traces={**run.traces, "first_rule": codes}, legend=legend)
    many.save_trace(tmp_path / "many.nc")
    labels = read_trace(tmp_path / "many.nc").labels["first_rule"]
    assert labels == {code: words["first_rule"](code) for code in range(1800)}


def test_a_trace_without_a_size_is_refused():
    data = toy_run().to_inference_data()
    del data["posterior"]["n_rules"]
    with pytest.raises(DataError, match="not the trace of a fit: its quantities must be n_rules"):
        Trace.of(data)


def test_an_annealing_path_is_not_taken_for_draws(tmp_path):
    """R-hat of a path that cools says nothing."""
    toy_run("anneal").save_trace(tmp_path / "path.nc")
    trace = read_trace(tmp_path / "path.nc")
    assert not trace.is_sample
    assert "no draws from the posterior" in str(trace)
    assert "diagnostics" not in trace.to_dict()


def test_a_run_interrupted_at_once_is_still_saved(tmp_path):
    """Ctrl-C in the first second must not end in a crash while saving."""
    run = toy_run(progress=interrupt, n_steps=100_000)
    assert run.interrupted
    run.save_trace(tmp_path / "short.nc")
    trace = read_trace(tmp_path / "short.nc")
    text = str(trace)
    assert "interrupted: the search was ended early" in text
    assert trace.to_dict()["n_draws"] == trace.n_draws


def test_text_fits_and_warns_in_the_words_of_the_family():
    """A reader of a rule list's trace must not wonder what its leaves are."""
    run = toy_run()
    trace = Trace.of(run)
    text, lines = str(trace), str(trace).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0] == "toy.csv   density rule list   search metropolis   3 x 600 draws"
    assert lines[1] == "expected_rules 3"
    assert lines[3].split() == ["mean", "sd", "R-hat", "ESS"]
    assert len({len(line) for line in lines[3:9]}) == 1
    names = ["log posterior", "log likelihood", "rules", "conditions", "columns used"]
    assert [line.split("  ")[0] for line in lines[4:9]] == names
    assert float(lines[6].split()[3]) == pytest.approx(
        trace.diagnostics()["n_rules"].r_hat, abs=1e-3
    )
    assert any(line.startswith("warning: R-hat should be at most") for line in lines)
    assert "longer chains (n_steps) or search" in " ".join(text.split())
    assert any(line.startswith("accepted    grow 0.") for line in lines)
    assert "\nposterior   rules         " in text
    assert not any(word in text for word in ("leaf", "leaves", "cascade", "split"))
    assert "\x1b" in render(trace.page(), color=True)
    draws = [state for chain in run.draws for state in chain]
    shares = trace.shares()
    assert trace.to_dict()["shares"] == shares
    for label, share in shares["first rule"].items():
        parity = {"none": None, "sex is high": 0, "age is high": 1}[label]
        assert share == np.mean([(state % 2 if state else None) == parity for state in draws])


def test_netcdf_of_something_else(tmp_path):
    import xarray

    xarray.Dataset({"a": ("x", [1, 2])}).to_netcdf(tmp_path / "other.nc", engine="h5netcdf")
    with pytest.raises(DataError, match=r"other\.nc is not the trace of a fit: it has no"):
        read_trace(tmp_path / "other.nc")
    with pytest.raises(DataError, match="no such file"):
        read_trace(tmp_path / "none.nc")
    with pytest.raises(DataError, match="not the trace of a fit"):
        Trace.of({"posterior": {}})


def test_diagnostics_of_what_never_varies():
    """A leaf count that stands still has converged, and is not divided by zero."""
    found = diagnose_array(np.full((2, 10), 3.0))
    assert (found.mean, found.sd, found.r_hat, found.ess) == (3.0, 0.0, 1.0, 20.0)
    apart = diagnose_array(np.repeat([[1.0], [2.0]], 10, axis=1))
    assert not apart.is_fine
    assert not diagnose_array(np.zeros((2, 3))).is_fine
