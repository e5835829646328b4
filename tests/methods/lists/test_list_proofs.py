"""What is proved of lists holds to the last digit, on tables of any size: see `large`.

The twin adds up log densities to 40 digits. A proof that leaves out its rounding, a list lost by
it, or a claim that the list returned does not keep, must be seen.
"""

import math
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from scipy.special import gammaln

from bayescascade import RuleListClassifier
from bayescascade.base.errors import InternalError
from bayescascade.data.table import Table
from bayescascade.methods.lists import estimators, posterior as posterior_module
from bayescascade.methods.lists.exact import search as search_module
from bayescascade.methods.lists.exact.bounds import Prefix
from bayescascade.methods.lists.exact.points import SearchRounding
from bayescascade.methods.lists.exact.search import best_list
from bayescascade.methods.lists.excess import OPERATIONS, excess_sizes, log_excess
from bayescascade.methods.lists.kernels.parts import PartModel, part_value
from bayescascade.methods.lists.posterior import DensityListPosterior, LabelListPosterior
from bayescascade.model.guard import UNIT
from tests import exact_reference as exact
from tests.commands import run
from tests.documents import ROOT
from tests.methods.lists import large


def found(seeds, most=4, kind=None):
    """Return what is wrong with proofs of random problems, a third of them of densities."""
    flaws = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        posterior, words = large.draw_posterior(rng, seed % 3 == 0, most, kind)
        flaws += [f"{seed}: {words}: {flaw}" for flaw in large.flaws(posterior, rng)]
    return flaws


@pytest.mark.parametrize(
    ("seeds", "most"),
    [(range(6), 4), pytest.param(range(6, 40), 5, marks=pytest.mark.slow)],
    ids=["few", "many"],
)
def test_random_problems_are_certified(seeds, most):
    """Whatever the prior favors, the weights are, and wherever the search starts."""
    assert found(seeds, most) == []


@pytest.mark.slow
def test_idle_rules_left_out_are_seen(rng, monkeypatch):
    """The broken twin: rules that capture nothing are not followed, where the prior wants many."""
    posterior = pure_labels(5.0, expected_rules=500.0)
    assert list(large.flaws(posterior, rng)) == []
    monkeypatch.setattr(Prefix, "idle_rules", lambda _: [])
    flaws = [flaw for _ in range(8) for flaw in large.flaws(posterior, rng)]
    assert any("short of the best" in flaw for flaw in flaws)


def test_roundings_left_out_are_seen(monkeypatch):
    """The broken twin: rounding is taken for nothing, by the search and by the posteriors."""
    exactly = SearchRounding.of

    def none(*given):
        return SearchRounding(0.0, exactly(*given).is_whole)

    monkeypatch.setattr(SearchRounding, "of", none)
    for kind in (DensityListPosterior, LabelListPosterior):
        monkeypatch.setattr(kind, "rounding", lambda *_: 0.0)
    with pytest.raises(InternalError, match="Nothing is certified; please report it"):
        found(range(6))


def plain_log_likelihood(counts, alpha):
    """Return it as differences of log gammas that are large."""
    n_classes = counts.shape[1]
    value = counts.shape[0] * (gammaln(n_classes * alpha) - n_classes * gammaln(alpha))
    value += gammaln(counts + alpha).sum() - gammaln(counts.sum(axis=1) + n_classes * alpha).sum()
    return float(value)


@pytest.mark.slow
def test_differences_of_large_log_gammas_are_seen(rng, monkeypatch):
    """The broken twin: the last digit of the log gamma of a billion rows is 4e-6 nats."""
    posterior = pure_labels(1e9)
    assert list(large.flaws(posterior, rng)) == []
    monkeypatch.setattr(posterior_module, "label_log_likelihood", plain_log_likelihood)
    flaws = list(large.flaws(posterior, rng))
    assert any("is worth" in flaw for flaw in flaws)


def test_a_list_that_does_not_keep_its_claim_is_not_certified(monkeypatch):
    """Whatever is wrong with a search, no page may call its list exact; a command says one line."""
    note = search_module._ListSearch._note

    def overstate(self, log_density, rules):
        note(self, log_density + 1e-6, rules)

    posterior, _ = large.draw_posterior(np.random.default_rng(5), False, 4, "rows")
    assert best_list(posterior).state.rules
    monkeypatch.setattr(search_module._ListSearch, "_note", overstate)
    with pytest.raises(InternalError, match=r"a search found .* but its result is worth"):
        best_list(posterior)
    monkeypatch.setattr(estimators, "_OF_SUM", 0.0)  # no sum over all lists
    rows = ("fit", ROOT / "data" / "titanic.csv", "--columns", "sex,survived")
    found = run(*rows, "--model", "rules", "--search", "exact", "--steps", 100)
    assert (found.exit_code, found.stdout) == (2, "")
    (line,) = found.stderr.splitlines()
    assert line.startswith("error: a search found ")
    assert "please report it" in line


