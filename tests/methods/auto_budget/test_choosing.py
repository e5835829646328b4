"""Which classifier is taken: the least error, unless chance alone may have made it the least."""

import numpy as np
import pytest

from bayescascade import CostWeightedLogisticClassifier, ModelFileError
from bayescascade.methods.auto_budget.choosing import (
    Candidate,
    Judged,
    best_within,
    judged as judged_of,
)
from bayescascade.methods.auto_budget.trying import Judging, Rows, Tried

N = 200


def judged(method, budget, n_wrong, of_method, cost=None, first=0):
    """Return one that gets `n_wrong` rows wrong, from the row `first` on."""
    wrong = np.zeros(N, bool)
    wrong[first : first + n_wrong] = True
    told = Candidate(method, budget, n_wrong / N, 0.0, budget if cost is None else cost)
    return Judged(told, None, wrong, of_method)


def chosen(found, budget):
    one = best_within(found, budget)
    return None if one is None else (one.candidate.method, one.candidate.budget)


def test_what_buys_nothing_errs_like_the_commonest_class() -> None:
    """Fits to folds may have bought; who is given this one gets the commonest class all the same.

    On hepatitis, time had ended a fit to all rows before it bought anything; by its folds it won.
    """
    X = np.random.default_rng(0).normal(size=(N, 3))
    y = X[:, 0] > 0.3
    fits = [CostWeightedLogisticClassifier(budget=b, random_state=0).fit(X, y) for b in (0.5, 1.0)]
    tried = Tried("l1", fits, np.zeros((2, N), np.bool_))
    nothing, bought = judged_of([tried], [0.5, 1.0], Judging(Rows(X, y), None, "rows"))
    assert fits[0].nothing_read_text
    assert nothing.candidate.error == y.mean()
    assert bought.candidate.error == 0.0
    assert bought.of_method == pytest.approx(y.mean() / 2)


def test_a_clear_winner_is_taken_though_its_method_is_weak_elsewhere() -> None:
    """Trees of linear classifiers win at a tenth of the costs of letter, and nowhere else."""
    found = [judged("weak", 1.0, 20, 0.5), judged("usual", 1.0, 60, 0.1, first=100)]
    assert chosen(found, 1.0) == ("weak", 1.0)


def test_a_lead_within_chance_is_none() -> None:
    """Of seven methods and 124 rows one leads by a row or two; on new rows it lost 3 points."""
    found = [judged("lucky", 1.0, 38, 0.3), judged("usual", 1.0, 40, 0.2, first=100)]
    assert chosen(found, 1.0) == ("usual", 1.0)


def test_the_same_rows_wrong_but_two_is_a_lead() -> None:
    """The difference counts, row by row: what both get wrong says nothing of it."""
    found = [judged("better", 1.0, 38, 0.3), judged("usual", 1.0, 40, 0.2)]
    assert chosen(found, 1.0) == ("better", 1.0)


def test_a_smaller_budget_is_enough_and_a_larger_one_is_not_spent() -> None:
    """Who may spend 3 may spend 1, and nobody spends 5 of 3."""
    found = [judged("a", b, n, 0.2) for b, n in ((1.0, 30), (3.0, 31), (5.0, 2))]
    assert chosen(found, 3.0) == ("a", 1.0)
    assert chosen(found, 5.0) == ("a", 5.0)
    assert chosen(found, 0.5) is None


def test_of_equals_the_cheapest_is_taken() -> None:
    """What costs more and errs as often is not worth its cost."""
    found = [judged("a", 2.0, 30, 0.2, cost=1.9), judged("b", 2.0, 30, 0.2, cost=1.1)]
    assert chosen(found, 2.0) == ("b", 2.0)


def test_the_rule_errs_less_on_new_rows_than_the_least_error() -> None:
    """Of methods that differ by nothing but chance at a budget, it keeps the one that is good.

    Simulated: one of six methods is better by two points at each of five budgets; 120 rows judge.
    """
    rng = np.random.default_rng(0)
    true = np.full((6, 5), 0.20)
    true[0] = 0.18
    rule, least = [], []
    for _ in range(300):
        wrong = rng.random((6, 5, 120)) < true[:, :, None]
        errors = wrong.mean(axis=2)
        found = [
            Judged(Candidate(str(m), 1.0, errors[m, 2], 0.0, 1.0), None, wrong[m, 2],
                   float(errors[m].mean()))
            for m in range(6)
        ]  # fmt: skip
        rule.append(true[int(best_within(found, 1.0).candidate.method), 2])
        least.append(true[errors[:, 2].argmin(), 2])
    difference = np.subtract(least, rule)
    assert difference.mean() > 3 * difference.std() / np.sqrt(300)


def test_forged_candidates_are_refused() -> None:
    """They are read from files."""
    record = Candidate("l1", 1.0, 0.2, 0.01, 0.9).to_dict()
    assert Candidate.from_dict(record).to_dict() == record
    with pytest.raises(ModelFileError, match="must name its method"):
        Candidate.from_dict({**record, "method": 3})
