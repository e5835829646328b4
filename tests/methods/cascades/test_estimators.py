"""What a user calls: fit, score, sample, condition, explain, in scikit-learn's conventions."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from bayescascade import BranchCascade, DensityEstimationTree, DensityTree, LeafCascade, Table
from bayescascade.base.errors import DataError, ParameterError
from bayescascade.methods.cascades.tree import Tree
from tests.methods.cascades.fits import DECLARED, ESTIMATORS, QUICK, fitted, people

both = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda cls: cls.model_name)


@both
def test_fitted_attributes(estimator):
    """They are documented, and each must hold what is said of it."""
    model = fitted(estimator)
    assert isinstance(model.tree_, DensityTree)
    assert model.log_posterior_ == pytest.approx(
        model.posterior_.log_density(model.tree_), abs=1e-9
    )
    assert model.log_posterior_ == pytest.approx(model.run_.best_log_density, abs=1e-9)
    assert model.n_features_in_ == 4
    assert model.feature_names_in_.tolist() == ["sex", "crew", "age", "fare"]
    assert model.schema_.names == ("sex", "crew", "age", "fare")
    assert model.tree_.counts[0] == 150
    draws = np.array([[model.posterior_.log_density(t) for t in c] for c in model.run_.draws])
    assert (draws <= model.log_posterior_ + 1e-9).all()
    assert_allclose(draws, model.run_.traces["log_density"], atol=1e-8)


@both
def test_frames_arrays_and_tables_give_one_model(estimator):
    """However the rows come, they are the same rows."""
    frame = people()
    of_frame = fitted(estimator)
    table = Table.from_frame(frame, **DECLARED)
    of_table = estimator(**QUICK).fit(table)
    numbered = {"ordinal": {2: DECLARED["ordinal"]["age"]}, "continuous": {3: [0, 5, 20, 100]}}
    of_array = estimator(**QUICK, **numbered).fit(frame.to_numpy(dtype=object))
    for other in (of_table, of_array):
        assert other.log_posterior_ == of_frame.log_posterior_
        assert other.tree_.tree == of_frame.tree_.tree
    assert of_array.feature_names_in_.tolist() == ["x0", "x1", "x2", "x3"]
    assert of_table.score(table) == pytest.approx(of_frame.score(frame))


@both
def test_columns_are_matched_by_name(estimator):
    """A file with its columns in another order, or more of them, is scored alike."""
    model, frame = fitted(estimator), people(40, seed=8)
    turned = frame[["fare", "age", "crew", "sex"]].assign(note="x")
    assert_array_equal(model.score_samples(turned), model.score_samples(frame))
    with pytest.raises(DataError, match='column "age" is missing'):
        model.score_samples(frame.drop(columns="age"))
    with pytest.raises(DataError, match=r'"sex".*robot.*row 2'):
        model.score_samples(frame.assign(sex=["male", "robot"] * 20))


@both
def test_weights_are_repeated_rows(estimator):
    """A row of weight 3 is three rows."""
    frame = people(60)
    weights = np.arange(60) % 4
    repeated = frame.loc[frame.index.repeat(weights)]
    one = estimator(**QUICK, **DECLARED).fit(frame, sample_weight=weights)
    other = estimator(**QUICK, **DECLARED).fit(repeated)
    assert one.log_posterior_ == other.log_posterior_
    assert one.tree_.tree == other.tree_.tree
    assert_array_equal(one.tree_.counts, other.tree_.counts)
    assert one.summary_.total_weight == weights.sum()
    with pytest.raises(ParameterError, match="sample_weight must be None with a Table"):
        estimator(**QUICK).fit(Table.from_frame(frame, **DECLARED), sample_weight=weights)


@both
@pytest.mark.parametrize("density", ["posterior_mean", "empirical"])
@pytest.mark.parametrize("predictive", ["map", "average"])
def test_score_is_the_sum_of_scores(estimator, density, predictive):
    """Cross-validation adds scores up."""
    model = fitted(estimator, density=density, predictive=predictive)
    frame = people()
    scores = model.score_samples(frame)
    assert scores.shape == (150,)
    assert np.isfinite(scores).all()
    assert model.score(frame) == pytest.approx(scores.sum())
    weights = np.linspace(0, 2, 150)
    assert model.score(frame, sample_weight=weights) == pytest.approx(np.dot(weights, scores))


@both
@pytest.mark.parametrize("predictive", ["map", "average"])
def test_coded_rows_score_as_the_rows_do(estimator, predictive):
    """Whoever has encoded a block of rows need not do so twice."""
    model, frame = fitted(estimator, predictive=predictive), people(30, seed=4)
    codes = model.schema_.encode(frame)
    assert_array_equal(model.score_codes(codes), model.score_samples(frame))


@both
def test_scores_are_the_leaf_densities(estimator):
    """What is scored is what is printed."""
    model, frame = fitted(estimator), people(30, seed=4)
    figures = [
        float(model.explain(row).split("density ")[1].split(",")[0]) for _, row in frame.iterrows()
    ]
    assert_allclose(np.exp(model.score_samples(frame)), figures, rtol=1e-3)


@both
def test_average_is_over_the_draws(estimator):
    """The posterior predictive density: the mean of the draws' densities, not of their logs."""
    model = fitted(estimator, predictive="average")
    frame = people(25, seed=5)
    codes = model.schema_.encode(frame)
    trees = [tree for chain in model.run_.draws for tree in chain]
    chosen = np.linspace(0, len(trees) - 1, min(1000, len(trees))).round().astype(int)
    scores = []
    for tree in (trees[i] for i in chosen):
        counts, _ = model.posterior_.node_statistics(tree)
        probabilities = model.posterior_.model.probabilities(tree, counts)
        scores.append(
            DensityTree(model.schema_, tree, counts, probabilities, {}).score_codes(codes)
        )
    expected = logsumexp(scores, axis=0) - np.log(len(scores))
    assert_allclose(model.score_samples(frame), expected, atol=1e-12)
    assert not np.allclose(model.score_samples(frame), np.mean(scores, axis=0))


