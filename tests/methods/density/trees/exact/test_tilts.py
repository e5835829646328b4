"""The leaf model by tilted passes: against lists of all trees, and sums by numbers of leaves."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bayescascade.base.errors import ParameterError, TooLargeError
from bayescascade.methods.density.trees.exact import recursion, solve, solve_by_tilts
from bayescascade.methods.density.trees.exact.expansion import Expansion
from bayescascade.methods.density.trees.exact.passes import Passes
from bayescascade.methods.density.trees.posterior import BranchPosterior, LeafPosterior
from samplers import CheckpointError
from tests.interrupts import interrupted
from tests.methods.density.trees import problems as tiny
from tests.methods.density.trees.exact import brute_force as listed
from tests.methods.density.trees.exact.brute_force import FRACTIONAL_BINS, LEVELS, NO_DATA, cases
from tests.methods.density.trees.exact.test_exact_cost import random_table
from tests.methods.density.trees.exact.test_exact_tail import copies
from tests.statistical.chi_square import fits

ALL = cases(
    (tiny.BINARY, tiny.LEAF), (tiny.BINARY, tiny.INDEPENDENT), (tiny.MULTIWAY, tiny.LEAF),
    (tiny.BINS, tiny.LEAF), (tiny.FRACTIONAL, tiny.LEAF), (FRACTIONAL_BINS, tiny.INDEPENDENT),
    (tiny.CONSTANT, tiny.LEAF), (LEVELS, tiny.LEAF), (NO_DATA, tiny.LEAF),
    (tiny.MULTIWAY, tiny.GENERATIVE), (LEVELS, tiny.GENERATIVE), (NO_DATA, tiny.GENERATIVE),
)  # fmt: skip


@ALL
def test_tilts_tell_of_all_trees(problem, model):
    """A bound that does not hold would be a false certificate."""
    everything = listed.brute_force(problem, model)
    tilted = solve_by_tilts(model.on(problem), rng=0)
    listed.assert_bounds_hold(tilted, everything)
    assert tilted.error < 1e-6
    assert tilted.gap < 2.0


@copies
def test_bounds_hold_under_extreme_priors_and_weights(problem, model):
    """Where leaf counts have several humps, far apart, a bound is needed most."""
    everything = listed.brute_force(problem, model)
    listed.assert_bounds_hold(solve_by_tilts(model.on(problem), rng=0), everything)


@pytest.mark.parametrize(
    "expected", [0.3, *(pytest.param(e, marks=pytest.mark.slow) for e in (8.0, 40.0))]
)
def test_what_sums_by_leaves_say_tilts_say(expected):
    """The same table, once small enough to be kept by numbers of leaves."""
    posterior = LeafPosterior(random_table((3, 3, 2, 4)), expected, 2.0)
    exact, tilted = solve(posterior), solve_by_tilts(posterior, rng=0)
    assert tilted.error < 1e-6
    assert_allclose(tilted.log_normalizer, exact.log_normalizer, rtol=0, atol=tilted.error + 1e-8)
    assert_allclose(tilted.log_evidence, exact.log_evidence, rtol=0, atol=tilted.error + 1e-8)
    assert tilted.log_density <= exact.log_density + 1e-9 <= tilted.log_density + tilted.gap + 2e-9
    others = [tree.n_leaves - 1 for tree in tilted.sample(2_000, 0)]
    assert fits(others, exact.leaf_count_probabilities)
    assert not fits(others, np.roll(exact.leaf_count_probabilities, 1))  # broken: a leaf more


@cases(
    (tiny.BINARY, tiny.LEAF),
    (tiny.MULTIWAY, tiny.INDEPENDENT),
    (tiny.BINARY, tiny.GENERATIVE),
)
def test_draws_have_the_posterior_probabilities(problem, model, rng, monkeypatch):
    """Draws of a tilt alone, the broken twin, have other numbers of leaves."""
    everything = listed.brute_force(problem, replace(model))
    tilted = solve_by_tilts(model.on(problem), rng=0)
    observed = listed.drawn_indices(tilted, everything, rng)
    assert fits(observed, everything.probabilities)
    found = tilted._sum.mixture
    outer = np.argmax(np.abs(found.tilts - found.tilts.mean()))
    broken = replace(found, shares=np.eye(found.tilts.size)[outer])
    monkeypatch.setattr(tilted, "_sum", replace(tilted._sum, mixture=broken))
    assert not fits(listed.drawn_indices(tilted, everything, rng), everything.probabilities)


@cases((tiny.MULTIWAY, tiny.LEAF))
def test_trees_kept_on_the_way_are_draws_too(problem, model, monkeypatch):
    """They save passes of their own; the broken twin takes those of one tilt for those of all."""
    everything = listed.brute_force(problem, replace(model))
    index = {tree: i for i, tree in enumerate(everything.trees)}

    def drawn():
        tilted = solve_by_tilts(model.on(problem), rng=0, n_draws=2_000)
        assert len(tilted.draws) == 2_000
        return [index[tree] for tree in tilted.draws]

    assert fits(drawn(), everything.probabilities)
    alone, more = (solve_by_tilts(model.on(problem), rng=0, n_draws=n) for n in (0, 2_000))
    assert alone.n_passes == more.n_passes
    assert alone.sample(5, 1) == more.sample(5, 1)  # no tree that was kept
    draws_of = Passes.draws_of

    def of_one(passes, _tilt, n, rng):
        return draws_of(passes, min(passes._kept), n, rng)

    monkeypatch.setattr(Passes, "draws_of", of_one)
    assert not fits(drawn(), everything.probabilities)


@cases((tiny.BINARY, tiny.LEAF))
def test_draws_are_right_where_no_error_is_proved(problem, model, rng, monkeypatch):
    """What all trees come to at most says nothing of what is negligible; the twin takes it so."""
    everything, expand = listed.brute_force(problem, replace(model)), Expansion.expanded
    monkeypatch.setattr(Expansion, "expanded", lambda *args: (expand(*args)[0] + 20.0, np.inf))
    tilted = solve_by_tilts(model.on(problem), rng=0)
    assert tilted.error == np.inf
    assert fits(listed.drawn_indices(tilted, everything, rng), everything.probabilities)
    monkeypatch.setattr(Expansion, "_at_least", lambda _, log_sum, __: log_sum)
    broken = solve_by_tilts(model.on(problem), rng=0)
    assert not fits(listed.drawn_indices(broken, everything, rng), everything.probabilities)


@cases((tiny.BINARY, tiny.LEAF))
def test_a_hopeless_mixture_is_given_up(problem, model, monkeypatch):
    """Even a single draw must not take for ever."""
    tilted = solve_by_tilts(model.on(problem), rng=0)
    found = tilted._sum.mixture
    rare = replace(found, log_accepted=found.log_accepted - 30.0)
    monkeypatch.setattr(tilted, "_sum", replace(tilted._sum, mixture=rare))
    with pytest.raises(TooLargeError, match="accepted fewer than 1 in 1,000 trees"):
        tilted.sample(1, 0)


def test_an_interrupt_keeps_the_best_tree_and_its_gap(monkeypatch):
    """A search of minutes must not be lost."""
    posterior = LeafPosterior(random_table((3, 3, 2, 4)), 8.0, 2.0)
    whole = solve_by_tilts(posterior, rng=0)
    with monkeypatch.context() as patch:
        patch.setattr(Passes, "run", interrupted(3, Passes.run))
        found = solve_by_tilts(posterior, rng=0)
    assert found.is_interrupted
    assert found.n_passes == 2
    assert posterior.log_density(found.tree) == found.log_density
    assert found.log_density + found.gap >= whole.log_density
    assert np.isnan(found.log_evidence)
    with pytest.raises(ParameterError, match="not interrupted"):
        found.sample(1)
    monkeypatch.setattr(recursion, "evaluate_lines", interrupted(1))
    with pytest.raises(KeyboardInterrupt):  # there is no result yet
        solve_by_tilts(posterior)


@pytest.mark.parametrize("n_made", [9, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 99))])
def test_a_search_goes_on_from_the_passes_that_it_made(n_made, monkeypatch, tmp_path):
    """Hours on a large table: what was found must not be looked for again."""
    posterior = LeafPosterior(random_table((3, 3, 2, 4)), 8.0, 2.0)
    parameters = {"rng": 0, "n_draws": 30, "checkpoint": tmp_path / "passes"}
    whole = solve_by_tilts(posterior, rng=0, n_draws=30)
    run, made = Passes.run, []

    def counted(tilts, tilt, maximize):
        if len(made) == n_made:
            raise KeyboardInterrupt
        made.append((tilt, maximize))
        return run(tilts, tilt, maximize)

    monkeypatch.setattr(Passes, "run", counted)
    first = solve_by_tilts(posterior, **parameters)
    assert first.is_interrupted == (n_made < 99)
    before, n_made = made.copy(), -1
    made.clear()
    if first.is_interrupted:
        with pytest.raises(CheckpointError, match="holds an unfinished run"):
            solve_by_tilts(posterior, **parameters)
    found = solve_by_tilts(posterior, **parameters, resume=True)
    assert found.draws == whole.draws
    for name in ("tree", "gap", "log_normalizer", "error", "log_evidence"):
        assert getattr(found, name) == getattr(whole, name)
    again = set(made) & set(before)
    assert not any(maximize for _, maximize in again)
    assert len(again) <= 5  # of which trees are drawn
    with pytest.raises(CheckpointError, match="of another model or other data"):
        solve_by_tilts(LeafPosterior(posterior.table, 9.0), **parameters, resume=True)


def test_what_tilts_cannot_do_is_refused():
    """Better an error than the posterior of another model."""
    table = random_table((2, 2, 2))
    for posterior in (BranchPosterior(table), LeafPosterior(table, max_leaves=3)):
        with pytest.raises(ParameterError, match="leaf model without max_leaves"):
            solve_by_tilts(posterior)
    with pytest.raises(TooLargeError, match="memory_limit"):
        solve_by_tilts(LeafPosterior(random_table((2,) * 8)), memory_limit=1e4)
