"""Densities are compared on the same halves, on rows that they have not seen."""

import os
import signal
import time
import warnings
from dataclasses import replace

import numpy as np
import pytest

from bayescascade import (
    DensityEstimationTree,
    DensityRuleList,
    LeafCascade,
    SmoothedHistogram,
    Table,
)
from bayescascade.data.splitting import with_weights
from bayescascade.methods.density.listed import DENSITIES
from bayescascade.model import halvings
from bayescascade.model.halvings import Contender, Learned, best_of, outcomes_of
from tests.cli.conftest import DATA, TITANIC
from tests.interrupts import interrupted

QUICK = ("histogram", "det")


def those(names):
    return {name: Contender.of(DENSITIES[name]) for name in names}


def without_seconds(outcome):
    """Return an outcome without what differs from run to run."""
    return replace(outcome, seconds=0.0)


def test_outcomes_depend_on_the_seed_alone():
    """A model's figures must not change with the models beside it, or with more halvings."""
    table = Table.from_csv(TITANIC)
    everything = [without_seconds(o) for o in outcomes_of(table, those(QUICK), repeats=3, seed=5)]
    assert [
        without_seconds(o) for o in outcomes_of(table, those(QUICK), repeats=3, seed=5)
    ] == everything
    assert len({o.log_likelihood for o in everything}) == len(everything)  # other halves each time
    alone = [
        without_seconds(o) for o in outcomes_of(table, those(["det"]), repeats=2, seed=5, n_jobs=2)
    ]
    assert alone == [o for o in everything if o.model == "det"][:2]
    other = [without_seconds(o) for o in outcomes_of(table, those(QUICK), repeats=3, seed=6)]
    assert {o.log_likelihood for o in other}.isdisjoint(o.log_likelihood for o in everything)


def test_folds_that_choose_settings_are_not_learned_from(monkeypatch):
    """Else what follows the rows most closely would always be chosen."""
    fit, learned, table = halvings.fit_whole, [], Table.from_csv(TITANIC)

    def watched(model, table):
        learned.append(table.total_weight)
        return fit(model, table)

    monkeypatch.setattr(halvings, "fit_whole", watched)
    halvings._scores_in_folds([SmoothedHistogram()], table, 0)
    assert sum(learned) == (len(learned) - 1) * table.total_weight


def learn_in(table, seed, n_jobs):
    """Learn a histogram, and tell in which process."""
    del seed, n_jobs
    warnings.warn("told", UserWarning, stacklevel=1)
    return Learned(SmoothedHistogram().fit(table), {"pid": os.getpid()})


@pytest.mark.slow
def test_workers_change_no_outcome(monkeypatch):
    """Who has more cores must not get other figures, nor miss a warning."""
    monkeypatch.setattr(halvings, "WORTH_WORKERS", 0.0)
    table, models = Table.from_csv(TITANIC), those(QUICK) | {"pid": Contender("pid", learn_in)}
    with pytest.warns(UserWarning, match="told") as here:
        alone = [
            without_seconds(o) for o in outcomes_of(table, models, repeats=3, seed=5, n_jobs=1)
        ]
    with pytest.warns(UserWarning, match="told") as there:
        beside = [
            without_seconds(o) for o in outcomes_of(table, models, repeats=3, seed=5, n_jobs=2)
        ]
    for warned in (here, there):  # libraries warn of processes, too
        assert [str(one.message) for one in warned].count("told") == 3
    assert [replace(o, settings={}) for o in beside] == [replace(o, settings={}) for o in alone]
    assert {o.settings["pid"] for o in alone[2::3]} == {os.getpid()}
    assert os.getpid() not in {o.settings["pid"] for o in beside[2::3]}


@pytest.mark.slow
def test_ctrl_c_keeps_what_workers_have_finished(monkeypatch, tmp_path):
    """Halvings that took an hour must not be lost with the next."""
    parent, has_all = os.getpid(), tmp_path / "has_all"

    def press(*_):
        while not has_all.exists():
            time.sleep(0.01)
        time.sleep(0.2)  # until the next is waited for
        os.kill(parent, signal.SIGINT)
        time.sleep(600.0)

    monkeypatch.setattr(halvings, "WORTH_WORKERS", 0.0)
    models = {**those(QUICK), "pressed": Contender("pressed", press)}
    outcomes = outcomes_of(Table.from_csv(TITANIC), models, repeats=2, n_jobs=2)
    assert [next(outcomes).model for _ in QUICK] == list(QUICK)
    has_all.touch()
    with pytest.raises(KeyboardInterrupt):
        next(outcomes)


