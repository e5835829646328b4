"""Saved models: nothing is lost, and nothing that was tampered with is believed."""

import copy
import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from numpy.testing import assert_array_equal

import bayescascade
from bayescascade import BranchCascade, LeafCascade
from bayescascade.base.errors import ModelFileError
from bayescascade.model.registry import _NAMES_OF_0_1
from tests.forgeries import at, edited_at_random, forged, loaded_or_refused, write
from tests.methods.cascades.fits import DECLARED, ESTIMATORS, QUICK, fitted, people

both = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda cls: cls.model_name)


@pytest.fixture(
    scope="module",
    params=[*((estimator, {}) for estimator in ESTIMATORS), (LeafCascade, {"leaf": "independent"})],
    ids=["leaf", "branch", "independent"],
)
def saved(request, tmp_path_factory):
    """Return a model and the record in its file."""
    estimator, options = request.param
    model = fitted(estimator, **options)
    path = tmp_path_factory.mktemp("saved") / "model.json"
    model.save(path)
    return model, json.loads(path.read_text())


@both
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"predictive": "average"},
        {"density": "empirical", "max_branches": 3},
        {"search": "anneal"},
        {"leaf": "independent", "leaf_concentration": 0.5, "predictive": "average"},
        {"leaf": "independent", "density": "empirical"},
    ],
    ids=str,
)
def test_nothing_is_lost(estimator, parameters, tmp_path):
    """A loaded model answers to the last bit as the one that was saved."""
    model, frame = fitted(estimator, **parameters), people(60, seed=9)
    model.save(tmp_path / "model.json")
    loaded = bayescascade.load(tmp_path / "model.json")
    assert type(loaded) is estimator
    assert_array_equal(loaded.score_samples(frame), model.score_samples(frame))
    assert loaded.tree_.to_dict() == model.tree_.to_dict()
    assert loaded.log_posterior_ == model.log_posterior_
    assert loaded.summary_ == model.summary_
    assert loaded.schema_ == model.schema_
    assert loaded.feature_names_in_.tolist() == model.feature_names_in_.tolist()
    assert str(loaded) == str(model)
    pd.testing.assert_frame_equal(
        loaded.sample(50, random_state=1), model.sample(50, random_state=1)
    )
    assert loaded.explain(frame.iloc[0]) == model.explain(frame.iloc[0])
    again = tmp_path / "again.json"
    loaded.save(again)
    assert again.read_bytes() == (tmp_path / "model.json").read_bytes()


@both
def test_a_loaded_model_says_that_it_has_no_data(estimator, tmp_path):
    """The posterior needs the rows, which are not saved."""
    fitted(estimator).save(tmp_path / "model.json")
    loaded = bayescascade.load(tmp_path / "model.json")
    for name in ("posterior_", "run_"):
        with pytest.raises(AttributeError, match=f"{name} is not in a model that was read"):
            getattr(loaded, name)
    with pytest.raises(AttributeError, match="has no attribute 'anything_'"):
        _ = loaded.anything_
    loaded.set_params(n_steps=200, random_state=0).fit(people(40)[["sex", "crew", "age", "fare"]])
    assert loaded.posterior_ is not None


def test_parameters_are_saved_whatever_their_type(tmp_path):
    """NumPy's and pandas' containers are accepted by fit, so they must be by save."""
    model = LeafCascade(
        **QUICK,
        expected_leaves=np.int64(6),
        columns=pd.Index(["sex", "fare"]),
        continuous={"fare": np.array([0.0, 5.0, 100.0])},
    ).fit(people())
    model.save(tmp_path / "model.json")
    loaded = bayescascade.load(tmp_path / "model.json")
    assert loaded.expected_leaves == 6
    assert loaded.columns == ["sex", "fare"]
    assert loaded.continuous == {"fare": [0.0, 5.0, 100.0]}
    assert loaded.score(people()) == model.score(people())


def test_files_hold_no_rows(saved):
    """A model is passed on where the data must not be."""
    _, record = saved
    assert set(record) == {
        "format", "version", "model", "parameters", "schema", "log_posterior", "tree", "summary",
        "draws",
    }  # fmt: skip
    assert not {"random_state", "checkpoint", "progress"} & set(record["parameters"])


