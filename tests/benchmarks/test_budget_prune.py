"""How long it takes to prune a forest, beside linear programs, and to predict with the rest."""

import resource
from collections.abc import Callable
from time import perf_counter

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_array
from sklearn.ensemble import RandomForestClassifier

from bayescascade.budget import BudgetPrune
from bayescascade.methods.prunings.program import PruningProgram
from bayescascade.methods.prunings.solvers import FlowSolver, PrimalDualSolver
from tests.benchmarks.figures import Figure
from tests.benchmarks.rows_like_covertype import rows_like_covertype
from tests.methods.budget.linear_program import relax

N_TREES, N_TRAINING, N_VALIDATION = 40, 15_000, 5_000
TRADEOFFS = np.geomspace(1e-4, 0.05, 10)
DEFAULT = BudgetPrune().tradeoff

FORESTS = {
    "all columns": RandomForestClassifier(
        N_TREES, criterion="entropy", max_features=None, n_jobs=2, random_state=0
    ),
    "few columns": RandomForestClassifier(N_TREES, n_jobs=2, random_state=0),
}


@pytest.fixture(scope="module")
def rows() -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    return rows_like_covertype(N_TRAINING + N_VALIDATION)


@pytest.fixture(scope="module", params=FORESTS)
def fitted(
    request: pytest.FixtureRequest, rows: tuple[NDArray[np.float32], NDArray[np.int64]]
) -> tuple[str, BudgetPrune]:
    """Return forests that look at all columns for each split, or at few, pruned."""
    X, y = rows
    forest = FORESTS[request.param].fit(X[:N_TRAINING], y[:N_TRAINING])
    model = BudgetPrune(forest).fit(X[:N_TRAINING], y[:N_TRAINING], X[N_TRAINING:])
    return f"{N_TREES} trees of {request.param}", model


def test_one_tradeoff(
    fitted: tuple[str, BudgetPrune],
    rows: tuple[NDArray[np.float32], NDArray[np.int64]],
    report: Callable[[Figure], None],
) -> None:
    """From a fitted forest to the pruned one, at the default and where most must be moved."""
    name, model = fitted
    X, y = rows
    program = model.program_
    name = f"{name}, {program.n_splits:,} splits, {program.edge_use.size:,} edges"
    # where the whole forest is as good as none, the cut is hardest to find
    hardest = program.base_error / program.cost(np.ones(program.n_splits, np.bool_))
    for tradeoff in (DEFAULT, float(hardest)):
        for solver in ("flow", "primal_dual"):
            pruner = BudgetPrune(model.estimator_, tradeoff=tradeoff, solver=solver)
            started = perf_counter()
            pruner.fit(X[:N_TRAINING], y[:N_TRAINING], X[N_TRAINING:])
            seconds = perf_counter() - started
            report(Figure(f"{name}, {solver}, {tradeoff:.3g}", seconds, "s", at_most=20.0))
            report(Figure("  relative gap", pruner.duality_gap_, "", at_most=1e-3))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    report(Figure("  memory so far", memory, "GB", at_most=4.0))


def test_ten_tradeoffs(fitted: tuple[str, BudgetPrune], report: Callable[[Figure], None]) -> None:
    """Warm started, beside as many cold starts."""
    name, model = fitted
    started = perf_counter()
    for tradeoff in TRADEOFFS:
        FlowSolver(model.program_).solve(float(tradeoff))
    cold = perf_counter() - started
    started = perf_counter()
    path = model.path(TRADEOFFS.tolist())
    warm = perf_counter() - started
    report(Figure(f"{name}, path of ten, beside cold", warm, "s", at_most=60.0, baseline=cold))
    report(Figure("  largest gap", float(path.gaps.max()), "", at_most=1e-3))
    started = perf_counter()
    solver = PrimalDualSolver(model.program_)
    gaps = [solver.solve(float(tradeoff)).gap for tradeoff in TRADEOFFS]
    report(Figure("  by duals", perf_counter() - started, "s", at_most=60.0))
    report(Figure("  largest gap", max(gaps), "", at_most=1e-3))


