"""Neighbor compression: what an evaluation, a prediction and a million rows take.

Predictions are of letter's rows, and of mnist_10k's in 50 principal components, in the folder that
the variable BAYESCASCADE_DATA names.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier
from threadpoolctl import threadpool_limits

from bayescascade import NeighborCompressionClassifier
from bayescascade.methods.compress.posterior import PrototypePosterior
from tests.benchmarks.figures import ROOT, Figure, timed
from tests.benchmarks.neighbors import read, scaled

N_ROWS, N_PROTOTYPES, N_COLUMNS, N_CLASSES = 16_000, 640, 16, 26
FOLDER = Path(os.environ.get("BAYESCASCADE_DATA", "."))
MILLION = """
import numpy as np
from bayescascade import NeighborCompressionClassifier
rng = np.random.default_rng(0)
rows = rng.normal(size=(1_000_000, 50))
labels = (rows[:, :3] > 0.0) @ [1, 2, 4]
NeighborCompressionClassifier(
    n_prototypes=2_000, optimizer="minibatch", max_iter=1, batch_size=8_192, dtype="float32",
    standardize="no", n_jobs=2, random_state=0,
).fit(rows, labels)
"""


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_evaluation(dtype, n_threads, report):
    """One objective and gradient, beside the two products that it cannot avoid."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(N_ROWS, N_COLUMNS))
    labels = rng.permutation(np.arange(N_ROWS) % N_CLASSES)
    counts = np.bincount(np.arange(N_PROTOTYPES) % N_CLASSES)
    posterior = PrototypePosterior(rows, labels, counts, dtype=dtype, n_threads=n_threads)
    state = posterior.initial_state(rng)
    points = posterior.layout.points(state).T.astype(dtype)
    given = rows.astype(dtype)

    def products():
        (given @ points).T @ given

    with threadpool_limits(n_threads, "blas"):
        _, unavoidable = timed(products, 10)
    _, seconds = timed(lambda: posterior.log_density_and_gradient(state), 10)
    name = f"objective and gradient, {dtype}, {n_threads} thread(s)"
    report(Figure(name, 1e3 * seconds, "ms", at_most=60, baseline=1e3 * unavoidable))
    report(Figure("  in products of the same sizes", seconds / unavoidable, "", at_most=2))


@pytest.mark.skipif(not (FOLDER / "letter.csv").exists(), reason="needs BAYESCASCADE_DATA")
@pytest.mark.parametrize("name", ["letter", "mnist_10k"])
def test_prediction(name, report):
    """Rows held out, classified by prototypes, 4 % of the rows, and by all rows."""
    split = read(name, FOLDER, 0)
    model = NeighborCompressionClassifier(dtype="float32", n_jobs=2, random_state=0)
    _, seconds = timed(lambda: model.fit(split.rows, split.labels))
    report(Figure(f"{name}: fit", seconds, "s"))
    even = scaled(name, split)
    each = 1e6 / len(split.truth)
    _, ours = timed(lambda: model.predict(split.held_out), 5)
    for algorithm, at_most in (("brute", 25), ("ball_tree", None)):
        whole = KNeighborsClassifier(1, algorithm=algorithm).fit(even.rows, even.labels)
        _, theirs = timed(lambda whole=whole: whole.predict(even.held_out), 2)
        report(Figure(f"  a row, all rows by {algorithm}", each * theirs, "us"))
        if at_most is not None:
            report(Figure("  times as fast", theirs / ours, "", at_least=at_most))
    report(Figure("  a row, prototypes", each * ours, "us", baseline=each * theirs))


def test_memory_of_a_million_rows(report):
    """An epoch of minibatches over 1,000,000 rows of 50 columns, 2,000 prototypes."""
    process = subprocess.Popen([sys.executable, "-c", MILLION], cwd=ROOT)
    (_, status, usage), seconds = timed(lambda: os.wait4(process.pid, 0))
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    report(Figure("1,000,000 x 50, an epoch of minibatches", seconds, "s"))
    report(Figure("  peak memory", peak / 1e9, "GB", at_most=4))
