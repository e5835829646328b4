"""Prunings within budgets, against all prunings that there are."""

import numpy as np
import pytest

from bayescascade.methods.prunings.frontier import Frontier
from tests.methods.prunings.forests import programs


def test_budgets_are_kept_and_bounds_hold(rng: np.random.Generator) -> None:
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


def test_memory_of_corners_changes_nothing(rng: np.random.Generator) -> None:
    """A path of budgets would depend on their order."""
    for program, _, _, costs, feature in programs(rng, 4):
        most = costs.max()
        search = Frontier(program, feature)
        for share in (0.9, 0.3, 0.6, 0.1):
            alone = Frontier(program, feature).within(share * most)
            found = search.within(share * most)
            assert program.cost(found.kept) == pytest.approx(program.cost(alone.kept))
            assert program.error(found.kept) == pytest.approx(program.error(alone.kept))


def test_filling_is_judged_by_the_error_given(rng: np.random.Generator) -> None:
    """Labels of validation rows would be asked for and not used."""
    n_judged = 0
    for program, *_, feature in programs(rng, 6):
        judged: list[np.ndarray] = []

        def error_of(kept: np.ndarray, judged: list[np.ndarray] = judged) -> float:
            judged.append(kept)
            return float(len(judged))

        full = program.cost(np.ones(program.n_splits, np.bool_))
        found = Frontier(program, feature, error_of).within(0.6 * full)
        if judged:
            np.testing.assert_array_equal(found.kept, judged[0])
        n_judged += len(judged) > 1
    assert n_judged


def test_the_program_between_two_prunings_is_the_difference(rng: np.random.Generator) -> None:
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
