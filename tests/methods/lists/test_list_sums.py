"""The sum over all rule lists: against enumeration, against chains, and in the estimators."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import bayescascade
from bayescascade import DensityRuleList, RuleListClassifier
from bayescascade.methods.lists import estimators
from bayescascade.methods.lists.exact import states
from bayescascade.methods.lists.kernels.states import IDLE
from tests.documents import ROOT
from tests.methods.lists import large
from tests.people import draw_people

N_PROBLEMS = 16


def flaws(seed):
    rng = np.random.default_rng([66, seed])
    posterior, words = large.draw_posterior(rng, seed % 4 == 3, 5)
    found = large.sum_flaws(posterior, dict(large.lists_of(posterior)), rng)
    return [f"{words}: {flaw}" for flaw in found]


@pytest.mark.parametrize("seed", range(N_PROBLEMS))
def test_sums_averages_and_masses_are_those_of_all_lists(seed):
    assert flaws(seed) == []


def test_idle_rules_counted_once_are_noticed(monkeypatch):
    def counting_once(*args):
        n_states, n_edges = expand(*args)
        edges = args[9]
        edges.times[:n_edges][edges.rules[:n_edges] <= IDLE] = 1.0
        return n_states, n_edges

    expand = states.expand
    monkeypatch.setattr(states, "expand", counting_once)
    assert any("the sum is" in flaw for seed in range(N_PROBLEMS) for flaw in flaws(seed))


def titanic():
    frame = pd.read_csv(ROOT / "data" / "titanic.csv")
    return frame, frame.pop("survived")


def test_titanic_needs_no_chains(tmp_path):
    """Who classifies a small table gets the evidence and draws at once, and no R-hat."""
    rows, labels = titanic()
    longer = RuleListClassifier(random_state=0).fit(rows, labels).summary_.certificate
    assert longer.log_evidence == pytest.approx(-1088.3482, abs=1e-3)
    model = RuleListClassifier(max_size=2, random_state=0).fit(rows, labels)
    assert model.summary_.certificate.log_evidence == pytest.approx(-1089.5857, abs=1e-3)
    assert model.log_posterior_ == pytest.approx(-1095.0818, abs=1e-3)
    assert model.exact_.lost < 1e-6
    assert "sum over all lists" in str(model)
    assert "R-hat" not in str(model)
    model.save(tmp_path / "m.json")
    loaded = bayescascade.load(tmp_path / "m.json")
    assert str(loaded) == str(model)
    assert np.array_equal(loaded.predict_proba(rows), model.predict_proba(rows))
    chains = clone(model).set_params(search="anneal+metropolis", n_steps=40_000, random_state=1)
    drawn = chains.fit(rows, labels).predict_proba(rows)
    averages = model.exact_.probabilities(model.encode(rows))
    assert np.abs(model.predict_proba(rows) - averages).mean() < 0.01
    assert np.abs(drawn - averages).mean() < 0.01
    near = model.near_best(2.5)
    assert near.probabilities[:3] == pytest.approx([0.2186, 0.1403, 0.1140], abs=1e-4)
    assert near.n_first >= 5
    assert model.rules_.rules != near.models[0].rules  # the best list is not of the best model


def test_a_density_is_summed_as_well():
    model = DensityRuleList(random_state=0).fit(draw_people(150, 0)[["sex", "crew"]])
    assert model.summary_.certificate.gap == 0.0
    assert model.summary_.certificate.log_evidence is None  # the prior is restricted
    assert model.summary_.n_draws > 0


def test_chains_follow_if_there_are_too_many_lists(monkeypatch):
    monkeypatch.setattr(estimators, "_OF_SUM", 0.0)
    frame = draw_people(150, 0)
    model = RuleListClassifier(n_steps=2000, random_state=0).fit(frame[["sex"]], frame["crew"])
    assert model.summary_.method == "anneal+metropolis"
    assert model.summary_.reason == "an exact search needs more work than is allowed"
    assert not model.near_best(1).is_complete


def test_ctrl_c_in_a_sum_gives_a_list(monkeypatch):
    def interrupt(*_args, **_named):
        raise KeyboardInterrupt

    monkeypatch.setattr("bayescascade.methods.lists.exact.sums.layers_of", interrupt)
    frame = draw_people(150, 0)
    model = RuleListClassifier(random_state=0).fit(frame[["sex"]], frame["crew"])
    assert model.summary_.interrupted
    assert "interrupted: best found so far" in str(model)