@both
@pytest.mark.parametrize("predictive", ["map", "average"])
def test_densities_are_normalized(estimator, predictive):
    """Over all cells they sum to one, whichever predictive is asked for."""
    model = fitted(estimator, predictive=predictive)
    grid = pd.MultiIndex.from_product(
        [["male", "female"], [True, False], ["child", "adult", "old"], [1.0, 10.0, 50.0]],
        names=["sex", "crew", "age", "fare"],
    ).to_frame(index=False)
    widths = grid["fare"].map({1.0: 5.0, 10.0: 15.0, 50.0: 80.0})
    assert np.dot(np.exp(model.score_samples(grid)), widths) == pytest.approx(1.0, abs=1e-12)


@both
@pytest.mark.parametrize("predictive", ["map", "average"])
def test_missing_cells_when_scoring(estimator, predictive):
    """The density of the cells that are there."""
    model = fitted(estimator, predictive=predictive)
    known = {"sex": "male", "crew": False, "fare": 10.0}
    whole = [model.score_samples({**known, "age": age})[0] for age in ("child", "adult", "old")]
    found = model.score_samples({**known, "age": None})
    assert found[0] == pytest.approx(logsumexp(whole))


@both
@pytest.mark.parametrize("predictive", ["map", "average"])
def test_samples_look_like_the_rows(estimator, predictive):
    """Types and levels are those of the data; the same seed gives the same rows."""
    model = fitted(estimator, predictive=predictive)
    frame = model.sample(500, random_state=1)
    assert list(frame.columns) == ["sex", "crew", "age", "fare"]
    assert frame["crew"].dtype == bool
    assert set(frame["age"]) <= {"child", "adult", "old"}
    assert frame["fare"].between(0, 100).all()
    assert np.isfinite(model.score_samples(frame)).all()
    pd.testing.assert_frame_equal(frame, model.sample(500, random_state=1))
    assert not frame.equals(model.sample(500, random_state=2))
    with pytest.raises(ParameterError, match="n_samples must be an integer >= 1"):
        model.sample(0)


@both
def test_conditioning_and_explaining(estimator):
    """The estimator hands on to the tree that it shows."""
    model = fitted(estimator)
    male = model.condition({"sex": "male"})
    assert isinstance(male, DensityTree)
    assert male.evidence_words() == "sex is male"
    row = people(1, seed=3)
    assert model.explain(row) == model.explain(row.iloc[0]) == model.explain(dict(row.iloc[0]))
    with pytest.raises(ParameterError, match="row must be a single row, got 2"):
        model.explain(people(2))


@both
def test_parameters_follow_scikit_learn(estimator):
    """Grid searches clone estimators and set their parameters."""
    model = estimator(concentration=1.25, **QUICK)
    assert model.get_params()["concentration"] == 1.25
    twin = clone(model)
    assert twin is not model
    assert twin.get_params() == model.get_params()
    twin.set_params(max_branches=3, density="empirical")
    assert (twin.max_branches, twin.density) == (3, "empirical")
    with pytest.raises(ValueError, match="no_such"):
        twin.set_params(no_such=1)
    assert "concentration=1.25" in repr(model)


