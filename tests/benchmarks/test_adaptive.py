"""What boosted trees and linear gates take, beside other libraries' trees; of one thread.

Rows like letter's are drawn, unless BAYESCASCADE_DATA names a folder that has them.
"""

import os
from importlib.util import find_spec
from time import process_time

import numpy as np
import pytest
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from threadpoolctl import threadpool_limits

from bayescascade import AdaptiveClassifier, FeatureCosts
from bayescascade.base.threads import single_threaded
from bayescascade.methods.budget.gated.growing import GateGrowth, Grower
from bayescascade.methods.budget.gated.linear import ColumnScaling
from bayescascade.methods.budget.gated.objective import GateProblem
from bayescascade.methods.budget.gated.selecting import SHARES, Choosing
from tests.benchmarks.budget_data import letter_rows
from tests.benchmarks.figures import Figure, timed

FOLDER = os.environ.get("BAYESCASCADE_DATA")
FEW, MANY = 20, 120  # trees, whose difference leaves out what is done once
ITEMS = FeatureCosts().resolve(list(range(16)))


def _ours(penalty, price):
    X, y = letter_rows(FOLDER)
    grower = Grower.of(X, np.ones(len(X)), ITEMS, GateGrowth(4, 1.0, 1.0, 0.1), penalty)

    def boost(n_trees):
        scores, prices = np.zeros(len(X)), grower.buying(price, np.ones(len(X)))
        for _ in range(n_trees):
            chances = expit(scores)
            grower.grow(prices, y - chances, chances * (1 - chances), scores)

    return boost


def _scikit_learn(n_trees):
    X, y = letter_rows(FOLDER)
    HistGradientBoostingClassifier(
        max_iter=n_trees, max_depth=4, max_leaf_nodes=None, max_bins=63, min_samples_leaf=1,
        early_stopping=False,
    ).fit(X, y)  # fmt: skip


def _lightgbm(n_trees):
    import lightgbm

    X, y = letter_rows(FOLDER)
    settings = {"objective": "binary", "max_depth": 4, "num_leaves": 16, "num_threads": 1,
                "verbosity": -1, "min_sum_hessian_in_leaf": 1.0}  # fmt: skip
    lightgbm.train(settings, lightgbm.Dataset(X, y, params={"max_bin": 63}), n_trees)


def _of_a_tree(boost):
    """Return the seconds of a tree."""
    boost(2)
    few, many = (timed(lambda n=n: boost(n), 5, process_time)[1] for n in (FEW, MANY))
    return float(many - few) / (MANY - FEW)


def test_a_boosted_tree_of_depth_four(report):
    """With its slopes; LightGBM's where it is installed."""
    with threadpool_limits(1):
        once = _of_a_tree(_ours("once", 5.0))
        report(Figure("12,000 x 16, a tree, paid once", 1e3 * once, "ms", at_most=1))
        each = _of_a_tree(_ours("per_row", 1e-3))
        report(Figure("  paid by each row", 1e3 * each, "ms"))
        theirs = _of_a_tree(_scikit_learn)
        report(Figure("  time by scikit-learn's", once / theirs, "x", at_most=1))
        if find_spec("lightgbm"):
            report(Figure("  time by LightGBM's", once / _of_a_tree(_lightgbm), "x", at_most=1.5))


def test_dropping_features_of_linear_gates(report):
    """The path of Adapt-Lin from 16 features down to none, of four limits of the share."""
    X, y = letter_rows(FOLDER)
    losses = np.random.default_rng(0).exponential(0.05, len(X))
    scaled = ColumnScaling.of(X, np.ones(len(X))).scaled(X)
    problem = GateProblem(scaled, y.astype(np.int64), 2, np.ones(len(X)), losses, 1.0, 1.0)
    choosing = Choosing(ITEMS, "auto")
    next(choosing.searched(problem, SHARES))

    def path():
        with single_threaded():
            for _ in choosing.paths(problem, SHARES):
                pass

    report(Figure("Adapt-Lin's path", timed(path, 1, process_time)[1], "s", at_most=10))


@pytest.mark.slow
def test_a_fit_of_boosted_gates(report):
    """Ten tradeoffs, three limits of the share, and two rounds of 150 trees, before a forest."""
    X, y = letter_rows(FOLDER)
    forest = RandomForestClassifier(40, random_state=0)
    model = AdaptiveClassifier(forest, penalty="once", budget=8.0, random_state=0)
    seconds = timed(lambda: model.fit(X, y, X[9000:], y[9000:]), 1, process_time)[1]
    report(Figure("12,000 x 16, boosted gates", seconds, "s", at_most=90))