FORGERIES = [
    (("format",), "another model"),
    (("version",), 2),
    (("version",), "1"),
    (("model",), "forest"),
    (("model",), ["leaf"]),
    (("parameters",), None),
    (("parameters",), {}),
    (("parameters", "concentration"), -1.0),
    (("parameters", "concentration"), "2"),
    (("parameters", "concentration"), 3.0),
    (("parameters", "max_branches"), 1),
    (("parameters", "max_branches"), "many"),
    (("parameters", "search"), "none"),
    (("parameters", "n_chains"), 0),
    (("parameters", "density"), {}),
    (("schema",), None),
    (("schema", "columns"), []),
    (("schema", "columns", 0, "levels"), ["male", "male"]),
    (("schema", "columns", 0, "kind"), "ordered"),
    (("schema", "columns", 3, "edges"), [0.0, 20.0, 5.0]),
    (("log_posterior",), 0.0),
    (("log_posterior",), None),
    (("log_posterior",), "high"),
    (("tree",), []),
    (("tree", "feature"), [-1]),
    (("tree", "feature", 0), 99),
    (("tree", "feature", 0), 0.5),
    (("tree", "feature", 0), True),
    (("tree", "parent", 1), -1),
    (("tree", "parent", 1), 10**30),
    (("tree", "block", 1), 0),
    (("tree", "block", 1), -1),
    (("tree", "block", 1), (2**32 - 1) << 32),
    (("tree", "leaf_counts", 0), 10**6),
    (("tree", "leaf_counts", 0), -1.0),
    (("tree", "leaf_counts", 0), 1e308),
    (("tree", "leaf_counts", 0), "many"),
    (("tree", "leaf_counts"), []),
    (("summary",), None),
    (("summary", "n_rows"), "a few"),
    (("summary", "total_weight"), 1e999),
    (("summary", "diagnostics"), {"log_posterior": {"mean": 1}}),
    (("draws",), None),
    (("draws", 0), {}),
    (("draws", 0, "times"), 0),
    (("draws", 0, "times"), 1.5),
    (("draws", 0, "times"), True),
    (("draws", 0, "times"), 10**400),
    (("draws", 0, "leaf_counts", 0), 10**6),
    (("draws", 0, "block"), None),
]


@pytest.mark.parametrize(("path", "value"), FORGERIES, ids=lambda value: str(value)[:40])
def test_forged_fields_are_refused(saved, tmp_path, path, value):
    """A figure that was edited must not be printed as if it had been computed."""
    with pytest.raises(ModelFileError, match=r"forged\.json"):
        bayescascade.load(write(tmp_path, forged(saved[1], path, value)))


@both
def test_counts_of_levels_belong_to_independent_leaves(estimator, tmp_path):
    """They are what the probabilities inside leaves are made of, and so is the log posterior."""
    model = fitted(estimator, leaf="independent")
    model.save(tmp_path / "model.json")
    record = json.loads((tmp_path / "model.json").read_text())
    for path in (("tree",), ("draws", 0)):
        without = copy.deepcopy(record)
        del at(without, path)["level_counts"]
        with pytest.raises(ModelFileError, match="exactly if its leaves are independent"):
            bayescascade.load(write(tmp_path, without))
    for name, value, words in (
        ("leaf", "uniform", "exactly if its leaves are independent"),
        ("leaf_concentration", 3.0, "log posterior must follow from its counts"),
    ):
        with pytest.raises(ModelFileError, match=words):
            bayescascade.load(write(tmp_path, forged(record, ("parameters", name), value)))


def test_missing_fields_are_named(saved, tmp_path):
    """Older or damaged files lack some; say which."""
    for name in saved[1]:
        record = {key: value for key, value in saved[1].items() if key != name}
        with pytest.raises(ModelFileError, match=r"must|version"):
            bayescascade.load(write(tmp_path, record))
    record = {key: value for key, value in saved[1].items() if key != "tree"}
    with pytest.raises(ModelFileError, match="must have the field 'tree'"):
        bayescascade.load(write(tmp_path, record))


