"""What is within a budget, and what is said where nothing is."""

import numpy as np
import pytest

from bayescascade import BudgetError
from bayescascade.costs.limits import is_within, too_low


def test_rounding_is_within_a_budget():
    """Who may pay 0.3 would be refused 0.1 and 0.2."""
    assert 0.1 + 0.2 > 0.3
    assert is_within(0.1 + 0.2, 0.3)
    assert not is_within(0.300001, 0.3)
    assert is_within(0.0, 0.0)
    assert not is_within(1e-12, 0.0)


def test_the_budget_that_an_error_names_is_feasible(rng):
    """A user who asks for the budget named would be refused again, had it been rounded down."""
    refused = 0
    for least in [1.0, 0.1, 1e-300, *np.exp(rng.uniform(-20, 20, 500))]:
        error = too_low(0.5, least, "the mean cost of a tree")
        assert isinstance(error, BudgetError)
        assert error.least == least
        named, what = str(error).removeprefix("budget must be >= ").split(", ", 1)
        assert what == "the mean cost of a tree, got 0.5"
        assert float(named) == pytest.approx(least, rel=1e-4)
        assert is_within(least, float(named))
        refused += not is_within(least, float(f"{least:g}"))
    assert refused > 100  # six digits, rounded as ever, would not do