def test_budgets(fitted: tuple[str, BudgetPrune], report: Callable[[Figure], None]) -> None:
    """A tenth to nine tenths of what the whole forest costs."""
    name, model = fitted
    full = model.program_.cost(np.ones(model.program_.n_splits, np.bool_))
    started = perf_counter()
    model.path(budgets=(full * np.arange(1, 10) / 10).tolist())
    report(Figure(f"{name}, nine budgets", perf_counter() - started, "s"))


def test_prediction(
    fitted: tuple[str, BudgetPrune],
    rows: tuple[NDArray[np.float32], NDArray[np.int64]],
    report: Callable[[Figure], None],
) -> None:
    """Class probabilities of a pruned forest, beside those of the forest it came from."""
    name, model = fitted
    X = rows[0]
    forests = {
        "unpruned": model.whole_forest_.predict_proba,
        "scikit-learn's": model.estimator_.set_params(n_jobs=1).predict_proba,
    }
    pruned = _least_seconds(lambda: model.forest_.predict_proba(X))
    for other, predict in forests.items():
        baseline = _least_seconds(lambda predict=predict: predict(X))
        told = f"{name}, predict_proba of {len(X):,} rows, beside {other}"
        report(Figure(told, pruned, "s", at_most=baseline, baseline=baseline))


def test_linear_programs(fitted: tuple[str, BudgetPrune], report: Callable[[Figure], None]) -> None:
    """HiGHS on the same problem in its smallest form, and on a small one as the thesis prints it.

    The form in "split is kept" and "use is paid for" has two entries a row; that of the thesis has
    as many as a path is long, and is tried with a fiftieth of the rows.
    """
    name, model = fitted
    if "few" in name:
        pytest.skip("one forest is enough")
    program = model.program_
    started = perf_counter()
    exact = FlowSolver(program).solve(DEFAULT)
    flow = perf_counter() - started
    started = perf_counter()
    optimum = _smallest_form(program, DEFAULT)
    highs = perf_counter() - started
    assert exact.objective == pytest.approx(optimum, rel=1e-6)
    report(Figure(f"{name}, flow, beside HiGHS", flow, "s", baseline=highs))
    X, y = rows_like_covertype(N_TRAINING // 10 + N_VALIDATION // 50)
    n = N_TRAINING // 10
    small = BudgetPrune(FORESTS["all columns"]).fit(X[:n], y[:n], X[n:]).program_
    started = perf_counter()
    exact = FlowSolver(small).solve(DEFAULT)
    flow = perf_counter() - started
    started = perf_counter()
    optimum = relax(small, DEFAULT).value
    highs = perf_counter() - started
    assert exact.objective == pytest.approx(optimum, rel=1e-6)
    told = f"{small.edge_use.size:,} edges, flow, beside HiGHS as printed"
    report(Figure(told, flow, "s", baseline=highs))


def _smallest_form(program: PruningProgram, tradeoff: float) -> float:
    """Return the optimum of the linear program over splits kept and uses paid for."""
    child = np.flatnonzero(program.parent >= 0)
    less = np.concatenate([child, program.edge_split])
    more = np.concatenate([program.parent[child], program.n_splits + program.edge_use])
    n_rows, n_columns = less.size, program.n_splits + program.n_uses
    place = np.arange(n_rows)
    result = linprog(
        np.concatenate([tradeoff * program.work - program.error_gain, tradeoff * program.use_cost]),
        A_ub=csr_array((np.ones(n_rows), (place, less)), shape=(n_rows, n_columns))
        - csr_array((np.ones(n_rows), (place, more)), shape=(n_rows, n_columns)),
        b_ub=np.zeros(n_rows),
        bounds=(0.0, 1.0),
    )
    return float(program.base_error + result.fun)


def _least_seconds(function: Callable[[], object]) -> float:
    """Return the least time of five calls."""
    seconds = []
    for _ in range(5):
        started = perf_counter()
        function()
        seconds.append(perf_counter() - started)
    return min(seconds)
