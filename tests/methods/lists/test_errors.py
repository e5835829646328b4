"""What rule lists refuse: each message names what, the rule it breaks, and the value."""

import math

import numpy as np
import pandas as pd
import pytest

from bayescascade import DensityRuleList, RuleListClassifier
from bayescascade.base.errors import DataError, ParameterError
from bayescascade.data.column import Column
from bayescascade.data.schema import Schema
from bayescascade.data.table import Table
from bayescascade.methods.lists.posterior import DensityListPosterior, LabelListPosterior
from bayescascade.methods.lists.rule_list import RuleList
from tests.methods.lists.fits import QUICK, fates, people
from tests.methods.lists.problems import PAIR, SUPPORTED, TARGET, each


def frame_of(n_rows=40, n_columns=2, n_levels=2):
    """Return columns c0, c1, ... that take all their levels, and a label that alternates."""
    codes = {
        f"c{j}": [f"v{i // (j + 1) % n_levels}" for i in range(n_rows)] for j in range(n_columns)
    }
    return pd.DataFrame({**codes, TARGET: ["no", "yes"] * (n_rows // 2)})


def labeled(**settings):
    return LabelListPosterior(Table.from_frame(frame_of()), TARGET, **settings)


def unlabeled(**settings):
    return DensityListPosterior(Table.from_frame(frame_of().drop(columns=TARGET)), **settings)


WRONG = [0, math.nan, "2", [1.0]]
MEAN = "a finite number > 0 and <= 10000"  # there is no list of 1e300 rules to expect


@pytest.mark.parametrize(
    ("posterior", "name", "values", "rule"),
    [
        *((kind, name, values, rule) for kind in (labeled, unlabeled) for name, values, rule in [
            ("expected_rules", [*WRONG, 10_000.1], MEAN),
            ("expected_size", [*WRONG, 10_000.1], MEAN),
            ("concentration", WRONG, "a finite number > 0"),
            ("memory_limit", WRONG, "a finite number > 0"),
            ("max_size", [0, 1.0, None], "an integer >= 1"),
        ]),
        (labeled, "min_support", [-0.1, 1.0, "0.1"], "a finite number >= 0 and < 1"),
    ],
)  # fmt: skip
def test_numbers_are_checked(posterior, name, values, rule):
    """A negative mean would give a NaN log posterior much later."""
    for value in values:
        with pytest.raises(ParameterError, match=f"^{name} must be {rule}, got"):
            posterior(**{name: value})
    if rule == MEAN:
        posterior(**{name: 10_000})


@pytest.mark.parametrize("posterior", [labeled, unlabeled])
@pytest.mark.parametrize("value", [3, 10**9])
def test_rules_have_no_more_conditions_than_columns(posterior, value):
    """Whoever has one column need not know of `max_size`; the label is no column of a rule."""
    longest, capped = posterior(max_size=2), posterior(max_size=value)
    assert capped.antecedents.n_of_size.tolist() == longest.antecedents.n_of_size.tolist()
    assert capped.antecedents.max_size == 2
    state = capped.initial_state(np.random.default_rng(1))
    assert capped.log_density(state) == longest.log_density(state)


@pytest.mark.parametrize("min_support", [0.51, 0.9])
def test_support_that_nothing_reaches_is_an_error(min_support):
    """The message says how much would be reached."""
    with pytest.raises(ParameterError, match=rf"^min_support must be .*0\.5.*, got {min_support}"):
        labeled(min_support=min_support)
    assert len(labeled(min_support=0.5).antecedents) == 4


def test_candidates_beyond_the_memory_name_what_to_change():
    """A fit that takes all memory takes the machine with it; more of it may be allowed."""
    table, many = Table.from_frame(frame_of(n_columns=20)), {"max_size": 3, "min_support": 0.01}
    with pytest.raises(ParameterError, match="max_size") as caught:
        LabelListPosterior(table, TARGET, **many, memory_limit=1e-4)
    for name in ("max_size", "min_support", "bins", "memory_limit"):
        assert name in str(caught.value)
    assert len(LabelListPosterior(table, TARGET, **many).antecedents) > 1000
    rows = np.arange(10_000)[:, np.newaxis] // 5 ** np.arange(6) % 5
    ordered = Table.from_arrays(rows, ordinal=list(range(6)))
    with pytest.raises(ParameterError, match="max_size") as caught:
        DensityListPosterior(ordered, max_size=6, memory_limit=0.01)
    for name in ("max_size", "bins", "memory_limit"):
        assert name in str(caught.value)
    assert "min_support" not in str(caught.value)  # density lists have none


def test_candidates_beyond_the_memory_are_refused_without_listing_them():
    """500 bins make 124,749 ranges; three such columns have more than 10^15 conjunctions."""
    values = np.arange(1000.0)
    columns = {f"x{j}": values for j in range(3)}
    table = Table.from_frame(pd.DataFrame(columns), continuous=dict.fromkeys(columns, 500))
    with pytest.raises(ParameterError, match="bins"):
        DensityListPosterior(table, max_size=3)


def unusable():
    """Yield tables without labels that can be learned, the labels' name, and words of the error."""
    for target in ("lable", ""):  # names are easily mistyped: those there are, are listed
        yield Table.from_frame(frame_of()), target, f'"{target}".*c0, c1, {TARGET}'
    frame = frame_of().assign(x=np.arange(40.0))
    yield Table.from_frame(frame, continuous={"x": 4}), "x", r'labels.*continuous.*"x"'
    frame.loc[3, TARGET] = None
    gaps = Table.from_frame(frame, continuous={"x": 4}, missing="level")
    yield gaps, TARGET, f'labels.*missing.*"{TARGET}"'
    only = frame_of().assign(**{TARGET: "yes"})
    yield Table.from_frame(only), TARGET, r'two classes.*"yes"'
    declared = Table.from_frame(only, nominal={TARGET: ["no", "yes"]})
    yield declared, TARGET, r'two classes.*"yes"'  # of which one has no rows
    yield Table.from_frame(frame_of()[[TARGET]]), TARGET, "column"


@pytest.mark.parametrize(("table", "target", "words"), list(unusable()))
def test_labels_that_cannot_be_learned_are_named(table, target, words):
    """Numbers cut into bins are no classes, and of one class there is nothing to tell."""
    with pytest.raises((DataError, ParameterError), match=words):
        LabelListPosterior(table, target)


def test_constant_features_support_nothing():
    """A classifier without a condition to use says so, or is asked for no more than the else."""
    table = Table.from_frame(frame_of().assign(c0="v", c1=1))
    with pytest.raises(DataError, match="at least one column must vary"):
        LabelListPosterior(table, TARGET)
    assert len(LabelListPosterior(table, TARGET, min_support=0.0).antecedents) == 0


def test_constant_columns_have_no_candidates():
    """A table of one cell is uniform, with certainty; that is no error."""
    schema = Schema((Column("c0", "nominal", ("a",)),))
    posterior = DensityListPosterior(Table.from_arrays([["a"], ["a"]], schema=schema), max_size=1)
    assert len(posterior.antecedents) == 0
    state = posterior.initial_state(np.random.default_rng(0))
    assert state == RuleList()
    assert posterior.log_density(state) == pytest.approx(0.0)
    after, counts = posterior.advance(np.random.default_rng(0), state, 200, 1.0)
    assert after == state
    assert sum(counts.accepted.values()) == 0
    assert counts.log_density == pytest.approx(0.0)


@each(PAIR, SUPPORTED)
def test_numbers_of_other_types_are_the_same_parameters(problem):
    """3, 3.0 and np.float32(3) are one model: a checkpoint of one resumes with the others."""
    posteriors = [
        problem.posterior(expected_rules=kind(3), expected_size=kind(2), concentration=kind(1))
        for kind in (int, float, np.float32, np.int64)
    ]
    same = {"expected_rules": 3, "expected_size": 2, "concentration": 1}
    posteriors.append(problem.posterior(**same, max_size=np.int8(problem.max_size)))
    assert len({posterior.fingerprint() for posterior in posteriors}) == 1
    assert all(type(value) in (int, float) for value in posteriors[-1].parameters().values())


@pytest.mark.parametrize("rules", [(0, 0), (-1,), (10_000,), (0,) * 30])
def test_what_is_no_list_of_candidates_has_no_density(rules):
    """A repeated or unknown candidate cannot start a chain or be reported as best."""
    posterior = LabelListPosterior(Table.from_frame(frame_of()), TARGET, min_support=0.0)
    assert posterior.log_density(RuleList(rules)) == -np.inf


def test_memory_that_the_rows_alone_exceed_is_asked_for():
    """No smaller max_size would help, so it is not what the message names."""
    with pytest.raises(ParameterError, match=r"^memory_limit must be at least .* GB for the rows"):
        labeled(memory_limit=1e-9)


@pytest.mark.parametrize(
    ("estimator", "parameters", "words"),
    [
        (RuleListClassifier, {"min_support": 0.97}, "min_support must be at most 0"),
        (RuleListClassifier, {"missing": "drop"}, "missing must be one of 'error', 'level', got"),
        (RuleListClassifier, {"memory_limit": 1e-6}, "lower max_size, raise min_support"),
        (RuleListClassifier, {"nominal": ["height"]}, 'nominal names the unknown column "height"'),
        (RuleListClassifier, {"nominal": [7]}, "in nominal must be an integer from 0 to 3, got 7"),
        (RuleListClassifier, {"search": "anneal", "predictive": "average"}, "anneal"),
        (DensityRuleList, {"memory_limit": 1e-6}, "lower max_size"),
        (DensityRuleList, {"drop": ["height"]}, 'unknown column "height"'),
    ],
)
def test_bad_parameters(estimator, parameters, words):
    """Name, rule, value, and what would be of use instead; if possible before all work."""
    with pytest.raises((ParameterError, DataError), match=words):
        estimator(**{**QUICK, **parameters}).fit(people(), fates(people()))


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (["a"] * 200, 'y must have at least two classes, got one class, "a"'),
        (np.append(np.ones(199), np.nan), "y must not have missing .* cell .NaN. in row 200"),
        ([None, *"ab" * 99, "a"], "y must not have missing labels, .* cell .NaN. in row 1"),
        (np.linspace(0, 1, 200), "Unknown label type"),
        (np.array([1, "a"] * 100, object), "y must hold labels of one type, got int, str"),
        (np.ones((200, 2)), "1d array"),
        (np.arange(200).astype("M8[D]"), r"y must hold text, .*: Unknown label type: datetime64"),
        (np.arange(200).astype("m8[s]"), r"y must hold text, .*: Unknown label type: timedelta64"),
        (np.array([b"a", b"b"] * 100), "y must hold text, whole numbers or truth values"),
    ],
    ids=["one", "nan", "missing", "numbers", "mixed", "two", "dates", "times", "bytes"],
)
def test_bad_labels(labels, words):
    """Of the labels, say what is wrong with them."""
    with pytest.raises(ValueError, match=words):
        RuleListClassifier(**QUICK).fit(people(), labels)


def test_arrays_of_three_dimensions_are_refused():
    """What else cannot be a table is among scikit-learn's own checks."""
    with pytest.raises(ValueError, match="dim"):
        RuleListClassifier(**QUICK).fit(np.ones((200, 2, 2)), fates(people()))


@pytest.mark.parametrize(
    "declared",
    [{"nominal": ["fate"]}, {"ordinal": {"fate": ["died", "lived"]}}, {"continuous": {"fate": 3}}],
    ids=str,
)
def test_labels_are_no_column_to_declare(declared):
    """A declaration of the labels would be dropped silently: only columns of X have one."""
    option = next(iter(declared))
    words = f'{option} names the unknown column "fate" .*; columns: sex, crew, age, fare$'
    with pytest.raises(DataError, match=words):
        RuleListClassifier(**QUICK, **declared).fit(people(), fates(people()))
