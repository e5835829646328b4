"""The candidates: all of them, each once, in order, and none that too few rows satisfy."""

import pytest
from hypothesis import assume, given, settings, strategies as st

from bayescascade.data.column import Column
from bayescascade.data.schema import Schema, conditions_words
from bayescascade.data.table import Table
from bayescascade.methods.lists import antecedents
from bayescascade.methods.lists.antecedents import Condition, antecedent_words
from bayescascade.methods.lists.posterior import DensityListPosterior, LabelListPosterior
from tests import rules_reference as reference
from tests.methods.lists.problems import TARGET, Problem, small_problems


def plain(antecedents):
    """Return candidates in the words of the twin."""
    return [
        tuple(tuple(condition) for condition in antecedents[i]) for i in range(len(antecedents))
    ]


@settings(max_examples=20, deadline=None)
@given(problem=small_problems("density"))
def test_candidates_of_any_columns_are_those_of_brute_force(problem):
    """Nominal, ordinal and binned columns, with and without missing cells, of one level too."""
    antecedents = problem.posterior().antecedents
    expected = problem.record["candidates"]
    assert plain(antecedents) == expected
    assert antecedents.sizes.tolist() == [len(one) for one in expected]
    by_size = [0] * (problem.max_size + 1)
    for one in expected:
        by_size[len(one)] += 1
    assert antecedents.n_of_size.tolist() == by_size
    assert antecedents.schema.names == tuple(column.name for column in problem.columns)


@settings(max_examples=20, deadline=None)
@given(problem=small_problems("labels"), min_support=st.floats(0.0, 0.6))
def test_candidates_have_the_support_asked_for(problem, min_support):
    """Support is a share of the weight, not of the distinct rows."""
    record = problem.record
    assume(len(set(record["labels"])) > 1)
    every = reference.candidates(problem.described, problem.max_size)
    expected = reference.supported(every, record["rows"], record["weights"], min_support)
    assume(expected)
    assert plain(problem.posterior(min_support=min_support).antecedents) == expected


def weighted_table():
    """Return ten rows of two columns and a label whose shares are 0.9, 0.1 and 0.3, 0.7."""
    rows = [["a", "x", "no"], ["a", "y", "yes"], ["b", "y", "no"]]
    return Table.from_arrays(rows, names=["c0", "c1", TARGET], sample_weight=[3, 6, 1])


@pytest.mark.parametrize(
    ("min_support", "expected"),
    [
        (0.0, [(0, 0), (0, 1), (1, 0), (1, 1)]),
        (0.1, [(0, 0), (0, 1), (1, 0), (1, 1)]),
        (0.11, [(0, 0), (1, 0), (1, 1)]),
        (0.3, [(0, 0), (1, 0), (1, 1)]),
        (0.7, [(0, 0), (1, 1)]),
        (0.9, [(0, 0)]),
    ],
)
def test_support_is_reached_by_exactly_as_much(min_support, expected):
    """At least `min_support`: a tenth of ten rows is one row, whatever 0.1 is in binary."""
    posterior = LabelListPosterior(weighted_table(), TARGET, max_size=1, min_support=min_support)
    conditions = [one for (one,) in plain(posterior.antecedents)]
    assert conditions == [(column, code, code + 1) for column, code in expected]


def share_table(weight):
    """Return rows of total weight 100, of which those with "x" weigh so much."""
    rows = [["x", "yes"], ["y", "yes"], ["y", "no"]]
    weights = [weight, 50 - weight, 50]
    return Table.from_arrays(rows, names=["c0", TARGET], sample_weight=weights)


def test_support_is_not_missed_by_rounding(monkeypatch):
    """Seven rows of a hundred are 7 %, though 0.07 times 100 is 7.000000000000001."""

    def captured(weight):
        posterior = LabelListPosterior(share_table(weight), TARGET, max_size=1, min_support=0.07)
        return len(posterior.antecedents) == 2

    assert captured(7)
    assert not captured(6.9999)
    monkeypatch.setattr(antecedents, "_ROUNDING", 0.0)  # the twin that rounds against the user
    assert not captured(7)


def test_labels_are_no_condition():
    """A rule on the label itself would predict it perfectly."""
    posterior = LabelListPosterior(weighted_table(), "c1", max_size=2, min_support=0.0)
    assert posterior.schema.names == ("c0", TARGET)
    assert posterior.antecedents.schema.names == ("c0", TARGET)
    assert posterior.antecedents.n_of_size.tolist() == [0, 4, 4]


@pytest.mark.parametrize("index", [-1, 4])
def test_candidates_beyond_the_last_do_not_exist(index):
    """Entry -1 is "no rule" in traces, never the last candidate."""
    antecedents = LabelListPosterior(
        weighted_table(), TARGET, max_size=1, min_support=0.0
    ).antecedents
    with pytest.raises(IndexError, match=str(index)):
        _ = antecedents[index]


@pytest.mark.parametrize(
    ("bins", "words"),
    [
        ((0, 1), "visits is 0"),
        ((0, 2), "visits is at most 4"),
        ((1, 2), "visits is 1 to 4"),
        ((2, 3), "visits is 5"),
        ((1, 4), "visits is at least 1"),
        ((0, 4), "visits is not missing"),
        ((4, 5), "visits is missing"),
    ],
)
def test_whole_numbers_are_told_as_such(bins, words):
    """A count of 4.5 is no count."""
    column = Column("visits", "continuous", (), (-0.5, 0.5, 4.5, 5.5, 9.5), True, True)
    assert antecedent_words(Schema((column,)), (Condition(0, *bins),), is_open=True) == words


def test_words_that_join_are_quoted():
    """A level "red, blue" is not two levels, nor "x and sex is male" a second condition."""
    schema = Schema(
        (
            Column("hue", "nominal", ("black and white", "red", "red, blue")),
            Column("size", "ordinal", ("1 to 2", "3 to 4", "5 or more")),
            Column("pay and tips", "continuous", (), (0.0, 10.0, 20.0)),
        )
    )
    first = (Condition(0, 2, 3), Condition(1, 0, 2))
    assert antecedent_words(schema, first) == 'hue is "red, blue" and size is "1 to 2", "3 to 4"'
    second = (Condition(0, 1, 2), Condition(2, 0, 1))
    assert antecedent_words(schema, second) == 'hue is red and "pay and tips" is in [0, 10)'
    assert antecedent_words(schema, second[1:], is_open=True) == '"pay and tips" is below 10'
    known = {0: (0, 1), 1: (2,)}
    words = conditions_words(schema, known)
    assert words == 'hue is "black and white", red and size is "5 or more"'


def test_candidates_of_many_columns_are_complete():
    """More items than bits in a word, and thousands of candidates."""
    problem = Problem("wide", ("nominal",) * 40, (3,) * 40, 2, n_rows=60)
    antecedents = DensityListPosterior(problem.table, max_size=2).antecedents
    assert antecedents.n_of_size.tolist() == [0, 120, 40 * 39 // 2 * 9]
    assert plain(antecedents) == reference.candidates(problem.described, 2)
