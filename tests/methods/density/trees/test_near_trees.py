"""The trees near the best one: against a list of all trees, in files, and without a proof."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import bayescascade
from bayescascade import AutoCascade, BranchCascade, LeafCascade
from bayescascade.base.errors import ParameterError
from bayescascade.methods.density.trees.tree import leaf_boxes
from bayescascade.report.page import render

CLOSE = {"rtol": 0.0, "atol": 1e-9}


@pytest.fixture(scope="module")
def frame():
    """Return weighted rows with a copied column, so that trees tie."""
    rng = np.random.default_rng(3)
    sky = rng.choice(["grey", "blue"], 80, p=[0.6, 0.4])
    wind = np.where(rng.random(80) < 0.8, sky == "grey", rng.random(80) < 0.5).astype(str)
    return pd.DataFrame({"sky": sky, "wind": wind, "copy": wind})


def listed(model, exact):
    """Return masses of all models, as sets of leaves or trees, with the trees of each."""
    sets = {}
    for one in exact.in_order():  # `test_k_best` holds these against all trees
        boxes = frozenset(map(bytes, leaf_boxes(model.schema_, one.tree)))
        key = boxes if isinstance(model, LeafCascade) else one.tree
        sets.setdefault(key, []).append(one.probability)
    return sets


@pytest.mark.parametrize("kind", [LeafCascade, BranchCascade])
def test_counts_shares_and_sets_are_those_of_all_trees(kind, frame):
    """They are printed as exact."""
    model = kind(search="exact", random_state=0).fit(frame)
    near, everything = model.near_best(2.5), listed(model, model.exact_)
    best = max(map(sum, everything.values()))
    kept = [own for own in everything.values() if sum(own) >= best * np.exp(-2.5) * (1 - 1e-9)]
    masses = sorted(map(sum, kept), reverse=True)
    assert near.n_states.sum() == sum(map(len, kept))
    assert_allclose(near.probabilities, masses, **CLOSE)
    assert_allclose(near.share, sum(masses), **CLOSE)
    assert near.is_complete
    assert near.n_first == len(masses)
    for one, log_posterior, n in zip(near.models, near.log_posteriors, near.n_states, strict=True):
        own = model.posterior_.log_density(one.tree) + np.log(n)
        assert_allclose(own, log_posterior, **CLOSE)
    assert "wind or copy" in render(near.page()) or "copy or wind" in render(near.page())


def test_draws_that_hold_nearly_all_are_a_proof(frame):
    """Trees of dependent leaves have no order, but what was not drawn has little probability."""
    model = BranchCascade(leaf="dependent", partitions="levels", search="exact", random_state=0)
    near = model.fit(frame).near_best(4.0)
    exact, log_density = model.exact_, model.posterior_.log_density
    everything = {one: log_density(one) for one in exact.sample(20_000, 1)}
    kept = sorted((d for d in everything.values() if d >= max(everything.values()) - 4), key=float)
    assert near.is_complete
    assert_allclose(near.log_posteriors, kept[::-1], **CLOSE)
    share = np.exp(np.array(kept) - exact.log_normalizer).sum()
    assert near.share[0] <= share <= near.share[1]
    best = [draw for draw in model._draws.counted if draw.tree == near.models[0].tree][:1]
    model._draws = model._draws._replace(counted=best, times=np.ones(1))  # as if it was drawn alone
    assert len(near.models) > 1
    assert not model.near_best(4.0).is_complete


def test_one_tree_without_splits_is_no_proof(frame):
    """It is the only tree of its depth, which says nothing about trees that split."""
    model = BranchCascade(leaf="dependent", partitions="levels", search="exact", max_depth=0)
    near = model.fit(frame).near_best()
    assert (len(near.models), near.is_complete, near.share) == (1, False, None)


def test_a_file_has_draws_but_no_proof(frame, tmp_path):
    """What is read from a file must not be called complete."""
    model = BranchCascade(search="exact", random_state=0).fit(frame)
    model.save(tmp_path / "model.json")
    near = bayescascade.load(tmp_path / "model.json").near_best(2.5)
    known = {one.tree: p for one, p in zip(*model_and_densities(model, 2.5), strict=True)}
    for one, log_posterior in zip(near.models, near.log_posteriors, strict=True):
        assert_allclose(known[one.tree], log_posterior, **CLOSE)
    assert near.share is None
    assert not near.is_complete
    assert "drawn trees, not proved" in render(near.page())


def model_and_densities(model, nats):
    """Return the models near the best, and their log posteriors."""
    near = model.near_best(nats)
    return near.models, near.log_posteriors


def test_without_a_column(frame):
    """The column stays in the data, so all trees have the same rows and prior."""
    model = BranchCascade(search="exact", random_state=0).fit(frame)
    of_copies = [model.without(name).log_posterior for name in ("wind", "copy")]
    assert_allclose(*of_copies, **CLOSE)
    lost = model.without("sky")
    assert 0.0 < lost.log_posterior < of_copies[0]
    assert "sky" not in {frame.columns[j] for j in lost.model.tree.features_used}
    own = model.posterior_.log_density(lost.model.tree)
    assert_allclose(model.log_posterior_ - own, lost.log_posterior, **CLOSE)
    chains = BranchCascade(search="anneal", n_steps=100, random_state=0).fit(frame)
    with pytest.raises(ParameterError, match='search must be "exact"'):
        chains.without("sky")
    with pytest.raises(ParameterError, match='search must be "exact", or draw trees'):
        chains.near_best()


def test_rows_in_dispute_and_the_chosen_kind(frame):
    """The automatic choice answers for its cascade."""
    model = AutoCascade(effort="quick", n_steps=500, random_state=0).fit(frame)
    near = model.near_best(1.0)
    found = near.disagreements(frame)
    scores = np.array([one.score_codes(model.encode(frame)) for one in near.models])
    assert_allclose(found.sort_index()["low"], scores.min(axis=0))
    assert_allclose(found.sort_index()["high"], scores.max(axis=0))
