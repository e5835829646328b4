"""What is of rule lists alone, of all that `tests/contracts` asks of an estimator and its file."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import samplers
from bayescascade import DensityRuleList, LearnedDensityList, RuleListClassifier
from bayescascade.base.errors import ModelFileError
from bayescascade.data.column import Column
from bayescascade.data.schema import Schema
from bayescascade.methods.lists.antecedents import Condition, conditions_of
from bayescascade.methods.lists.models import MAX_RULES
from bayescascade.methods.lists.rule_list import read_rules
from tests.methods.lists.fits import QUICK, boats, classifier, fates, fitted, people


def test_plug_in_probabilities():
    """The thesis's estimate is a part's share of the rows."""
    rules = fitted(density="empirical").rules_
    assert_allclose(rules.probabilities, rules.counts / 200)


def test_samples_of_the_average_are_not_grouped_by_draw(monkeypatch):
    """The first rows are as good a sample as all, though each list's rows are drawn together."""
    model = fitted(predictive="average")
    female = ((Condition(0, 0, 1),),)
    sure = [LearnedDensityList(model.schema_, female, 200 * p, p) for p in np.eye(2)]
    monkeypatch.setattr(model, "_drawn", lambda: (sure, np.array([0.5, 0.5])))
    is_female = (model.sample(400, random_state=0)["sex"] == "female").to_numpy()

    def is_mixed(rows):
        return abs(rows[:200].mean() - rows[200:].mean()) < 0.25

    assert is_mixed(is_female)
    assert not is_mixed(np.sort(is_female))  # the twin that does not shuffle


@pytest.mark.parametrize("estimator", [DensityRuleList, RuleListClassifier])
def test_temperatures_reach_across(estimator, monkeypatch):
    """With the six of trees, lists of other rules that are nearly as good are never met."""
    asked = []

    def spy(*arguments, n_temperatures, **others):
        asked.append(n_temperatures)
        return tempering(*arguments, n_temperatures=n_temperatures, **others)

    tempering = samplers.tempering
    monkeypatch.setattr(samplers, "tempering", spy)
    model = estimator(**{**QUICK, "search": "tempering", "n_steps": 100})
    model.fit(people()[["sex"]], fates(people()))
    assert asked == [12]


def test_two_classes_keep_one() -> None:
    """The model of two classes is that of a concentration of 1, and prints it so."""
    auto, given = classifier(), classifier(concentration=1.0)
    assert auto.log_posterior_ == given.log_posterior_
    assert str(auto) == str(given)


@pytest.mark.slow
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


@pytest.mark.slow
def test_the_choice_does_not_depend_on_the_seed() -> None:
    X, y = people(), boats(people())
    few = {"n_steps": 50, "n_chains": 1, "search": "anneal"}
    found = {RuleListClassifier(**few, random_state=s).fit(X, y).concentration_ for s in range(3)}
    assert len(found) == 1


SCHEMA = Schema((Column("grade", "ordinal", tuple(range(20))),))
RULES = [[list(condition)] for condition in conditions_of(0, SCHEMA.columns[0])]
N_CANDIDATES = np.array([0, len(RULES)])


@pytest.mark.parametrize("n_classes", [None, 2])
def test_lists_in_files_are_as_long_as_they_can_be(n_classes):
    """A 63rd rule has no bit in the words that say which hold; candidates run out, too."""

    def record(n_rules):
        shape = (n_rules + 1,) if n_classes is None else (n_rules + 1, n_classes)
        return {"rules": RULES[:n_rules], "counts": np.ones(shape).tolist()}

    longest, _ = read_rules(record(MAX_RULES), SCHEMA, N_CANDIDATES, n_classes)
    assert len(longest) == 62
    with pytest.raises(ModelFileError, match="rules must be different, at most 62"):
        read_rules(record(MAX_RULES + 1), SCHEMA, N_CANDIDATES, n_classes)
    assert len(read_rules(record(3), SCHEMA, np.array([0, 3]), n_classes)[0]) == 3
    with pytest.raises(ModelFileError, match="among the candidates"):
        read_rules(record(3), SCHEMA, np.array([0, 2]), n_classes)