def test_what_is_learned_and_scored_are_halves():
    """A row that was learned from must not be scored, and none may be left out."""
    table = Table.from_csv(TITANIC)
    seen = []

    def learn(half, *_):
        seen.append(half)
        return Learned(SmoothedHistogram().fit(half))

    contenders = {"histogram": Contender("seen", learn), **those(["det"])}
    outcomes = list(outcomes_of(table, contenders, repeats=2))
    for half, outcome in zip(seen, outcomes[::2], strict=True):
        assert half.total_weight == 1100
        weights = dict(zip(map(tuple, half.codes.T.tolist()), half.weights, strict=True))
        left = [
            w - weights.get(tuple(codes), 0.0)
            for codes, w in zip(table.codes.T.tolist(), table.weights, strict=True)
        ]
        held_out = with_weights(table, np.array(left))
        assert (np.array(left) >= 0).all()
        expected = SmoothedHistogram().fit(half).score(held_out) / 1101
        assert outcome.log_likelihood == pytest.approx(expected)


@pytest.mark.parametrize("search", ["anneal", pytest.param("exact", marks=pytest.mark.slow)])
def test_the_settings_that_suit_the_table_are_chosen(search):
    """One candidate may not split at all; the rows are not uniform, so it must lose."""
    table = Table.from_csv(DATA / "sparse_tree.csv")
    options = {"n_steps": 200, "n_chains": 1, "random_state": 0, "search": search}
    candidates = [LeafCascade(n, **options) for n in (1e-200, 8.0)]
    for ordered in (candidates, candidates[::-1]):
        chosen = best_of(ordered, table, 0)
        assert chosen.expected_leaves == 8.0
        assert chosen.summary_.n_rows == 1000  # it is fitted to all rows
        assert (chosen.summary_.certificate is None) is (search == "anneal")


def test_ctrl_c_in_a_search_ends_the_comparison():
    """What a search had found by then is not what it would have found."""
    table = Table.from_csv(DATA / "sparse_tree.csv")
    search = {"n_steps": 5000, "n_chains": 1, "search": "anneal", "progress": interrupted(1)}
    with pytest.raises(KeyboardInterrupt):
        best_of([LeafCascade(**search)], table, 0)


@pytest.mark.parametrize("name", ["leaf", "branch", "rules"])
def test_contenders_have_their_defaults(name, monkeypatch):
    """The comparison must be of what a user of an estimator gets."""
    fitted = []

    def fit(model, table):
        fitted.append(model)
        return model.set_params(search="anneal", n_steps=50, n_chains=1).fit(table)

    monkeypatch.setattr(halvings, "fit_whole", fit)
    table = Table.from_csv(DATA / "sparse_tree.csv")
    (outcome,) = outcomes_of(table, those([name]), repeats=1)
    settings = {**outcome.settings}
    leaf = settings.pop("leaf", None)
    model = next(m for m in fitted if settings.items() <= m.get_params().items())
    assert name == "rules" or (model.leaf, model.leaf_) == ("auto", leaf)
    changed = {"search", "n_steps", "n_chains", "n_jobs", "random_state", *outcome.settings}
    defaults = type(model)().get_params()
    assert {k: v for k, v in model.get_params().items() if k not in changed} == {
        k: v for k, v in defaults.items() if k not in changed
    }
    is_list = isinstance(model, DensityRuleList)
    n_parts = model.rules_.n_rules + 1 if is_list else model.tree_.n_leaves
    assert outcome.n_parts == n_parts


def test_the_settings_that_rows_decide_are_told():
    table = Table.from_csv(TITANIC)
    histogram, det = outcomes_of(table, those(QUICK), repeats=1)
    assert set(histogram.settings) == {"pseudo_count"}
    assert set(det.settings) == {"complexity"}
    assert histogram.n_parts == 32
    assert det.n_parts == int(det.n_parts) < 32
    assert DensityEstimationTree().fit(table).complexity_ > 0
