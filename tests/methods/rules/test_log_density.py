"""Log densities of both kinds of list against twins, by hand, and under changes of the data."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from numpy.testing import assert_allclose

from bayescascade.data.table import Table
from bayescascade.methods.rules.models import MAX_RULES
from bayescascade.methods.rules.posterior import DensityListPosterior, LabelListPosterior
from bayescascade.methods.rules.rule_list import RuleList
from tests import rules_reference as reference
from tests.methods.rules.problems import (
    BINS,
    DENSITIES,
    PAIR,
    PARAMETERS,
    PROBLEMS,
    SUPPORTED,
    TARGET,
    THREE,
    Problem,
    each,
    small_problems,
)


@each(*PROBLEMS)
def test_every_list_has_the_density_of_the_formula(problem):
    """Otherwise the list printed as the most probable one is not."""
    posterior = problem.posterior()
    densities = np.array([posterior.log_density(rules) for rules in problem.lists])
    assert_allclose(densities, problem.log_densities(), rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", PARAMETERS)
@each(PAIR, SUPPORTED)
def test_the_twin_tells_one_parameter_from_another(problem, name):
    """The comparison above must be able to fail, for each parameter."""
    posterior = problem.posterior()
    right = np.array([posterior.log_density(rules) for rules in problem.lists])
    wrong = problem.log_densities(**{name: PARAMETERS[name] + 0.1})
    assert np.abs(right - wrong).max() > 1e-3


def drawn_list(data, found, max_rules=6):
    """Draw a list of candidates; they may cover everything."""
    size = len(found)
    return tuple(
        data.draw(st.lists(st.integers(0, size - 1), max_size=min(size, max_rules), unique=True))
    )


@pytest.mark.parametrize("kind", ["density", "labels"])
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_lists_on_any_columns_have_the_density_of_the_formula(kind, data):
    """Volumes, missing levels, fractional weights, two and three classes, parts without rows."""
    problem = data.draw(small_problems(kind))
    assume(kind == "density" or len(set(problem.record["labels"])) > 1)
    posterior = problem.posterior()
    for _ in range(4):
        chosen = drawn_list(data, problem.record["candidates"])
        found, exact = posterior.log_density(RuleList(chosen)), problem.twin(chosen)
        assert found == exact or abs(found - exact) <= 1e-9 * (1 + abs(exact))


# -- the prior -------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [[1], [1, 1, 2], [1, 1, 2, 2, 3], [2, 2, 2], [1, 3, 3, 3]])
@pytest.mark.parametrize("rates", [(0.4, 2.5), (3.0, 1.0)])
def test_prior_of_the_twin_sums_to_one(sizes, rates):
    """As the thesis defines it, with exact normalizers: lengths, sizes left, candidates left."""
    every = reference.all_lists(sizes, reference.MAX_RULES)
    total = math.fsum(math.exp(reference.log_prior(one, sizes, *rates)) for one in every)
    assert total == pytest.approx(1.0, abs=1e-12)


@each(*DENSITIES)
def test_prior_of_density_lists_is_that_of_lists_without_empty_parts(problem):
    """Nothing else differs: a list has the same prior whatever it is for, or none."""
    posterior = problem.posterior()
    found = problem.record["candidates"]
    sizes, rates = [len(one) for one in found], tuple(PARAMETERS.values())[:2]
    expected = [reference.log_prior(chosen, sizes, *rates) for chosen in problem.chosen]
    assert_allclose([posterior.log_prior(one) for one in problem.lists], expected, atol=1e-9)
    assert math.fsum(map(math.exp, expected)) < 1.0


def many_candidates() -> Problem:
    """Return a problem of 65 candidates."""
    return Problem("many", ("ordinal",), (11,), 1, n_classes=2, n_rows=40)


def test_no_list_is_longer_than_the_longest():
    """Beyond that length the prior is zero, as it says; up to it nothing is cut."""
    problem = many_candidates()
    posterior = problem.posterior(expected_rules=60.0)
    assert len(posterior.antecedents) == 65
    assert MAX_RULES == reference.MAX_RULES == 62
    longest = tuple(range(MAX_RULES))
    exact = problem.twin(longest, expected_rules=60.0)
    assert posterior.log_density(RuleList(longest)) == pytest.approx(exact, abs=1e-8)
    for n_rules in (63, 65):
        rules = RuleList(tuple(range(n_rules)))
        assert posterior.log_prior(rules) == -math.inf
        assert posterior.log_density(rules) == -math.inf


# -- by hand ---------------------------------------------------------------------------------------


def test_density_list_by_hand():
    """Three rows a, a, b of one column: no rule, and one."""
    table = Table.from_arrays([["a"], ["a"], ["b"]])
    posterior = DensityListPosterior(table, 2.0, 1.0, 1.0, max_size=1)
    # two candidates: lengths 0, 1, 2 with weights 1, 2, 2
    assert posterior.log_density(RuleList()) == pytest.approx(math.log(1 / 5) - 3 * math.log(2))
    # G(2) G(3) G(2) / G(5) = 2 / 24, volumes 1; one of two candidates
    expected = math.log(2 / 5) - math.log(2) + math.log(2 / 24)
    assert posterior.log_density(RuleList((0,))) == pytest.approx(expected)
    assert posterior.log_density(RuleList((0, 1))) == -math.inf


def test_label_list_by_hand():
    """Rows a/no, a/no, b/yes: the rule tells them apart, the else need not hold any."""
    table = Table.from_arrays([["a", "no"], ["a", "no"], ["b", "yes"]], names=["c0", TARGET])
    posterior = LabelListPosterior(table, TARGET, 2.0, 1.0, 1.0, max_size=1, min_support=0.0)
    # G(2) G(3) G(2) / G(5)
    assert posterior.log_density(RuleList()) == pytest.approx(math.log(1 / 5) + math.log(2 / 24))
    # G(2) G(3) G(1) / G(4) and G(2) G(1) G(2) / G(3)
    told = math.log(2 / 6) + math.log(1 / 2)
    assert posterior.log_density(RuleList((0,))) == pytest.approx(math.log(2 / 5 / 2) + told)
    assert posterior.log_density(RuleList((0, 1))) == pytest.approx(math.log(2 / 5 / 2) + told)


# -- statistics of the parts -----------------------------------------------------------------------


@each(*PROBLEMS)
def test_counts_and_volumes_are_those_of_the_parts(problem):
    """They are printed beside each rule; labels have a column for each class."""
    posterior, record = problem.posterior(), problem.record
    weighed = record["rows"], record["weights"]
    for chosen, state in list(zip(problem.chosen, problem.lists, strict=True))[::9]:
        rules = [record["candidates"][number] for number in chosen]
        if problem.n_classes:
            expected = reference.captured_by_class(
                rules, *weighed, record["labels"], problem.n_classes
            )
        else:
            expected = reference.captured(rules, *weighed)
            volumes = np.log(reference.first_volumes(rules, record["widths"]))
            assert_allclose(posterior.log_volumes(state), volumes, atol=1e-12)
        counts = posterior.counts(state)
        assert counts.dtype == np.float64
        assert_allclose(counts, expected, rtol=1e-12, atol=1e-12)


@each(PAIR, BINS, SUPPORTED)
def test_descriptions_are_read_off_the_list(problem):
    """They become the traces that are plotted."""
    posterior, found = problem.posterior(), problem.record["candidates"]
    for chosen, state in list(zip(problem.chosen, problem.lists, strict=True))[::7]:
        rules = [found[number] for number in chosen]
        assert posterior.describe(state) == {
            "n_rules": float(len(rules)),
            "n_conditions": float(sum(map(len, rules))),
            "n_features": float(len({j for rule in rules for j, _, _ in rule})),
            "first_rule": float(chosen[0]) if chosen else -1.0,
            "log_prior": posterior.log_prior(state),
        }


# -- extremes --------------------------------------------------------------------------------------


def test_many_columns_do_not_overflow():
    """2^300 cells are no number, their logarithm is."""
    rows = np.tile(np.array([[0], [1]]), (1, 300))
    posterior = DensityListPosterior(Table.from_arrays(rows, nominal=list(range(300))), max_size=1)
    difference = posterior.log_likelihood(RuleList((0,))) - posterior.log_likelihood(RuleList())
    # one row in either half: G(2) / G(4) and half the volume, twice
    assert difference == pytest.approx(math.log(1 / 6) + 2 * math.log(2), abs=1e-9)
    assert posterior.log_volumes(RuleList((0, 2)))[-1] == pytest.approx(298 * math.log(2))


def test_parameters_and_data_tell_posteriors_apart():
    """A checkpoint must never be resumed with another model's parameters."""
    settings_of = [{}, {"expected_rules": 9.0}, {"expected_size": 2.0}, {"concentration": 2.0}]
    posteriors = [PAIR.posterior(**changes) for changes in [*settings_of, {"max_size": 1}]]
    posteriors += [SUPPORTED.posterior(**changes) for changes in [*settings_of, {"max_size": 1}]]
    posteriors += [SUPPORTED.posterior(min_support=0.2), THREE.posterior(), BINS.posterior()]
    assert len({posterior.fingerprint() for posterior in posteriors}) == len(posteriors)
    assert PAIR.posterior().fingerprint() == posteriors[0].fingerprint()
