"""Files that version 0.1.0 wrote are read as they were then."""

from pathlib import Path

import pytest

import bayescascade
from bayescascade.model.trace import read_trace

FILES = sorted((Path(__file__).parent / "saved_0_1").glob("*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_saved_models_are_read(path):
    model = bayescascade.load(path)
    assert model.model_name in (path.stem, "leaf", "branch", "rules")
    assert len(str(model).splitlines()) > 3
    if "rule_classifier" not in path.stem:  # which had the parameter
        assert model.unknown == "error"
    record = model.to_record()
    assert type(model).from_record(record).to_record() == record


def test_a_trace_is_read_and_told_in_its_words():
    trace = read_trace(Path(__file__).parent / "saved_0_1" / "rule_classifier.nc")
    assert trace.size == "n_rules"
    assert list(trace.shares()) == ["rules", "first rule", "columns used"]
    assert (trace.n_chains, trace.n_draws) == (2, 30)
    assert trace.settings["search"] == "metropolis"
