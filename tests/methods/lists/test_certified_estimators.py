"""Exact searches for rule lists as a user meets them: proofs, gaps, and what they refuse."""

import time

import numpy as np
import pandas as pd
import pytest

import bayescascade
from bayescascade import DensityRuleList, RuleListClassifier
from bayescascade.base.errors import ParameterError
from bayescascade.methods.lists import estimators, posterior as rule_posteriors
from bayescascade.methods.lists.exact import best_list
from bayescascade.model.parameters import EFFORTS
from tests.people import draw_people

QUICK = {"n_steps": 200, "n_chains": 1, "n_jobs": 1, "random_state": 0}


def density(**parameters: object) -> DensityRuleList:
    rows = draw_people(150, 0)[["sex", "crew", "age"]]
    return DensityRuleList(**{"search": "exact", **QUICK, **parameters}).fit(rows)


def classifier(**parameters: object) -> RuleListClassifier:
    frame = draw_people(150, 0)
    model = RuleListClassifier(**{"search": "exact", **QUICK, **parameters})
    return model.fit(frame[["sex", "age"]], frame["crew"])


both = pytest.mark.parametrize("fit", [density, classifier])


@pytest.fixture(autouse=True)
def too_many_lists(monkeypatch):
    """Let no sum over all lists fit, so that the best list is searched."""
    monkeypatch.setattr(estimators, "_OF_SUM", 0.0)


@both
def test_the_list_is_certified(fit, tmp_path):
    """A user who asks for a proof gets one, sees it advance, and the print and the file say so."""
    heard = []
    model = fit(progress=heard.append)
    assert model.summary_.certificate.gap == 0.0
    assert model.exact_.is_optimal
    assert model.log_posterior_ == pytest.approx(best_list(model.posterior_).log_density, abs=1e-9)
    assert "exact: no list is more probable" in str(model)
    assert "no posterior draws" in str(model)
    gaps = [report.described["gap"] for report in heard if report.phase == "proof"]
    assert np.isfinite(gaps).all()
    model.save(tmp_path / "m.json")
    assert str(bayescascade.load(tmp_path / "m.json")) == str(model)


def test_a_search_out_of_time_says_how_far_it_is():
    """Half a proof is a bound, and must not be printed as a whole one."""
    model = density(time_limit=1e-9)
    gap = model.summary_.certificate.gap
    assert gap == model.exact_.gap > 0
    assert f"no list is more probable by more than {gap:,.2f} nats" in " ".join(str(model).split())
    assert model.exact_.upper_bound >= density().log_posterior_ - 1e-9


@both
def test_the_limit_is_of_the_whole_fit(fit, monkeypatch):
    """Who allows two seconds does not want to wait for the candidates or the annealing first."""
    fit()  # compiled
    heard = []
    many = {"n_steps": 20_000_000, "progress": heard.append}
    started = time.perf_counter()
    fit(time_limit=0.5, **many)
    assert time.perf_counter() - started < 10.0  # 20 and more are a whole annealing's
    annealing = [report for report in heard if report.phase == "annealing"]
    assert 0 < annealing[-1].done <= annealing[-1].total < many["n_steps"]  # so that it cools
    mine, n_heard = rule_posteriors.mine_antecedents, len(heard)

    def mine_slowly(*given, **named):
        time.sleep(0.1)
        return mine(*given, **named)

    monkeypatch.setattr(rule_posteriors, "mine_antecedents", mine_slowly)
    model = fit(time_limit=0.1, **many)
    assert len(heard) == n_heard
    assert model.exact_.n_visited == 1
    text = " ".join(str(model).split())
    ended = "stopped at the time limit of 0.1 s: best found so far; no list is"
    assert (ended in text) == (model.exact_.gap > 0)


@both
def test_there_is_nothing_to_average_over(fit):
    """The proof is about one list."""
    with pytest.raises(ParameterError, match="a sum over all lists needs more work"):
        fit(predictive="average")


def test_effort_is_the_work_of_a_proof(monkeypatch):
    """Who asks for more effort waits for more prefixes, and not for the same ones again."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.integers(2, size=(150, 4)), columns=list("abcd")).astype(str)
    labels = (rows.a != rows.b) ^ (rng.random(150) < 0.1)
    monkeypatch.setattr(RuleListClassifier, "_work_of_proof", 4e4)
    models = [RuleListClassifier(search="exact", effort=effort, **QUICK) for effort in EFFORTS]
    quick, normal, thorough = (model.fit(rows, labels).exact_ for model in models)
    assert quick.n_visited < normal.n_visited < thorough.n_visited
    assert quick.gap >= normal.gap > thorough.gap == 0


def test_folds_have_the_sizes_of_the_fit():
    """Chains in folds may have three conditions, where a proof has two."""
    rows = pd.DataFrame(np.random.default_rng(0).integers(2, size=(150, 4))).astype(str)
    labels = (rows[0] != rows[1]) ^ (rows[2] == "1")
    model = RuleListClassifier(search="exact", max_size="auto", random_state=0).fit(rows, labels)
    assert model.n_candidates_.size - 1 == 2
    assert model.fold_model()[0].max_size == 2
    sampled = RuleListClassifier(n_steps=200, n_chains=1, n_jobs=1, random_state=0)
    assert sampled.fit(rows, labels).fold_model()[0].max_size == 3