@both
def test_nothing_works_before_fit(estimator):
    """Say so, rather than fail on an attribute."""
    model = estimator()
    for call in (
        lambda: model.score_samples(people(3)),
        lambda: model.score_codes(np.zeros((4, 1), np.int32)),
        lambda: model.sample(),
        lambda: model.tree_,
        lambda: model.condition({}),
        lambda: model.save("unused.json"),
    ):
        with pytest.raises(NotFittedError):
            call()
    assert not hasattr(model, "posterior_")
    assert str(model) == repr(model)


@both
def test_same_seed_same_model(estimator):
    """A published tree can be had again."""
    again = estimator(**QUICK, **DECLARED).fit(people())
    assert again.tree_.tree == fitted(estimator).tree_.tree
    assert again.run_ == fitted(estimator).run_
    parallel = estimator(**{**QUICK, "n_jobs": 2}, **DECLARED).fit(people())
    assert parallel.run_ == again.run_
    other = estimator(**{**QUICK, "random_state": 4}, **DECLARED).fit(people())
    assert other.run_ != again.run_
    for seed in (np.random.SeedSequence(5), np.random.default_rng(5), None):
        assert estimator(**{**QUICK, "random_state": seed, "n_steps": 50}).fit(
            people()[["sex", "crew"]]
        )


@both
def test_fit_leaves_the_data_alone(estimator):
    """A frame that changes while it is read would spoil what comes after."""
    frame, weights = people(50), np.ones(50)
    before = frame.copy()
    estimator(**QUICK, **DECLARED).fit(frame, sample_weight=weights)
    pd.testing.assert_frame_equal(frame, before)
    assert (weights == 1).all()


@both
def test_refitting_forgets(estimator):
    """Draws of an earlier fit must not score the rows of a later one."""
    model = estimator(**QUICK, predictive="average").fit(people()[["sex", "crew"]])
    model.score_samples(people()[["sex", "crew"]])
    model.fit(people()[["crew", "age"]])
    fresh = estimator(**QUICK, predictive="average").fit(people()[["crew", "age"]])
    rows = people()[["crew", "age"]]
    assert_array_equal(model.score_samples(rows), fresh.score_samples(rows))


@pytest.mark.parametrize("search", ["anneal+metropolis", "anneal", "metropolis", "tempering"])
def test_every_search_finds_a_tree(search):
    """All of them are offered; the best tree is the best visited."""
    model = LeafCascade(**{**QUICK, "search": search}, **DECLARED).fit(people())
    assert model.log_posterior_ == pytest.approx(
        model.posterior_.log_density(model.tree_), abs=1e-9
    )
    assert model.log_posterior_ >= model.run_.traces["log_density"].max() - 1e-9
    assert model.log_posterior_ > model.posterior_.log_density(Tree.root())
    assert (model.summary_.n_draws > 0) == (search != "anneal")


def test_declared_columns_are_used():
    """Dropped columns are not asked for when scoring, chosen ones come in their order."""
    model = LeafCascade(**QUICK, columns=["crew", "sex"]).fit(people())
    assert model.schema_.names == ("crew", "sex")
    assert model.score_samples(people(3)[["sex", "crew"]]).shape == (3,)
    dropped = LeafCascade(**QUICK, drop=["fare", "age"]).fit(people())
    assert dropped.schema_.names == ("sex", "crew")


def test_missing_cells_as_a_level():
    """Asked for, a missing cell is a value like any other."""
    frame = people().assign(age=lambda f: f["age"].where(f["fare"] < 30))
    with pytest.raises(DataError, match=r'column "age" has .* missing'):
        LeafCascade(**QUICK).fit(frame)
    age = {"age": ["child", "adult", "old"]}
    model = LeafCascade(**QUICK, nominal=None, ordinal=age, drop=["fare"], missing="level").fit(
        frame
    )
    assert np.isfinite(model.score_samples(frame)).all()
    assert model.sample(300, random_state=0)["age"].isna().any()


def test_constant_columns_are_noted():
    """They change nothing, and it is said that they do."""
    model = BranchCascade(**QUICK).fit(people()[["sex", "crew"]].assign(ship="titanic"))
    assert any('"ship" is constant' in note for note in model.summary_.notes)
    assert 2 not in model.tree_.tree.features_used


@both
def test_any_draw_can_be_read(estimator):
    """The second most probable tree may be the one that makes sense."""
    model = fitted(estimator)
    tree = model.run_.draws[-1][-1]
    density = model.density_tree(tree)
    assert density.tree == tree
    assert density.counts[0] == model.tree_.counts[0]
    assert model.density_tree(model.tree_.tree).to_dict() == model.tree_.to_dict()
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
