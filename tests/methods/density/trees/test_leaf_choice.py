"""Cascades whose leaves are chosen by evidence."""

import numpy as np
import pandas as pd
import pytest

import samplers
from bayescascade import BranchCascade, LeafCascade
from bayescascade.base.errors import TooLargeError
from bayescascade.methods.density.trees import cascade
from bayescascade.methods.density.trees.exact import ExactCost
from bayescascade.methods.density.trees.leaf_choice import LeafChoice
from bayescascade.methods.density.trees.parameters import LEAVES
from bayescascade.model.record import load


def rows(kind, n_columns=3):
    """Return 300 rows of a kind that one of the leaves is made for."""
    rng = np.random.default_rng(3)
    if kind == "uniform":
        codes = rng.integers(0, 2, (300, n_columns))
    elif kind == "independent":
        codes = rng.random((300, 3)) < [0.1, 0.8, 0.3]
    else:
        ones = rng.random((300, n_columns // 2)) < 0.5
        codes = np.hstack([ones, ones ^ (rng.random(ones.shape) < 0.1)])
    return pd.DataFrame(np.asarray(codes).astype(int), columns=list("abcdefgh"[:n_columns])).astype(
        str
    )


@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=[pytest.mark.slow] * (k == "dependent")) for k in LEAVES]
)
def test_leaves_of_most_evidence_are_chosen(kind):
    """All trees are summed for each kind; the sums differ as the evidences do."""
    frame = rows(kind, 6 if kind == "dependent" else 3)
    settings = {"partitions": "levels", "random_state": 0}
    model = BranchCascade(leaf="auto", **settings).fit(frame)
    each = {leaf: BranchCascade(leaf=leaf, **settings).fit(frame) for leaf in LEAVES}
    evidences = {leaf: own.exact_.log_evidence for leaf, own in each.items()}
    assert model.leaf_ == max(evidences, key=evidences.__getitem__) == kind
    sums = model.leaf_choice_.sums
    for leaf in LEAVES:
        assert sums[kind] - sums[leaf] == pytest.approx(evidences[kind] - evidences[leaf], abs=1e-9)
    assert model.leaf_choice_.is_by_evidence
    assert model.log_posterior_ == each[kind].log_posterior_
    np.testing.assert_array_equal(model.score_samples(frame), each[kind].score_samples(frame))
    assert f"leaf {kind} (log evidence " in " ".join(str(model).split())


@pytest.mark.slow
def test_what_is_not_summed_is_told(tmp_path):
    """Trees over dependent leaves that group levels are not; a file says so, too."""
    model = LeafCascade(leaf="auto", n_steps=500, random_state=0).fit(rows("dependent", 8))
    choice = model.leaf_choice_
    assert (set(choice.best), set(choice.sums)) == (set(LEAVES), {"uniform", "independent"})
    assert model.leaf_ == "dependent"
    assert "leaf dependent (log posterior of the best tree " in " ".join(str(model).split())
    model.save(tmp_path / "model.json")
    read = load(tmp_path / "model.json")
    assert (read.leaf_, read.leaf_choice_) == ("dependent", model.leaf_choice_)
    assert str(read) == str(model)


def test_leaves_are_chosen_from_what_can_be():
    """Dependent ones are not summed over grouped levels, nor have shares: no reason to refuse."""
    frame = rows("dependent", 6)
    for more in ({"search": "exact"}, {"density": "empirical"}):
        model = LeafCascade(leaf="auto", random_state=0, **more).fit(frame)
        assert set(model.leaf_choice_.best) == {"uniform", "independent"}
    with pytest.raises(TooLargeError):
        LeafCascade(leaf="auto", search="exact", memory_limit=1e-9).fit(frame)


@pytest.mark.slow
def test_searches_by_chains_choose_by_chains():
    model = LeafCascade(leaf="auto", search="anneal", n_steps=500, random_state=1)
    assert model.fit(rows("dependent", 8)).leaf_ == "dependent"
    assert model.leaf_choice_.sums == {}
    best = model.fit(rows("independent")).leaf_choice_.best
    for leaf in LEAVES[:2]:
        most_probable = LeafCascade(leaf=leaf, random_state=0).fit(rows("independent"))
        assert best[leaf] == pytest.approx(most_probable.log_posterior_, abs=1e-9)


def test_an_interrupted_choice_is_of_what_was_seen(monkeypatch):
    """Ctrl-C in the second search: the first stands, without draws."""
    sum_up = LeafCascade._sum_up

    def interrupted(self, posterior, search, in_use):
        summed = sum_up(self, posterior, search, in_use)
        return summed._replace(is_interrupted=posterior.model.leaf == "independent")

    monkeypatch.setattr(LeafCascade, "_sum_up", interrupted)
    model = LeafCascade(leaf="auto", random_state=0).fit(rows("uniform"))
    assert set(model.leaf_choice_.best) == {"uniform", "independent"}
    assert model.leaf_ == "uniform"
    assert model.summary_.interrupted
    assert model.run_.draws == [] or not any(map(len, model.run_.draws))

    monkeypatch.undo()
    run = samplers.anneal

    def stopped(*arguments, **options):
        found = run(*arguments, **options)
        return type(found)(**{**vars(found), "interrupted": True})

    monkeypatch.setattr(samplers, "anneal", stopped)
    model = LeafCascade(leaf="auto", random_state=0).fit(rows("uniform"))
    assert set(model.leaf_choice_.best) == {"uniform", "independent"}  # both summed over
    assert model.summary_.interrupted
    model = LeafCascade(leaf="auto", search="anneal+metropolis", random_state=0)
    assert model.fit(rows("uniform")).summary_.interrupted
    assert "interrupted: best found so far by greedy growth" in str(model)


def test_sums_that_are_kept_count_as_memory(monkeypatch):
    """Together they take no more than `memory_limit`."""
    asked, sum_up = [], LeafCascade._sum_up

    def spy(self, posterior, search, in_use):
        asked.append(in_use)
        return sum_up(self, posterior, search, in_use)

    monkeypatch.setattr(LeafCascade, "_sum_up", spy)
    LeafCascade(leaf="auto", n_steps=200, random_state=0).fit(rows("uniform"))
    one = (
        LeafCascade(random_state=0)
        .set_params(leaf="uniform")
        ._make_posterior(LeafCascade()._to_table(rows("uniform"), None))
    )
    assert asked[:2] == [0, ExactCost.of(one, 8).memory_bytes]


def test_long_steps_are_fewer():
    """A step over many columns takes a tenth of a second: not thousands of them."""
    wide = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (2_000, 100))).add_prefix("x")
    table = LeafCascade()._to_table(wide, None)
    steps = LeafCascade(leaf="dependent")._default_steps(table)
    assert steps < 100 < LeafCascade()._default_steps(table)
    share = cascade._OF_ROUND * cascade._WORK
    assert 4 * steps * 2_000 * 100**2 / 2 == pytest.approx(share, rel=0.2)


def test_words_count_nats():
    """Sums are compared with sums, and trees with trees."""
    choice = LeafChoice({"uniform": -12.0, "dependent": -9.5}, {"uniform": -8.0})
    text = "leaf dependent (log posterior of the best tree 2.5 nats above uniform leaves"
    assert (choice.leaf, choice.words()) == ("dependent", f"{text})")
    choice.best["independent"] = -10.0
    assert choice.words() == f"{text} and 0.5 nats above independent leaves)"
    del choice.best["independent"]
    choice.sums["dependent"] = -9.0
    text = "leaf uniform (log evidence 1.0 nats above dependent leaves)"
    assert (choice.leaf, choice.words()) == ("uniform", text)
