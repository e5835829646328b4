"""Which classifier is taken: the least error, unless chance alone may have made it the least."""

import numpy as np
import pytest

from bayescascade import CostWeightedLogisticClassifier
from bayescascade.methods.budget.auto.splits import Sample, ValidationSplit
from bayescascade.methods.budget.auto.trying import (
    BudgetErrors,
    MethodScore,
    MethodTrials,
    ScoredClassifier,
    best_within,
    scored as judged_of,
)

N = 200
SPLIT = ValidationSplit(Sample(np.zeros((N, 1)), np.arange(N) % 2), None, "rows")


def scored(method, budget, n_wrong, of_method, cost=None, first=0):
    """Return one that gets `n_wrong` rows wrong, from the row `first` on."""
    wrong = np.zeros(N, bool)
    wrong[first : first + n_wrong] = True
    result = MethodScore(method, budget, n_wrong / N, 0.0, budget if cost is None else cost)
    return ScoredClassifier(result, None, wrong, of_method)


def chosen(found, budget):
    one = best_within(found, budget, SPLIT)
    return None if one is None else (one.candidate.method, one.candidate.budget)


def test_what_buys_nothing_errs_like_the_commonest_class():
    """Fits to folds may have bought; who is given this one gets the commonest class alone."""
    X = np.random.default_rng(0).normal(size=(N, 3))
    y = X[:, 0] > 0.3
    fits = [CostWeightedLogisticClassifier(budget=b, random_state=0).fit(X, y) for b in (0.5, 1.0)]
    tried = BudgetErrors("l1", fits, np.zeros((2, N), np.bool_))
    nothing, bought = judged_of([tried], [0.5, 1.0], ValidationSplit(Sample(X, y), None, "rows"))
    assert fits[0].nothing_read_text
    assert nothing.candidate.error == y.mean()
    assert bought.candidate.error == 0.0
    assert bought.mean_error == pytest.approx(y.mean() / 2)


@pytest.mark.parametrize(
    ("one", "other", "taken"),
    [
        (("weak", 1.0, 20, 0.5), ("usual", 1.0, 60, 0.1, None, 100), "weak"),
        (("lucky", 1.0, 38, 0.3), ("usual", 1.0, 40, 0.2, None, 100), "usual"),
        (("better", 1.0, 38, 0.3), ("usual", 1.0, 40, 0.2), "better"),
        (("lucky", 1.0, 36, 0.21), ("usual", 1.0, 40, 0.2, None, 100), "lucky"),
        (("first", 1.0, 30, 0.2), ("second", 1.0, 30, 0.2), "first"),
        (("dear", 1.0, 30, 0.2), ("cheap", 1.0, 30, 0.2, 0.5), "cheap"),
    ],
    ids=[
        "a clear winner", "a lead within chance", "the same rows wrong but two",
        "as good elsewhere", "equals", "as good but cheaper",
    ],
)  # fmt: skip
def test_a_method_is_taken_for_a_clear_lead_or_for_errors_at_all_budgets(one, other, taken):
    """Of seven methods and 124 rows one leads by a row or two; on new rows it lost 3 points."""
    assert chosen([scored(*one), scored(*other)], 1.0) == (taken, 1.0)


def test_a_smaller_budget_is_enough_and_a_larger_one_is_not_spent():
    """Who may spend 3 may spend 1, and nobody spends 5 of 3."""
    found = [scored("a", b, n, 0.2) for b, n in ((1.0, 30), (3.0, 31), (5.0, 2))]
    assert chosen(found, 3.0) == ("a", 1.0)
    assert chosen([*found, scored("a", 2.0, 30, 0.2, 0.4)], 3.0) == ("a", 2.0)  # as good, cheaper
    assert chosen(found, 5.0) == ("a", 5.0)
    assert chosen(found, 0.5) is None


def test_the_rule_errs_less_on_new_rows_than_the_least_error():
    """Simulated: one of six methods is better by four points at five budgets; 120 rows judge."""
    rng = np.random.default_rng(0)
    split = ValidationSplit(Sample(np.zeros((120, 1)), np.arange(120) % 2), None, "rows")
    rule, least = [], []
    for _ in range(300):
        true = np.full((6, 5), 0.20)
        true[rng.integers(6)] = 0.16
        wrong = rng.random((6, 5, 120)) < true[:, :, None]
        errors = wrong.mean(axis=2)
        found = [
            ScoredClassifier(MethodScore(str(m), 1.0, errors[m, 2], 0.0, 1.0), None, wrong[m, 2],
                   errors[m].mean())
            for m in range(6)
        ]  # fmt: skip
        rule.append(true[int(best_within(found, 1.0, split).candidate.method), 2])
        least.append(true[errors[:, 2].argmin(), 2])
    difference = np.subtract(least, rule)
    assert difference.mean() > 3 * difference.std() / np.sqrt(300)


def test_methods_behind_at_all_budgets_are_given_up():
    """On the rows judged so far: of the others nothing is known, which is no merit."""
    X = np.zeros((500, 1))
    y = np.arange(500) % 2
    split = ValidationSplit(Sample(X, y), None, "rows")
    judged = np.flatnonzero(split.is_judged(2))
    assert judged.size == N

    def errors(method, *n_wrong, first=0):
        wrong = np.zeros((2, 500), np.bool_)
        for place, number in enumerate(n_wrong):
            wrong[place, judged[first : first + number]] = True
        return BudgetErrors(method, (), wrong)

    found = [
        errors("at one", 40, 80), errors("at the other", 80, 40), errors("near", 41, 81, first=90),
        errors("behind", 70, 70),
    ]  # fmt: skip
    trials = MethodTrials(split, (1.0, 2.0), {}, 1, None, folds=range(2))
    assert trials._in_reach(found) == {"at one", "at the other", "near"}


def _settled(wrong, weights):
    """Return the method that is taken, those in reach, and what is shown of their differences."""
    y = np.arange(wrong.shape[2]) % 2
    split = ValidationSplit(Sample(np.zeros((y.size, 1)), y, weights), None, "rows")
    tried = [BudgetErrors(str(m), (), one) for m, one in enumerate(wrong)]
    kept = MethodTrials(split, (0.0, 1.0), {}, 1, None)._in_reach(tried)
    errors = np.array([split.errors(one) for one in wrong])
    found = [
        ScoredClassifier(MethodScore(str(m), 0.0, error[0], 0.0, 1.0), None, one[0], error.mean())
        for m, (one, error) in enumerate(zip(wrong, errors, strict=True))
    ]
    best = best_within(found, 1.0, split)
    above = [one.beside(best, 4, split).above_error for one in found]
    return best.candidate.method, kept, np.round(above, 9).tolist()


def test_a_weight_is_a_number_of_equal_rows_in_each_comparison():
    """Else a lead on heavy rows would be chance, and one on light rows would not."""
    rng, n_else = np.random.default_rng(0), 0
    for _ in range(30):
        wrong = rng.random((4, 2, 60)) < 0.25
        weights = rng.choice([1, 1, 1, 12], 60)
        repeated = _settled(np.repeat(wrong, weights, axis=2), None)
        assert _settled(wrong, weights.astype(float)) == repeated
        n_else += _settled(wrong, None)[:2] != repeated[:2]
    assert n_else > 3
