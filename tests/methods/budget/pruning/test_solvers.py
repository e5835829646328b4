"""What solves pruning programs; `test_pruning_proofs` has the best of all prunings."""

import numpy as np
import pytest

from bayescascade.methods.budget.pruning import solvers
from bayescascade.methods.budget.pruning.program import Pruning, PruningProgram, relative_gap
from bayescascade.methods.budget.pruning.solvers import FlowSolver
from tests.interrupts import interrupted
from tests.methods.budget.pruning.forests import forest_of, items_of, programs, random_problem

TRADEOFFS = [0.0, 0.003, 0.01, 0.03, 0.1, 0.3, 1e6]


def test_warm_starts_end_where_cold_ones_do(rng):
    """A path would depend on where it began."""
    for program, *_ in programs(rng):
        flow = FlowSolver(program)
        for tradeoff in [0.01, 0.03, 0.02, 0.0, 0.1, 1e-9]:
            cold = FlowSolver(program).solve(tradeoff)
            np.testing.assert_array_equal(flow.solve(tradeoff).kept, cold.kept)


def test_best_prunings_are_nested_and_the_largest(rng):
    """Larger tradeoffs must keep fewer splits, and a tie must not cut what costs nothing."""
    for listed in programs(rng):
        program = listed.program
        larger = np.ones(program.n_splits, np.bool_)
        for tradeoff in TRADEOFFS:
            kept = FlowSolver(program).solve(tradeoff).kept
            assert not np.any(kept & ~larger)
            larger = kept
            best = listed.best(tradeoff)
            ties = listed.errors + tradeoff * listed.costs <= best * (1 + 1e-13)
            assert not np.any(listed.prunings[ties] & ~kept)


def test_forests_that_are_only_leaves_or_free_are_solved():
    """Constant columns and free features must not divide by zero."""
    rows = np.zeros((2, 1), np.float32)
    leaves = PruningProgram.of(forest_of([[3, 1], [2, 2]]), items_of([(0,)], [1.0]), rows)
    assert FlowSolver(leaves).solve(0.1).objective == pytest.approx(3 / 8)
    free = PruningProgram.of(forest_of([(0, 0.5, [3, 1], [1, 4])]), items_of([()], []), rows)
    found = FlowSolver(free).solve(0.1)
    assert found.kept.all()
    assert found.gap == pytest.approx(0.0, abs=1e-9)


def test_the_gap_is_relative_and_never_negative(rng):
    """Rounding must not make a proof of less than nothing."""
    problem = random_problem(rng)
    program = PruningProgram.of(problem.forest, problem.items, problem.rows)
    kept = np.zeros(program.n_splits, np.bool_)
    objective = program.objective(kept, 1.0)
    assert Pruning.of(program, kept, 1.0, 0.9 * objective).gap == pytest.approx(0.1)
    assert Pruning.of(program, kept, 1.0, objective + 1e-15).gap == 0.0
    assert relative_gap(0.0, -1e-12, 1e-11) == 0.0
    assert relative_gap(0.0, -1e-12, 1e-13) == np.inf
    assert relative_gap(0.5, 0.25, 0.3) == 0.5  # a rounding that is seen is no proof


def test_ctrl_c_leaves_a_pruning_and_its_bound(rng, monkeypatch):
    """An hour's search would be lost, or what it leaves would be no pruning."""
    for listed in programs(rng, 8):
        program = listed.program
        for n_calls in range(4):
            advance = interrupted(n_calls + 1, solvers.advance_flow, after=True)
            monkeypatch.setattr(solvers, "advance_flow", advance)
            search = FlowSolver(program)
            found = search.solve(0.02)
            monkeypatch.undo()
            assert program.is_closed(found.kept)
            assert found.lower_bound <= listed.best(0.02) + 1e-12
            assert search.solve(0.03).objective == pytest.approx(listed.best(0.03), rel=2e-3)
