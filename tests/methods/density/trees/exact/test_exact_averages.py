"""Densities of rows averaged over all trees."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bayescascade.base.errors import TooLargeError
from bayescascade.methods.density.trees.exact import ExactCost, averages, pieces, recursion, solve
from bayescascade.methods.density.trees.posterior import LeafPosterior
from tests.interrupts import interrupted
from tests.methods.density.trees import problems as tiny
from tests.methods.density.trees.exact.brute_force import (
    LEVELS,
    NO_DATA,
    WIDE_BINS,
    brute_force,
    cases,
)
from tests.methods.density.trees.exact.decimal_twin import AllTrees
from tests.methods.density.trees.exact.test_exact_cost import random_table

AVERAGED = (
    (tiny.MULTIWAY, tiny.LEAF), (tiny.MULTIWAY, tiny.BRANCH), (tiny.MULTIWAY, tiny.INCLUSION),
    (tiny.ORDINAL, tiny.BOUNDED), (tiny.BINS, tiny.INDEPENDENT), (tiny.FRACTIONAL, tiny.BRANCH),
    (tiny.CONSTANT, tiny.LEAF), (LEVELS, tiny.BOUNDED), (WIDE_BINS, tiny.LEAF),
    (NO_DATA, tiny.BRANCH), (tiny.MULTIWAY, tiny.GENERATIVE), (NO_DATA, tiny.GENERATIVE_UNIFORM),
)  # fmt: skip
AVERAGED_OVER_MANY = (
    (tiny.BINARY, tiny.INDEPENDENT), (LEVELS, tiny.INDEPENDENT_BRANCH),
    (tiny.ORDINAL, tiny.GENERATIVE_UNIFORM), (LEVELS, tiny.GENERATIVE_BRANCH),
)  # fmt: skip
BROKEN = (
    (tiny.MULTIWAY, tiny.BRANCH), (tiny.ORDINAL, tiny.BOUNDED), (LEVELS, tiny.INDEPENDENT_BRANCH),
)  # fmt: skip


def all_rows(problem):
    return list(product(*(range(q) for q in problem.n_levels)))


def coded(rows):
    return np.array(rows, np.int32).T


@cases(*AVERAGED, slow=AVERAGED_OVER_MANY)
def test_a_row_has_the_density_averaged_over_all_trees(problem, model):
    """What predicts best must be the average; of the broken twin every fifth value is doubled."""
    everything, exact = brute_force(problem, model), solve(model.on(problem))
    rows, ends = all_rows(problem), [0, -1]
    expected = [everything.log_normalizer_with(rows[i]) - everything.log_normalizer for i in ends]
    found = exact.log_predictive(coded(rows))
    # the ends differ in every column; the others add up to one with them
    assert_allclose(found[ends], expected, atol=1e-9)
    widths = problem.record["widths"]
    volumes = [np.prod([w[c] for w, c in zip(widths, row, strict=True)]) for row in rows]
    assert_allclose(np.dot(volumes, np.exp(found)), 1.0, atol=1e-9)
    if (problem, model) in BROKEN:
        broken = solve(model.on(problem))
        broken._sums.values.mantissa[::5] *= 2
        assert np.abs(broken.log_predictive(coded(rows))[ends] - expected).max() > 1e-3


@pytest.mark.parametrize(
    "weight",
    [1_000, 1_000_000_000, *(pytest.param(w, marks=pytest.mark.slow) for w in (1, 1_000_000))],
)
@cases((tiny.MULTIWAY, tiny.BRANCH), (tiny.ORDINAL, tiny.BOUNDED), (tiny.BINS, tiny.INDEPENDENT),
       (tiny.CONSTANT, tiny.INCLUSION), (tiny.MULTIWAY, tiny.GENERATIVE_UNIFORM),
       (tiny.BINS, tiny.GENERATIVE_BRANCH))  # fmt: skip
def test_averages_of_huge_weights_keep_their_digits(problem, model, weight):
    """A billion a row: log densities of 1e12 nats must not leave a nat to rounding."""
    weights = [weight * each for each in problem.record["weights"]]
    heavy = replace(problem, given=dict(zip(problem.record["rows"], weights, strict=True)))
    exact, rows = solve(model.on(heavy)), all_rows(problem)
    found = exact.log_predictive(coded(rows))

    def precise_log_sum(*more):
        record = {**heavy.record, "rows": [*heavy.record["rows"], *more]}
        record["weights"] = [*weights, *[1.0] * len(more)]
        how = problem.partitions, problem.max_branches
        return AllTrees(record, model.parameters, *how).log_normalizer

    before = precise_log_sum()
    for i in (0, len(rows) // 2, len(rows) - 1):
        average = float(precise_log_sum(rows[i]) - before)
        assert found[i] == pytest.approx(average, abs=1e-9)
    assert exact.log_normalizer == pytest.approx(float(before), rel=1e-14)


@cases((tiny.BINS, tiny.INDEPENDENT), (tiny.MULTIWAY, tiny.BRANCH), (LEVELS, tiny.LEAF))
def test_missing_cells_are_integrated_out(problem, model):
    """A row's known cells have the sum over what the others can be, times widths."""
    exact, widths = solve(model.on(problem)), problem.record["widths"]
    rows = all_rows(problem)
    densities = np.exp(exact.log_predictive(coded(rows)))
    for known in (0, 1):
        row = [-1] * len(problem.n_levels)
        row[known] = 1
        expected = 0.0
        for complete, density in zip(rows, densities, strict=True):
            if complete[known] == 1:
                filled = [w[c] for w, c, r in zip(widths, complete, row, strict=True) if r < 0]
                expected += np.prod(filled) * density
        assert_allclose(np.exp(exact.log_predictive(coded([row]))), expected, rtol=1e-9)
    nothing = coded([[-1] * len(problem.n_levels)])
    assert_allclose(exact.log_predictive(nothing), 0.0, atol=1e-9)


