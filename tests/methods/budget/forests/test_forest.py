"""Forests send rows where scikit-learn's do, and come back the same from records."""

import copy
import json
import threading

import joblib
import numpy as np
import pytest
from hypothesis import given, strategies as st
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from bayescascade.base import threads
from bayescascade.base.errors import ModelFileError, ParameterError
from bayescascade.methods.budget.forests import trees as trees_module
from bayescascade.methods.budget.forests.forest import Forest
from bayescascade.methods.budget.forests.kernels.routing import BLOCK, find_leaves
from bayescascade.methods.budget.forests.trees import LEAF
from tests.methods.budget.forests import reference

ESTIMATORS = {
    "forest": RandomForestClassifier(7, random_state=0),
    "extra trees": ExtraTreesClassifier(5, random_state=1),
    "tree": DecisionTreeClassifier(random_state=2),
    "best first": RandomForestClassifier(5, max_leaf_nodes=9, random_state=3),
    "class weights": RandomForestClassifier(5, class_weight="balanced", random_state=4),
    "no splits": RandomForestClassifier(3, min_samples_leaf=400, random_state=5),
}


def problem(rng, n_rows=300, n_columns=5, n_classes=3, missing=0.0):
    """Return rows with few distinct values, which split on thresholds exactly, and labels."""
    X = rng.integers(0, 12, (n_rows, n_columns)).astype(np.float32) / 4
    X[rng.random(X.shape) < missing] = np.nan
    score = np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]) * 2 + rng.normal(size=n_rows)
    return X, np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))


def sklearn_leaves(estimator, X):
    return estimator.apply(X).reshape(len(X), -1)


@pytest.fixture(params=ESTIMATORS)
def case(request, rng):
    """Return a fitted estimator, its Forest, and rows that it was not fitted to."""
    X, y = problem(rng)
    estimator = copy.deepcopy(ESTIMATORS[request.param])
    estimator.fit(X, y, sample_weight=rng.integers(1, 4, len(y)))
    return estimator, Forest.from_sklearn(estimator), problem(rng)[0]


def assert_same_leaves(estimator, forest, X):
    """Two rows share a leaf here exactly if they do in scikit-learn, whose nodes it numbers."""
    theirs, ours = sklearn_leaves(estimator, X), forest.apply(X)
    assert ours.dtype == np.int32
    for tree in range(forest.n_trees):
        start, end = forest.tree_starts[tree : tree + 2]
        assert np.all((start <= ours[:, tree]) & (ours[:, tree] < end))
        pairs = np.unique(np.column_stack([theirs[:, tree], ours[:, tree]]), axis=0)
        assert len(pairs) == len(np.unique(pairs[:, 0])) == len(np.unique(pairs[:, 1]))
    assert np.all(forest.feature[ours] == LEAF)


def test_rows_go_where_scikit_learn_sends_them(case):
    """A forest that is read must predict as the one that was fitted."""
    estimator, forest, X = case
    assert_same_leaves(estimator, forest, X)
    np.testing.assert_allclose(
        forest.predict_proba(X), estimator.predict_proba(X), rtol=0, atol=1e-12
    )


def test_a_value_is_rounded_to_float32_before_it_is_compared():
    """Thresholds of scikit-learn lie between float32 values; float64 rows may differ."""
    X = np.float32([[1.0], [np.nextafter(np.float32(1), np.float32(2))]])
    tree = DecisionTreeClassifier().fit(X, [0, 1])
    forest = Forest.from_sklearn(tree)
    between = np.linspace(1.0, 1.0000002, 50).reshape(-1, 1)
    np.testing.assert_array_equal(
        forest.predict_proba(between.astype(np.float32)), tree.predict_proba(between)
    )


@pytest.mark.parametrize("estimator", [RandomForestClassifier, ExtraTreesClassifier])
def test_missing_values_go_where_scikit_learn_sends_them(rng, estimator):
    """Also where a split is on being missing alone."""
    X, y = problem(rng, missing=0.3)
    y = y * (1 + np.isnan(X[:, 0]))  # missing is informative: some splits are on it alone
    fitted = estimator(15, random_state=0).fit(X, y)
    forest = Forest.from_sklearn(fitted)
    rows = problem(rng, missing=0.5)[0]
    assert_same_leaves(fitted, forest, rows)
    np.testing.assert_allclose(forest.predict_proba(rows), fitted.predict_proba(rows), atol=1e-12)
    splits = forest.is_split
    assert np.all(np.isfinite(forest.threshold[splits]))
    assert 0 < forest.missing_left.sum() < forest.n_splits


