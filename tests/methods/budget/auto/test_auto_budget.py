"""For a budget, whichever method suits the rows; in time, and whatever Ctrl-C leaves."""

import time

import numpy as np
import pytest

from bayescascade import (
    AutoBudgetClassifier,
    BudgetPruneClassifier,
    CostWeightedLogisticClassifier,
    ParameterError,
    SubmodularTreeClassifier,
)
from bayescascade.costs.choice import FEW_ROWS
from bayescascade.methods.budget.auto.splits import Sample, ValidationSplit
from bayescascade.methods.budget.auto.trying import EFFORTS, MethodTrials
from bayescascade.methods.budget.listed import BUDGET_LEARNERS, IN_TURN
from tests.interrupts import interrupted

QUICK = {"methods": ("l1", "astc"), "time_limit": None, "random_state": 0}


def rows(n=300):
    """Return rows whose label is that of an interval, which no line tells."""
    X = np.random.default_rng(0).normal(size=(n, 4))
    return X, np.abs(X[:, 2]) > 0.7


def linear(n):
    """Return rows whose label a line tells."""
    X, _ = rows(n)
    return X, X[:, 2] + np.random.default_rng(1).normal(size=n) > 0.0


@pytest.fixture(scope="module")
def model():
    return AutoBudgetClassifier(budget=1.0, **QUICK).fit(*rows())


def test_the_method_that_can_tell_is_chosen(model):
    """A linear score cannot, so that nobody should have to know which method to ask for."""
    assert (model.method_, type(model.model_)) == ("astc", SubmodularTreeClassifier)
    assert model.score(*rows()) > 0.9
    assert np.flatnonzero(model.feature_shares_).tolist() == [2]
    errors = model.candidates_.groupby("method")["error"].min()
    assert errors["astc"] == model.validation_error_ < errors["l1"]
    assert model.choice_ is not None
    assert model.choice_.rows == "rows in 5-fold cross-validation"


def test_rows_that_judge_are_not_learned_from():
    """Else what learns by heart would be chosen."""
    split = ValidationSplit.of(Sample(*rows(2 * FEW_ROWS)), None, np.random.default_rng(0))
    assert split.validation is not None
    learned, validation_rows = (set(map(tuple, part.X)) for part in split[:2])
    assert not learned & validation_rows
    assert len(learned) + len(validation_rows) == 2 * FEW_ROWS
    assert abs(len(validation_rows) - FEW_ROWS / 2) <= 1
    assert (
        ValidationSplit.of(Sample(*rows(FEW_ROWS - 1)), None, np.random.default_rng(0)).n_fits == 5
    )


@pytest.fixture
def fits(monkeypatch):
    """Return the list to which each fit of "l1" adds its budgets and numbers of rows."""
    fit, given = CostWeightedLogisticClassifier.fit_budgets, []

    def spy(self, budgets, *arguments):
        given.append([list(budgets), *(len(one) for one in arguments if one is not None)])
        return fit(self, budgets, *arguments)

    monkeypatch.setattr(CostWeightedLogisticClassifier, "fit_budgets", spy)
    return given


def test_validation_rows_choose(fits):
    """Those that are given, and each method is fitted once."""
    X, y = rows()
    model = AutoBudgetClassifier(budget=2.0, **QUICK).fit(X[:200], y[:200], X[200:], y[200:])
    assert fits == [[[0.5, 1.0, 2.0], 200, 200, 100, 100]]
    assert model.validation_error_ == pytest.approx(1 - model.score(X[200:], y[200:]))
    assert model.validation_cost_ == pytest.approx(model.acquisition_cost(X[200:]).mean())


def test_each_fold_is_judged_by_what_learned_from_the_others(fits):
    """Then all rows are learned from, once."""
    AutoBudgetClassifier(budget=1.0, **{**QUICK, "methods": ("l1",)}).fit(*rows(100))
    n_learned = [n_rows for _, n_rows, *_ in fits]
    assert sum(n_learned[:5]) == 4 * 100
    assert n_learned[5:] == [100]


def test_rows_that_judge_count_by_their_weights():
    """Else a method that suits rows of little weight would be chosen."""
    (X, y), weights = rows(100), np.arange(1.0, 101.0)
    split = ValidationSplit.of(Sample(X, y, weights), None, np.random.default_rng(0))
    assert split.errors(y[np.newaxis]) == pytest.approx([weights[y].sum() / weights.sum()])


def test_a_budget_that_buys_nothing_has_no_method():
    """All rows get the commonest class; it must not look learned."""
    model = AutoBudgetClassifier(budget=0.5, **QUICK).fit(*rows())
    assert model.nothing_read_text
    assert model.validation_cost_ == 0.0
    assert (model.predict(rows()[0]) == model.commonest_class_).all()
    assert "chosen: to buy nothing" in str(model)
    assert model.settings_text == "nothing is bought"


