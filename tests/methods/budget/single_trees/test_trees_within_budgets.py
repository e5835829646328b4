"""A budget chooses a tree by rows that it was not learned from, or buys nothing."""

import numpy as np
import pytest

from bayescascade import BudgetPruneClassifier, BudgetTreeClassifier
from bayescascade.base.errors import ParameterError
from bayescascade.methods.budget.forests.base import ForestClassifier
from bayescascade.methods.budget.single_trees import estimators
from tests.interrupts import interrupted
from tests.methods.budget.forests.test_buying_nothing import is_worth_it, table

QUICK = {"n_steps": 200, "n_chains": 1, "n_jobs": 1, "random_state": 0}


@pytest.fixture(autouse=True)
def two_tradeoffs(monkeypatch):
    """Each is six fits where there are no validation rows."""
    monkeypatch.setattr(estimators, "_NATS", (4.0, 100.0))


def tree(**more):
    return BudgetTreeClassifier(**{"budget": 2.0, **QUICK, **more})


def test_what_does_not_help_other_rows_is_not_bought(monkeypatch):
    """Rows that nothing tells were charged for errors, as by the broken twin they still are."""
    monkeypatch.setattr(estimators, "_NATS", (4.0,))
    X, y = table(0, is_learnable=True)
    X_val, y_val = table(1, is_learnable=False)
    fitted = tree().fit(X, y, X_val=X_val, y_val=y_val)
    assert not fitted.choice_.is_better
    assert is_worth_it(fitted, X_val, y_val)
    assert "not better than the most common class" in " ".join(str(fitted).split())
    monkeypatch.setattr(ForestClassifier, "_settle", lambda *_: None)
    assert not is_worth_it(tree().fit(X, y, X_val=X_val, y_val=y_val), X_val, y_val)


@pytest.mark.slow
@pytest.mark.parametrize("n_rows", [160, 1100])
def test_cross_validation_chooses_without_validation_rows(n_rows):
    """A tree has no bags: folds judge, of however many rows, and the print says so."""
    X, y = table(0, is_learnable=True, n_rows=n_rows)
    fitted = tree().fit(X, y)
    assert fitted.choice_.is_better
    assert fitted.choice_.rows == "rows in 5-fold cross-validation"
    assert 0.0 < fitted.validation_cost_ <= 2.0
    assert (fitted.predict(X) != y).mean() < 0.1
    assert "budget 2" in str(fitted)
    assert "better than buying nothing" in str(fitted)


@pytest.mark.slow
def test_another_budget_is_what_fitting_for_it_gives(monkeypatch):
    """The command learns once for all budgets: each must get its own tree."""
    monkeypatch.setattr(estimators, "_NATS", (4.0, 40.0, 1000.0))
    X, y = table(1, is_learnable=True)
    y = np.where(X[:, 1] > 1.0, "b", y)
    costs = [5.0, 1.0, 1.0, 1.0]
    fitted = tree(costs=costs, budget=6.0).fit(X, y)
    for budget in (0.0, 1.0, 6.0):
        alone = fitted if budget == 6.0 else tree(costs=costs, budget=budget).fit(X, y)
        again = fitted.within(budget)
        assert again.get_params() == alone.get_params()
        assert (again.tree_, again.tradeoff_) == (alone.tree_, alone.tradeoff_)
        assert again.choice_ == alone.choice_
        assert str(again) == str(alone)
        assert again.validation_cost_ <= budget
    assert fitted.budget == 6.0
    assert fitted.within(0.0).validation_cost_ < fitted.validation_cost_


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"budget": -1.0}, "budget must be a finite number >= 0, got -1.0"),
        ({"tradeoff": 2.0}, "tradeoff must be None with a budget, got 2.0"),
        ({"checkpoint": "some"}, "checkpoint must be None with a budget, got 'some'"),
    ],
)
def test_what_does_not_go_with_a_budget(given, message):
    """Neither is silently left aside."""
    with pytest.raises(ParameterError, match=message):
        tree(**given).fit(*table(0, is_learnable=True))


@pytest.mark.slow
def test_everything_that_is_learned_shares_the_time():
    """Twelve fits must not take twelve time limits."""
    X, y = table(0, is_learnable=True)
    fitted = tree(n_steps=10_000_000, time_limit=1.0).fit(X, y)
    assert fitted.summary_.stopped_after == 1.0


@pytest.mark.slow
def test_a_tree_to_prune_is_given_the_validation_rows():
    """They were taken for weights, which was an error."""
    X, y = table(0, is_learnable=True)
    pruned = BudgetPruneClassifier(BudgetTreeClassifier(**QUICK), tradeoff=0.01)
    pruned.fit(X[:80], y[:80], X[80:], y[80:])
    assert (pruned.predict(X) != y).mean() < 0.1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_chains_go_on_unless_their_length_or_a_budget_is_given(monkeypatch):
    """A fixed length is what it always was; trees of a budget are too many to go on."""
    monkeypatch.setattr(estimators, "DEFAULT_STEPS", 600)
    monkeypatch.setattr(estimators, "_STEPS", 600)
    monkeypatch.setattr(estimators, "_NATS", (4.0,))
    X, y = table(0, is_learnable=True, n_rows=24)

    def fitted(**given):
        more = {"budget": None, "n_steps": None, "n_chains": 4, "tradeoff": None, **given}
        return tree(**more).fit(X, y, X_val=X, y_val=y)

    assert fitted().summary_.n_rounds > 1
    fixed = fitted(n_steps=600)
    assert fixed.summary_.n_rounds == 1
    assert fitted(until="steps").run_ == fixed.run_
    assert fitted(budget=2.0).summary_.n_rounds == 1


def test_effort_lengthens_the_chains_of_a_budget(monkeypatch):
    """Efforts that took the same steps would be an option that does nothing."""
    monkeypatch.setattr(estimators, "_STEPS", 40)
    monkeypatch.setattr(estimators, "_NATS", (4.0,))
    X, y = table(0, is_learnable=True, n_rows=24)

    def proposed(effort):  # after the warm-up, a quarter
        fitted = tree(n_steps=None, effort=effort, search="metropolis").fit(X, y, X_val=X, y_val=y)
        return sum(counts.sum() for counts in fitted.run_.proposed.values())

    assert [proposed(effort) for effort in ("quick", "normal", "thorough")] == [8, 30, 150]


@pytest.mark.slow
def test_ctrl_c_leaves_the_trees_that_were_tried(monkeypatch):
    """What the first tradeoffs found is not lost, and not called finished."""
    X, y = table(0, is_learnable=True)
    sample = interrupted(8, BudgetTreeClassifier._sample)
    monkeypatch.setattr(BudgetTreeClassifier, "_sample", sample)
    fitted = tree().fit(X, y)
    assert fitted.choice_.is_better
    assert "interrupted: best found so far" in str(fitted)
    sample.n_calls, sample.at = 0, 1
    with pytest.raises(KeyboardInterrupt):
        tree().fit(X, y)
