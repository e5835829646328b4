"""What growing a tree of linear classifiers takes, beside one whose classifiers move together.

Rows like letter's are drawn, unless BAYESCASCADE_DATA names a folder that has them.
"""

import os
import resource
from time import process_time

import numpy as np
import pytest

from bayescascade import CostSensitiveTreeClassifier, FeatureCosts, SubmodularTreeClassifier
from bayescascade.methods.budget.classifier_trees.basis import Basis
from bayescascade.methods.budget.classifier_trees.growing import GrowingRows, NodeGrowth, grow
from tests.benchmarks.budget_data import letter_rows
from tests.benchmarks.figures import Figure, timed

FOLDER = os.environ.get("BAYESCASCADE_DATA")


@pytest.mark.parametrize(("basis", "at_most"), [("linear", 0.1), ("bins", 0.5)])
def test_a_tree_of_depth_five(basis, at_most, report):
    """One tree of 31 nodes, of one thread's seconds: as printed, and with logistic leaves."""
    X, y = letter_rows(FOLDER)
    items = FeatureCosts().resolve(range(16))
    for leaf in ("least_squares", "logistic"):

        def whole(leaf=leaf):
            made = Basis.of(basis, X, np.arange(16))
            rows = GrowingRows.of(made, X, y.astype(np.int64), np.ones(len(y)), 2)
            return len(grow(rows, items, NodeGrowth((2.0,), leaf=leaf)).nodes)

        assert whole() == 31
        _, seconds = timed(whole, 3, process_time)
        report(Figure(f"12,000 x 16, depth 5, {basis}, {leaf}", seconds, "s", at_most=at_most))


def test_a_tree_of_seven_nodes_beside_one_learned_together(report):
    """Both of linear classifiers and depth 3, chosen by the rows themselves."""
    X, y = letter_rows(FOLDER)
    seconds = []
    for model in (
        CostSensitiveTreeClassifier(tradeoff=0.05, max_depth=3, random_state=0),
        SubmodularTreeClassifier(basis="linear", node_budget=3.0, max_depth=3, random_state=0),
    ):
        model.fit(X[:1000], y[:1000])
        seconds.append(timed(lambda model=model: model.fit(X, y, X, y), 3, process_time)[1])
    together, one = seconds
    report(Figure("7 nodes, learned one by one", 1e3 * one, "ms"))
    report(Figure("  speed by that of learning together", together / one, "x", at_least=5))


@pytest.mark.slow
def test_a_large_table(report):
    """141,397 rows of 519 columns, as a table of web pages has; seconds of one thread, and GB."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(141_397, 519))
    y = np.where(X[:, 0] > 0, X[:, 1:4].sum(axis=1), X[:, 4:9].sum(axis=1)) > 0
    model = SubmodularTreeClassifier(node_budget=4.0, max_depth=5, random_state=0)
    _, seconds = timed(lambda: model.fit(X, y), 1, process_time)
    report(Figure("141,397 x 519, depth 5", seconds, "s", at_most=60))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    report(Figure("  most memory", peak, "GB", at_most=4))
