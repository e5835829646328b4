"""The estimator: what it learns, keeps and refuses."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances_argmin

import bayescascade
from bayescascade import (
    DataError,
    NeighborCompressionClassifier,
    ParameterError,
    PrototypePosterior,
)
from bayescascade.methods.compress.learned import Compressed
from bayescascade.methods.compress.minibatches import around, climb_by_minibatches
from bayescascade.methods.compress.neighborhoods import ClassedRows
from bayescascade.methods.compress.starting import shares_of_classes
from tests.methods.compress.problems import blobs, strokes

QUICK = {"max_iter": 30, "random_state": 0}


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[::2], y[::2], X[1::2], y[1::2]


@pytest.fixture(scope="module")
def fitted(digits):
    return NeighborCompressionClassifier(random_state=0).fit(*digits[:2])


@pytest.mark.slow
def test_four_percent_of_the_rows_do(digits, fitted):
    """Prototypes beat as many rows, and come near all of them."""
    X, y, X_test, y_test = digits
    error = np.mean(fitted.predict(X_test) != y_test)
    rng = np.random.default_rng(0)
    chosen = np.concatenate([rng.choice(np.flatnonzero(y == c), 4) for c in range(10)])
    few = np.mean(y[chosen][pairwise_distances_argmin(X_test, X[chosen])] != y_test)
    every = np.mean(y[pairwise_distances_argmin(X_test, X)] != y_test)
    assert fitted.n_kept_ == 36
    assert error < 0.5 * few
    assert error < every + 0.02


@pytest.mark.slow
def test_more_prototypes_err_no_more_than_fewer():
    """Where held-out rows choose the prior; a narrow one draws many to the mean of their class."""
    X, y = strokes(1_000, 0)
    new_X, new_y = strokes(5_000, 1)

    def lost(prior_scale):  # in standard errors
        few, many = (
            NeighborCompressionClassifier(
                compression=part, prior_scale=prior_scale, standardize="no", random_state=0
            ).fit(X, y)
            for part in (0.08, 0.16)
        )
        paired = (many.predict(new_X) != new_y) * 1.0 - (few.predict(new_X) != new_y)
        return paired.mean() / (paired.std() / np.sqrt(len(paired)))

    assert lost("auto") < 1.0
    assert lost(2.0) > 4.0


def test_votes_err_less_than_the_nearest_where_classes_overlap():
    """The likelihood is of votes; with many prototypes the nearest one is of either class."""

    def rows(n_rows, seed):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n_rows, 8))
        return X, rng.random(n_rows) < 1 / (1 + np.exp(-2 * X[:, 0]))

    new_X, new_y = rows(5_000, 1)
    options = {"compression": 0.16, "standardize": "no", "random_state": 0}
    models = [NeighborCompressionClassifier(**options), NeighborCompressionClassifier(**options)]
    models[1].set_params(rule="nearest")
    votes, nearest = (model.fit(*rows(300, 0)).predict(new_X) != new_y for model in models)
    paired = nearest * 1.0 - votes
    assert paired.mean() > 4.0 * paired.std() / np.sqrt(len(paired))


def test_what_chose_the_prior_is_printed_and_saved(tmp_path):
    X, y = blobs(200)
    model = NeighborCompressionClassifier(n_prototypes=9, prior_scale="auto", **QUICK).fit(X, y)
    assert model.prior_scale_ in (2.0, 16.0)
    words = f"prior scale {model.prior_scale_:g}, chosen on 39 held-out rows"
    assert words in str(model).splitlines()
    model.save(tmp_path / "m.json")
    again = bayescascade.load(tmp_path / "m.json")
    assert (str(again), again.prior_scale_) == (str(model), model.prior_scale_)


@pytest.mark.parametrize(
    ("factor", "nearness"),
    [([3.0, 0.1], 1.0), ([0.3, 0.1], 0.1), ([[0.3, 0.1]], 0.2)],
)
def test_prototypes_far_from_rows_move_more_freely(factor, nearness):
    """All of them vote there: they are known less well, and their steps are longer."""
    X, labels = blobs(40, 2, 2)
    learned = Compressed(np.zeros((2, 2)), np.arange(2), np.array(factor))
    posterior = around(learned, np.array([9.0, 16.0]), X, labels, classes=np.array(["a", "b"]))
    plain = PrototypePosterior(X, labels, [1, 1], fixed_metric=[0.0, 0.0], metric="diagonal")
    precision = nearness**2 * np.array([3.0, 3.0, 4.0, 4.0])
    np.testing.assert_allclose(posterior.scales, 1 / precision)
    np.testing.assert_allclose(posterior.lengths, plain.lengths / nearness)


def test_prototypes_are_in_the_units_of_the_rows(digits, fitted):
    """A user looks at them."""
    X, y, *_ = digits
    assert fitted.prototypes_.shape == (36, 64)
    assert sorted(set(fitted.prototype_labels_)) == list(range(10))
    zeros = fitted.prototypes_[fitted.prototype_labels_ == 0].mean(axis=0)
    means = np.array([X[y == c].mean(axis=0) for c in range(10)])
    assert np.argmin(np.sum((means - zeros) ** 2, axis=1)) == 0


@pytest.mark.parametrize("metric", ["scaled", "diagonal", "linear"])
@pytest.mark.parametrize("algorithm", ["brute", "ball_tree"])
def test_scikit_learn_takes_the_prototypes(metric, algorithm):
    X, names = blobs(120)
    y = np.unique(names, return_inverse=True)[1]  # scikit-learn 1.6 fails on text here
    model = NeighborCompressionClassifier(n_prototypes=9, metric=metric, **QUICK).fit(X, y)
    plain = model.to_sklearn(algorithm=algorithm)
    np.testing.assert_array_equal(plain.predict(X), model.predict(X))
    near = model.transform(X)
    distances, _ = plain.kneighbors(X[:5], 1)
    nearest = model.transform(model.prototypes_)
    expected = np.sqrt(((near[:5, None] - nearest) ** 2).sum(axis=2)).min(axis=1)
    ratio = distances.ravel() / expected
    assert ratio == pytest.approx(ratio[0])


def test_rules_agree_where_there_is_one_prototype_a_class():
    X, y = blobs(120)
    model = NeighborCompressionClassifier(n_prototypes=3, **QUICK).fit(X, y)
    nearest = model.predict(X)
    model.set_params(rule="stochastic")
    np.testing.assert_array_equal(model.predict(X), nearest)
    soft = model.predict_proba(X)
    assert ((soft > 0) & (soft < 1)).all()
    np.testing.assert_allclose(soft.sum(axis=1), 1)
    votes = model.set_params(rule="neighbors", n_neighbors=3).predict_proba(X)
    np.testing.assert_allclose(votes, 1 / 3)


@pytest.mark.parametrize("seed", range(2))
def test_classes_that_share_all_places_are_told_by_most_rows(seed):
    """The likelihood is of votes of many prototypes in one place; the nearest is anyone's."""
    rng = np.random.default_rng(seed)
    X = rng.integers(2, size=(1000, 3)).astype(float)
    shares = np.where(X.all(axis=1), 0.7, 0.2 + 0.1 * X[:, 0])
    y = np.where(rng.random(1000) < shares, "rare", "usual")
    model = NeighborCompressionClassifier(random_state=seed).fit(X, y)
    assert model.n_kept_ == 40
    assert model.score(X, y) >= np.mean(y == "usual")
    plain = model.to_sklearn().predict(X)
    assert np.mean(plain == y) >= np.mean(y == "usual")


