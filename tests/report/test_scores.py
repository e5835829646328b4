"""How well labels are predicted, against scikit-learn's metrics, and at what cost: in blocks."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import accuracy_score, confusion_matrix, log_loss, roc_auc_score

from bayescascade.model.scores import LabelScores, WeightedMean
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


def test_ties_count_half():
    """A classifier that says the same of all is no better than chance."""
    scores = LabelScores(2)
    scores.add(np.array([0, 1]), np.full((2, 2), 0.5), np.array([5.0, 3.0]))
    assert scores.auc == 0.5


def confusion_lines(target, names, confusion, width):
    scores = LabelScores(len(names))
    for label, weights in enumerate(confusion):
        scores.add(np.full(len(names), label), np.eye(len(names)), np.array(weights))
    return render(scores.confusion_page(target, names), width=width).split("\n")


def test_confusion_is_a_table():
    """True classes downward, predicted ones to the right, aligned."""
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
    expected = repeated.std(ddof=1) / math.sqrt(len(repeated))
    assert mean.standard_error == pytest.approx(expected, rel=1e-6)
