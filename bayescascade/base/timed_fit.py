"""Fitting ensembles of scikit-learn so that a time limit can end them between two trees."""

import warnings
from time import perf_counter
from typing import Any

from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
)

from bayescascade.base.threads import n_threads_of
from bayescascade.base.watch import Watch, watch_in_use

_WORTH = 0.5  # share of a block's time that must be left to begin one


def fit_in_time(estimator: Any, rows: Any, labels: Any, **given: Any) -> Any:
    """Fit a classifier of scikit-learn, and return it; the current watch may end it early.

    A forest, or boosted trees, then have fewer trees, at least one; another classifier is fitted to
    its end. A fit that ends in time, with an integer seed, is the same as one without a limit.
    `given` are further arguments of its `fit`.
    """
    watch = watch_in_use()
    if watch.seconds is not None:
        if isinstance(estimator, GradientBoostingClassifier):
            given["monitor"] = lambda *_: watch.is_over()
        elif isinstance(estimator, RandomForestClassifier | ExtraTreesClassifier):
            return _grown(estimator, rows, labels, watch, given)
    return estimator.fit(rows, labels, **given)


def _grown(forest: Any, rows: Any, labels: Any, watch: Watch, given: dict[str, Any]) -> Any:
    """Return a forest whose trees are grown in blocks of one for each thread."""
    own = {name: getattr(forest, name) for name in ("warm_start", "oob_score")}
    n_trees, n_grown, block = forest.n_estimators, 0, n_threads_of(forest.n_jobs)
    forest.set_params(warm_start=True, oob_score=False)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "class_weight presets|Warm-start fitting")
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