def test_compiled_walks_equal_slow_ones(rng):
    """Costs and probabilities follow from the walk."""
    X, y = problem(rng, missing=0.2)
    forest = Forest.from_sklearn(RandomForestClassifier(4, random_state=0).fit(X, y))
    rows = problem(rng, n_rows=40, missing=0.4)[0]
    trees = reference.nested_trees(forest)
    used = [
        [column in reference.columns_used(trees, row) for column in range(rows.shape[1])]
        for row in rows.tolist()
    ]
    np.testing.assert_array_equal(forest.features_used(rows), used)
    slow = [reference.predict_proba(trees, row) for row in rows.tolist()]
    np.testing.assert_allclose(forest.predict_proba(rows), slow, atol=1e-12)


def test_more_rows_than_a_block(rng):
    """The rows beyond the first block would be left out, or counted twice."""
    X, y = problem(rng, n_rows=BLOCK + 1_000)
    fitted = RandomForestClassifier(2, max_depth=4, max_samples=0.1, random_state=0).fit(X, y)
    forest = Forest.from_sklearn(fitted)
    np.testing.assert_allclose(forest.predict_proba(X), fitted.predict_proba(X), atol=1e-12)
    np.testing.assert_array_equal(
        forest.features_used(X)[-1_500:], forest.features_used(X[-1_500:])
    )


@pytest.mark.parametrize("n_rows", [0, 1, 2, 1_000])
def test_threads_send_every_row_to_where_one_does(n_rows, rng, monkeypatch):
    """Rows at the ends of threads' ranges would be left out, or counted twice."""
    X, y = problem(rng, missing=0.2)
    forest = Forest.from_sklearn(RandomForestClassifier(4, random_state=0).fit(X, y))
    rows = problem(rng, n_rows=max(n_rows, 3), missing=0.4)[0][:n_rows]
    alone = [of(rows) for of in (forest.apply, forest.predict_proba, forest.features_used)]
    monkeypatch.setattr(threads, "_LEAST_THREADED", 0)
    names = set()

    def noting(*arguments):
        names.add(threading.current_thread().name)
        return find_leaves(*arguments)

    monkeypatch.setattr(trees_module, "find_leaves", noting)
    with joblib.parallel_config(n_jobs=3):
        together = [of(rows) for of in (forest.apply, forest.predict_proba, forest.features_used)]
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)
    assert (threading.current_thread().name in names) == (n_rows < 2)


def test_counts_are_the_training_weights(case):
    """Pruning measures errors by them."""
    estimator, forest, _ = case
    splits = np.flatnonzero(forest.is_split)
    both = forest.counts[splits + 1] + forest.counts[forest.right[splits]]
    np.testing.assert_allclose(forest.counts[splits], both, rtol=1e-12)
    if getattr(estimator, "class_weight", None) is None:
        np.testing.assert_array_equal(forest.counts, np.rint(forest.counts))
    np.testing.assert_allclose(
        forest.errors(), [row.sum() - max(row) for row in forest.counts], rtol=0, atol=1e-9
    )


def test_pruning_keeps_what_is_below_kept_splits_only(case, rng):
    """A split whose parent is gone must be gone, too."""
    _, forest, X = case
    is_kept = rng.random(forest.n_nodes) < 0.8
    pruned = forest.pruned(is_kept)
    kept_keys = iter(is_kept[forest.is_split])
    trees = reference.nested_trees(forest)
    marks = {}

    def mark(tree):
        if "column" in tree:
            marks[id(tree)] = bool(next(kept_keys))
            mark(tree["left"])
            mark(tree["right"])

    for tree in trees:
        mark(tree)
    expected = [reference.pruned(tree, lambda node: marks[id(node)]) for tree in trees]
    assert reference.nested_trees(pruned) == expected
    assert np.all(pruned.features_used(X) <= forest.features_used(X))


def test_trees_cut_at_the_root_do_not_outvote_the_others(case):
    """Nine shares of the commonest class would hide what the tenth tree has seen."""
    _, forest, X = case
    nothing = forest.pruned(np.zeros(forest.n_nodes, bool))
    assert nothing.without_bare_roots() is nothing
    split_root = forest.is_split & np.isin(np.arange(forest.n_nodes), forest.roots)
    if not split_root.any():
        return
    tree = int(np.searchsorted(forest.tree_starts, np.argmax(split_root), side="right")) - 1
    node = np.arange(forest.n_nodes)
    of_tree = (node >= forest.tree_starts[tree]) & (node < forest.tree_starts[tree + 1])
    left = forest.pruned(of_tree).without_bare_roots()
    assert left.n_trees == 1
    alone = forest.probabilities[forest.apply(X)[:, tree]]
    np.testing.assert_allclose(left.predict_proba(X), alone, rtol=1e-12)