@both
def test_files_of_version_0_1_are_read(estimator, tmp_path):
    """A model must outlive the version that it was saved with."""
    model = fitted(estimator)
    model.save(tmp_path / "model.json")
    record = json.loads((tmp_path / "model.json").read_text())
    later = {"leaf", "leaf_concentration", "max_leaves", "memory_limit", "partitions", "start"}
    for name in later & set(record["parameters"]):
        del record["parameters"][name]
    for name in ("certificate", "reason"):
        del record["summary"][name]
    loaded = bayescascade.load(write(tmp_path, record))
    assert str(loaded) == str(model)
    for name in later & set(model.get_params()):
        assert getattr(loaded, name) == getattr(model, name)


def test_unknown_parameters_are_refused(saved, tmp_path):
    """They are what a later version would add, and mean something."""
    record = copy.deepcopy(saved[1])
    record["parameters"]["depth"] = 3
    with pytest.raises(ModelFileError, match="parameters must be"):
        bayescascade.load(write(tmp_path, record))


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "null", '"bayescascade model"', "\ufeff{}", "sex,age\nmale,3\n",
        '{"format": "bayescascade model", "version": 1}',
        "[" * 100_000, '{"n": ' + "9" * 5000 + "}", "NaN", '{"a": NaN}',
    ],
    ids=lambda text: text[:20],
)  # fmt: skip
def test_other_files_are_refused(text, tmp_path):
    """Someone will pass the CSV."""
    with pytest.raises(ModelFileError, match=r"forged\.json"):
        bayescascade.load(write(tmp_path, text))


def test_unreadable_files_are_named(tmp_path):
    """Wrong path, a folder, a binary file."""
    (tmp_path / "image.png").write_bytes(b"\x89PNG\xff\xfe")
    for path in (tmp_path / "none.json", tmp_path, tmp_path / "image.png"):
        with pytest.raises(ModelFileError, match=path.name):
            bayescascade.load(path)


def test_deeply_nested_values_are_refused(saved, tmp_path):
    """Deep nesting exhausts the stack of careless readers."""
    text = json.dumps(saved[1])
    for depth in (50, 500, 900, 980, 990, 5000):
        nested = "[" * depth + "]" * depth
        deep = text.replace('"search": "anneal+metropolis"', f'"search": {nested}')
        assert deep != text
        with pytest.raises(ModelFileError):
            bayescascade.load(write(tmp_path, deep))


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
def test_truncated_files_are_refused(saved, tmp_path, share):
    """A disk that was full, a download that broke."""
    text = json.dumps(saved[1])
    with pytest.raises(ModelFileError, match="cut short"):
        bayescascade.load(write(tmp_path, text[: int(share * len(text))]))


@settings(
    max_examples=120,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_random_edits_are_refused_or_harmless(saved, tmp_path, data):
    """Whatever is changed, the file is refused in our words or still is a whole model."""
    model = loaded_or_refused(tmp_path, edited_at_random(saved[1], data))
    if model is not None:
        assert math.isfinite(model.log_posterior_)
        model.tree_.to_dict()
        model.sample(3, random_state=0)
        model.save(tmp_path / "again.json")
        bayescascade.load(tmp_path / "again.json")


@pytest.mark.parametrize(("name", "public"), _NAMES_OF_0_1.items())
def test_every_model_is_found_by_its_name(name, public):
    """A file whose class is registered under another name could not be read back."""
    assert getattr(bayescascade, public).model_name == name
    assert getattr(bayescascade, public).title


def test_the_class_of_a_file_is_kept(tmp_path):
    """A leaf model's counts do not make a branch model."""
    fitted(LeafCascade).save(tmp_path / "leaf.json")
    record = json.loads((tmp_path / "leaf.json").read_text())
    record["model"] = "branch"
    with pytest.raises(ModelFileError, match="parameters must be"):
        bayescascade.load(write(tmp_path, record))
    branch = BranchCascade(**QUICK, **DECLARED)
    assert branch.model_name == "branch"
