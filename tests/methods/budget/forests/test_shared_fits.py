"""What fits for several budgets have in common is done once, and changes nothing."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier

from bayescascade import BudgetedForestClassifier, BudgetPruneClassifier

BUDGETS = [1.0, 2.0, 4.0, 8.0]
GROWN = BudgetedForestClassifier(costs=[1, 2, 3, 2], max_trees=6, n_jobs=1, random_state=0)


def rows(n):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 4))
    return X, X[:, 0] + X[:, 2] * (X[:, 1] > 0) + 0.5 * rng.normal(size=n) > 0


@pytest.mark.parametrize("n_validation_rows", [pytest.param(0, marks=pytest.mark.slow), 50])
def test_each_budget_has_what_it_would_have_alone(n_validation_rows):
    """Else results would depend on which other budgets were asked for."""
    beside = rows(n_validation_rows) if n_validation_rows else ()
    for budget, found in GROWN.fit_budgets(BUDGETS, *rows(100), *beside):
        alone = clone(GROWN).set_params(budget=budget)
        assert found.to_record() == alone.fit(*rows(100), *beside).to_record()


def test_who_compares_with_nothing_elsewhere_gets_what_was_bought():
    """Cross-validation of the whole would otherwise be done twice, once in each of its folds."""
    X, y = rows(100)
    y = np.where(np.random.default_rng(1).random(100) < 0.4, y, False)  # of which X says little
    model = BudgetPruneClassifier(RandomForestClassifier(5, random_state=0), budget=1.0)
    assert clone(model).fit(X, y).nothing_read_text
    found = clone(model).uncompared().fit(X, y)
    assert not found.nothing_read_text
    assert found.choice_ is None
