"""Rados: what making them of a million rows takes, and a thousand rounds."""

import math
import os
import subprocess
import sys

import numpy as np
from sklearn.ensemble import AdaBoostClassifier

from bayescascade import Rados
from bayescascade.methods.rados.boosting import boost
from bayescascade.methods.rados.protection import cut_of, draw_agreements
from bayescascade.methods.rados.signatures import draw_subsets
from tests.benchmarks.figures import ROOT, Figure, timed

MILLION = """
import resource, time
import numpy as np
from bayescascade import Rados
rng = np.random.default_rng(0)
X, y = rng.normal(size=(1_000_000, 20)), rng.random(1_000_000) < 0.5
Rados.sample(X[:50], y[:50], 5, support=9)  # loads what is compiled
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for support in (None, 200):
    began = time.perf_counter()
    Rados.sample(X, y, 1_000, support=support, random_state=0)
    print(time.perf_counter() - began)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_a_million_rows(report):
    """1,000 rados of 1,000,000 x 20, in a process of its own."""
    text = subprocess.run(
        [sys.executable, "-c", MILLION], cwd=ROOT, capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    plain, fixed, kilobytes = map(float, text.stdout.split())
    report(Figure("1,000 rados of 1,000,000 x 20", plain, "s", at_most=10))
    report(Figure("  of support 200", fixed, "s", at_most=10))
    report(Figure("  memory over the data", kilobytes / 1e6, "GB", at_most=1))


def test_rounds(report):
    """1,000 rounds on 1,000 rados of 100 features, beside scikit-learn's AdaBoost on the rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2_000, 100))
    y = X[:, :10].sum(axis=1) + rng.normal(size=2_000) > 0
    rados = Rados.sample(X, y, 1_000, random_state=0)
    _, theirs = timed(lambda: AdaBoostClassifier(n_estimators=50).fit(X, y))
    for learner in ("best", "prudential"):
        _, seconds = timed(lambda how=learner: boost(rados.values, 1_000, weak_learner=how), 3)
        report(Figure(f"1,000 rounds, {learner}", seconds, "s", at_most=0.5))
    report(Figure("50 rounds of scikit-learn's AdaBoost, times 20", 20 * theirs, "s"))


def test_truncated_signatures(report):
    """100 of 2,000 rows for an epsilon of 0.25 in all, beside theorem 7's rejection."""
    rng = np.random.default_rng(0)
    cut = cut_of(2_000, 1 / (1 + math.exp(0.25 / 200)))

    def rejected():
        for _ in range(100):
            while not cut <= np.count_nonzero(rng.random(2_000) < 0.5) <= 2_000 - cut:
                pass

    def drawn():
        sizes, _ = draw_agreements(rng.bytes, 2_000, cut, 100)
        draw_subsets(rng.bytes, 2_000, 100, sizes)

    drawn()
    _, slow = timed(rejected)
    _, quick = timed(drawn, 5)
    report(Figure("100 truncated signatures of 2,000 rows", 1e3 * quick, "ms"))
    report(Figure("  by rejection", 1e3 * slow, "ms", baseline=1e3 * quick))


def test_private_noise(report):
    """Exact Gaussian noise on rados and on edges."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2_000, 9)), rng.random(2_000) < 0.5
    for noise_on, n_values in (("edges", 20_000), ("rados", 1_000)):
        given = {"epsilon": 1.0, "delta": 1e-6, "edge_bounds": (-3.0, 3.0), "n_rados": 100}
        _, seconds = timed(lambda on=noise_on, how=given: Rados.sample_gaussian(
            X, y, noise_on=on, **how))  # fmt: skip
        report(Figure(f"exact noise on {noise_on}, a value", 1e3 * seconds / n_values, "ms"))
