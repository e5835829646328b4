"""Prunings within budgets, against all prunings that there are."""

from dataclasses import replace

import numpy as np
import pytest

from bayescascade.methods.budget.pruning.solvers import FlowSolver, Frontier, remove_features
from tests.methods.budget.pruning.forests import programs
from tests.methods.budget.pruning.problems import DEEP, PAIR, THREE, PruningProblem, each


def test_budgets_are_kept_and_bounds_hold(rng):
    """A pruning beyond its budget, or a bound that some pruning beats, would be returned."""
    n_best = 0
    for program, _, errors, costs, feature in programs(rng, 10):
        search = Frontier(program, feature)
        for budget in np.quantile(costs, [0, 0.2, 0.5, 0.8, 1.0]):
            found = search.within(float(budget))
            assert program.is_closed(found.kept)
            assert program.cost(found.kept) <= budget * (1 + 1e-8)
            assert found.lower_bound <= (errors + found.tradeoff * costs).min() + 1e-12
            # the corner within the budget is never better
            at_tradeoff = errors + found.tradeoff * costs
            corners = at_tradeoff <= at_tradeoff.min() + 1e-12
            assert np.any(costs[corners] <= budget * (1 + 1e-8))
            within = corners & (costs <= budget * (1 + 1e-8))
            assert program.error(found.kept) <= errors[within].min() + 1e-12
            best = errors[costs <= budget * (1 + 1e-8)].min()
            n_best += program.error(found.kept) <= best + 1e-12
    assert n_best > 25  # of 50; it is a heuristic


def test_what_solutions_leave_open_is_in_the_rounding(monkeypatch, rng):
    """Else a pruning between corners that are not quite proved would be called best."""
    solve, n_between = FlowSolver.solve, 0

    def loose(solver, tradeoff):
        found = solve(solver, tradeoff)
        return replace(found, lower_bound=found.lower_bound - 0.01, rounding=0.1)

    for program, _, _, costs, feature in programs(rng, 6):
        budget = float(np.quantile(costs, 0.3))
        exact = Frontier(program, feature).within(budget)
        assert exact.rounding < 1e-9
        with monkeypatch.context() as patch:
            patch.setattr(FlowSolver, "solve", loose)
            found = Frontier(program, feature).within(budget)
        if found.tradeoff > 0.0:  # what the last leaves open, and the corners at both ends
            assert found.rounding >= 2 * (0.1 + 2 * 0.01) - 1e-9
            n_between += 1
    assert n_between > 2


def test_memory_of_corners_changes_nothing(rng):
    """A path of budgets would depend on their order."""
    for program, _, _, costs, feature in programs(rng, 4):
        most = costs.max()
        search = Frontier(program, feature)
        for share in (0.9, 0.3, 0.6, 0.1):
            alone = Frontier(program, feature).within(share * most)
            found = search.within(share * most)
            assert program.cost(found.kept) == pytest.approx(program.cost(alone.kept))
            assert program.error(found.kept) == pytest.approx(program.error(alone.kept))


def test_filling_is_judged_by_the_error_given(rng):
    """Labels of validation rows would be asked for and not used."""
    n_judged = 0
    for program, *_, feature in programs(rng, 6):
        judged = []

        def error_of(kept, judged=judged):
            judged.append(kept)
            return float(len(judged))

        full = program.cost(np.ones(program.n_splits, np.bool_))
        found = Frontier(program, feature, error_of).within(0.6 * full)
        if judged:
            np.testing.assert_array_equal(found.kept, judged[0])
        n_judged += len(judged) > 1
    assert n_judged


def test_the_program_between_two_prunings_is_the_difference(rng):
    """Costs already paid must not be paid twice, and none that is new be free."""
    for program, prunings, *_ in programs(rng, 5):
        for _ in range(20):
            lower, middle, upper = prunings[rng.integers(len(prunings), size=3)]
            lower, upper = lower & middle, upper | middle
            inner, splits = program.between(lower, upper)
            assert inner.is_closed(middle[splits])
            kept = middle[splits]
            assert inner.error(kept) == pytest.approx(program.error(middle))
            expected = program.cost(middle) - program.cost(lower)
            assert inner.cost(kept) == pytest.approx(expected, abs=1e-12)


WIDE = PruningProblem("wide", ((-1, 0, 1, 1, 0, 4, 5),) * 4, n_uses=30, seed=5)


def features_of(problem):
    return np.random.default_rng(problem.seed).integers(0, 4, len(problem.parent))


def without(problem, kept, features, gone):
    """Return the kept splits that neither are on a feature nor below one that is."""
    left = set()
    for split in sorted(kept):
        above = problem.parent[split]
        if features[split] != gone and (above < 0 or above in left):
            left.add(split)
    return frozenset(left)


@each(PAIR, DEEP, THREE, WIDE)
def test_each_step_removes_the_feature_that_leaves_least(problem):
    """The twin tries every feature, and adds up the whole objective each time."""
    features = features_of(problem)
    steps = list(remove_features(problem.program, features, problem.tradeoff))
    kept = frozenset(range(len(features)))
    assert steps[0][0] == -1
    assert steps[0][1].all()
    for feature, left in steps[1:]:
        objectives = {
            gone: problem.objective(without(problem, kept, features, gone))
            for gone in {features[split] for split in kept}
        }
        assert objectives[feature] == pytest.approx(min(objectives.values()), abs=1e-12)
        kept = without(problem, kept, features, feature)
        assert frozenset(np.flatnonzero(left).tolist()) == kept
    assert not kept
