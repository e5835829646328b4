"""LightGBM's cost-effective gradient boosting (`cegb_*`), and what its predictions cost.

Benchmarks only; needs `requirements-budget.txt`. "coupled" penalizes a feature once for the whole
ensemble, "lazy" once for every row that it is needed for. LightGBM knows no groups: a member's
penalty has the group's cost in it. What a row pays is counted from the trees: every column on its
path in any tree.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import lightgbm
import numpy as np
from numpy.typing import NDArray

MODES = {
    "coupled": ("cegb_penalty_feature_coupled", (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1e3)),
    "lazy": (
        "cegb_penalty_feature_lazy",
        (1e-4, 1e-3, 0.003, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3),
    ),
}
N_ROUNDS = (1, 3, 10, 30, 100)


class Boosted(NamedTuple):
    """An ensemble cut after some rounds, and by tree the columns on the path to each leaf."""

    booster: lightgbm.Booster
    n_rounds: int
    leaf_features: Sequence[NDArray[np.bool_]]
    classes: NDArray[Any]

    def predict(self, features):
        """Return labels."""
        scores = self.booster.predict(features, num_iteration=self.n_rounds)
        if len(self.classes) == 2:
            return self.classes[(scores > 0.5).astype(int)]
        return self.classes[scores.argmax(axis=1)]

    def features_used(self, features):
        """Return the columns that each row needs, (n_rows, n_columns)."""
        leaves = self.booster.predict(features, num_iteration=self.n_rounds, pred_leaf=True)
        leaves = leaves.reshape(len(features), -1).astype(int)
        used = np.zeros(features.shape, dtype=bool)
        for tree in range(leaves.shape[1]):
            used |= self.leaf_features[tree][leaves[:, tree]]
        return used


def boosted(train, penalties, mode, seed):
    """Yield ensembles over a grid of trade-offs and of numbers of rounds."""
    parameter, tradeoffs = MODES[mode]
    classes, codes = np.unique(train.labels, return_inverse=True)
    objective = (
        {"objective": "binary"}
        if len(classes) == 2
        else {"objective": "multiclass", "num_class": len(classes)}
    )
    for tradeoff in tradeoffs:
        settings = {
            **objective,
            "cegb_tradeoff": tradeoff,
            parameter: penalties.tolist(),
            "num_threads": 1,
            "seed": seed,
            "verbosity": -1,
        }
        data = lightgbm.Dataset(train.features.to_numpy(), codes)
        booster = lightgbm.train(settings, data, num_boost_round=max(N_ROUNDS))
        trees = booster.dump_model()["tree_info"]
        on_path = [_leaf_features(tree, len(penalties)) for tree in trees]
        for n_rounds in N_ROUNDS:
            yield Boosted(booster, n_rounds, on_path, classes)


def _leaf_features(tree, n_columns):
    used = np.zeros((max(1, tree["num_leaves"]), n_columns), dtype=bool)
    waiting = [(tree["tree_structure"], frozenset())]
    while waiting:
        node, path = waiting.pop()
        if "split_feature" not in node:
            used[node.get("leaf_index", 0), list(path)] = True
            continue
        longer = path | {node["split_feature"]}
        waiting += [(node["left_child"], longer), (node["right_child"], longer)]
    return used
