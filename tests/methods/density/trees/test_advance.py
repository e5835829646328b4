"""The compiled sweep: its running sums are exact, its trees valid, its work space large enough."""

import pickle

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from bayescascade import LeafCascade
from bayescascade.data.table import Table
from bayescascade.methods.density.trees import kernel_arrays
from bayescascade.methods.density.trees.kernel_arrays import WorkSpaces
from bayescascade.methods.density.trees.posterior import BranchPosterior, LeafPosterior
from bayescascade.methods.density.trees.tree import Tree
from tests import reference
from tests.methods.density.trees.problems import LEVELS, MULTIWAY, random_table, record_of

KINDS = ("nominal", "ordinal", "continuous")


def assert_consistent(posterior, state, counts):
    """Check what `advance` returned against computation from scratch."""
    for tree, claimed in (
        (state, counts.log_density),
        (counts.best_state, counts.best_log_density),
    ):
        assert not list(tree.problems(posterior.schema))
        assert posterior.decode_state(posterior.encode_state(tree)) == tree
        exact = posterior.log_density(tree)
        assert abs(claimed - exact) <= 1e-9 * (1 + abs(exact))
    assert counts.best_log_density >= counts.log_density - 1e-9 * (1 + abs(counts.log_density))
    most = np.bincount(state.parent[1:], minlength=1).max(initial=0)
    assert most <= posterior.max_branches


small_columns = st.lists(
    st.tuples(st.sampled_from(KINDS), st.integers(1, 7)), min_size=1, max_size=5
).filter(lambda columns: any(n_levels > 1 for _, n_levels in columns))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    table=st.builds(
        random_table, small_columns, st.integers(2, 60), st.booleans(), st.integers(0, 2**32)
    ),
    seed=st.integers(0, 2**32),
    inverse_temperature=st.sampled_from([0.0, 0.05, 0.5, 1.0, 4.0]),
    max_branches=st.sampled_from([2, 3, None]),
    is_leaf=st.booleans(),
    inclusion=st.sampled_from([None, 0.2]),
    max_leaves=st.sampled_from([None, None, 1, 5]),
    options=st.fixed_dictionaries(
        {
            "partitions": st.sampled_from(["subsets", "levels"]),
            "leaf": st.sampled_from(["uniform", "independent", "dependent"]),
            "leaf_concentration": st.sampled_from([0.3, 1.0]),
            "prior": st.sampled_from(["poisson", "generative"]),
            "stop": st.sampled_from([0.1, 0.7]),
        }
    ),
)
def test_trees_stay_valid_and_sums_exact(
    table, seed, inverse_temperature, max_branches, is_leaf, inclusion, max_leaves, options
):
    """Whatever columns, weights and temperature: an invalid tree would be printed as a model."""
    if is_leaf:
        posterior = LeafPosterior(table, 6.0, 0.5, max_branches, max_leaves=max_leaves, **options)
    else:
        own = (
            {"max_depth": 2}
            if options["prior"] == "generative"
            else {"feature_inclusion": inclusion}
        )
        posterior = BranchPosterior(table, 2.5, 0.5, max_branches, **own, **options)
    rng = np.random.default_rng(seed)
    state = posterior.initial_state(rng)
    for n_steps in (1, 7, 400):
        state, counts = posterior.advance(rng, state, n_steps, inverse_temperature)
        assert sum(counts.proposed.values()) == n_steps
        assert all(counts.accepted[name] <= counts.proposed[name] for name in counts.proposed)
        assert_consistent(posterior, state, counts)


INSIDE = {"concentration": 0.5, "leaf": "independent", "leaf_concentration": 0.2}
BITS = [("nominal", 64), ("nominal", 64), ("ordinal", 200)]
BYTES = [("continuous", 250), ("ordinal", 256)]
FEW = {"max_branches": 4}


