"""Boxes: proposals a second, proofs, areas under hulls, and fits of many rows.

Sets are those of the folder that the variable BAYESCASCADE_DATA names.
"""

import os
import subprocess
import sys
import warnings
from pathlib import Path
from time import process_time

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from bayescascade import BoxClassifier, BoxPosterior, hull_area
from bayescascade.methods.boxes.exact.levels import Costs, LevelRows, balanced
from bayescascade.methods.boxes.exact.search import best_union, solve_program
from tests.benchmarks.figures import ROOT, Figure, timed

FOLDER = Path(os.environ.get("BAYESCASCADE_DATA", "."))
needs_data = pytest.mark.skipif(
    not (FOLDER / "keel_glass0.csv").exists(), reason="needs BAYESCASCADE_DATA"
)
AREAS = {
    "glass0": 0.954, "glass5": 0.998, "ecoli3": 0.965, "yeast3": 0.972, "page_blocks0": 0.987,
    "vehicle0": 0.984, "abalone19": 0.833, "haberman": 0.740, "pima": 0.834,
}  # fmt: skip
"""Of pooled unions measured before, of which these may be 0.005 short."""

OTHERS = {
    "forest": RandomForestClassifier(300, class_weight="balanced", random_state=0),
    "logistic regression": make_pipeline(
        StandardScaler(), LogisticRegression(class_weight="balanced", max_iter=1000)
    ),
    "support vectors": make_pipeline(StandardScaler(), SVC(class_weight="balanced")),
    "boosting": HistGradientBoostingClassifier(class_weight="balanced", random_state=0),
}

MANY = """
import resource, sys
import numpy as np
from bayescascade import BoxClassifier
n = int(sys.argv[1])
rng = np.random.default_rng(0)
X = rng.normal(size=(n, 10))
y = rng.random(n) < np.where((X[:, 0] > 1.5) & (X[:, 1] > 0.9), 0.6, 0.0055)
BoxClassifier(random_state=0, n_jobs=1).fit(X, y)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)
"""


def read(name):
    """Return rows of numbers, and which are of the rarer class."""
    path = FOLDER / f"keel_{name}.csv"
    frame = pd.read_csv(path if path.exists() else FOLDER / f"{name}.csv")
    labels = frame.pop("target")
    is_rare = (labels == labels.value_counts().idxmin()).to_numpy()
    return pd.get_dummies(frame).to_numpy(float), is_rare


@needs_data
@pytest.mark.parametrize(
    ("name", "at_least"), [("pima", 2.0), ("yeast3", 1.0), ("page_blocks0", 0.5)]
)
def test_proposals(name, at_least, report):
    """Of chains that have found their boxes."""
    for likelihood in ("beta", "gibbs"):
        posterior, rng = BoxPosterior(*read(name), likelihood=likelihood), np.random.default_rng(0)
        state, _ = posterior.advance(rng, posterior.initial_state(rng), 50_000, 1.0)
        _, seconds = timed(
            lambda: posterior.advance(rng, state, 200_000, 1.0), clock=process_time  # noqa: B023
        )  # fmt: skip
        report(Figure(f"{name}, {likelihood}: proposals", 0.2 / seconds, "M/s", at_least=at_least))


@needs_data
@pytest.mark.parametrize("name", ["iris0", "new_thyroid1", *AREAS])
def test_proofs(name, report):
    """One box, with and without costs of sides, and two boxes of small sets."""
    X, y = read(name)
    weights = np.ones(len(y))
    for n_boxes, side_cost, at_most in ((1, 0.0, 1.9), (1, 0.5, 2.8), (2, 0.0, 1.0)):
        if n_boxes == 2 and name not in ("iris0", "glass5", "new_thyroid1", "haberman"):
            continue
        rows = LevelRows(X, y, weights, Costs(balanced(y, weights), 0.0, side_cost))
        found, seconds = timed(lambda: best_union(rows, n_boxes), clock=process_time)  # noqa: B023
        assert found.gap == 0.0
        words = f"{name}: proof, boxes {n_boxes}, side cost {side_cost}"
        report(Figure(words, seconds, "s", at_most=at_most))


@pytest.mark.parametrize(("n", "n_boxes"), [(200, 1), (400, 1), (200, 2)])
def test_proof_and_program(n, n_boxes, report):
    """The same problem by branch and bound, and by HiGHS."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    y = (np.abs(X[:, 0]) < 0.7) & (X[:, 1] > 0) ^ (rng.random(n) < 0.05)
    rows = LevelRows(X, y, np.ones(n), Costs(balanced(y, np.ones(n))))
    found, ours = timed(lambda: best_union(rows, n_boxes), 2, process_time)
    program, theirs = timed(lambda: solve_program(rows, n_boxes), clock=process_time)
    assert program.objective == pytest.approx(found.objective)
    name = f"{n} x 4, boxes {n_boxes}: proof, beside HiGHS"
    report(Figure(name, ours, "s", at_most=theirs, baseline=theirs))


@needs_data
@pytest.mark.parametrize("name", AREAS)
def test_areas(name, report):
    """Hulls of the default on three folds, beside trees swept over weights of the rare class."""
    (X, y), areas, curves, trees, started = read(name), [], [], [], process_time()
    seconds = 0.0
    for learned, held in StratifiedKFold(3, shuffle=True, random_state=0).split(X, y):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            started = process_time()
            model = BoxClassifier(random_state=0, n_jobs=1).fit(X[learned], y[learned])
            seconds += process_time() - started
        rates = model.predict_proba(X[held])[:, 1]
        areas.append(hull_area(*roc_curve(y[held], rates, drop_intermediate=False)[:2]))
        curves.append(roc_auc_score(y[held], rates))
        points = []
        for weight in np.geomspace(0.01, 1.0, 10):
            tree = DecisionTreeClassifier(
                class_weight={True: 1.0, False: weight}, min_samples_leaf=5, random_state=0
            )
            inside = tree.fit(X[learned], y[learned]).predict(X[held])
            points.append((inside[~y[held]].mean(), inside[y[held]].mean()))
        trees.append(hull_area(*np.array(points).T))
    report(Figure(f"{name}: area under the hull", np.mean(areas), "", AREAS[name] - 0.005))
    report(Figure("  swept trees", np.mean(trees), "", at_most=float(np.mean(areas))))
    report(Figure("  area under the curve", np.mean(curves), ""))
    report(Figure("  processor seconds of a fit", seconds / 3, "s", at_most=20))


@needs_data
@pytest.mark.parametrize("name", AREAS)
def test_black_boxes(name, report):
    """Hulls of others on the folds of `test_areas`."""
    X, y = read(name)
    for title, model in OTHERS.items():
        areas = []
        for learned, held in StratifiedKFold(3, shuffle=True, random_state=0).split(X, y):
            model.fit(X[learned], y[learned])
            if hasattr(model, "decision_function"):
                scores = model.decision_function(X[held])
            else:
                scores = model.predict_proba(X[held])[:, 1]
            areas.append(hull_area(*roc_curve(y[held], scores, drop_intermediate=False)[:2]))
        report(Figure(f"{name}, {title}: area under the hull", np.mean(areas), ""))


@pytest.mark.parametrize("n", [100_000, 1_000_000])
def test_many_rows(n, report):
    """Time and memory of a default fit in a process of its own."""
    command = [sys.executable, "-W", "ignore", "-c", MANY, str(n)]
    found, seconds = timed(
        lambda: subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    )
    report(Figure(f"{n:,} x 10: fit", seconds, "s"))
    report(Figure("  memory", float(found.stdout), "GB", at_most=2.0))
