"""How well labels are predicted, against scikit-learn's metrics, and at what cost: in blocks."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.calibration import calibration_curve
from sklearn.metrics import accuracy_score, auc, confusion_matrix, log_loss, roc_auc_score

from bayescascade.model.label_details import calibration_of, curves_of
from bayescascade.model.scores import LabelScores, confusion_page
from bayescascade.model.standard_errors import WeightedMean
from bayescascade.report.page import render


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_metrics_are_those_of_scikit_learn(n_classes, is_weighted, rng):
    """Sums over blocks of rows, of few different probabilities with ties, lose nothing."""
    different = rng.dirichlet(np.full(n_classes, 0.7), 7)
    probabilities = different[rng.integers(7, size=300)]
    labels = rng.integers(n_classes, size=300)
    weights = rng.integers(0, 4, 300) / 2 if is_weighted else np.ones(300)
    scores = LabelScores(n_classes)
    for block in np.split(np.arange(300), [1, 120, 121]):
        scores.add(labels[block], probabilities[block], weights[block] if is_weighted else None)
    predicted = probabilities.argmax(axis=1)
    area = roc_auc_score(
        labels,
        probabilities[:, 1] if n_classes == 2 else probabilities,
        sample_weight=weights,
        multi_class="ovr",
    )
    assert scores.n_rows == 300
    assert_allclose(scores.weight, weights.sum())
    assert_allclose(scores.accuracy, accuracy_score(labels, predicted, sample_weight=weights))
    assert_allclose(scores.log_loss, log_loss(labels, probabilities, sample_weight=weights))
    assert_allclose(scores.auc, area)
    assert_allclose(scores.confusion, confusion_matrix(labels, predicted, sample_weight=weights))


def test_what_cannot_be_known_is_nan():
    """Without a class there is no area under a curve; without weight there is nothing."""
    scores = LabelScores(3)
    scores.add(np.array([0, 1]), np.array([[0.5, 0.25, 0.25], [0.2, 0.6, 0.2]]))
    assert scores.accuracy == 1.0
    assert math.isnan(scores.auc)
    nothing = LabelScores(2)
    nothing.add(np.array([0]), np.array([[1.0, 0.0]]), np.zeros(1))
    assert math.isnan(nothing.accuracy)
    assert math.isnan(nothing.log_loss)
    assert math.isnan(nothing.auc)


def test_bins_are_those_of_scikit_learn(rng):
    """A row is in one bin, by weight as often as it stands there; equals stay together."""
    said = rng.permutation(np.arange(1, 201)) / 201
    hits = (rng.random(200) < said**2).astype(float)
    found = calibration_of(said, hits, np.ones(200), 10)
    happened, means = calibration_curve(hits, said, n_bins=10, strategy="quantile")
    assert_allclose(found.said, means)
    assert_allclose(found.happened, happened)
    assert found.weights.tolist() == [20.0] * 10
    times = rng.integers(0, 4, 200)
    weighed = calibration_of(said, hits * times, times.astype(float), 10)
    repeated = (np.repeat(each, times) for each in (said, hits, np.ones(200)))
    for one, other in zip(weighed, calibration_of(*repeated, 10), strict=True):
        assert_allclose(one, other)
    ties = calibration_of(np.repeat([0.2, 0.9], [190, 10]), np.ones(200), np.ones(200), 10)
    assert ties.weights.tolist() == [190.0, 10.0]


@pytest.mark.parametrize("n_classes", [2, 8])
def test_curves_tell_of_many_classes_what_can_be_seen(n_classes, rng):
    """Eight curves over each other tell nothing; a class without rows has none."""
    scores, names = LabelScores(n_classes), [f"c{c}" for c in range(n_classes)]
    labels = rng.integers(n_classes - (n_classes > 2), size=300)
    probabilities = rng.dirichlet(np.ones(n_classes), 300)
    scores.add(labels, probabilities)
    _, table, (curves, bins) = curves_of(scores, names)
    assert len(curves.series) == (1 if n_classes == 2 else 5)
    shown = curves.series[0]
    c = names.index(shown.name.partition(":")[0])
    assert auc(shown.across, shown.up) == pytest.approx(scores.area(c))
    best = probabilities[:, 1] if n_classes == 2 else probabilities.max(axis=1)
    assert (min(bins.series[0].across) > best.min()) & (max(bins.series[0].across) < best.max())
    assert table.columns[-1].texts == ["30"] * 10
    alone = LabelScores(n_classes)
    alone.add(np.zeros(30, np.int64), probabilities[:30])
    assert [chart.title for chart in curves_of(alone, names)[2]] == ["Calibration"]


def test_ties_count_half():
    scores = LabelScores(2)
    scores.add(np.array([0, 1]), np.full((2, 2), 0.5), np.array([5.0, 3.0]))
    assert scores.auc == 0.5


def confusion_lines(target, names, confusion, width):
    return render(confusion_page(np.array(confusion), target, names), width=width).split("\n")


def test_confusion_is_a_table():
    names = ["negative", "positive"]
    assert confusion_lines("outcome", names, [[332.0, 0], [1, 1625]], 80) == [
        "           predicted",
        "outcome    negative   positive",
        "negative        332          0",
        "positive          1      1,625",
    ]


def test_many_classes_stand_below_each_other():
    """No class is cut off for want of room, none that was predicted is left out."""
    names = [f"{word} unaccountable\n" for word in ("wholly", "partly", "hardly")]
    confusion = [[3.0, 0, 0], [2, 10, 2.5], [0, 0, 0]]
    assert confusion_lines("kind", names, confusion, 62) == [
        "kind:   predicted, and how often",
        r"wholly unaccountable\n:   wholly unaccountable\n 3.00",
        r"partly unaccountable\n:   partly unaccountable\n 10.00",
        r"    hardly unaccountable\n 2.50   wholly unaccountable\n 2.00",
        r"hardly unaccountable\n:   no rows",
    ]


def test_a_weight_is_equal_values(rng):
    """In blocks or at once; values far from zero must not lose their differences."""
    values, weights = 1e9 + rng.normal(size=200), rng.integers(0, 4, 200)
    mean = WeightedMean()
    for block in np.split(np.arange(200), [0, 1, 120]):
        mean.add(values[block], weights[block].astype(float))
    repeated = np.repeat(values, weights)
    assert mean.weight == len(repeated)
    assert mean.mean == pytest.approx(repeated.mean(), rel=1e-14)
    whole = WeightedMean()
    whole.add(repeated - 1e9)
    assert mean.standard_error == pytest.approx(whole.standard_error, rel=1e-6)
    expected = repeated.std(ddof=1) / math.sqrt(len(repeated))
    assert expected < mean.standard_error < 1.1 * expected


def test_means_of_few_or_equal_values_have_no_error():
    """An error of equal costs would be one of rounding; of few rows the dearest may be missing."""
    few, equal = WeightedMean(), WeightedMean()
    few.add(np.arange(99.0))
    equal.add(np.full(100, 0.1))
    equal.add(np.full(1000, 0.1), np.full(1000, 1e9))
    assert math.isnan(few.standard_error)
    assert equal.standard_error == 0.0
