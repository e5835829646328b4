"""Whatever estimator can be saved: it comes back, forgeries are refused, and commands use it."""

import io
import json
from copy import copy

import numpy as np
import pandas as pd
import pytest

import bayescascade
from bayescascade import ModelFileError
from bayescascade.base.files import json_ready
from bayescascade.base.texts import with_article
from bayescascade.base.typed_words import words_of_commands
from bayescascade.cli import rows as blocks
from bayescascade.model.roles import Classifier, Density, Graphed, HasPicture, Predictor
from tests.commands import command
from tests.contracts.listed import ESTIMATORS, SHOWN, answers, fitted, rows

SAVED = [name for name in ESTIMATORS if hasattr(ESTIMATORS[name].make, "save")]


def of_draws(model):
    """Return a model that averages over its draws where it did over all trees: files have no rows.

    So nothing else tells what is loaded from what was fitted.
    """
    own = copy(model)
    for name, part in vars(model).items():
        if "exact_" in getattr(part, "__dict__", ()):
            vars(own)[name] = of_draws(part)
    vars(own).pop("exact_", None)
    return own


OF_THE_FIT = (  # in no file
    "alternatives_", "item_probabilities_", "kept_", "log_posterior_", "n_iter_", "tree_error_",
)  # fmt: skip


def fitted_numbers(model):
    """Return the public fitted attributes that are numbers, or arrays of them."""
    names = [n for n in dir(model) if n.endswith("_") and not n.startswith("_")]
    found = {n: getattr(model, n) for n in names if hasattr(model, n)}
    numbers = (int, float, np.number, np.ndarray)
    return {
        name: value
        for name, value in found.items()
        if isinstance(value, numbers) and np.asarray(value).dtype.kind in "biuf"
    }


@pytest.mark.parametrize("name", SAVED)
def test_saved_models_come_back(name, tmp_path):
    """They print, answer and are saved as before; only data and chains are gone."""
    model = fitted(name)
    model.save(tmp_path / "model.json")
    loaded = bayescascade.load(tmp_path / "model.json")
    assert type(loaded) is type(model)
    assert str(loaded) == str(model)
    numbers, again = fitted_numbers(model), fitted_numbers(loaded)
    assert numbers.keys() - again.keys() <= set(OF_THE_FIT)
    for attribute, value in again.items():
        np.testing.assert_array_equal(value, numbers[attribute], err_msg=attribute)
    own = of_draws(model)
    rounding = 1e-12 if name == "mixture auto" else 0.0  # its last bits differ
    np.testing.assert_allclose(answers(loaded, rows()), answers(own, rows()), rtol=rounding)
    if hasattr(model, "sample"):
        drawn = (each.sample(50, random_state=1) for each in (loaded, own))
        pd.testing.assert_frame_equal(*drawn)
    if name in ("leaf", "branch", "labels"):
        intervals = (each.credible_interval(rows()) for each in (loaded, model))
        np.testing.assert_array_equal(*intervals)
    loaded.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "model.json").read_bytes()


LATER = {"choice", "prior", "first_features", "n_rows", "weights", "mixtures"}  # not in old files


@pytest.mark.parametrize("name", SAVED)
def test_forged_files_are_refused_in_one_line(name, tmp_path):
    record = fitted(name).to_record()
    path = tmp_path / "forged.json"
    for field in record.keys() - LATER:
        path.write_text(json.dumps({k: v for k, v in record.items() if k != field}))
        with pytest.raises(ModelFileError) as refused:
            bayescascade.load(path)
        assert "\n" not in str(refused.value)
    for model in ("LeafPosterior", "load", 3, "rules" if name != "rules" else "leaf"):
        path.write_text(json.dumps({**record, "model": model}))
        with pytest.raises(ModelFileError):
            bayescascade.load(path)


@pytest.mark.parametrize("name", SHOWN)
def test_commands_do_what_the_model_can(name, tmp_path, monkeypatch):
    """Whatever is saved is shown; what else a command does depends on roles, not on names."""
    monkeypatch.setattr(blocks, "_CHUNK_ROWS", 40)
    model, path, data = fitted(name), tmp_path / "model.json", tmp_path / "rows.csv"
    labels = ESTIMATORS[name].labels()
    model.save(path)
    rows().assign(label=labels).to_csv(data, index=False)
    with words_of_commands():
        text, record = f"{model}\n", bayescascade.load(path).to_dict()
    assert command("show", path) == text
    assert json.loads(command("show", path, "--json")) == json.loads(json.dumps(json_ready(record)))
    is_density = isinstance(model, Density)
    given, drawn = command("show", path, "--given", "sex=male"), command("show", path, "--dot")
    sampled = command("sample", path, "--rows", 3, "--seed", 0)
    assert is_density == ("needs a density" not in given) == ("needs a density" not in sampled)
    assert drawn == model.to_dot() if isinstance(model, Graphed) else "--dot needs a " in drawn
    picture = tmp_path / "model.png"
    pictured = command("show", path, "--png", picture)
    assert isinstance(model, HasPicture) == picture.exists() == (pictured == "")
    assert not picture.exists() or picture.read_bytes().startswith(b"\x89PNG")
    assert is_density == (sampled.splitlines()[0] == "sex,crew,age,fare")
    is_classifier = isinstance(model, Classifier)
    target = ["--target", "label"] if is_classifier else []
    said = command("score", path, data, *target, "--json")
    if not is_density and not is_classifier:
        assert "score needs a density, got " in said
        result = command("predict", path, data)
        values = model.predict_block(rows(), 1).values
        assert pd.read_csv(io.StringIO(result))["predicted"].to_numpy() == pytest.approx(values)
        role = with_article(model.title)
        assert f"explain needs a density or a classifier, got {path}, {role}" in " ".join(
            command("explain", path, data).split()
        )
        return
    scored = json.loads(said)
    assert scored["rows"] == len(rows())
    if is_density:
        predicted = command("predict", path, data, "--target", "sex")
        lines, shares = pd.read_csv(io.StringIO(predicted)), model.predict_proba(rows(), "sex")
        assert list(lines) == ["row", "predicted", *(f"P({level})" for level in shares)]
        assert lines["row"].tolist() == list(range(1, len(rows()) + 1))
        assert lines["predicted"].tolist() == model.predict(rows(), "sex").tolist()
        np.testing.assert_allclose(lines.iloc[:, 2:], shares, rtol=1e-12)
        return
    predicted = command("predict", path, data)
    if not isinstance(model, Predictor):
        assert "predict needs a model that predicts" in predicted
        return
    lines = pd.read_csv(io.StringIO(predicted))
    assert lines["predicted"].tolist() == model.predict(rows()).tolist()
    right = float((lines["predicted"] == labels.to_numpy()).mean())
    assert scored["accuracy"] == pytest.approx(right)
