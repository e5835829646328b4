"""What releases cost together, against composition by brute force; budgets are never exceeded."""

import copy
import math
import os
import pickle
from threading import Thread
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm

from bayescascade import PrivacyError, PrivacyLedger
from bayescascade.base.errors import ParameterError
from bayescascade.privacy.accounting import Cost, concentrated_epsilon
from bayescascade.privacy.mechanisms import gaussian
from tests.privacy.noise_distributions import Told, hockey_stick


def ledger_of(costs, epsilon=1e3, delta=0.5, rule="basic"):
    ledger = PrivacyLedger(epsilon, delta, rule)
    for cost in costs:
        ledger.spend(cost, "a release")
    return ledger


def composed_responses(epsilons):
    """Return the laws of all outcomes of randomized responses, together, on two neighbors."""
    laws = [np.ones(1), np.ones(1)]
    for epsilon in epsilons:
        truth = 1.0 / (1.0 + math.exp(-epsilon))
        responses = np.array([truth, 1.0 - truth]), np.array([1.0 - truth, truth])
        laws = [np.multiply.outer(p, r).ravel() for p, r in zip(laws, responses, strict=True)]
    return laws


@pytest.mark.parametrize("epsilons", [[0.5] * 12, [0.1] * 14, [0.02, 0.9, 0.3, 0.3, 0.6]])
@pytest.mark.parametrize("rule", ["basic", "concentrated"])
def test_composed_responses_are_as_private_as_accounted(epsilons, rule):
    """The worst pure mechanisms, all outcomes summed; a third less epsilon would not be true."""
    laws = composed_responses(epsilons)
    for delta in (1e-2, 1e-5):
        spent = ledger_of(map(Cost, epsilons), delta=delta, rule=rule).spent
        assert hockey_stick(*laws, spent.epsilon) <= spent.delta + 1e-15
        assert spent.epsilon <= math.fsum(epsilons)
        assert hockey_stick(*laws, 0.4 * spent.epsilon) > delta


def test_composed_gaussians_are_as_private_as_accounted():
    """Together they are one of sqrt(k) times the sensitivity, whose delta is known."""
    cost = gaussian(0.0, 1.0, 0.2, 1e-7, Told()).cost
    spent = ledger_of([cost] * 50, delta=1e-6, rule="concentrated").spent
    apart = math.sqrt(2 * 50 * cost.rho)

    def delta_at(epsilon):
        above = norm.cdf(apart / 2 - epsilon / apart)
        return above - math.exp(epsilon) * norm.cdf(-apart / 2 - epsilon / apart)

    assert delta_at(spent.epsilon) < 1e-6 < delta_at(0.8 * spent.epsilon)
    assert spent.delta == 5e-7
    assert spent.epsilon < 0.25 * ledger_of([cost] * 50).spent.epsilon


@pytest.mark.parametrize("rho", [1e-6, 0.01, 1.0, 40.0])
@pytest.mark.parametrize("delta", [0.1, 1e-6, 1e-12])
def test_concentrated_privacy_is_converted_by_the_best_order(rho, delta):
    """Among very many; never more than by Bun and Steinke's formula."""
    order = 1.0 + np.exp(np.linspace(-12, 16, 2_000_001))
    surplus = math.log(1 / delta) + (order - 1) * np.log1p(-1 / order) - np.log(order)
    best = max(0.0, float(np.min(rho * order + surplus / (order - 1))))
    assert concentrated_epsilon(rho, delta) == pytest.approx(best, rel=1e-9, abs=1e-12)
    assert best <= rho + 2 * math.sqrt(rho * math.log(1 / delta))


def test_basic_composition_adds_up():
    ledger = ledger_of([Cost(0.1, 1e-7)] + [Cost(0.1)] * 8, 1.0, 1e-6)
    assert ledger.spent.epsilon == pytest.approx(0.9, rel=1e-15)
    assert ledger.spent.delta == 1e-7
    assert (ledger.remaining.epsilon, ledger.remaining.delta) == pytest.approx((0.1, 9e-7))
    assert Cost(0.3).rho == pytest.approx(0.045)
    assert Cost(0.3, 1e-9).rho is None


MANY = [Cost(0.02)] * 30 + [Cost(0.1, 1e-7, rho=3e-4), Cost(0.05, 1e-8)]


