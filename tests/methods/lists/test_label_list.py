"""What a user asks of a list of labels: parts, probabilities, intervals, words, data."""

import json

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from bayescascade.base.errors import DataError, UnknownLevelWarning
from bayescascade.data.column import Column
from bayescascade.data.schema import Schema
from bayescascade.methods.lists import draws as list_draws
from bayescascade.methods.lists.antecedents import Condition
from bayescascade.methods.lists.draws import average_intervals, mixture_quantiles
from bayescascade.methods.lists.label_list import LabelList
from bayescascade.methods.lists.parts import encode_for_labels
from tests.methods.lists.lists import BINS, cells_of, random_rules

PEOPLE = Schema(
    (
        Column("sex", "nominal", ("female", "male")),
        Column("age", "continuous", (), (0.0, 18.0, 40.0, 65.5, 90.0), has_missing_level=True),
        Column("grade", "ordinal", (1, 2, 3, 4)),
    )
)
COUNTS = np.array([[3.0, 209.0], [40.0, 2.0], [7.0, 7.0], [0.0, 0.0]])


def people(classes=("no", "yes"), counts=COUNTS):
    rules = (
        (Condition(0, 1, 2), Condition(1, 0, 1)),
        (Condition(1, 2, 4), Condition(2, 0, 3)),
        (Condition(1, 4, 5),),
    )
    return LabelList(PEOPLE, np.array(classes), rules, counts, 1.0)


def test_probabilities_are_posterior_means():
    """An empty part says that nothing is known, not that it is impossible."""
    assert_allclose(people().probabilities[0], [4 / 214, 210 / 214])
    assert_allclose(people().probabilities[3], [0.5, 0.5])
    three = people(("a", "b", "c"), np.array([[1.0, 2.0, 0.5]] * 4))
    assert_allclose(three.probabilities[0], np.array([2, 3, 1.5]) / 6.5)


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_intervals_are_quantiles_of_the_dirichlet(level, rng):
    """Their level is what is printed beside them."""
    counts = np.array([[4.0, 1.0, 7.0]] * 4)
    labels = people(("a", "b", "c"), counts)
    intervals = labels.intervals(level)
    assert intervals.shape == (4, 3, 2)
    drawn = rng.dirichlet(counts[0] + 1.0, size=100_000)
    inside = (drawn > intervals[0, :, 0]) & (drawn < intervals[0, :, 1])
    below = drawn < intervals[0, :, 0]
    assert_allclose(inside.mean(axis=0), level, atol=0.01)
    assert_allclose(below.mean(axis=0), (1 - level) / 2, atol=0.01)
    binary = people().intervals(level)[1, 1]
    assert_allclose(binary, scipy.stats.beta(3.0, 41.0).interval(level))
    # the twin that forgets the other classes' prior weight
    wrong = scipy.stats.beta(5.0, 9.0).interval(level)
    assert not np.allclose(intervals[0, 0], wrong, atol=0.005)


def test_words_of_open_ends():
    """A value beyond the range of the training rows is in the outer bin, and the words say so."""
    labels = people()
    assert [labels.part_words(part) for part in range(4)] == [
        "sex is male and age is below 18",
        "age is 40 or more and grade is 1 to 3",
        "age is missing",
        "no rule applies",
    ]
    inner = ((Condition(1, 1, 3),), (Condition(1, 0, 4),))
    others = LabelList(PEOPLE, np.array([0, 1]), inner, np.ones((3, 2)), 1.0)
    assert others.part_words(0) == "age is in [18, 65.5)"
    assert others.part_words(1) == "age is not missing"
    assert LabelList(PEOPLE, np.array([0, 1]), (), np.ones((1, 2)), 1.0).part_words(0) == "any row"


def test_explanations():
    """What a doctor reads of a patient: the rule, the probability, how sure, of how many."""
    labels = people()
    words = labels.explain({"sex": "male", "age": 12, "grade": 4})
    low, high = labels.intervals()[0, 1]
    assert words == (
        f"sex is male and age is below 18: P(yes) = 0.98 (95% {low:.2f}-{high:.2f}), n = 212"
    )
    assert labels.explain(pd.Series({"sex": "male", "age": -3.0, "grade": 4})) == words
    assert labels.explain({"sex": "male", "age": None, "grade": 4}).startswith("age is missing: ")
    assert labels.explain({"sex": None, "age": 30, "grade": None}).startswith("no rule applies: ")
    assert labels.explain({"sex": "female", "age": 99, "grade": 1}).startswith("age is 40 or more")
    # of 2,000 rows without an exception, 0.00 (95% 0.00-0.00) would say impossible
    sure = people(counts=np.array([[2000.0, 0.0], [0.0, 2000.0], [7.0, 7.0], [0.0, 0.0]]))
    rare = sure.explain({"sex": "male", "age": 12, "grade": 4})
    assert "P(yes) = 0.0005 (95% 0.0000-0.0018), n = 2,000" in rare
    frequent = sure.explain({"sex": "male", "age": 50, "grade": 1})
    assert "P(yes) = 0.9995 (95% 0.9982-1.0000), n = 2,000" in frequent
    # all of several classes, the most probable first
    three = people((1, 2, 3), np.array([[1.0, 7.0, 4.0]] * 4))
    words = three.explain({"sex": "female", "age": 30, "grade": 1})
    assert words.startswith("no rule applies: P(2) = 0.53 (95% 0.29-0.77), P(3) = 0.33 ")
    assert words.index("P(3)") < words.index("P(1)")
    assert words.endswith("n = 12")


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"sex": "robot", "age": 3, "grade": 1}, r'"sex" has the unknown level "robot" in row 1'),
        ({"sex": "male", "age": 3}, 'column "grade" is missing'),
        ({"sex": "male", "age": np.inf, "grade": 1}, '"age" must hold finite numbers, got inf'),
        ({"sex": "male", "age": "old", "grade": 1}, "must hold numbers, got 'old' in row 1"),
    ],
)
def test_rows_that_cannot_be(row, words):
    """Name the column and the value."""
    with pytest.raises(DataError, match=words):
        people().explain(row)