@pytest.mark.slow
def test_each_budget_has_its_own():
    """One trial is enough for all, and more budget never errs more on the rows that chose."""
    found = dict(AutoBudgetClassifier(**QUICK).fit_budgets([1.0, 4.0], *rows()))
    assert all(one.validation_cost_ <= budget for budget, one in found.items())
    assert [one.budget for one in found[4.0].path([1.0, 4.0])] == [1.0, 4.0]


@pytest.mark.slow
def test_what_time_does_not_allow_is_said():
    """Within a stated time, and by name; none of the five would be missed otherwise."""
    began = time.process_time()
    model = AutoBudgetClassifier(budget=1.0, time_limit=0.1, random_state=0).fit(*rows())
    assert time.process_time() - began < 8.0
    assert model.skipped_
    assert f"not tried because the time was up: {', '.join(model.skipped_)}" in " ".join(
        str(model).split()
    )
    assert "stopped at the time limit of 0.1 s" in " ".join(str(model).split())


def test_large_tables_leave_out_slow_methods_by_name(monkeypatch):
    """By the number of cells and not by a clock, so that a seed fixes the choice."""
    monkeypatch.setitem(EFFORTS, "normal", (IN_TURN, 0.0))
    model = AutoBudgetClassifier(budget=1.0, random_state=0).fit(*rows(100))
    assert (model.method_, model.skipped_) == ("l1", IN_TURN[1:])
    words = f"not tried because of the size of the table: {', '.join(IN_TURN[1:])}"
    assert words in " ".join(str(model).split())
    named = {name for names, _ in EFFORTS.values() for name in names}
    assert min(BUDGET_LEARNERS[name].price for name in named) > 0.0


@pytest.mark.parametrize(
    ("n_rows", "n_learned"), [(300, [240, 240, 300]), (2 * FEW_ROWS, [376, 1501])]
)
def test_quick_is_the_first_round_of_two_methods(n_rows, n_learned, fits):
    """Seconds are what it is asked for; its answer still learns from all rows."""
    given = {**QUICK, "methods": ("l1",), "effort": "quick"}
    model = AutoBudgetClassifier(budget=1.0, **given).fit(*linear(n_rows))
    assert [n for _, n, *_ in fits] == n_learned
    assert model.choice_ is not None
    assert [one.name for one in model.set_params(methods=None).tried_methods] == ["l1", "prune"]


def test_thorough_gives_no_method_up(monkeypatch):
    """One that is behind on two folds may win on all five."""
    monkeypatch.setattr("bayescascade.methods.budget.auto.trying._FEW_METHODS", 1)
    model = AutoBudgetClassifier(budget=1.0, effort="thorough", **QUICK).fit(*rows(100))
    assert (model.behind_, set(model.candidates_["method"])) == ((), {"l1", "astc"})
    every = [one.name for one in model.set_params(methods=None).tried_methods]
    assert every[: len(IN_TURN)] == list(IN_TURN)


@pytest.mark.slow
@pytest.mark.parametrize("n_rows", [300, 2 * FEW_ROWS])
def test_those_that_are_nearly_best_go_on_after_a_first_round(n_rows):
    """Fits of the others to all rows would be in vain; the print says who was given up."""
    given = {**QUICK, "methods": ("astc", "miser", "l1", "cstc"), "n_jobs": 1}
    model = AutoBudgetClassifier(budget=1.0, **given).fit(*rows(n_rows))
    assert set(model.behind_) == {"astc", "l1", "cstc"}
    assert set(model.candidates_["method"]) == {"miser"}
    assert f"given up early: {', '.join(model.behind_)}" in " ".join(str(model).split())


@pytest.mark.parametrize("n_rows", [100, 2 * FEW_ROWS])
def test_two_rounds_choose_what_one_round_would(n_rows, monkeypatch):
    """The folds of the first round are not fitted again, and none is forgotten."""
    given = {**QUICK, "methods": ("l1", "astc"), "n_jobs": 1}
    whole = AutoBudgetClassifier(budget=1.0, **given).fit(*rows(n_rows))
    monkeypatch.setattr("bayescascade.methods.budget.auto.trying._FEW_METHODS", 1)
    halved = AutoBudgetClassifier(budget=1.0, **given).fit(*rows(n_rows))
    assert halved.behind_ == ("l1",)
    assert halved.validation_error_ == whole.validation_error_
    assert (halved.predict(rows()[0]) == whole.predict(rows()[0])).all()


def test_the_print_says_how_near_the_others_were(model):
    """Else nobody knows that a simpler method would have been as good."""
    last = model._firsts["l1"]
    assert last.above == pytest.approx(last.error - model.validation_error_)
    text = str(model)
    assert "above the chosen" in text
    assert f"{100 * last.above:.1f} ± {100 * last.above_error:.1f} points" in text