@cases((tiny.MULTIWAY, tiny.LEAF), (tiny.MULTIWAY, tiny.INCLUSION), (tiny.BINS, tiny.BRANCH),
       (LEVELS, tiny.LEAF))  # fmt: skip
def test_cells_found_together_have_the_densities_of_rows_one_by_one(problem, model, monkeypatch):
    """Which way is taken depends on the table's size, and must not be seen."""
    rows = [*all_rows(problem), (-1,) + (0,) * (len(problem.n_levels) - 1)]
    together = solve(model.on(problem))
    found = together.log_predictive(coded(rows))
    assert together._averages._cells is not None
    monkeypatch.setattr(averages, "_has_cells", lambda _: False)
    one_by_one = solve(model.on(problem))
    assert_allclose(one_by_one.log_predictive(coded(rows)), found, rtol=0, atol=1e-12)
    assert one_by_one._averages._cells is None


@pytest.mark.parametrize("leaf", ["uniform", "independent"])
def test_few_leaves_of_many_columns_are_averaged_by_rows(leaf):
    """Against the ratio of two evidences; there is no box then for every cell."""
    table, parameters = random_table((2, 3, 2, 2, 3)), {"expected_leaves": 5.0, "leaf": leaf}
    exact = solve(LeafPosterior(table, **parameters), max_leaves=3)
    rows = np.array([[0] * 5, [q - 1 for q in table.schema.n_levels]], np.int32).T
    found = exact.log_predictive(rows)
    assert exact._averages._cells is None
    for row, log_density in zip(rows.T, found, strict=True):
        codes = np.column_stack([table.codes, row.astype(table.codes.dtype)])
        more = replace(table, codes=codes, weights=np.append(table.weights, 1.0))
        for array in (more.codes, more.weights):
            array.setflags(write=False)  # as in any table: else kernels are compiled anew
        with_row = solve(LeafPosterior(more, **parameters), max_leaves=3)
        assert log_density == pytest.approx(
            with_row.log_normalizer - exact.log_normalizer, abs=1e-9
        )


def test_empty_boxes_are_even_only_if_their_levels_are_alike():
    """The broken twin takes bins of different widths for alike."""
    empty = replace(WIDE_BINS, name="empty-bins", n_rows=0)
    everything, exact = brute_force(empty, tiny.BRANCH), solve(tiny.BRANCH.on(empty))
    rows = all_rows(empty)
    expected = [everything.log_normalizer_with(row) - everything.log_normalizer for row in rows]
    assert_allclose(exact.log_predictive(coded(rows)), expected, rtol=0, atol=1e-9)
    broken = solve(tiny.BRANCH.on(empty))
    lattice = broken._sums.lattice
    lattice.__dict__["is_alike"] = np.ones_like(lattice.is_alike)
    assert np.abs(broken.log_predictive(coded(rows)) - expected).max() > 1e-6


@cases((tiny.MULTIWAY, tiny.BRANCH), (LEVELS, tiny.INDEPENDENT))
def test_predictions_leave_no_trace(problem, model, rng, monkeypatch):
    """Even if interrupted: draws, evidence and later predictions must be the same."""
    exact, fresh = solve(model.on(problem)), solve(model.on(problem))
    rows = all_rows(problem)
    with monkeypatch.context() as patch:
        run = interrupted(1, pieces.PiecewiseCalls.run, after=True)
        patch.setattr(pieces.PiecewiseCalls, "run", run)
        with pytest.raises(KeyboardInterrupt):
            exact.log_predictive(coded(rows))
    exact.log_predictive(coded(rows[:2]))
    for kept, new in zip(exact._sums.values, fresh._sums.values, strict=True):
        assert (kept == new).all()
    assert (exact._sums.counts == fresh._sums.counts).all()
    assert (exact.log_predictive(coded(rows)) == fresh.log_predictive(coded(rows))).all()
    seed = int(rng.integers(1000))
    draws = exact.sample(30, np.random.default_rng(seed))
    assert draws == fresh.sample(30, np.random.default_rng(seed))


def test_one_pass_is_enough_for_all_rows(monkeypatch):
    """A test file of many rows must not cost as many passes."""
    exact = solve(tiny.BRANCH.on(tiny.BINARY))
    passes = interrupted(2, recursion.Recursion.share_out)
    monkeypatch.setattr(recursion.Recursion, "share_out", passes)
    exact.log_predictive(coded([(0, 1, 0)]))
    exact.log_predictive(coded(all_rows(tiny.BINARY)))
    assert passes.n_calls == 1


def test_averages_that_do_not_fit_are_refused():
    """A fit may take all the memory that it was given; more must not be taken unasked."""
    posterior = tiny.BRANCH.on(tiny.BINARY)
    cost = ExactCost.of(posterior)
    exact = solve(posterior, memory_limit=cost.memory_bytes)
    with pytest.raises(TooLargeError, match="memory_limit must be at least"):
        exact.log_predictive(coded([(0, 1, 0)]))
    n_bytes = cost.memory_bytes + 16 * cost.n_boxes
    solve(posterior, memory_limit=n_bytes).log_predictive(coded([(0, 1, 0)]))