def test_weights_count_as_rows():
    """Rows of weight zero are not there; where classes mix, weights decide, in all three steps."""
    X, y = blobs(n_rows=90)
    options = {"n_prototypes": 6, "random_state": 0}
    without = NeighborCompressionClassifier(**options).fit(X[:60], y[:60])
    more = NeighborCompressionClassifier(**options).fit(X, y, sample_weight=np.arange(90) < 60)
    np.testing.assert_array_equal(more.prototypes_, without.prototypes_)
    mixed, label = np.random.default_rng(0).normal(size=(200, 2)), np.arange(200) % 2
    for heavy in (0, 1):
        weights = np.where(label == heavy, 9.0, 1.0)
        for rule in ("nearest", "stochastic"):
            found = NeighborCompressionClassifier(n_prototypes=2, rule=rule, random_state=0)
            named = found.fit(mixed, label, sample_weight=weights).predict(mixed)
            assert (named == heavy).mean() > 0.8
    with pytest.raises(DataError, match="sample_weight must be > 0 for a row of each class"):
        NeighborCompressionClassifier().fit(mixed, label, sample_weight=label)


def test_a_constant_column_has_no_say():
    """Rounding gives a column of 0.1 a spread of 1e-17: one new value would outweigh all others."""
    X, y = blobs(n_rows=90)
    X = np.column_stack([X, np.full(90, 0.1)])
    new = X.copy()
    new[:, -1] = 0.2
    model = NeighborCompressionClassifier(n_prototypes=6, standardize="yes", random_state=0).fit(
        X, y
    )
    np.testing.assert_array_equal(model.predict(new), model.predict(X))


