"""Forests of regression trees that say of each row what trees say that did not draw it."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestRegressor

Floats = NDArray[np.float64]

MOST_ROWS = 8_000
"""Of a tree, drawn with replacement."""

_CHOOSING = 30  # trees by which a least leaf is chosen


class Growth(NamedTuple):
    """How trees grow."""

    n_trees: int
    leaves: tuple[int, ...]  # to choose from: a leaf has at least one in this many rows
    least_leaf: int
    max_features: float
    seed: int
    n_jobs: int | None


def grow(rows: Floats, labels: Floats, weights: Floats, how: Growth) -> tuple[Any, Floats]:
    """Return a fitted RandomForestRegressor, and what it says of each row without having drawn it.

    Rows (n, d), labels and weights (n,); the leaves are those of least squares held out.

    A tree that draws no row twice would know its label: rows that all trees drew are not held out,
    of which there are none for thirty trees and more.
    """
    n_drawn = min(len(rows), MOST_ROWS)
    found = []
    for part in how.leaves:
        forest = RandomForestRegressor(
            how.n_trees if len(how.leaves) == 1 else min(_CHOOSING, how.n_trees),
            min_samples_leaf=max(how.least_leaf, n_drawn // part), oob_score=True,
            max_features=how.max_features, max_samples=n_drawn / len(rows),
            random_state=how.seed, n_jobs=how.n_jobs, warm_start=True,
        ).fit(rows, labels, weights)  # fmt: skip
        found.append((float(weights @ (labels - forest.oob_prediction_) ** 2), forest))
    forest = min(found, key=lambda each: each[0])[1]
    if forest.n_estimators < how.n_trees:
        forest.set_params(n_estimators=how.n_trees).fit(rows, labels, weights)
    forest.set_params(n_jobs=None)  # threads would add up what trees say in any order
    return forest, np.asarray(forest.oob_prediction_, np.float64)
