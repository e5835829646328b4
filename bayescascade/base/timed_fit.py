"""Fitting trees and ensembles of scikit-learn so that a time limit can end them."""

import warnings
from math import log2
from time import perf_counter
from typing import Any

from sklearn.base import clone
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.tree import DecisionTreeClassifier

from bayescascade.base.threads import n_threads_of
from bayescascade.base.watch import Watch, watch_in_use

_WORTH = 0.5  # share of a block's time that must be left to begin one
_USUAL_DEPTH = 1.5  # of a whole tree, in logarithms to base 2 of the number of rows


def fit_in_time(estimator: Any, rows: Any, labels: Any, **given: Any) -> Any:
    """Fit a classifier of scikit-learn, and return it; the current watch may end it early.

    A forest, or boosted trees, then have fewer trees, at least one, and trees are less deep if
    whole ones would take too long. Another classifier is fitted to its end. A fit that ends in
    time, with an integer seed, is the same as one without a limit. `given` are further arguments of
    its `fit`.
    """
    watch = watch_in_use()
    if watch.seconds is not None:
        if isinstance(estimator, GradientBoostingClassifier):
            given["monitor"] = lambda *_: watch.is_over()
        elif isinstance(estimator, RandomForestClassifier | ExtraTreesClassifier):
            return _grown(estimator, rows, labels, watch, given)
        elif isinstance(estimator, DecisionTreeClassifier):
            return _less_deep(estimator, rows, labels, watch, given)
    return estimator.fit(rows, labels, **given)


def _grown(forest: Any, rows: Any, labels: Any, watch: Watch, given: dict[str, Any]) -> Any:
    """Return a forest whose trees are grown in blocks of one for each thread."""
    own = {name: getattr(forest, name) for name in ("warm_start", "oob_score", "max_depth")}
    n_trees, n_grown, block = forest.n_estimators, 0, n_threads_of(forest.n_jobs)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "class_weight presets|Warm-start fitting")
            depth = _depth_in_time(forest, rows, labels, watch, given)
            if depth is not None:
                watch.is_up, n_trees = True, min(n_trees, block)
            depth = depth or own["max_depth"]
            forest.set_params(warm_start=True, oob_score=False, max_depth=depth)
            while n_grown < n_trees:
                began = perf_counter()
                n_grown = min(n_grown + block, n_trees)
                forest.set_params(n_estimators=n_grown).fit(rows, labels, **given)
                if n_grown < n_trees and watch.is_over(_WORTH * (perf_counter() - began)):
                    break
            if own["oob_score"]:  # once, for all trees
                forest.set_params(oob_score=own["oob_score"]).fit(rows, labels, **given)
    finally:
        forest.set_params(**own)
    return forest


def _less_deep(tree: Any, rows: Any, labels: Any, watch: Watch, given: dict[str, Any]) -> Any:
    """Return a tree whose depth is limited by the time left."""
    whole, depth = tree.max_depth, _depth_in_time(tree, rows, labels, watch, given)
    watch.is_up |= depth is not None
    try:
        return tree.set_params(max_depth=depth or whole).fit(rows, labels, **given)
    finally:
        tree.set_params(max_depth=whole)


def _depth_in_time(
    forest: Any, rows: Any, labels: Any, watch: Watch, given: dict[str, Any]
) -> int | None:
    """Return the depth >= 1 of a tree for the time left, None if a usual one is grown in it.

    Rows are divided once in each level of a tree, so a level takes about as long as the first.
    """
    stump, began = clone(forest), perf_counter()
    of_forest = {"n_estimators": 1, "oob_score": False, "warm_start": False}
    known = {name: value for name, value in of_forest.items() if hasattr(forest, name)}
    stump.set_params(max_depth=1, **known).fit(rows, labels, **given)
    most = watch.left / max(perf_counter() - began, 1e-9)
    usual = _USUAL_DEPTH * log2(len(labels))
    usual = usual if forest.max_depth is None else min(usual, forest.max_depth)
    return None if most >= usual else max(1, int(most))
