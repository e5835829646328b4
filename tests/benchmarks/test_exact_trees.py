"""All trees at once: seconds of one core to solve, to predict and to draw."""

from time import perf_counter, process_time

import numpy as np
import pandas as pd
import pytest

from bayescascade import BranchPosterior, LeafPosterior, Table
from bayescascade.methods.density.trees.exact import solve, solve_by_tilts
from bayescascade.methods.density.trees.exact.lattice import Lattice, term_arrays
from bayescascade.methods.density.trees.exact.plan import SearchPlan
from bayescascade.methods.density.trees.exact.recursion import Recursion, count_all
from tests.benchmarks.figures import ROOT, Figure

N_ROWS = 5_000
N_DRAWS = 1_000
N_PREDICTED = 1_000


def binary_table(n_columns, n_rows=N_ROWS, seed=0):
    """Return rows of a mixture of two kinds, each with its own frequencies of ones."""
    rng = np.random.default_rng(seed)
    is_second = rng.random((n_rows, 1)) < 0.4
    ones = 0.2 + 0.6 * rng.random((2, n_columns))
    cells = rng.random((n_rows, n_columns)) < np.where(is_second, ones[1], ones[0])
    frame = pd.DataFrame(cells.astype(int), columns=[f"c{j}" for j in range(n_columns)])
    return Table.from_frame(frame, nominal={name: [0, 1] for name in frame})


def housebreak():
    return Table.from_csv(ROOT / "data" / "housebreak.csv")


def tic_tac_toe(n_columns):
    return Table.from_frame(pd.read_csv(ROOT / "data" / "tic_tac_toe.csv").iloc[:, :n_columns])


def titanic():
    return Table.from_csv(ROOT / "data" / "titanic.csv")


CASES = {
    "branch, 14 binary columns": (lambda: BranchPosterior(binary_table(14)), None, 3, 1e9),
    "branch, 16 binary columns": (lambda: BranchPosterior(binary_table(16)), None, 40, 2e9),
    "leaf, 12 binary columns, 10 leaves": (lambda: LeafPosterior(binary_table(12)), 10, 20, 1e9),
    "branch, housebreak, any partition": (lambda: BranchPosterior(housebreak()), None, 60, 1e9),
    "leaf, housebreak, 12 leaves": (lambda: LeafPosterior(housebreak()), 12, 60, 1e9),
}


@pytest.mark.parametrize("name", CASES)
def test_all_trees(name, report):
    """Seconds to the evidence, the most probable tree and all that draws need."""
    make, max_leaves, seconds, memory = CASES[name]
    posterior = make()
    _warm_up(posterior)
    started = process_time()
    exact = solve(posterior, max_leaves=max_leaves)
    report(Figure(f"{name}: solve", process_time() - started, "s", at_most=seconds))
    report(Figure("  announced", exact.cost.memory_bytes / 1e6, "MB", at_most=memory / 1e6))
    for words in ("averages of 1,000 rows, first", "again"):
        report(Figure(f"  {words}", _seconds_of_averages(exact), "s"))
    assert abs(posterior.log_density(exact.tree) - exact.log_density) < 1e-6


@pytest.mark.parametrize(
    ("name", "make", "seconds"), [("titanic", titanic, 1), ("housebreak", housebreak, 10)]
)
def test_draws(name, make, seconds, report):
    """Independent trees, the first ones included, which have all choices to find."""
    exact = solve(LeafPosterior(make()), max_leaves=12)
    started = process_time()
    assert len(exact.sample(N_DRAWS, np.random.default_rng(0))) == N_DRAWS
    figure = Figure(f"{N_DRAWS:,} draws, {name}", process_time() - started, "s", at_most=seconds)
    report(figure)


def test_a_box(report):
    """One pass over eight columns of tic-tac-toe, the short way and the long one."""
    posterior = LeafPosterior(tic_tac_toe(8))
    plan = SearchPlan.of(posterior, None)
    lattice, terms = Lattice.of(plan, posterior), term_arrays(plan, posterior.model)
    shapes = Recursion(lattice.shapes(), terms, np.zeros(1), None)
    boxes = Recursion(lattice, terms, count_all(lattice, posterior.table), shapes)
    nanoseconds = []
    for tables in (boxes.tables, None):
        boxes.tables = tables
        boxes.run()  # compiled
        started = process_time()
        boxes.run()
        nanoseconds.append((process_time() - started) * 1e9 / plan.index().n_entries)
    short, long = nanoseconds
    report(Figure("a box, the short way", short, "ns", at_most=long / 2, baseline=long))


def test_tilts(report):
    """All ten columns of tic-tac-toe: seconds of two threads, and bytes."""
    posterior = LeafPosterior(tic_tac_toe(10), 8.0, 2.0)
    started = perf_counter()
    seconds = []

    def report_pass(_, __, best):
        if getattr(best, "gap", 1.0) == 0.0 and not seconds:
            seconds.append(perf_counter() - started)

    tilted = solve_by_tilts(posterior, rng=0, progress=report_pass, n_jobs=2)
    report(Figure("tic-tac-toe, leaf: tree", seconds[0], "s", at_most=180))
    report(Figure("  evidence", perf_counter() - started, "s"))
    report(Figure("  passes", tilted.n_passes, ""))
    report(Figure("  announced", tilted.cost.memory_bytes / 1e6, "MB", at_most=2000))
    assert tilted.gap == 0.0
    assert abs(tilted.log_density + 8_828.937) < 1e-3


def _warm_up(posterior):
    """Compile, or load from the cache, on the first columns alone."""
    model = posterior.model
    first = posterior.schema.names[:2]
    frame = pd.DataFrame({name: ["a", "b"] for name in first})
    solve(type(posterior)(Table.from_frame(frame), model.rate, model.concentration))


def _seconds_of_averages(exact):
    rng = np.random.default_rng(1)
    n_levels = exact.posterior.schema.n_levels
    codes = np.array([rng.integers(0, q, N_PREDICTED) for q in n_levels], np.int32)
    started = process_time()
    exact.log_predictive(codes)
    return process_time() - started