@pytest.mark.parametrize(
    ("columns", "options", "n_steps"),
    [
        ([("nominal", 64), ("nominal", 3)], INSIDE, 600),
        (BITS, INSIDE, 600),
        (BYTES, INSIDE, 600),
        (BITS, {**INSIDE, "partitions": "levels"}, 60),  # a step may make hundreds of branches
        pytest.param(BYTES, {**INSIDE, "partitions": "levels"}, 60, marks=pytest.mark.slow),
        pytest.param([("ordinal", 400), ("nominal", 5)], FEW, 60, marks=pytest.mark.slow),
        pytest.param([("continuous", 300), ("ordinal", 70)], FEW, 60, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("posterior", [LeafPosterior, BranchPosterior])
def test_wide_columns_keep_their_invariants(columns, options, n_steps, posterior):
    """The 64th level is the last bit of a block, the 256th the last code of a byte."""
    table = random_table(columns, n_steps // 2 + 50, fractional=False, seed=5)
    assert (table.codes.dtype == np.uint16) == (max(n for _, n in columns) > 256)
    target, rng = posterior(table, **options), np.random.default_rng(3)
    state = target.initial_state(rng)
    for inverse_temperature in (0.0, 0.3, 1.0):
        state, counts = target.advance(rng, state, n_steps, inverse_temperature)
        assert_consistent(target, state, counts)


def test_log_density_of_large_weights_is_that_of_the_formula():
    """A billion rows are as many distinct ones with large weights."""
    table = Table.from_arrays([["a", "x"], ["b", "x"], ["b", "y"]], sample_weight=[4e8, 5e8, 1.0])
    posterior = LeafPosterior(table)
    tree = Tree.from_nested((0, [((0,), None), ((1,), (1, [((0,), None), ((1,), None)]))]), [1, 1])
    exact = reference.leaf_log_density(tree.to_nested([1, 1]), record_of(table), 8.0, 2.0)
    assert posterior.log_density(tree) == pytest.approx(exact, rel=1e-12)
    rng = np.random.default_rng(0)
    state, counts = posterior.advance(rng, tree, 500, 1e-8)
    assert counts.log_density == pytest.approx(posterior.log_density(state), rel=1e-12)


def test_trees_may_outgrow_the_work_space():
    """A tree of thousands of nodes is grown in a space made for a few hundred."""
    table = random_table([("ordinal", 200), ("ordinal", 100)], 400, fractional=False, seed=1)
    posterior = LeafPosterior(table, expected_leaves=4000.0, concentration=1.0)
    rng = np.random.default_rng(0)
    state, counts = posterior.advance(rng, Tree.root(), 20_000, 1.0)
    assert state.n_nodes > 1000
    assert sum(counts.proposed.values()) == 20_000
    assert_consistent(posterior, state, counts)


@pytest.mark.parametrize("fractional", [False, True])
@pytest.mark.parametrize(
    ("posterior", "options"),
    [
        (LeafPosterior, {"max_branches": None}),
        (BranchPosterior, {}),
        (BranchPosterior, {"leaf": "independent", "prior": "generative", "max_branches": 3}),
        (BranchPosterior, {"partitions": "levels"}),
        (LeafPosterior, {"leaf": "dependent"}),
    ],
)
def test_steps_go_on_as_if_the_tree_were_laid_out_anew(posterior, options, fractional):
    """A run resumed from its checkpoint would else end in other trees than one that went on."""
    columns = [("nominal", 5), ("ordinal", 6), ("continuous", 4), ("nominal", 2)]
    target = posterior(random_table(columns, 150, fractional, seed=2), **options)
    ends = []
    for is_released in (False, True):
        rng = np.random.default_rng(4)
        state = target.initial_state(rng)
        for block in range(60):
            state, counts = target.advance(rng, state, 25, 0.2 if block < 20 else 1.0)
            ends.append((state, counts.log_density, counts.best_state, counts.best_log_density))
            if is_released:
                target.release()
    assert ends[:60] == ends[60:]


def test_a_run_leaves_no_work_spaces_behind():
    """A fitted model would hold hundreds of megabytes, and write them where it is pickled."""
    model = LeafCascade(n_chains=1, n_steps=200, search="anneal+metropolis", random_state=0)
    model.fit(np.random.default_rng(0).integers(0, 3, (50, 4)).astype(str))
    assert not model.posterior_._work_spaces._kept
    rng = np.random.default_rng(0)
    model.posterior_.advance(rng, Tree.root(), 10, 1.0)
    assert model.posterior_._work_spaces._kept
    assert not pickle.loads(pickle.dumps(model.posterior_))._work_spaces._kept


def test_work_spaces_left_longest_are_given_up(monkeypatch):
    """Thousands of short calls took a hundred times as long: all sizes were added up in each."""
    measured, measure = [], kernel_arrays._n_bytes
    monkeypatch.setattr(kernel_arrays, "_n_bytes", lambda work: measured.append(0) or measure(work))
    posterior, rng = LeafPosterior(MULTIWAY.table), np.random.default_rng(0)
    first, _ = posterior.advance(rng, Tree.root(), 1, 1.0)
    size = measure(posterior._work_spaces._kept[id(first)][1])
    posterior._work_spaces = spaces = WorkSpaces(10 * size)
    ends = [posterior.advance(rng, Tree.root(), 1, 1.0)[0] for _ in range(200)]
    assert len(measured) < 3 * len(ends)
    kept = [work for _, work in spaces._kept.values()]
    assert 5 <= len(kept) <= 10
    assert sum(map(measure, kept)) == spaces._n_bytes <= 10 * size
    assert [spaces.take(tree) is not None for tree in (ends[0], ends[-1], ends[-1])] == [
        False, True, False,
    ]  # fmt: skip
    spaces.clear()
    assert spaces._n_bytes == 0


def test_stored_states_are_checked():
    """A checkpoint that was tampered with, or is another posterior's, is refused, not run."""
    posterior, tree = LeafPosterior(MULTIWAY.table), MULTIWAY.trees[50]
    assert posterior.decode_state(posterior.encode_state(tree)) == tree
    flat = tree.to_flat()
    for forged in (
        {**flat, "feature": flat["feature"][:-1]},
        {**flat, "parent": [0, *flat["parent"][1:]]},
        {**flat, "block": [2**63] * len(flat["block"])},
        {"feature": flat["feature"]},
        {**flat, "feature": "x"},
        [1, 2],
        None,
    ):
        with pytest.raises(ValueError, match="stored tree"):
            posterior.decode_state(forged)
    two_ways = Tree.from_nested((0, [((0, 1), None), ((2,), None)]), LEVELS.nominal)
    for options, other, words in (
        ({}, two_ways, "every branch must hold a single level"),
        ({"max_leaves": 2}, LEVELS.trees[-1], "at most 2 leaves"),
    ):
        by_levels = LeafPosterior(LEVELS.table, partitions="levels", **options)
        with pytest.raises(ValueError, match=words):
            by_levels.decode_state(by_levels.encode_state(other))
