"""Additive noise models: the time of a score and of a fit, beside causal-learn's.

causal-learn runs in the Python that the variable CAUSAL_LEARN_PYTHON names, or in this one.
"""

import os
import subprocess
import sys
from contextlib import closing

import numpy as np
import pytest

from bayescascade import AdditiveNoiseModel
from bayescascade.base.threads import single_threaded
from bayescascade.methods.causal.regression import GaussianFeatures
from bayescascade.methods.causal.scores import hsic_root
from tests.benchmarks.causal import MOST_ROWS, CausalLearn
from tests.benchmarks.causal_data import Pair, drawn
from tests.benchmarks.figures import Figure, timed

N_ROWS = 2_000
INTERPRETER = os.environ.get("CAUSAL_LEARN_PYTHON", sys.executable)
RNG = np.random.default_rng(0)
CAUSE = RNG.uniform(-1.0, 1.0, N_ROWS)
PAIR = Pair("tanh", CAUSE, np.tanh(3.0 * CAUSE) + 0.2 * RNG.normal(size=N_ROWS), is_forward=True)


def test_hsic(report):
    """The score of 2,000 rows by features, beside the two kernel matrices of its definition."""
    kernel, other = (GaussianFeatures.around(column, 0.2) for column in (PAIR.x, PAIR.y))

    def by_matrices():
        centered = []
        for column in (PAIR.x, PAIR.y):
            matrix = np.exp(-0.5 * ((column[:, np.newaxis] - column) / 0.2) ** 2)
            matrix -= matrix.mean(axis=0)
            centered.append(matrix - matrix.mean(axis=1, keepdims=True))
        return float(np.sqrt(np.sum(centered[0] * centered[1])) / (N_ROWS - 1))

    with single_threaded():
        found, seconds = timed(lambda: hsic_root(PAIR.x, PAIR.y, kernel, other), 5)
        expected, slow = timed(by_matrices, 2)
    assert found == pytest.approx(expected, abs=1e-9)
    name = f"root of HSIC, {N_ROWS:,} rows"
    report(Figure(name, 1e3 * seconds, "ms", at_most=50))
    report(Figure("  times as fast as by matrices", slow / seconds, ""))


def test_beside_causal_learn(report):
    """The fit of 2,000 rows, beside causal-learn's of 500 of them."""
    command = [INTERPRETER, "-c", "import causallearn"]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("causal-learn is not installed")
    model, few = AdditiveNoiseModel(random_state=0), drawn(PAIR, MOST_ROWS)
    with closing(CausalLearn(INTERPRETER)) as theirs:
        theirs.gap(few)  # which imports it
        _, slow = timed(lambda: theirs.gap(few), 2)
    for pair in (few, PAIR):
        _, seconds = timed(lambda pair=pair: model.fit(pair.x, pair.y), 3)
        assert model.direction_ == "x->y"
        report(Figure(f"fit by hsic, {len(pair.x):,} rows", seconds, "s"))
        report(Figure(f"  times as fast as causal-learn's of {len(few.x):,}", slow / seconds, ""))
    report(Figure(f"causal-learn's fit, {len(few.x):,} rows", slow, "s"))
