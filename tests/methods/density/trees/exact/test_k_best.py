"""Trees in the order of probability: against a list of all trees."""

import math
from itertools import islice, pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bayescascade.base.errors import ParameterError, TooLargeError
from bayescascade.methods.density.trees.exact import cost, k_best, solve
from bayescascade.methods.density.trees.exact.shared import SharedBoxes
from tests.methods.density.trees import problems as tiny
from tests.methods.density.trees.exact import brute_force as listed
from tests.methods.density.trees.exact.brute_force import LEVELS, WIDE_BINS, cases
from tests.methods.density.trees.exact.test_exact_tail import LEVELS as COPIED

CLOSE = {"rtol": 0.0, "atol": 1e-9}
CASES = listed.cases_of({
    tiny.BINARY: "leaf branch bounded generative-bounded",
    tiny.MULTIWAY: "leaf branch independent generative generative-branch",
    tiny.ORDINAL: "branch bounded",
    tiny.FRACTIONAL: "leaf independent-branch",
    LEVELS: "leaf generative",
    WIDE_BINS: "independent-branch",
    listed.NO_DATA: "leaf",
})  # fmt: skip
HELD = listed.cases_of(
    {LEVELS: "independent-branch generative-branch", WIDE_BINS: "branch", COPIED: "branch"}
)


def assert_in_order(exact, everything):
    """Hold trees, order, densities and shares against the list of all trees."""
    known = dict(zip(everything.trees, everything.log_densities.tolist(), strict=True))
    known = {tree: value for tree, value in known.items() if value > -math.inf}
    found = list(islice(exact.in_order(), len(known) + 1))
    assert len(found) == len(known)
    assert {one.tree for one in found} == set(known)
    assert_allclose([one.log_density for one in found], [known[one.tree] for one in found], **CLOSE)
    assert all(a.log_density >= b.log_density for a, b in pairwise(found))
    total = np.exp(everything.log_densities - everything.log_normalizer)
    assert_allclose([one.probability for one in found], np.sort(total)[::-1][: len(found)], **CLOSE)


@cases(*CASES)
def test_all_trees_come_once_and_in_order(problem, model):
    """A tree left out, or found twice, would give wrong counts and shares."""
    assert_in_order(solve(model.on(problem)), listed.brute_force(problem, model))


@cases(*HELD)
def test_boxes_that_hold_data_give_the_same_order(problem, model, monkeypatch):
    """Tables of many columns keep only these boxes."""
    monkeypatch.setattr(cost, "_SHORT", -1.0)
    monkeypatch.setattr(cost, "_DEARER", 1e-9)
    exact = solve(model.on(problem))
    assert isinstance(exact._sums, SharedBoxes)
    assert_in_order(exact, listed.brute_force(problem, model))


def test_a_tree_derived_twice_is_noticed(monkeypatch):
    """Broken twin: all ranks are raised, also before the last one above 0."""

    def push_all(order, ranked):
        minus, i, ranks = ranked.found[-1]
        for a, node in enumerate(ranked.ways[i].below):
            value = order._value(node, ranks[a] + 1)
            if value > -math.inf:
                lost = order._value(node, ranks[a]) - value
                more = (minus + lost, i, (*ranks[:a], ranks[a] + 1, *ranks[a + 1 :]))
                k_best.heappush(ranked.heap, more)

    monkeypatch.setattr(k_best.TreeOrder, "_push_next", push_all)
    exact = solve(tiny.BRANCH.on(tiny.BINARY))
    with pytest.raises(AssertionError):
        assert_in_order(exact, listed.brute_force(tiny.BINARY, tiny.BRANCH))


@cases((tiny.MULTIWAY, tiny.LEAF), (tiny.FRACTIONAL, tiny.BRANCH), (LEVELS, tiny.GENERATIVE))
def test_the_best_tree_without_a_column_is_that_of_all_trees(problem, model):
    """The nats that a column is worth follow from it."""
    exact, everything = solve(model.on(problem)), listed.brute_force(problem, model)
    for j, name in enumerate(exact.posterior.schema.names):
        if problem.n_levels[j] == 1:
            continue
        allowed = np.array([j not in tree.features_used for tree in everything.trees])
        tree, log_density = exact.best_without(name)
        assert j not in tree.features_used
        assert_allclose(log_density, everything.log_densities[allowed].max(), **CLOSE)
    with pytest.raises(ParameterError, match=r"column must be one of 'c0', .*, got 'age'"):
        exact.best_without("age")


def test_draws_are_as_before_after_an_order():
    """Maxima must not take the place of the sums that draws and averages need."""
    exact = solve(tiny.LEAF.on(tiny.MULTIWAY))
    before = exact.sample(50, 1)
    exact.k_best(10)
    exact.best_without("c0")
    assert exact.sample(50, 1) == before


def test_limits_are_kept():
    """Some models have no order, and orders take memory."""
    with pytest.raises(ParameterError, match=r"feature_inclusion must be None .*, got 0\.3"):
        solve(tiny.INCLUSION.on(tiny.BINARY)).k_best(2)
    exact = solve(tiny.BRANCH.on(tiny.MULTIWAY))
    exact._memory_limit = 2 * exact.cost.memory_bytes + 100 * k_best._BYTES
    with pytest.raises(TooLargeError, match="memory_limit"):
        exact.k_best(10_000)
