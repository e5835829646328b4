"""Every parameter that is out of its range is refused by name, before anything is computed."""

import math

import numpy as np
import pytest

from bayescascade import BranchCascade, LeafCascade, Table
from bayescascade.base.errors import ParameterError
from tests.methods.cascades.fits import people

BAD = {
    "expected_leaves": [0, math.nan, True],
    "expected_branches": [-2.0, None],
    "concentration": [math.inf, "a"],
    "feature_inclusion": [0, 1, "x"],
    "max_branches": [1, 2.5],
    "density": ["mean", ["empirical"]],
    "predictive": ["mean"],
    "search": ["gibbs", ["anneal"]],
    "max_leaves": [0, 1.5],
    "partitions": ["level", None],
    "leaf": ["naive"],
    "leaf_concentration": [0, None],
    "prior": ["uniform", None],
    "stop": [0, 1.0, "a"],
    "max_depth": [2],
    "temper": [10.0],
    "memory_limit": [0, "2"],
    "start": ["det"],
    "n_chains": [2.0],
    "random_state": [1.5],
    "missing": ["drop", True],
    "columns": ["sex", 5],
    "drop": ["sex", 5],
    "nominal": ["sex", 5],
    "ordinal": ["age", 5, {"age": "child"}, {"age": 7}],
    "continuous": [["fare"], "fare", 10, {"fare": 0}, {"fare": "10"}, {"fare": ["a", "b"]}],
    "checkpoint": [5, ["run.json"]],
    "progress": ["yes", 1],
}

CASES = [
    pytest.param(cls, name, value, id=f"{cls.model_name}-{name}-{value}")
    for name, values in BAD.items()
    for value in values
    for cls in [LeafCascade if name in LeafCascade().get_params() else BranchCascade]
]


@pytest.mark.parametrize(("estimator", "name", "value"), CASES)
def test_parameters_out_of_range_are_named(estimator, name, value):
    """A wrong value should cost a message, not an hour of search."""
    model = estimator(**{"n_steps": 50, "n_chains": 1, "random_state": 0, name: value})
    rows = people(20).assign(fare=lambda frame: frame["fare"] // 20)
    with pytest.raises(ParameterError, match=rf'{name}|(levels|edges) of column "(age|fare)"'):
        model.fit(rows)


@pytest.mark.parametrize("estimator", [LeafCascade, BranchCascade])
def test_combinations_that_make_no_sense(estimator):
    """Each alone is fine."""
    with pytest.raises(ParameterError, match="resume must be False without a checkpoint"):
        estimator(resume=True).fit(people(20))
    with pytest.raises(ParameterError, match='predictive must be "map" with search "anneal"'):
        estimator(search="anneal", predictive="average").fit(people(20))
    with pytest.raises(ParameterError, match='start must be "random" with partitions "levels"'):
        estimator(start="greedy", partitions="levels").fit(people(20))
    if estimator is BranchCascade:
        with pytest.raises(ParameterError, match='feature_inclusion must be None with prior "gen'):
            estimator(prior="generative", feature_inclusion=0.5).fit(people(20))


def test_predictive_is_checked_when_scoring():
    """It may be set after the fit."""
    rows = people(20)[["sex", "crew"]]
    model = LeafCascade(n_steps=100, n_chains=1, search="anneal").fit(rows)
    model.set_params(predictive="average")
    for call in (lambda: model.score_samples(rows), lambda: model.sample(2)):
        with pytest.raises(ParameterError, match="no draws were kept"):
            call()
    model.set_params(predictive="median")
    for call in (lambda: model.score_samples(rows), lambda: model.sample(2)):
        with pytest.raises(ParameterError, match="predictive"):
            call()


def test_numpy_numbers_are_numbers():
    """They come out of grids and files."""
    model = LeafCascade(
        expected_leaves=np.int64(4),
        concentration=np.float32(1.5),
        max_branches=np.int8(2),
        n_steps=np.int32(200),
        n_chains=np.uint8(1),
        random_state=np.int64(2),
    ).fit(Table.from_frame(people(20)[["sex", "crew"]]))
    assert model.posterior_.parameters()["max_branches"] == 2