def test_plain_data():
    """Programs read the list in this form; the keys are documented."""
    record = people((False, True)).to_dict()
    assert json.loads(json.dumps(record)) == record
    first, second, third = record["rules"]
    assert first["if"] == {"sex": ["male"], "age": {"interval": [None, 18.0]}}
    assert second["if"] == {"age": {"interval": [40.0, None]}, "grade": [1, 2, 3]}
    assert third["if"] == {"age": [None]}
    assert first["counts"] == {"False": 3.0, "True": 209.0}
    assert first["probabilities"]["True"] == pytest.approx(210 / 214)
    assert first["intervals"]["False"] == pytest.approx(people().intervals()[0, 0])
    assert set(record["else"]) == {"counts", "probabilities", "intervals"}


FRAME = pd.DataFrame({"note": "x", "grade": [4, 1], "age": [-5.0, 1e6], "sex": ["male", "female"]})


def test_values_beyond_the_range_are_in_the_outer_bins():
    """Next year's oldest customer is older than this year's; columns are matched by name."""
    codes = encode_for_labels(PEOPLE, FRAME)
    assert codes.tolist() == [[1, 0], [0, 3], [3, 0]]
    assert codes.dtype == np.int32
    texts = FRAME.astype(str)
    assert_array_equal(encode_for_labels(PEOPLE, texts), codes)
    edge = encode_for_labels(PEOPLE, FRAME.assign(age=[18.0, 90.0]))
    assert edge[1].tolist() == [1, 3]


def test_missing_cells():
    """An error, a level, or no condition satisfied: as was asked for."""
    frame = FRAME.assign(age=[np.nan, 20.0], sex=["male", None])
    with pytest.raises(DataError, match=r'column "sex" has a missing cell \(NaN\) in row 2'):
        encode_for_labels(PEOPLE, frame.assign(age=1.0))
    with pytest.raises(DataError, match=r'column "age" has a missing cell \(NaN\) in row 1'):
        encode_for_labels(PEOPLE, frame.assign(sex="male"))
    with pytest.raises(DataError, match=r'column "sex".*in row 2.*unknown="ignore"'):
        encode_for_labels(PEOPLE, frame, missing="level")
    with pytest.warns(UnknownLevelWarning, match="a missing cell of sex"):
        passed = encode_for_labels(PEOPLE, frame, missing="level", unknown="ignore")
    assert passed[:2].tolist() == [[1, -1], [4, 1]]
    assert_array_equal(encode_for_labels(PEOPLE, frame, missing="none"), passed)


def quantiles(a, b, *levels):
    """Return the quantiles of the mixture of equal shares of Beta distributions."""
    of_class, of_others = np.array(a)[:, np.newaxis], np.array(b)[:, np.newaxis]
    weights = csr_array(np.full((1, len(a)), 1 / len(a)))
    return mixture_quantiles(of_class, of_others, weights, levels)[0, 0]


@pytest.mark.parametrize("size", [1e-12, 1e-3, 5000.0, 1e12])
def test_extreme_components(size):
    """Concentrations next to nothing, tables of a million million rows: certainly yes, or no."""
    low, high = quantiles([size, 1.0], [1.0, size], 0.025, 0.975)
    assert 0 <= low <= high <= 1
    assert_allclose((low, high), (1 - high, 1 - low), atol=1e-9)
    if size > 1:
        assert low < 0.001 < 0.999 < high


def random_draws(rng, n=5, classes=("a", "b", "c")):
    """Return lists of random rules over a small domain, and how often each was drawn."""
    draws = []
    for _ in range(n):
        rules = random_rules(rng, BINS, 3)
        counts = rng.integers(0, 9, (len(rules) + 1, len(classes))).astype(float)
        draws.append(LabelList(BINS, np.array(classes), rules, counts, 0.7))
    return draws, rng.integers(1, 4, n).astype(float)


@pytest.mark.parametrize("classes", [("a", "b"), ("a", "b", "c")], ids=len)
@pytest.mark.parametrize("at_once", [1, 1 << 20])
def test_intervals_are_of_the_mixture(at_once, classes, rng, monkeypatch):
    """As much of the draws' Beta distributions lies below as above; not their mean quantiles."""
    monkeypatch.setattr(list_draws, "_MOST_PARTS", at_once)
    monkeypatch.setattr(list_draws, "_MOST_BETAS", at_once)
    draws, times = random_draws(rng, classes=classes)
    draws, times = [*draws, draws[0]], np.append(times, 2.0)  # two draws with equal parts
    cells = np.tile(cells_of(BINS)[0], 2)[:, 3:]
    intervals = average_intervals(draws, times, cells, 0.8)
    assert intervals.shape == (cells.shape[1], len(classes), 2)
    for side, q in enumerate((0.1, 0.9)):
        reached = mean = 0.0
        for labels, n in zip(draws, times / times.sum(), strict=True):
            one = scipy.stats.beta(
                *(p[labels.part_of_codes(cells)] for p in labels.beta_parameters)
            )
            reached += n * one.cdf(intervals[..., side])
            mean += n * one.ppf(q)
        assert_allclose(reached, q, atol=1e-7)
        assert not np.allclose(intervals[..., side], mean, atol=0.01)