def test_ctrl_c_keeps_what_was_tried(monkeypatch):
    """Minutes of fitting would be lost; what was cut short is not judged."""

    def stop(*_):
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(BudgetPruneClassifier, "fit_budgets", stop)
    auto = AutoBudgetClassifier(budget=1.0, **{**QUICK, "methods": ("astc", "prune", "l1")})
    model = auto.fit(*rows())
    assert model.is_interrupted_
    assert model.skipped_ == ("prune", "l1")
    assert set(model.candidates_["method"]) == {"astc"}
    with pytest.raises(KeyboardInterrupt):
        auto.set_params(methods=("prune", "astc")).fit(*rows())


@pytest.mark.parametrize(
    ("n_rows", "n_learned", "n_validation"),
    [(300, [240, 300], 60), (2 * FEW_ROWS, [376, 1501], 499)],
)
def test_ctrl_c_in_the_first_round_keeps_the_best(
    n_rows, n_learned, n_validation, fits, monkeypatch
):
    """It learns from all rows, and is judged by the rows of the first round alone."""
    monkeypatch.setattr(BudgetPruneClassifier, "fit_budgets", interrupted(1))
    monkeypatch.setattr("bayescascade.methods.budget.auto.trying._FEW_METHODS", 1)
    auto = AutoBudgetClassifier(budget=1.0, **{**QUICK, "methods": ("l1", "prune")})
    model = auto.fit(*linear(n_rows))
    assert (model.is_interrupted_, model.method_, model.skipped_) == (True, "l1", ("prune",))
    assert [n for _, n, *_ in fits] == n_learned
    assert model.choice_.n_rows == n_validation


def test_ctrl_c_in_the_last_fit_keeps_that_of_a_fold(fits, monkeypatch):
    """The choice is made, and would be lost."""
    monkeypatch.setattr(MethodTrials, "final", interrupted(1))
    auto = AutoBudgetClassifier(budget=1.0, **{**QUICK, "methods": ("l1",)})
    assert (auto.fit(*linear(100)).is_interrupted_, len(fits)) == (True, 5)


def test_progress_says_which_method_is_fitted():
    """Whoever waits a minute wants to see that something happens."""
    seen = []
    AutoBudgetClassifier(budget=1.0, **QUICK, progress=seen.append).fit(*rows())
    assert [report.phase for report in seen] == ["l1", "astc"]
    assert [report.done for report in seen] == [0, 1]
    assert seen[0].total == 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"methods": "prune"}, "methods must be some of forest, prune, .*, got 'prune'"),
        ({"methods": ("no such",)}, "methods must be some of forest, prune, "),
        ({"methods": ()}, "methods must be some of forest, prune, "),
        ({"costs": {2: float("nan")}}, "cost"),
        ({"effort": "slow"}, "effort must be .*quick.*normal.*thorough.*, got 'slow'"),
        ({"budget": -1.0}, "budget must be a finite number >= 0, got -1"),
    ],
)
def test_bad_parameters_are_named(given, message):
    with pytest.raises(ParameterError, match=message):
        AutoBudgetClassifier(**{**QUICK, **given}).fit(*rows())


def test_rows_to_validate_by_need_labels():
    X, y = rows()
    with pytest.raises(ParameterError, match="y_val must have the labels of X_val, got None"):
        AutoBudgetClassifier(**QUICK).fit(X, y, X)


def test_weights_leave_out_methods_that_take_none():
    """Forests count rows; to ignore the weights would learn from other rows than those given."""
    X, y = rows()
    weights = np.where(X[:, 2] > 0, 1.0, 2.0)
    auto = AutoBudgetClassifier(budget=1.0, **{**QUICK, "methods": ("prune", "l1")})
    model = auto.fit(X, y, sample_weight=weights)
    assert set(model.candidates_["method"]) == {"l1"}
    with pytest.raises(ParameterError, match="sample_weight must be None for these methods"):
        auto.set_params(methods=("prune",)).fit(X, y, sample_weight=weights)


@pytest.mark.parametrize("n_weighted", [4, 40])
def test_rows_without_weight_are_as_if_they_were_not_there(n_weighted):
    """In a fold of them alone nothing can be measured, and no fold is better known by them."""
    X, y = rows(60)
    counts = np.random.default_rng(2).permutation(60) < n_weighted
    y[np.flatnonzero(counts)[:4]] = [True, False, True, False]
    auto = AutoBudgetClassifier(budget=2.0, methods=("l1", "miser"), random_state=0)
    few = auto.fit(X[counts], y[counts], sample_weight=np.ones(n_weighted))
    expected = str(few), few.validation_error_, few.predict_proba(X)
    many = auto.fit(X, y, sample_weight=counts.astype(float))
    assert (str(many), many.validation_error_) == expected[:2]
    np.testing.assert_allclose(many.predict_proba(X), expected[2])
