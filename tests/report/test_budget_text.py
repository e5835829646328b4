"""Budgeted classifiers and acquisitions as a person reads them."""

import numpy as np
import pandas as pd
import pytest

from bayescascade import FeatureCosts
from tests.methods.budget.forests.fits import PlainForest


@pytest.fixture
def small():
    """Return a forest of trees on blood sugar and then, for some rows, a scan; and its rows."""
    sugar = np.repeat([1.0, 5.0], 40)
    frame = pd.DataFrame({"age": 50, "sugar": sugar, "iron": 1.0, "scan": np.tile([0.0, 9.0], 40)})
    label = np.where(sugar < 3, "well", np.where(frame["scan"] > 4, "very ill", "ill"))
    costs = FeatureCosts(
        {"scan": 22.75, "sugar": 1.5, "blood": 2.1}, groups={"blood": ["sugar", "iron"]}
    )
    # all columns are looked at for each split
    model = PlainForest(costs=costs, n_estimators=3, max_features=None, random_state=0)
    return model.fit(frame, label), frame


MODEL = """\
plain forest   3 trees   6 splits   mean depth 1.5   3 classes
80 rows   mean cost 14.97 a validation row   all features cost 27.35

acquired         cost      rows   spent
scan            22.75    50.0 %   11.38
blood (group)    2.10   100.0 %    2.10
sugar            1.50   100.0 %    1.50
never acquired: age, iron"""


def test_a_model_tells_what_is_spent_on_what(small):
    model, _ = small
    assert str(model) == MODEL
    assert "PlainForest(" in str(PlainForest())


def test_steps_are_lines(small):
    model, frame = small
    acquisition = model.acquire(frame.iloc[-1].__getitem__)
    lines = str(acquisition).split("\n")
    assert lines[0] == "very ill 1   2 of 4 features acquired   cost 26.35"
    assert [line.split() for line in lines[2:]] == [
        ["feature", "value", "cost", "total", "waiting", "most", "probable"],
        ["nothing", "yet", "3", *lines[3].split()[3:]],
        ["sugar", "5", "3.60", "3.60", "3", *lines[4].split()[5:]],
        ["scan", "9", "22.75", "26.35", "0", "very", "ill", "1"],
    ]
    stopped = model.acquire(frame.iloc[-1].__getitem__, max_cost=10)
    assert "what is needed next would bring the cost above 10; still needed: scan" in str(stopped)
