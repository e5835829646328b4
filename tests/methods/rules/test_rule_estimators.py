"""What is of density lists alone, of all that `tests/contracts` asks of an estimator."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import samplers
from bayescascade import DensityList, DensityRuleList, RuleListClassifier
from bayescascade.base.errors import DataError, ParameterError
from bayescascade.methods.rules.antecedents import Condition
from tests.methods.rules.fits import DECLARED, QUICK, fates, fitted, people


def test_plug_in_probabilities():
    """The thesis's estimate is a part's share of the rows."""
    rules = fitted(density="empirical").rules_
    assert_allclose(rules.probabilities, rules.counts / 200)


def test_samples_of_the_average_are_not_grouped_by_draw(monkeypatch):
    """The first rows are as good a sample as all, though each list's rows are drawn together."""
    model = fitted(predictive="average")
    female = ((Condition(0, 0, 1),),)
    sure = [DensityList(model.schema_, female, 200 * p, p) for p in np.eye(2)]
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


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"density": "mean"}, "density must be one of"),
        ({"predictive": "mean"}, "predictive must be one of"),
        ({"search": "anneal", "predictive": "average"}, "anneal"),
        ({"memory_limit": 1e-6}, "lower max_size"),
        ({"missing": "drop"}, "missing must be one of"),
        ({"drop": ["height"]}, 'drop names the unknown column "height"'),
    ],
    ids=str,
)
def test_bad_parameters(parameters, words):
    """Name, rule, value."""
    with pytest.raises((ParameterError, DataError), match=words):
        DensityRuleList(**{**QUICK, **DECLARED, **parameters}).fit(people())
