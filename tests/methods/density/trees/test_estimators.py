"""What is of cascades alone, of all that `tests/contracts` asks of an estimator."""

import numpy as np
import pandas as pd
import pytest

import samplers
from bayescascade import BranchCascade, DensityEstimationTree, LeafCascade, LeafPosterior, Table
from bayescascade.base.errors import DataError, ParameterError
from bayescascade.methods.density.trees.tree import Tree
from bayescascade.model.search import SCHEDULE, Search
from tests.methods.density.trees.fits import DECLARED, ESTIMATORS, QUICK, fitted, people

both = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda cls: cls.model_name)


def test_declared_columns_are_used():
    """Dropped columns are not asked for when scoring, chosen ones come in their order."""
    model = LeafCascade(**QUICK, columns=["crew", "sex"]).fit(people())
    assert model.schema_.names == ("crew", "sex")
    assert model.score_samples(people(3)[["sex", "crew"]]).shape == (3,)
    dropped = LeafCascade(**QUICK, drop=["fare", "age"]).fit(people())
    assert dropped.schema_.names == ("sex", "crew")


def test_missing_cells_as_a_level():
    """Unless refused, a missing cell is a value like any other."""
    frame = people().assign(age=lambda f: f["age"].where(f["fare"] < 30))
    with pytest.raises(DataError, match=r'column "age" has .* missing'):
        LeafCascade(**QUICK, missing="error").fit(frame)
    age = {"age": ["child", "adult", "old"]}
    model = LeafCascade(**QUICK, nominal=None, ordinal=age, drop=["fare"]).fit(frame)
    assert np.isfinite(model.score_samples(frame)).all()
    assert model.sample(300, random_state=0)["age"].isna().any()


@both
def test_any_draw_can_be_read(estimator):
    """The second most probable tree may be the one that makes sense."""
    model = fitted(estimator)
    tree = model.run_.draws[-1][-1]
    density = model.density_tree(tree)
    assert density.tree == tree
    assert density.counts[0] == model.tree_.counts[0]
    assert model.density_tree(model.tree_.tree).node_dict() == model.tree_.node_dict()
    with pytest.raises(ParameterError, match="tree must be one over the model's columns: a split"):
        model.density_tree(Tree.from_nested((9, [((0,), None), ((1,), None)]), [True] * 10))
    with pytest.raises(ParameterError, match="tree must be a Tree, got 3"):
        model.density_tree(3)


@both
def test_chains_may_start_from_a_greedy_tree(estimator):
    """A good start is worth steps, and the search must not end in a worse tree than it."""
    options = {**QUICK, "n_steps": 1, "search": "anneal"}
    model = estimator(start="greedy", **options, **DECLARED).fit(people())
    greedy = DensityEstimationTree(random_state=0).fit(model.posterior_.table).tree_.tree
    assert model.run_.best_log_density >= model.posterior_.log_density(greedy)
    with pytest.raises(ParameterError, match="than max_leaves, 1, got"):
        LeafCascade(start="greedy", max_leaves=1, **options, **DECLARED).fit(people())


BAD = {
    "missing": ["drop", True],
    "columns": ["sex", 5],
    "drop": ["sex", 5],
    "nominal": ["sex", 5],
    "ordinal": ["age", 5, {"age": "child"}, {"age": 7}],
    "continuous": [["fare"], "fare", 10, {"fare": 0}, {"fare": "10"}, {"fare": ["a", "b"]}],
    "checkpoint": [5, ["run.json"]],
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_said_of_columns_and_files_is_checked(name):
    """A wrong value should cost a message, not an hour of search."""
    rows = people(20).assign(fare=lambda frame: frame["fare"] // 20)
    for value in BAD[name]:
        with pytest.raises(ParameterError, match=rf'{name}|(levels|edges) of column "(age|fare)"'):
            LeafCascade(**{**QUICK, name: value}).fit(rows)


@both
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
    for predictive, words in (("average", "a model without draws"), ("median", "predictive")):
        model.set_params(predictive=predictive)
        for call in (lambda: model.score_samples(rows), lambda: model.sample(2)):
            with pytest.raises(ParameterError, match=words):
                call()


N_ROWS, N_STEPS = 200, 20_000


def wide() -> LeafPosterior:
    """Return the posterior of few rows in many cells: six columns of six levels each."""
    codes = np.random.default_rng(0).integers(6, size=(N_ROWS, 6))
    frame = pd.DataFrame(codes).astype(str).rename(columns="c{}".format)
    return LeafPosterior(Table.from_frame(frame))


def test_trees_do_not_outgrow_the_rows():
    """Hot ones have many times as many leaves; steps are then slow, and lost."""
    posterior = wide()
    assert posterior.table.n_distinct == N_ROWS
    hot = samplers.anneal(
        posterior, n_steps=N_STEPS, schedule=SCHEDULE, n_chains=1, seed=0, n_temperatures=200
    )
    search = Search("anneal", N_STEPS, 1, 1, 0, None, resume=False, progress=None)
    cool = search.run(posterior, default_steps=N_STEPS)
    assert hot.traces["n_leaves"].max() > 2 * N_ROWS
    assert cool.traces["n_leaves"].max() < N_ROWS
    assert cool.best_log_density >= hot.best_log_density
    assert posterior.schedule == wide().schedule  # so that a run that is resumed cools as before


def test_tables_that_hold_hot_trees_cool_from_as_hot_as_before():
    """Their draws stay what they were: here every cell has a row."""
    cells = pd.DataFrame({"a": ["x", "x", "y", "y"], "b": ["u", "v", "u", "v"]})
    assert LeafPosterior(Table.from_frame(cells)).schedule == SCHEDULE
