"""How long it takes to prune a forest, beside linear programs, and to predict with the rest."""

import resource

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from bayescascade import BudgetPruneClassifier
from bayescascade.methods.budget.pruning.solvers import FlowSolver
from tests.benchmarks.figures import Figure, timed
from tests.benchmarks.workloads import rows_like_covertype
from tests.methods.budget.pruning.linear_program import relax

N_TREES, N_TRAINING, N_VALIDATION = 40, 15_000, 5_000
TRADEOFFS = np.geomspace(1e-4, 0.05, 10)
DEFAULT = 0.01

FORESTS = {
    "all columns": RandomForestClassifier(
        N_TREES, criterion="entropy", max_features=None, n_jobs=2, random_state=0
    ),
    "few columns": RandomForestClassifier(N_TREES, n_jobs=2, random_state=0),
}


@pytest.fixture(scope="module")
def rows():
    return rows_like_covertype(N_TRAINING + N_VALIDATION)


@pytest.fixture(scope="module", params=FORESTS)
def fitted(request, rows):
    """Return forests that look at all columns for each split, or at few, pruned."""
    X, y = rows
    forest = FORESTS[request.param].fit(X[:N_TRAINING], y[:N_TRAINING])
    model = BudgetPruneClassifier(forest).fit(X[:N_TRAINING], y[:N_TRAINING], X[N_TRAINING:])
    return f"{N_TREES} trees of {request.param}", model


def test_one_tradeoff(fitted, rows, report):
    """From a fitted forest to the pruned one, at the default and where most must be moved."""
    name, model = fitted
    X, y = rows
    program = model.program_
    name = f"{name}, {program.n_splits:,} splits, {program.edge_use.size:,} edges"
    # where the whole forest is as good as none, the cut is hardest to find
    hardest = program.base_error / program.cost(np.ones(program.n_splits, np.bool_))
    for tradeoff in (DEFAULT, float(hardest)):
        pruner = BudgetPruneClassifier(model.estimator_, tradeoff=tradeoff)
        _, seconds = timed(
            lambda pruner=pruner: pruner.fit(X[:N_TRAINING], y[:N_TRAINING], X[N_TRAINING:])
        )
        report(Figure(f"{name}, {tradeoff:.3g}", seconds, "s", at_most=20.0))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    report(Figure("  memory so far", memory, "GB", at_most=4.0))


def test_ten_tradeoffs(fitted, report):
    """Warm started, beside as many cold starts."""
    name, model = fitted
    _, cold = timed(lambda: [FlowSolver(model.program_).solve(float(t)) for t in TRADEOFFS])
    path, warm = timed(lambda: model.path(TRADEOFFS.tolist()))
    report(Figure(f"{name}, path of ten, beside cold", warm, "s", at_most=60.0, baseline=cold))
    report(Figure("  largest gap", float(path.gaps.max()), "", at_most=1e-3))


def test_budgets(fitted, report):
    """A tenth to nine tenths of what the whole forest costs."""
    name, model = fitted
    full = model.program_.cost(np.ones(model.program_.n_splits, np.bool_))
    _, seconds = timed(lambda: model.path(budgets=(full * np.arange(1, 10) / 10).tolist()))
    report(Figure(f"{name}, nine budgets", seconds, "s"))


def test_prediction(fitted, rows, report):
    """Class probabilities of a pruned forest, beside those of the forest it came from."""
    name, model = fitted
    X = rows[0]
    forests = {
        "unpruned": model.whole_forest_.predict_proba,
        "scikit-learn's": model.estimator_.set_params(n_jobs=1).predict_proba,
    }
    pruned = timed(lambda: model.forest_.predict_proba(X), 5)[1]
    for other, predict in forests.items():
        baseline = timed(lambda predict=predict: predict(X), 5)[1]
        text = f"{name}, predict_proba of {len(X):,} rows, beside {other}"
        report(Figure(text, pruned, "s", at_most=baseline, baseline=baseline))


def test_linear_programs(fitted, report):
    """HiGHS on the same problem, in a form with two entries a row."""
    name, model = fitted
    if "few" in name:
        pytest.skip("one forest is enough")
    exact, flow = timed(lambda: FlowSolver(model.program_).solve(DEFAULT))
    (_, optimum), highs = timed(lambda: relax(model.program_, DEFAULT))
    assert exact.objective == pytest.approx(optimum, rel=1e-6)
    report(Figure(f"{name}, flow, beside HiGHS", flow, "s", baseline=highs))