def test_no_class_is_left_without_a_prototype():
    """Giving one back to its class must not take the last from another: files would be refused."""
    points = np.array([[0.0], [10.0], [20.0]])
    places, labels, times = np.array([0, 0, 10, 10, 20]), [0, 1, 1, 2, 2], [1, 3, 1, 3, 3]
    rows = np.repeat(places, times)[:, np.newaxis]
    model = Compressed(points, np.arange(3), np.ones(1))
    found = model.relabeled(rows, np.repeat(labels, times))
    assert found.labels.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(found.points, points)


def test_whoever_is_worse_than_the_most_frequent_class_is_told():
    """Votes of two prototypes are equal, and the first class wins, which is the rarer."""
    X, y = blobs(120, 2, 2)
    X[y == "a"] += 5.0
    chosen = np.concatenate([np.flatnonzero(y == "a")[:15], np.flatnonzero(y == "b")])
    model = NeighborCompressionClassifier(n_prototypes=2, rule="neighbors", n_neighbors=2, **QUICK)
    words = "misclassify more rows than always predicting the most common class"
    with pytest.warns(ConvergenceWarning, match=words) as caught:
        model.fit(X[chosen], y[chosen])
    assert caught[0].filename == __file__
    assert words in " ".join(str(model).split())
    model.set_params(rule="nearest").fit(X[chosen], y[chosen])  # silent
    assert words not in " ".join(str(model).split())


def test_draws_tell_how_sure_predictions_are():
    """Between two classes they disagree, far from the boundary they do not."""
    X, y = blobs(200, 2, 2, seed=4)
    options = {"search": "ascent+langevin", "n_chains": 2, "n_steps": 400, "predictive": "average"}
    model = NeighborCompressionClassifier(n_prototypes=4, **options, **QUICK).fit(X, y)
    means = np.array([X[y == c].mean(axis=0) for c in "ab"])
    apart = means[1] - means[0]
    places = np.array([means[0] - 2 * apart, means.mean(axis=0), means[1] + 2 * apart])
    shares = model.predict_proba(places)[:, 0]
    assert shares[0] > 0.95 > shares[1] > 0.05 > shares[2]
    assert "R-hat" in str(model)


def test_every_class_has_its_share():
    sizes = np.array([1, 10, 89])
    assert shares_of_classes(3, sizes).tolist() == [1, 1, 1]
    assert shares_of_classes(10, sizes).tolist() == [1, 1, 8]
    assert shares_of_classes(100, sizes).tolist() == [1, 10, 89]
    rng = np.random.default_rng(0)
    for _ in range(50):
        sizes = rng.integers(1, 40, size=5)
        wanted = int(rng.integers(5, sizes.sum() + 1))
        counts = shares_of_classes(wanted, sizes)
        assert counts.sum() == wanted
        assert (counts >= 1).all()
        assert (counts <= sizes).all()


def test_prototypes_of_each_class_can_be_told():
    X, y = blobs()
    model = NeighborCompressionClassifier(n_prototypes={"a": 1, "b": 4, "c": 2}, **QUICK)
    labels = model.fit(X, y).prototype_labels_
    assert labels.tolist() == list("abbbbcc")


def test_the_units_of_columns_do_not_matter_where_they_are_standardized():
    """A column in dollars beside one in years."""
    X, y = blobs(150)
    units = np.array([1e-6, 1.0, 1e6])
    options = {"standardize": "yes", "n_prototypes": 9, **QUICK}
    one = NeighborCompressionClassifier(**options).fit(X, y)
    other = NeighborCompressionClassifier(**options).fit(X * units + 7 * units, y)
    np.testing.assert_allclose(
        other.prototypes_, one.prototypes_ * units + 7 * units, rtol=1e-4, atol=1e-9
    )
    chosen = NeighborCompressionClassifier(n_prototypes=9, **QUICK).fit(X * units, y)
    assert np.mean(chosen.predict(X * units) == y) > np.mean(
        NeighborCompressionClassifier(n_prototypes=9, standardize="no", **QUICK)
        .fit(X * units, y)
        .predict(X * units)
        == y
    )


def test_minibatches_come_near_the_top():
    X, y = blobs(600, 2)
    start = {"n_prototypes": 9, "random_state": 0}
    full = NeighborCompressionClassifier(**start).fit(X, y)
    batches = NeighborCompressionClassifier(
        **start, optimizer="minibatch", batch_size=50, max_iter=60
    ).fit(X, y)
    begun = NeighborCompressionClassifier(**start, max_iter=1).fit(X, y)
    gained = batches.log_posterior_ - begun.log_posterior_
    assert gained > 0.5 * (full.log_posterior_ - begun.log_posterior_)


