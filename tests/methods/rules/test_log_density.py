"""Log densities of both kinds of list against twins, by hand, and under changes of the data."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings, strategies as st
from numpy.testing import assert_allclose

from bayescascade.data.schema import Schema
from bayescascade.data.table import Table
from bayescascade.methods.rules.models import MAX_RULES
from bayescascade.methods.rules.posterior import DensityListPosterior, LabelListPosterior
from bayescascade.methods.rules.rule_list import RuleList
from tests import rules_reference as reference
from tests.methods.rules.problems import (
    BINS,
    DENSITIES,
    LABELED,
    LABELS,
    PAIR,
    PARAMETERS,
    PROBLEMS,
    SUPPORTED,
    TARGET,
    THREE,
    WEIGHED,
    Problem,
    each,
    small_problems,
    unseen,
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


@settings(max_examples=60, deadline=None)
@given(problem=small_problems("density"), data=st.data())
def test_density_lists_on_any_columns_have_the_density_of_the_formula(problem, data):
    """Volumes, missing levels, fractional weights, lists that leave a part without cells."""
    posterior = problem.posterior()
    for _ in range(4):
        chosen = drawn_list(data, problem.record["candidates"])
        found, exact = posterior.log_density(RuleList(chosen)), problem.twin(chosen)
        assert found == exact or abs(found - exact) <= 1e-9 * (1 + abs(exact))


@settings(max_examples=60, deadline=None)
@given(problem=small_problems("labels"), data=st.data())
def test_label_lists_on_any_columns_have_the_density_of_the_formula(problem, data):
    """Two and three classes, rows of several words of bits, parts without rows."""
    assume(len(set(problem.record["labels"])) > 1)
    posterior = problem.posterior()
    for _ in range(4):
        chosen = drawn_list(data, problem.record["candidates"])
        found, exact = posterior.log_density(RuleList(chosen)), problem.twin(chosen)
        assert abs(found - exact) <= 1e-9 * (1 + abs(exact))


# -- the prior -------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [[1], [1, 1, 2], [1, 1, 2, 2, 3], [2, 2, 2], [1, 3, 3, 3]])
@pytest.mark.parametrize("rates", [(0.4, 2.5), (3.0, 1.0)])
def test_prior_of_the_twin_sums_to_one(sizes, rates):
    """As the thesis defines it, with exact normalizers: lengths, sizes left, candidates left."""
    every = reference.all_lists(sizes, reference.MAX_RULES)
    total = math.fsum(math.exp(reference.log_prior(one, sizes, *rates)) for one in every)
    assert total == pytest.approx(1.0, abs=1e-12)


@each(*LABELS)
def test_prior_of_label_lists_sums_to_one(problem):
    """Probabilities of models compare only if they are normalized."""
    posterior = problem.posterior()
    log_priors = [posterior.log_prior(rules) for rules in problem.lists]
    assert math.fsum(map(math.exp, log_priors)) == pytest.approx(1.0, abs=1e-12)


@each(*DENSITIES)
def test_prior_of_density_lists_is_that_of_lists_without_empty_parts(problem):
    """Nothing else differs: a list has the same prior whatever it is for, or none."""
    posterior = problem.posterior()
    found = problem.record["candidates"]
    sizes, rates = [len(one) for one in found], tuple(PARAMETERS.values())[:2]
    expected = [reference.log_prior(chosen, sizes, *rates) for chosen in problem.chosen]
    assert_allclose([posterior.log_prior(one) for one in problem.lists], expected, atol=1e-9)
    assert math.fsum(map(math.exp, expected)) < 1.0


def test_density_list_with_an_empty_part_is_impossible():
    """The cells of a part without cells have no density; never NaN, and no error."""
    posterior = PAIR.posterior()
    splitting = set(PAIR.chosen)
    others = [one for one in reference.all_lists(posterior.antecedents, 3) if one not in splitting]
    assert len(others) > 100
    for chosen in others:
        rules = RuleList(chosen)
        assert posterior.log_prior(rules) == -math.inf
        assert posterior.log_density(rules) == -math.inf
        assert not math.isnan(posterior.log_likelihood(rules))


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


@each(PAIR, LABELED)
def test_prior_and_likelihood_add_up(problem):
    """Traces report them apart; they must be the parts of what was sampled."""
    posterior = problem.posterior()
    for rules in problem.lists[::5]:
        total = posterior.log_prior(rules) + posterior.log_likelihood(rules)
        assert total == posterior.log_density(rules)


@each(unseen(PAIR), unseen(SUPPORTED), unseen(THREE))
def test_without_data_nothing_is_learned(problem):
    """The likelihood of no rows is one."""
    posterior = problem.posterior()
    assert_allclose([posterior.log_likelihood(one) for one in problem.lists], 0.0, atol=1e-9)


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


@each(*DENSITIES)
def test_counts_and_volumes_are_those_of_the_parts(problem):
    """They are printed beside each rule."""
    posterior, record = problem.posterior(), problem.record
    for chosen, state in list(zip(problem.chosen, problem.lists, strict=True))[::4]:
        rules = [record["candidates"][number] for number in chosen]
        counts = posterior.counts(state)
        assert counts.dtype == np.float64
        expected = reference.captured(rules, record["rows"], record["weights"])
        assert_allclose(counts, expected, rtol=1e-12, atol=1e-12)
        volumes = reference.first_volumes(rules, record["widths"])
        assert_allclose(posterior.log_volumes(state), np.log(volumes), atol=1e-12)


@each(*LABELS)
def test_counts_are_those_of_the_parts_and_classes(problem):
    """As above; a column for each class, in the order of the label's levels."""
    posterior, record = problem.posterior(), problem.record
    for chosen, state in list(zip(problem.chosen, problem.lists, strict=True))[::9]:
        rules = [record["candidates"][number] for number in chosen]
        expected = reference.captured_by_class(
            rules, record["rows"], record["weights"], record["labels"], record["n_classes"]
        )
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