def test_a_record_comes_back_the_same(case):
    """To the last bit: thresholds decide where rows go."""
    _, forest, X = case
    record = json.loads(json.dumps(forest.to_dict(), allow_nan=False))
    again = Forest.from_dict(record, X.shape[1], forest.n_classes)
    for name in ("tree_starts", "feature", "threshold", "right", "missing_left", "counts"):
        np.testing.assert_array_equal(getattr(again, name), getattr(forest, name), strict=True)


RECORD = {
    "feature": [0, -1, 1, -1, -1, -1],
    "threshold": [0.5, 2],
    "missing_left": [True, False],
    "counts": [[3, 3], [2, 0], [1, 3], [1, 0], [0, 3], [3.5, 2]],
}


def test_a_record_by_hand_is_read():
    """The format that files promise."""
    forest = Forest.from_dict(RECORD, 2, 2)
    assert forest.tree_starts.tolist() == [0, 5, 6]
    assert forest.right.tolist() == [2, -1, 4, -1, -1, -1]
    assert forest.missing_left.tolist() == [True, False, False, False, False, False]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("feature", [0, -1, 1, -1, -1, 0]),  # the last split has no children
        ("feature", [0, -1, 2, -1, -1, -1]),
        ("feature", [0, -2, 1, -1, -1, -1]),
        ("feature", [0, -1, True, -1, -1, -1]),
        ("feature", [0, -1, 1.0, -1, -1, -1]),
        ("feature", []),
        ("threshold", [0.5]),
        ("threshold", [0.5, float("inf")]),
        ("threshold", [0.5, 10**400]),
        ("missing_left", [1, 0]),
        ("counts", [[3, 3], [2, 0], [1, 3], [1, 0], [0, 3]]),
        ("counts", [[3, 3], [2, 0], [1, 3], [1, 0], [0, 3], [0, 0]]),
        ("counts", [[3, 3], [2, 0], [1, 3], [1, 0], [0, 3], [4, -1]]),
    ],
)
def test_forged_records_are_refused(name, value):
    """Kernels look at no bounds."""
    with pytest.raises(ModelFileError, match=r"a (forest|saved model)"):
        Forest.from_dict({**RECORD, name: value}, 2, 2)


@given(st.lists(st.integers(-1, 1), max_size=12))
def test_any_columns_are_whole_trees_or_refused(feature):
    """Kernels look at no bounds: what is accepted must be safe to walk."""
    record = {
        "feature": feature,
        "threshold": [0.0] * sum(column >= 0 for column in feature),
        "missing_left": [False] * sum(column >= 0 for column in feature),
        "counts": [[1, 1]] * len(feature),
    }
    open_ends, complete = 0, bool(feature)  # children that are still to come
    for column in feature:
        open_ends += (open_ends == 0) + (1 if column >= 0 else -1)
    if complete and open_ends == 0:
        forest = Forest.from_dict(record, 2, 2)
        trees = reference.nested_trees(forest)
        assert [len(trees), forest.n_nodes] == [forest.n_trees, len(feature)]
    else:
        with pytest.raises(ModelFileError):
            Forest.from_dict(record, 2, 2)


def test_other_estimators_are_refused(rng):
    """Their trees mean something else."""
    X, y = problem(rng)
    for estimator in (SVC(), DecisionTreeRegressor(), "forest", None):
        with pytest.raises(
            ParameterError, match=r"forest must be a RandomForestClassifier, .* got"
        ):
            Forest.from_sklearn(estimator)
    with pytest.raises(ParameterError, match=r"forest must be fitted, got .*\(max_depth=3\)"):
        Forest.from_sklearn(DecisionTreeClassifier(max_depth=3))
    several = DecisionTreeClassifier().fit(X, np.column_stack([y, y]))
    with pytest.raises(ParameterError, match="forest must predict one output, got 2"):
        Forest.from_sklearn(several)


def test_rows_of_too_few_columns_are_refused(rng):
    """Kernels would read beyond the row."""
    X, y = problem(rng)
    forest = Forest.from_sklearn(RandomForestClassifier(5, random_state=0).fit(X, y))
    for method in (forest.apply, forest.predict_proba, forest.features_used):
        with pytest.raises(ParameterError, match=r"X must have at least 5 columns, .* \(300, 4\)"):
            method(X[:, :4])


def test_forests_are_joined(rng):
    """Each tree must count the same, whichever forest it is from."""
    X, y = problem(rng)
    first = RandomForestClassifier(3, random_state=0).fit(X, y)
    second = RandomForestClassifier(4, random_state=1).fit(X, y)
    joined = Forest.concatenate([Forest.from_sklearn(one) for one in (first, second)])
    expected = (3 * first.predict_proba(X) + 4 * second.predict_proba(X)) / 7
    np.testing.assert_allclose(joined.predict_proba(X), expected, atol=1e-12)
