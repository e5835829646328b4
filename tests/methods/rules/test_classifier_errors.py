"""What a classifier cannot be asked: each message names what, the rule it breaks, and the value."""

import numpy as np
import pytest
import scipy.sparse

from bayescascade import RuleListClassifier
from bayescascade.base.errors import DataError, ParameterError
from tests.methods.rules.fits import QUICK, classifier, fates, people


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"min_support": 0.97}, "min_support must be at most 0"),
        ({"missing": "drop"}, "missing must be one of 'error', 'level', got 'drop'"),
        ({"memory_limit": 1e-6}, "lower max_size, raise min_support"),
        ({"nominal": ["height"]}, 'nominal names the unknown column "height"'),
        ({"nominal": [7]}, "a column number in nominal must be an integer from 0 to 3, got 7"),
        ({"search": "anneal", "predictive": "average"}, "anneal"),
    ],
    ids=str,
)
def test_bad_parameters(parameters, words):
    """Name, rule, value; before anything is computed where possible."""
    with pytest.raises((ParameterError, DataError), match=words):
        RuleListClassifier(**{**QUICK, **parameters}).fit(people(), fates(people()))


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (None, "requires y to be passed, but the target y is None"),
        (["a"] * 200, 'y must have at least two classes, got one class, "a"'),
        (
            np.append(np.ones(199), np.nan),
            "y must not have missing labels, got a missing cell .NaN. in row 200",
        ),
        (
            [None, *"ab" * 99, "a"],
            "y must not have missing labels, got a missing cell .NaN. in row 1",
        ),
        (["a", "b"], "inconsistent numbers of samples"),
        (np.linspace(0, 1, 200), "Unknown label type"),
        (np.array([1, "a"] * 100, object), "y must hold labels of one type, got int, str"),
        (np.ones((200, 2)), "1d array"),
        (np.arange(200).astype("M8[D]"), r"y must hold text, .*: Unknown label type: datetime64"),
        (np.arange(200).astype("m8[s]"), r"y must hold text, .*: Unknown label type: timedelta64"),
        (np.array([b"a", b"b"] * 100), "y must hold text, whole numbers or truth values"),
    ],
    ids=[
        *("none", "one", "nan", "missing", "few", "numbers", "mixed", "two"),
        *("dates", "times", "bytes"),
    ],
)
def test_bad_labels(labels, words):
    """Of the labels, say what is wrong with them."""
    with pytest.raises(ValueError, match=words):
        RuleListClassifier(**QUICK).fit(people(), labels)


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.ones((200, 0)), r"0 feature\(s\)"),
        (np.ones(200), "Reshape your data"),
        (np.ones((200, 2, 2)), "dim"),
        (np.full((200, 3), 1j), "Complex data not supported"),
        (scipy.sparse.csr_array(np.ones((200, 2))), "[Ss]parse"),
    ],
    ids=["no-columns", "1-d", "3-d", "complex", "sparse"],
)
def test_bad_rows(X, words):
    """Of the rows, name column, value and row."""
    with pytest.raises((ValueError, TypeError), match=words):
        RuleListClassifier(**QUICK).fit(X, fates(people()))


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


def test_missing_cells_when_predicting_have_a_remedy():
    """The message says what can be done about it."""
    frame = people(3).assign(sex=["male", None, "male"])
    with pytest.raises(DataError, match=r'in row 2.*: fill it, or fit with missing="level"'):
        classifier(missing="error").predict(frame)