# -- other forms of the same data ------------------------------------------------------------------


def frame_of(rng, n_rows):
    columns = {"c0": list("abc"), "c1": list("xy"), TARGET: ["no", "yes"]}
    return pd.DataFrame({name: rng.choice(values, n_rows) for name, values in columns.items()})


def both(table):
    yield DensityListPosterior(table, max_size=2)
    yield LabelListPosterior(table, TARGET, max_size=2, min_support=0.0)


LISTS = [RuleList(), RuleList((0,)), RuleList((4, 1)), RuleList((7, 0, 3))]


def test_shuffled_rows_change_nothing(rng):
    """The order of a file's rows is not evidence: not one bit may differ."""
    frame, weights = frame_of(rng, 60), rng.random(60)
    order = rng.permutation(60)
    one = Table.from_frame(frame, weights=weights)
    other = Table.from_frame(frame.iloc[order], weights=weights[order])
    for posterior, shuffled in zip(both(one), both(other), strict=True):
        for rules in LISTS:
            assert posterior.log_density(rules) == shuffled.log_density(rules)


def test_weights_stand_for_repeated_rows(rng):
    """Three equal rows, or one of weight 3."""
    frame = frame_of(rng, 12)
    times = rng.integers(1, 5, 12)
    one = Table.from_frame(frame.loc[np.repeat(np.arange(12), times)])
    other = Table.from_frame(frame, weights=times.astype(float))
    for posterior, weighted in zip(both(one), both(other), strict=True):
        for rules in LISTS:
            assert posterior.log_density(rules) == weighted.log_density(rules)


def test_renamed_labels_change_nothing(rng):
    """Whether a class is called "yes" or "1" is not evidence."""
    frame = frame_of(rng, 40)
    renamed = frame.replace({TARGET: {"no": "z", "yes": "a"}})
    one, other = (
        LabelListPosterior(Table.from_frame(one), TARGET, max_size=2, min_support=0.0)
        for one in (frame, renamed)
    )
    for rules in LISTS:
        assert one.log_density(rules) == pytest.approx(other.log_density(rules), abs=1e-9)
        assert_allclose(one.counts(rules), other.counts(rules)[:, ::-1])


@pytest.mark.parametrize(("factor", "shift"), [(2.5, 0.0), (1.0, -40.0), (0.01, 3.0)])
def test_scaled_and_shifted_columns_move_the_density_by_a_known_constant(factor, shift):
    """Kilograms or grams: the same lists are probable, densities differ by the unit."""
    edges = tuple(factor * edge + shift for edge in BINS.columns[0].edges)
    columns = (replace(BINS.columns[0], edges=edges), *BINS.columns[1:])
    moved = replace(BINS.table, schema=Schema(columns))
    other = DensityListPosterior(moved, **PARAMETERS, max_size=1)
    posterior = BINS.posterior()
    constant = -sum(BINS.record["weights"]) * math.log(factor)
    for rules in BINS.lists:
        expected = posterior.log_density(rules) + constant
        assert other.log_density(rules) == pytest.approx(expected, abs=1e-9)


def test_many_columns_do_not_overflow():
    """2^300 cells are no number, their logarithm is."""
    rows = np.tile(np.array([[0], [1]]), (1, 300))
    posterior = DensityListPosterior(Table.from_arrays(rows, nominal=list(range(300))), max_size=1)
    difference = posterior.log_likelihood(RuleList((0,))) - posterior.log_likelihood(RuleList())
    # one row in either half: G(2) / G(4) and half the volume, twice
    assert difference == pytest.approx(math.log(1 / 6) + 2 * math.log(2), abs=1e-9)
    assert posterior.log_volumes(RuleList((0, 2)))[-1] == pytest.approx(298 * math.log(2))


def test_fractional_weights_are_not_rounded():
    """Weights of survey rows are rarely whole numbers."""
    whole = replace(WEIGHED, fractional=False)
    difference = WEIGHED.posterior().log_density(RuleList((0, 1)))
    difference -= whole.posterior().log_density(RuleList((0, 1)))
    assert abs(difference) > 1e-3


def test_parameters_and_data_tell_posteriors_apart():
    """A checkpoint must never be resumed with another model's parameters."""
    settings_of = [{}, {"expected_rules": 9.0}, {"expected_size": 2.0}, {"concentration": 2.0}]
    posteriors = [PAIR.posterior(**changes) for changes in [*settings_of, {"max_size": 1}]]
    posteriors += [SUPPORTED.posterior(**changes) for changes in [*settings_of, {"max_size": 1}]]
    posteriors += [SUPPORTED.posterior(min_support=0.2), THREE.posterior(), BINS.posterior()]
    assert len({posterior.fingerprint() for posterior in posteriors}) == len(posteriors)
    assert PAIR.posterior().fingerprint() == posteriors[0].fingerprint()