@pytest.mark.parametrize("rule", ["basic", "concentrated"])
@pytest.mark.parametrize("costs", [[], [Cost(0.25)], MANY])
def test_budgets_are_spent_to_the_end_and_not_beyond(rule, costs):
    """A refused release changes nothing; what remains can be spent, nothing after it."""
    ledger = ledger_of(costs, 1.0, 1e-6, rule)
    left, before = ledger.remaining, ledger.entries
    beyond = [
        Cost(1.0001 * left.epsilon, left.delta),
        Cost(left.epsilon, left.delta * 1.0001 + 1e-12),
    ]
    for cost in [*beyond, Cost(1.1)]:
        with pytest.raises(PrivacyError, match="cost must be within what remains, epsilon"):
            ledger.spend(cost, "too much")
    assert ledger.entries == before
    ledger.spend(left, "the rest")
    assert ledger.spent.epsilon == pytest.approx(1.0, rel=1e-9)
    with pytest.raises(PrivacyError):
        ledger.spend(Cost(1e-6), "a bit more")
    assert ledger.entries[-1].what == "the rest"


def test_pure_releases_are_added_where_that_is_less():
    """Under the concentrated rule, too; a delta ends that."""
    ledger = ledger_of([Cost(0.5), Cost(0.4)], 1.0, 1e-6, "concentrated")
    assert (ledger.spent.epsilon, ledger.spent.delta) == (0.9, 0.0)
    assert ledger.remaining == Cost(1.0 - 0.9)
    with pytest.raises(PrivacyError):
        ledger.spend(Cost(0.05, 1e-7), "an approximate one")


def test_threads_share_one_budget():
    ledger, refused = PrivacyLedger(1.0), []

    def spend():
        for _ in range(30):
            try:
                ledger.spend(Cost(0.01), "a hundredth")
            except PrivacyError:
                refused.append(1)

    threads = [Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ledger.entries) == 100
    assert len(refused) == 140


def test_no_copy_has_a_budget_of_its_own():
    ledger = PrivacyLedger(1.0)
    assert copy.deepcopy([ledger])[0] is ledger
    assert copy.copy(ledger) is ledger
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(ledger)


PRINTED = """\
privacy budget: epsilon 1, delta 1e-06   epsilons and deltas added

release         epsilon   delta
the mean age       0.25       0
its quartiles       0.5   1e-07

2 releases together: epsilon 0.75, delta 1e-07
one more release may cost epsilon 0.25, delta 9e-07"""


def test_ledgers_are_printed():
    ledger = PrivacyLedger(1.0, 1e-6)
    assert str(ledger).endswith("\nnothing was released")
    ledger.spend(Cost(0.25), "the mean age")
    ledger.spend(Cost(0.5, 1e-7), "its quartiles")
    assert str(ledger) == PRINTED
    assert repr(ledger) == (
        "<PrivacyLedger: epsilon 0.75, delta 1e-07 of epsilon 1, delta 1e-06 spent>"
    )
    assert "rho" in str(ledger_of([Cost(0.1)], rule="concentrated"))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: PrivacyLedger(0.0), "epsilon must be a finite number > 0, got 0.0"),
        (lambda: PrivacyLedger(1.0, 1.0), "delta must be .* got 1.0"),
        (lambda: PrivacyLedger(1.0, 0.1, "advanced"), "rule must be one of .* got 'advanced'"),
        (lambda: PrivacyLedger(1.0, rule="concentrated"), "delta must be > 0 with rule"),
        (lambda: Cost(-1.0), "epsilon must be .* got -1.0"),
        (lambda: Cost(1.0, 0.0, math.nan), "rho must be .* got nan"),
        (  # it would give budget back
            lambda: PrivacyLedger(1.0).spend(SimpleNamespace(epsilon=-1.0, delta=0.0, rho=0.0), ""),
            "cost must be a Cost, got SimpleNamespace",
        ),
    ],
)
def test_wrong_parameters_are_named(call, message):
    with pytest.raises(ParameterError, match=message):
        call()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_cannot_spend_the_budget_again():
    ledger = PrivacyLedger(1.0)
    child = os.fork()
    if not child:
        try:
            ledger.spend(Cost(0.5), "a release")
        except PrivacyError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    ledger.spend(Cost(0.5), "a release")
