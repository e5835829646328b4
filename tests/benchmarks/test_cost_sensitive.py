"""What a tree whose classifiers move together takes, and penalized regressions beside a thesis.

Rows like letter's and spambase's are drawn, unless BAYESCASCADE_DATA names a folder that has them.
"""

import os
from pathlib import Path
from time import process_time

import pandas as pd
import pytest

from bayescascade import CostSensitiveTreeClassifier, CostWeightedLogisticClassifier
from tests.benchmarks.budget_data import letter_rows
from tests.benchmarks.figures import Figure, timed

FOLDER = os.environ.get("BAYESCASCADE_DATA")
MEASURED = {2.5: (0.070, 54), 5.0: (0.072, 53), 25.0: (0.085, 43), 100.0: (0.108, 27)}
"""Errors and features by liblinear, of penalties of the sum of all losses."""


@pytest.mark.parametrize("loss_at", ["all", "leaves"])
def test_a_tree_of_seven_nodes(loss_at, report):
    """Climbed, cut and refitted, of one thread's seconds; the rows choose themselves."""
    X, y = letter_rows(FOLDER)
    model = CostSensitiveTreeClassifier(tradeoff=0.05, loss_at=loss_at, random_state=0)
    model.fit(X[:1000], y[:1000])
    _, seconds = timed(lambda: model.fit(X, y, X, y), 2, process_time)
    report(Figure(f"12,000 x 16, 7 nodes, loss at {loss_at}", seconds, "s", at_most=1))
    posterior = model.posterior_
    assert len(posterior.tree.nodes) == 7
    _, seconds = timed(
        lambda: posterior.log_density_and_gradient(posterior.start), 20, process_time
    )
    report(Figure("  density and gradient", 1e3 * seconds, "ms", at_most=4.7))


@pytest.mark.skipif(FOLDER is None, reason="needs the folder of data")
def test_penalized_regressions_of_spambase(report):
    """Errors of the rows themselves and features in use, beside liblinear, not refitted."""
    frame = pd.read_csv(Path(str(FOLDER)) / "spambase.csv")
    X, y = frame.drop(columns="target"), frame["target"]
    penalties = [each / len(y) for each in (*MEASURED, 500.0)]
    model = CostWeightedLogisticClassifier(penalties=penalties, refit=False)
    _, seconds = timed(lambda: model.fit(X, y, X, y), 2, process_time)
    report(Figure("5 penalties of spambase", seconds, "s"))
    for found in model.path_:
        name = f"  penalty {found.penalty * len(y):g} / n"
        error, features = MEASURED.get(round(found.penalty * len(y), 6), (None, None))
        most = None if error is None else error + 0.015
        report(Figure(f"{name}, error", 100 * found.error, "%", at_most=most and 100 * most))
        off = None if features is None else features + 4
        report(Figure(f"{name}, features", float(len(found.features)), "", at_most=off))
        assert found.duality_gap <= 1e-6