def pure_labels(weight, **settings):
    """Return a posterior of two nearly pure halves of so much weight, and a copied column."""
    frame = pd.DataFrame({"a": list("uuvv"), "b": list("uuvv"), "label": list("ynyn")})
    table = Table.from_frame(frame, weights=[weight, 1.0, 1.0, weight])
    return LabelListPosterior(table, "label", max_size=1, min_support=0.0, **settings)


@pytest.mark.parametrize("weight", [1e3, 1e9])
def test_rounding_of_nearly_pure_parts_does_not_grow_with_the_rows(weight):
    """A part's term is a few nats, though its log gammas are 1e10 and more."""
    posterior = pure_labels(weight)
    proof = best_list(posterior)
    assert proof.is_optimal
    assert proof.gap == 0.0
    assert proof.upper_bound == proof.log_density + proof.rounding
    assert posterior.rounding(proof.state) < 1e-9
    truth = float(large.ExactTwin(posterior).log_density(proof.state.rules))
    assert proof.log_density == pytest.approx(truth, abs=posterior.rounding(proof.state))


def test_a_rounding_that_is_seen_is_no_proof():
    """Of 1e18 impure rows log densities have no decimals: the page must not say exact."""
    frame = pd.DataFrame({"a": list("uuvvww"), "label": list("yzyzyz")})
    weights = np.array([5.5, 3.0, 2.0, 7.0, 4.0, 4.2])
    fit = {"search": "exact", "n_steps": 200, "random_state": 0}
    rows = frame[["a"]], frame["label"]
    model = RuleListClassifier(**fit).fit(*rows, sample_weight=1e17 * weights)
    assert model.exact_.is_optimal
    gap = model.summary_.certificate.gap
    assert gap == model.exact_.gap >= model.exact_.rounding
    assert gap > 0.005
    text = " ".join(str(model).split())
    assert "exact:" not in text
    assert f"no list is more probable by more than {gap:,.2f} nats" in text
    sure = RuleListClassifier(**fit).fit(*rows, sample_weight=weights)
    assert sure.summary_.certificate.gap == 0.0
    assert "exact: no list is more probable" in str(sure)


@pytest.mark.slow
def test_annealing_finds_nothing_better():
    """The other search, on tables that are not enumerated: copied columns, real weights."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        frame = pd.DataFrame(rng.integers(3, size=(300, 4)), columns=list("abcd"))
        frame["copy"] = frame["a"]
        frame["label"] = (frame["a"] + (rng.random(300) < 0.2)) % 3
        kind = ("many rows", "mixed", "real", "heavy")[seed]
        table = Table.from_frame(
            frame, weights=large.draw_weights(rng, 300, kind), nominal=list(frame)
        )
        model = LabelListPosterior(table, "label", max_size=1, min_support=0.01)
        proof = best_list(model, max_visited=2000)
        for _ in range(5):
            state = model.initial_state(rng)
            for beta in (0.01, 0.1, 1.0, 100.0):
                _, steps = model.advance(rng, state, 4000, beta)
                state = steps.best_state
            assert model.log_density(state) <= proof.upper_bound


def test_excesses_are_off_by_their_rounding_at_most(rng):
    """In NumPy and compiled, from 1e-8 to 1e18; the broken twin subtracts log gammas."""
    worst = {"numpy": 0.0, "compiled": 0.0, "plain": 0.0}
    for number in range(600):
        weight, alpha = 10.0 ** rng.uniform(-8, 18), 10.0 ** rng.uniform(-8, 10)
        if number % 3 == 0:
            weight, alpha = rng.uniform(0.0, 20.0), rng.uniform(10.0, 20.0)
        truth = exact.excess(Decimal(weight), Decimal(alpha))
        others = {"numpy": log_excess(weight, alpha), "compiled": compiled_excess(weight, alpha)}
        others["plain"] = gammaln(weight + alpha) - gammaln(alpha) - weight * math.log(weight)
        others["plain"] += weight
        size = UNIT * float(excess_sizes(weight, alpha))
        for name, value in others.items():
            worst[name] = max(worst[name], abs(exact.off(value, truth)) / size)
    assert worst["numpy"] <= OPERATIONS
    assert worst["compiled"] <= OPERATIONS
    assert worst["plain"] > 100 * OPERATIONS


def compiled_excess(weight, alpha):
    """Return D(n, a) as the search has it: of one class, of which there is no spread."""
    alphas = alpha * np.array([1.0, 1.0, 1.0])
    # a density's part of volume 1 and all the weight: D + n (ln 1 - ln 1)
    model = PartModel(0, 1, weight, False, alphas, np.empty((3, 0)))
    return part_value(model, np.array([weight, 1.0, 0.0]))