class Slope:
    """A density that climbs by one everywhere, of twenty rows."""

    rows, lengths = ClassedRows(np.ones((20, 2)), np.array([0, 20])), np.ones(1)

    def density_of(self, *given):
        return float(given[-1][0]), np.ones(1)


def test_minibatches_end_in_the_mean_of_their_last_half(rng):
    """A single state still jumps with the rows that were drawn last."""
    found, is_ended = climb_by_minibatches(Slope(), np.zeros(1), rng, batch_size=2, n_epochs=1)
    states = np.cumsum(0.05 * (1.0 - np.arange(10) / 10))  # steps of Adam, less and less
    assert not is_ended
    assert found == pytest.approx(states[5:].mean(), rel=1e-6)


def test_refining_learns_what_is_new(tmp_path):
    """A class moves; rows of the others leave theirs about where they were."""
    X, y = blobs(300, 2, seed=2)
    model = NeighborCompressionClassifier(n_prototypes=9, **QUICK).fit(X, y)
    model.save(tmp_path / "m.json")
    moved = X + np.where(y == "a", 3.0, 0.0)[:, np.newaxis]
    before = np.mean(model.predict(moved) == y)
    again = bayescascade.load(tmp_path / "m.json")
    for one in (model, again):
        labels = one.prototype_labels_
        one.refine(moved, y, n_epochs=20)
        assert np.mean(one.predict(moved) == y) > before + 0.05
        np.testing.assert_array_equal(one.prototype_labels_, labels)
        assert one.n_rows_ == 600
    with pytest.raises(DataError, match='y must have the classes of y, got "d" in row 1'):
        model.refine(X[:2], ["d", "a"])
    model.refine(X[y == "b"], y[y == "b"])  # not all classes are needed


def test_what_is_set_later_does_not_change_what_was_learned():
    """A parameter of fitting is one; the metric that prototypes stand in stays."""
    X, y = blobs(200)
    model = NeighborCompressionClassifier(n_prototypes=9, **QUICK).fit(X, y)
    again = NeighborCompressionClassifier(n_prototypes=9, **QUICK).fit(X, y)
    model.set_params(metric="linear").refine(X, y)
    again.refine(X, y)
    np.testing.assert_allclose(model.prototypes_, again.prototypes_, rtol=1e-6)


def test_a_frame_of_prototypes_has_all_columns():
    X, y = blobs()
    frame = pd.DataFrame(X, columns=["u", "v", "label"])
    model = NeighborCompressionClassifier(n_prototypes=4, **QUICK).fit(frame, y)
    assert list(model.prototypes_frame("kind")) == ["u", "v", "label", "kind"]
    with pytest.raises(ParameterError, match="target must be the name of no column"):
        model.prototypes_frame()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_prototypes": 61}, "n_prototypes must be an integer from 3 to 60"),
        ({"n_prototypes": 2}, "n_prototypes must be an integer from 3 to 60"),
        ({"n_prototypes": {"a": 21, "b": 1, "c": 1}}, "n_prototypes of class a must be"),
        ({"n_prototypes": {"a": 2}}, "n_prototypes must be of each class"),
        ({"rule": "neighbors", "n_neighbors": 5, "n_prototypes": 4}, "n_neighbors must be"),
    ],
)
def test_bad_parameters_are_named(options, words):
    with pytest.raises(ParameterError, match=words):
        NeighborCompressionClassifier(**{**QUICK, **options}).fit(*blobs())


def test_rows_with_missing_cells_are_learned_from(tmp_path):
    """That a cell is missing may tell the class; the same cells are read alike later."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"u": rng.normal(size=300), "v": rng.choice(list("xyz"), 300)})
    y = rng.random(300) < 0.5
    frame["u"] = frame["u"].where(~y, np.nan)
    frame.loc[:20, "v"] = None
    model = NeighborCompressionClassifier(n_prototypes=6, **QUICK).fit(frame, y)
    assert model.score(frame, y) == 1.0
    assert "missing u: imputed by the median, plus an indicator column" in str(model)
    model.save(tmp_path / "model.json")
    again = bayescascade.load(tmp_path / "model.json")
    np.testing.assert_array_equal(again.predict(frame), y)


def test_bad_rows_are_named():
    X, y = blobs()
    model = NeighborCompressionClassifier(**QUICK)
    frame = pd.DataFrame(X, columns=["u", "v", "w"])
    with pytest.raises(DataError, match='column "v" has a missing cell'):
        model.set_params(missing="error").fit(frame.assign(v=np.nan), y)
    with pytest.raises(DataError, match="at least two classes"):
        model.fit(X, ["a"] * len(X))
    model.fit(frame.assign(v=3.0), y)  # a column that says nothing
    assert model.prototypes_[:, 1] == pytest.approx(3.0)
