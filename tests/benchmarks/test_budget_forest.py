"""How long a budgeted forest takes to grow, beside scikit-learn's random forest.

Rows like covertype's are drawn, unless the variable BAYESCASCADE_DATA names a folder that has them.
"""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from bayescascade import BudgetedForestClassifier
from tests.benchmarks.figures import Figure, timed
from tests.benchmarks.workloads import rows_like_covertype

N_ROWS, N_TREES, N_ROUNDS = 15_000, 40, 3


@pytest.fixture(scope="module")
def rows():
    """Return rows and labels."""
    folder = os.environ.get("BAYESCASCADE_DATA")
    if folder is not None:
        frame = pd.read_csv(Path(folder) / "covertype.csv.gz")[:N_ROWS]
        labels = frame.pop("target").to_numpy()
        return frame.to_numpy(np.float32), labels
    return rows_like_covertype(N_ROWS)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("settings", [{}, {"thresholds": "random"}, {"max_features": "sqrt"}])
def test_growing(settings, n_jobs, rows, report):
    """Forty trees; scikit-learn's look at the square root of the columns for each split."""
    plain = RandomForestClassifier(N_TREES, n_jobs=n_jobs, random_state=0)
    budgeted = BudgetedForestClassifier(
        max_trees=N_TREES, n_jobs=n_jobs, random_state=0, **settings
    )
    first = timed(lambda: budgeted.fit(*rows))[1]
    ours, theirs = [], []
    for _ in range(N_ROUNDS):  # in turns: other work on the machine slows both
        theirs.append(timed(lambda: plain.fit(*rows))[1])
        ours.append(timed(lambda: budgeted.fit(*rows))[1])
    text = ", ".join(f"{name}={value}" for name, value in settings.items()) or "all cuts"
    name = f"{N_TREES} trees, {N_ROWS:,} x 54, {text}, n_jobs={n_jobs}"
    report(Figure(name, min(ours), "s", at_most=5.0 * min(theirs), baseline=min(theirs)))
    report(Figure("  first call", first, "s"))
