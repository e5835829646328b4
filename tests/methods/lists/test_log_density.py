"""Log densities of both kinds of list against twins, by hand, and under changes of the data."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from numpy.testing import assert_allclose

from bayescascade.methods.lists.models import MAX_RULES
from bayescascade.methods.lists.rule_list import RuleList
from tests import rules_reference as reference
from tests.methods.lists import problems as tiny
from tests.methods.lists.problems import Problem, each, small_problems


@each(*tiny.PROBLEMS)
def test_every_list_has_the_density_of_the_formula(problem):
    """Otherwise the list printed as the most probable one is not."""
    posterior = problem.posterior()
    densities = np.array([posterior.log_density(rules) for rules in problem.lists])
    assert_allclose(densities, problem.log_densities(), rtol=0, atol=1e-9)


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


@each(*tiny.DENSITIES)
def test_prior_of_density_lists_is_that_of_lists_without_empty_parts(problem):
    """Nothing else differs: a list has the same prior whatever it is for, or none."""
    posterior = problem.posterior()
    found = problem.record["candidates"]
    sizes, rates = [len(one) for one in found], tuple(tiny.PARAMETERS.values())[:2]
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


@each(*tiny.PROBLEMS)
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


@each(tiny.PAIR, tiny.BINS, tiny.SUPPORTED)
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


def test_parameters_and_data_tell_posteriors_apart():
    """A checkpoint must never be resumed with another model's parameters."""
    changes = [{}, {"expected_rules": 9.0}, {"expected_size": 2.0}, {"concentration": 2.0}]
    changes.append({"max_size": 1})
    of = (tiny.PAIR, tiny.SUPPORTED)
    posteriors = [problem.posterior(**changed) for problem in of for changed in changes]
    posteriors += [tiny.SUPPORTED.posterior(min_support=0.2)]
    posteriors += [tiny.THREE.posterior(), tiny.BINS.posterior()]
    assert len({posterior.fingerprint() for posterior in posteriors}) == len(posteriors)
    assert tiny.PAIR.posterior().fingerprint() == posteriors[0].fingerprint()
