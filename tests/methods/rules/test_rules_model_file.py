"""Saved rule lists: nothing is lost, and nothing that was tampered with is believed."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from numpy.testing import assert_array_equal

import bayescascade
from bayescascade import DensityRuleList, RuleListClassifier
from bayescascade.base.errors import ModelFileError
from tests.forgeries import edited_at_random, forged, loaded_or_refused, write
from tests.methods.rules.fits import QUICK, boats, classifier, fates, fitted, people

MODELS = {"rules": fitted, "rule_classifier": classifier}


@pytest.fixture(scope="module", params=MODELS)
def saved(request, tmp_path_factory):
    """Return a model and the record in its file."""
    model = MODELS[request.param]()
    path = tmp_path_factory.mktemp("saved") / "model.json"
    model.save(path)
    return model, json.loads(path.read_text())


@pytest.mark.parametrize(
    "parameters",
    [{}, {"predictive": "average"}, {"density": "empirical"}, {"search": "anneal"}],
    ids=str,
)
def test_nothing_is_lost_of_a_density(parameters, tmp_path):
    """A loaded model answers to the last bit as the one that was saved."""
    model, frame = fitted(**parameters), people(60, seed=9)
    model.save(tmp_path / "model.json")
    loaded = bayescascade.load(tmp_path / "model.json")
    assert type(loaded) is DensityRuleList
    assert_array_equal(loaded.score_samples(frame), model.score_samples(frame))
    assert loaded.rules_.to_dict() == model.rules_.to_dict()
    assert loaded.log_posterior_ == model.log_posterior_
    assert loaded.summary_ == model.summary_
    assert loaded.schema_ == model.schema_
    assert_array_equal(loaded.n_candidates_, model.n_candidates_)
    assert str(loaded) == str(model)
    pd.testing.assert_frame_equal(
        loaded.sample(50, random_state=1), model.sample(50, random_state=1)
    )
    assert loaded.explain(frame.iloc[0]) == model.explain(frame.iloc[0])
    loaded.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "model.json").read_bytes()


@pytest.mark.parametrize(
    "parameters",
    [{}, {"predictive": "average"}, {"labels": boats}, {"unknown": "none", "missing": "level"}],
    ids=["map", "average", "text labels", "lenient"],
)
def test_nothing_is_lost_of_a_classifier(parameters, tmp_path):
    """A loaded classifier predicts to the last bit as the one that was saved."""
    model, frame = classifier(**parameters), people(60, seed=9)
    model.save(tmp_path / "model.json")
    loaded = bayescascade.load(tmp_path / "model.json")
    assert type(loaded) is RuleListClassifier
    assert loaded.classes_.dtype == model.classes_.dtype
    assert loaded.target_ == model.target_ == frame.pipe(parameters.get("labels", fates)).name
    assert_array_equal(loaded.predict(frame), model.predict(frame))
    assert_array_equal(loaded.predict_proba(frame), model.predict_proba(frame))
    assert_array_equal(loaded.credible_interval(frame), model.credible_interval(frame))
    assert loaded.rules_.to_dict() == model.rules_.to_dict()
    assert loaded.summary_ == model.summary_
    assert str(loaded) == str(model)
    assert loaded.explain(frame.iloc[0]) == model.explain(frame.iloc[0])
    loaded.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "model.json").read_bytes()


@pytest.mark.parametrize(
    "labels",
    [
        [True, False],
        [3, -1],
        [0.5, 1.5],
        ["a", "b"],
        np.array(["a", "b"], object),
        np.array([1, 2], np.uint8),
    ],
    ids=lambda labels: f"{type(labels).__name__}-{labels[0]!r}",
)
def test_classes_keep_their_type(labels, tmp_path):
    """What is predicted is compared with labels, in whatever type they come."""
    y = np.asarray(labels)[np.arange(60) % 2]
    if y.dtype.kind == "f":  # scikit-learn takes fractions for a regression's target
        y = y.round()
    model = RuleListClassifier(**QUICK).fit(people(60), y)
    model.save(tmp_path / "model.json")
    loaded = bayescascade.load(tmp_path / "model.json")
    assert loaded.classes_.dtype == model.classes_.dtype
    assert loaded.classes_.tolist() == model.classes_.tolist()


@pytest.mark.parametrize("model", [DensityRuleList(**QUICK), RuleListClassifier(**QUICK)])
def test_models_of_one_column(model, tmp_path):
    """Rules of two conditions are allowed by default, and there are none."""
    frame = people()[["sex"]]
    model.fit(frame, fates(people())).save(tmp_path / "model.json")
    loaded = bayescascade.load(tmp_path / "model.json")
    assert model.n_candidates_.tolist() == loaded.n_candidates_.tolist() == [0, 2]
    assert loaded.max_size == 2
    assert loaded.score(frame, fates(people())) == model.score(frame, fates(people()))
    record = json.loads((tmp_path / "model.json").read_text())
    record["n_candidates"].append(0)
    with pytest.raises(ModelFileError, match=r"for 0 \(none\) to 1 conditions"):
        bayescascade.load(write(tmp_path, record))


def test_a_loaded_model_says_that_it_has_no_data(saved, tmp_path):
    """The posterior needs the rows, which are not saved; it can be fitted anew."""
    model, record = saved
    loaded = bayescascade.load(write(tmp_path, record))
    with pytest.raises(AttributeError, match="posterior_ is not in a model that was read"):
        _ = loaded.posterior_
    rows = people(60)
    labels = np.arange(60) % 2
    again = loaded.set_params(random_state=0, n_steps=100).fit(rows, labels)
    fresh = type(model)(**{**loaded.get_params()}).fit(rows, labels)
    assert_array_equal(again.n_candidates_, again.posterior_.antecedents.n_of_size)
    assert again.rules_.to_dict() == fresh.rules_.to_dict()


def test_files_hold_no_rows(saved):
    """A model is passed on where the data must not be."""
    model, record = saved
    own = {"classes", "target"} if model.model_name == "rule_classifier" else set()
    assert set(record) == {
        "format", "version", "model", "parameters", "schema", "n_candidates", "log_posterior",
        "rules", "summary", "draws", *own,
    }  # fmt: skip
    assert set(record["rules"]) == {"rules", "counts"}
    assert not {"random_state", "checkpoint", "progress"} & set(record["parameters"])


FORGERIES = [
    (("model",), "leaf"),
    (("parameters", "concentration"), 3.0),
    (("parameters", "expected_rules"), -1.0),
    (("parameters", "max_size"), 3),
    (("parameters", "max_size"), "2"),
    (("parameters", "memory_limit"), 0),
    (("schema", "columns", 0, "levels"), ["male"]),
    (("schema", "columns", 3, "edges"), [0.0, 20.0, 5.0]),
    (("n_candidates",), None),
    (("n_candidates",), []),
    (("n_candidates",), [0, 1]),
    (("n_candidates", 0), 1),
    (("n_candidates", 1), 0),
    (("n_candidates", 1), -3),
    (("n_candidates", 1), True),
    (("n_candidates", 1), 7.5),
    (("n_candidates", 1), 10**400),
    (("log_posterior",), 0.0),
    (("log_posterior",), None),
    (("rules",), []),
    (("rules", "rules"), None),
    (("rules", "rules"), "many"),
    (("rules", "rules", 0), []),
    (("rules", "rules", 0), [[0, 0, 1], [0, 1, 2]]),
    (("rules", "rules", 0), [[1, 0, 1], [0, 0, 1]]),
    (("rules", "rules", 0), [[9, 0, 1]]),
    (("rules", "rules", 0), [[-1, 0, 1]]),
    (("rules", "rules", 0), [[0, 0, 2]]),
    (("rules", "rules", 0), [[0, 1, 1]]),
    (("rules", "rules", 0), [[0, 0]]),
    (("rules", "rules", 0), [[0, 0, 1.0]]),
    (("rules", "rules", 0), [[0, False, True]]),
    (("rules", "rules", 0), [[3, 1, 9]]),
    (("rules", "rules", 0), [[0, 0, 10**30]]),
    (("rules", "counts"), []),
    (("rules", "counts", 0), -1.0),
    (("rules", "counts", 0), 1e308),
    (("rules", "counts", 0), "many"),
    (("rules", "counts", 0), None),
    (("summary",), None),
    (("summary", "shares"), {"rules": {"1": 2.0}}),
    (("draws", 0), {}),
    (("draws", 0, "times"), 0),
    (("draws", 0, "counts"), [1e6]),
    (("draws", 0, "rules"), [[[0, 0, 1]], [[0, 0, 1]]]),
]


@pytest.mark.parametrize(("path", "value"), FORGERIES, ids=lambda value: str(value)[:40])
def test_forged_fields_are_refused(saved, tmp_path, path, value):
    """A figure that was edited must not be printed as if it had been computed."""
    with pytest.raises(ModelFileError, match=r"forged\.json"):
        bayescascade.load(write(tmp_path, forged(saved[1], path, value)))


@pytest.mark.parametrize(
    "classes",
    [
        None,
        {},
        {"values": ["died", "lived"]},
        {"values": ["died"], "dtype": "<U5"},
        {"values": ["died", "died"], "dtype": "<U5"},
        {"values": ["died", 3], "dtype": "|O"},
        {"values": ["died", "lived"], "dtype": "<i8"},
        {"values": ["died", "lived"], "dtype": "<U3"},
        {"values": ["died", "lived"], "dtype": "<U6"},
        {"values": ["died", "lived"], "dtype": "<U300000000"},
        {"values": [0, 1], "dtype": "<U300000000"},
        {"values": ["died", "lived"], "dtype": "V8"},
        {"values": ["died", "lived"], "dtype": "nothing"},
        {"values": [[0], [1]], "dtype": "|O"},
        {"values": ["died", "lived", "swam"], "dtype": "<U5"},
    ],
    ids=str,
)
def test_forged_classes_are_refused(classes, tmp_path):
    """As many classes as counts, of one plain type."""
    path = tmp_path / "model.json"
    classifier().save(path)
    record = json.loads(path.read_text())
    record["classes"] = classes
    with pytest.raises(ModelFileError, match=r"forged\.json"):
        bayescascade.load(write(tmp_path, record))


def test_a_forged_target_is_refused(tmp_path):
    """A name is text."""
    path = tmp_path / "model.json"
    classifier().save(path)
    record = json.loads(path.read_text()) | {"target": ["fate"]}
    with pytest.raises(ModelFileError, match=r"forged\.json: .* target must be text"):
        bayescascade.load(write(tmp_path, record))


def test_parts_without_cells_are_refused(tmp_path):
    """A density cannot live where there is nothing."""
    path = tmp_path / "model.json"
    fitted().save(path)
    record = json.loads(path.read_text())
    record["draws"][0]["rules"] = [[[0, 0, 1]], [[0, 1, 2]]]
    record["draws"][0]["counts"] = [100.0, 100.0, 0.0]
    with pytest.raises(ModelFileError, match="every part of a saved density list must capture"):
        bayescascade.load(write(tmp_path, record))


def test_missing_fields_are_named(saved, tmp_path):
    """Older or damaged files lack some; say which."""
    for name in saved[1]:
        record = {key: value for key, value in saved[1].items() if key != name}
        with pytest.raises(ModelFileError, match=r"must|version"):
            bayescascade.load(write(tmp_path, record))
    record = {key: value for key, value in saved[1].items() if key != "n_candidates"}
    with pytest.raises(ModelFileError, match="must have the field 'n_candidates'"):
        bayescascade.load(write(tmp_path, record))


@settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_random_edits_are_refused_or_harmless(saved, tmp_path, data):
    """Whatever is changed, the file is refused in our words or still is a whole model."""
    model = loaded_or_refused(tmp_path, edited_at_random(saved[1], data))
    if model is not None:
        assert math.isfinite(model.log_posterior_)
        model.rules_.to_dict()
        if isinstance(model, DensityRuleList):
            model.sample(3, random_state=0)
        model.save(tmp_path / "again.json")
        bayescascade.load(tmp_path / "again.json")
