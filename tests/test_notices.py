"""Notice of fits that take long, before they have."""

import warnings

import numpy as np
import pytest

from bayescascade import (
    CostWeightedLogisticClassifier,
    GatedSensorsClassifier,
    GreedyMiserClassifier,
    MarginNeighborsClassifier,
)
from bayescascade.base import notices
from bayescascade.base.notices import noticed


def test_long_work_is_noticed_once_and_before_it_is_done(monkeypatch):
    times = iter([0.0, 30.0, 34.0, 38.0, 50.0, 62.0])
    monkeypatch.setattr(notices, "MOST_SILENT", 10.0)
    monkeypatch.setattr(notices, "process_time", lambda: next(times))
    told = []
    monkeypatch.setattr(notices, "warn_user", told.append)
    done = [(part, len(told)) for part in noticed("abcde", 5, "the rest")]
    assert done == [("a", 0), ("b", 0), ("c", 1), ("d", 1), ("e", 1)]
    assert str(told[0]) == "the rest takes about 12 s"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: CostWeightedLogisticClassifier(budget=2.0), "smaller penalties takes about"),
        (lambda: MarginNeighborsClassifier(budget=2.0), "more rules takes about"),
        (lambda: GreedyMiserClassifier(budget=2.0, n_boosted=10), "tradeoffs takes about"),
        (lambda: GatedSensorsClassifier(sensors={"a": [0, 1], "b": [2, 3]}), "gates takes about"),
    ],
)
def test_fits_say_so_where_the_user_called_them(monkeypatch, make, words):
    X = np.random.default_rng(0).normal(size=(80, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make().fit(X, X[:, 0] > 0)
    monkeypatch.setattr(notices, "MOST_SILENT", 0.0)
    with pytest.warns(UserWarning, match=words) as found:
        make().fit(X, X[:, 0] > 0)
    assert found[0].filename == __file__
