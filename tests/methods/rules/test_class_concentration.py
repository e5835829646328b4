"""The concentration that is chosen where none is given."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayescascade
from bayescascade import RuleListClassifier
from tests.methods.rules.fits import QUICK, boats, fates, people


def test_two_classes_keep_one() -> None:
    """The model of two classes is that of a concentration of 1, and prints it so."""
    X, y = people(), fates(people())
    auto = RuleListClassifier(**QUICK).fit(X, y)
    given = RuleListClassifier(**QUICK, concentration=1.0).fit(X, y)
    assert auto.log_posterior_ == given.log_posterior_
    assert str(auto) == str(given)


def test_many_classes_are_not_diluted() -> None:
    """Of many classes that a column tells apart 1 each hides what is sure; of noise it does not."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 6, 300)
    X = pd.DataFrame({"kind": [f"k{k}" for k in kind], "other": rng.choice(["x", "y"], 300)})
    options = {"search": "anneal", "n_steps": 20_000, "n_chains": 1, "random_state": 0}
    sure = RuleListClassifier(**options).fit(X, kind)
    diluted = RuleListClassifier(**options, concentration=1.0).fit(X, kind)
    assert sure.concentration_ == 0.25  # the least of 1, 1/2, 1/4 that is no less than 1/6
    assert sure.predict_proba(X).max(axis=1).min() > diluted.predict_proba(X).max(axis=1).min()
    assert "concentration 0.25 (of most evidence)" in " ".join(str(sure).split())
    noise = RuleListClassifier(**options).fit(X, rng.integers(0, 6, 300))
    assert noise.concentration_ == 1.0


def test_files_keep_it_and_older_ones_load(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    X, y = people(), boats(people())
    for concentration in ("auto", 0.5):
        model = RuleListClassifier(**QUICK, concentration=concentration).fit(X, y)
        model.save(path)
        loaded = bayescascade.load(path)
        assert loaded.concentration_ == model.concentration_
        assert str(loaded) == str(model)
    record = json.loads(path.read_text())
    del record["concentration"]  # as in files of before
    path.write_text(json.dumps(record))
    np.testing.assert_array_equal(bayescascade.load(path).predict_proba(X), model.predict_proba(X))


def test_the_choice_does_not_depend_on_the_seed() -> None:
    X, y = people(), boats(people())
    few = {"n_steps": 50, "n_chains": 1, "search": "anneal"}
    found = {RuleListClassifier(**few, random_state=s).fit(X, y).concentration_ for s in range(3)}
    assert len(found) == 1


@pytest.mark.parametrize("wrong", [0.0, "most", None])
def test_what_is_no_concentration_is_refused(wrong: object) -> None:
    with pytest.raises(bayescascade.ParameterError, match="concentration must be"):
        RuleListClassifier(concentration=wrong).fit(people(), boats(people()))
