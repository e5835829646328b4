"""When trees of more leaves may be left out: proved bounds, against a list of all trees."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp

from bayescascade import LeafCascade, LeafPosterior
from bayescascade.base.errors import TooLargeError
from bayescascade.methods.density.trees.exact import solve
from bayescascade.methods.density.trees.exact.lattice import Root
from bayescascade.methods.density.trees.exact.plan import SearchPlan
from bayescascade.methods.density.trees.exact.recursion import Recursion
from bayescascade.methods.density.trees.exact.rounding import PassRounding
from bayescascade.methods.density.trees.exact.shared import SharedBoxes
from bayescascade.methods.density.trees.exact.tail import Tail
from tests.methods.density.trees import problems as tiny
from tests.methods.density.trees.exact.brute_force import brute_force
from tests.methods.density.trees.exact.test_exact_cost import random_table
from tests.methods.density.trees.problems import Problem


def copied(problem, weight, noise=0.0):
    """Return a problem of columns that copy the first, but for one row if `noise` has a weight."""
    n = len(problem.n_levels)
    weights = {(code,) * n: weight for code in range(problem.n_levels[0])}
    return replace(problem, given=weights | ({(0, *(1,) * (n - 1)): noise} if noise else {}))


TWO = Problem("by-levels", (4, 4), (True, True), 2, partitions="levels")
THREE = Problem("by-subsets", (2, 2, 2), (True,) * 3, 2)
LEVELS, SUBSETS = copied(TWO, 40.0), copied(THREE, 30.0)
HUGE, NEAR_SUBSETS = copied(TWO, 1e6, 2.0), copied(THREE, 30.0, 1.0)
QUICK = ("copied", "huge", "near-subsets", "noise", "process", "huge-process", "huge-size")
COPIES = [
    pytest.param(
        problem,
        replace(model, parameters={**model.parameters, **prior}),
        id=name,
        marks=() if name in QUICK else pytest.mark.slow,
    )
    for name, problem, model, prior in (
        ("copied", LEVELS, tiny.LEAF, {"expected_leaves": 0.1}),
        ("near", copied(TWO, 40.0, 3.0), tiny.LEAF, {"expected_leaves": 1.0}),
        ("huge", HUGE, tiny.LEAF, {"expected_leaves": 0.1}),
        ("many-leaves", copied(TWO, 2.0), tiny.LEAF, {"expected_leaves": 50.0}),
        ("subsets", SUBSETS, tiny.LEAF, {"expected_leaves": 0.1}),
        ("near-subsets", NEAR_SUBSETS, tiny.INDEPENDENT, {"expected_leaves": 2.0}),
        ("huge-subsets", copied(THREE, 1e6, 1e3), tiny.LEAF, {"expected_leaves": 0.1}),
        ("noise", copied(TWO, 0.5, 0.5), tiny.LEAF, {"expected_leaves": 0.1}),
        ("process", LEVELS, tiny.GENERATIVE, {"stop": 0.99}),
        ("huge-process", HUGE, tiny.GENERATIVE, {"stop": 0.1}),
        ("process-subsets", NEAR_SUBSETS, tiny.GENERATIVE, {"stop": 0.9}),
    )
]  # fmt: skip
copies = pytest.mark.parametrize(("problem", "model"), COPIES)


def differs(problem, model):
    """Whether the posterior is another than that of all trees, or says that it is not of all."""
    everything, exact = brute_force(problem, model), solve(model.on(problem))
    n_leaves = [tree.n_leaves for tree in everything.trees]
    counted = np.bincount(n_leaves, everything.probabilities)[1 : exact.max_leaves + 1]
    size = 1e-12 * abs(everything.log_normalizer)
    found = (
        (exact.log_normalizer, everything.log_normalizer, 2e-9 + size),
        (exact.log_density, everything.log_densities.max(), 1e-9 + size),
        (exact.log_normalizer - exact.log_evidence, everything.log_prior_normalizer, 2e-9 + size),
        (exact.leaf_count_probabilities, counted, 2e-9 + size),
    )
    return not exact.is_complete or any(
        not np.allclose(one, other, rtol=0, atol=tolerance) for one, other, tolerance in found
    )


@copies
def test_copied_columns_do_not_hide_large_trees(problem, model, monkeypatch):
    """Trees that gain only where every copy is split must be found behind those that lose."""
    monkeypatch.setattr("bayescascade.methods.density.trees.exact.cost._FEWEST_LEAVES", 2)
    assert not differs(problem, model)


def test_stopping_where_one_more_split_gains_nothing_is_found_out(monkeypatch):
    """The broken twin: as many leaves as allowed are improbable, so no more are tried."""
    monkeypatch.setattr("bayescascade.methods.density.trees.exact.cost._FEWEST_LEAVES", 4)
    monkeypatch.setattr(Tail, "enough", lambda _self, fewest, *_, **__: fewest)
    assert differs(*COPIES[0].values)


@pytest.mark.slow
@copies
def test_bounds_are_bounds(problem, model, monkeypatch):
    """What is left out must come to no more than was said, whatever that is."""
    everything, posterior = brute_force(problem, model), model.on(problem)
    n_leaves = np.array([tree.n_leaves for tree in everything.trees])
    plan, total = SearchPlan.of(posterior, None), posterior.table.weights.sum()
    boxes = SharedBoxes.of(posterior, plan, np.inf, np.inf) or Recursion.of(posterior, plan)
    most, root = int(n_leaves.max()), Root.of(posterior, plan)
    found = []
    for listed in (most, 3):  # numbers of leaves that are looked at one by one
        monkeypatch.setattr("bayescascade.methods.density.trees.exact.tail._MOST_LISTED", listed)
        tail = Tail(boxes, root, total, most, PassRounding.of(posterior, plan))
        for fewest, below, maximize in np.ndindex(most, 12, 2):
            target = everything.log_normalizer + 5.0 - 5.0 * below
            enough = tail.enough(fewest + 1, target, 6, maximize=bool(maximize))
            left_out = everything.log_densities[n_leaves > enough]
            if left_out.size:
                came_to = left_out.max() if maximize else logsumexp(left_out)
                assert came_to <= target
            assert fewest + 1 <= enough <= most
            found.append(enough)
    assert len(set(found)) > 2  # and not always all


def test_a_column_of_nine_levels_and_its_copy():
    """Up to 64 leaves nothing gains; all 81 cells gain 21,132 nats, as annealing would find."""
    nine = np.repeat(np.arange(9), 1111).astype(str)
    frame = pd.DataFrame({"column": nine, "copy": nine})
    model = LeafCascade(partitions="levels", random_state=0).fit(frame)
    assert model.summary_.method == "exact"
    assert model.tree_.n_leaves == 81
    assert model.log_posterior_ == pytest.approx(-22_813.83, abs=0.01)
    assert model.summary_.shares["leaves"] == {"81": pytest.approx(1.0)}


@pytest.mark.slow
def test_without_a_proof_there_is_no_exact_posterior():
    """Thirty columns of nine levels have too many boxes to bound what lies beyond a few leaves."""
    assert solve(LeafPosterior(random_table((9,) * 10), partitions="levels")).is_complete
    table = random_table((9,) * 30)
    posterior = LeafPosterior(table, partitions="levels")
    with pytest.raises(TooLargeError, match=r"got 1.0e30 boxes.*less work: .*max_leaves"):
        solve(posterior)
    assert not solve(posterior, max_leaves=17).is_complete
    bounded = LeafPosterior(table, partitions="levels", max_leaves=17)
    assert solve(bounded).is_complete
