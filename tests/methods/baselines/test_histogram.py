"""The smoothed histogram is a density whatever is missing; its pseudo-count is most probable."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from bayescascade import SmoothedHistogram, Table
from tests.cli.conftest import DATA, TITANIC
from tests.methods.cascades.problems import BINS, FRACTIONAL, MIXED_WAYS, Problem

PROBLEMS = (BINS, FRACTIONAL, MIXED_WAYS)


def cells_and_volumes(problem: Problem, known=None):
    """Return the codes of all cells of some columns, -1 in the others, and their volumes."""
    schema = problem.table.schema
    known = range(schema.n_columns) if known is None else known
    ways = [range(q) if j in known else [-1] for j, q in enumerate(schema.n_levels)]
    cells = np.array(list(itertools.product(*ways)), np.int32).T
    widths = [schema.columns[j].widths[cells[j]] for j in known]
    return np.ascontiguousarray(cells), np.prod(widths, axis=0)


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
@pytest.mark.parametrize("pseudo_count", [None, 0.3, 1.0])
def test_densities_integrate_to_one(problem: Problem, pseudo_count: float | None) -> None:
    """Otherwise it could not be compared with other densities; also of some columns alone."""
    model = SmoothedHistogram(pseudo_count).fit(problem.table)
    for known in ([0], [1], [0, 1]):
        cells, volumes = cells_and_volumes(problem, known)
        densities = np.exp(model.score_codes(cells))
        assert np.dot(densities, volumes) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_the_density_by_hand(problem: Problem) -> None:
    cells, volumes = cells_and_volumes(problem)
    counts = dict(zip(problem.record["rows"], problem.record["weights"], strict=True))
    total = sum(counts.values()) + 0.3 * cells.shape[1]
    expected = [(counts.get(tuple(cell), 0.0) + 0.3) / total for cell in cells.T.tolist()]
    scores = SmoothedHistogram(0.3).fit(problem.table).score_codes(cells)
    assert_allclose(np.exp(scores), np.array(expected) / volumes, rtol=1e-12)


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_missing_cells_are_integrated_out(problem: Problem) -> None:
    """A row must get the density of the cells that it has, whatever the others hold."""
    model = SmoothedHistogram().fit(problem.table)
    cells, _ = cells_and_volumes(problem)
    widths = problem.table.schema.columns[0].widths
    for cell in cells.T:
        ways = np.repeat(cell[:, None], widths.size, axis=1)
        ways[0] = np.arange(widths.size)
        expected = math.log(np.dot(np.exp(model.score_codes(ways)), widths))
        asked = cell.copy()
        asked[0] = -1
        assert model.score_codes(asked[:, None])[0] == pytest.approx(expected, abs=1e-12)
    assert model.score_codes(np.full_like(cells, -1)) == pytest.approx(0.0, abs=1e-12)


def slow_evidence(counts: list[float], n_cells: int, a: float) -> float:
    """Return the log probability of rows by the cell, by the formula."""
    value = math.lgamma(n_cells * a) - math.lgamma(sum(counts) + n_cells * a)
    return value + sum(math.lgamma(n + a) - math.lgamma(a) for n in counts)


def test_the_pseudo_count_makes_the_rows_most_probable() -> None:
    """A fixed one would favor tables that happen to suit it."""
    table = Table.from_csv(TITANIC)
    model = SmoothedHistogram().fit(table)
    chosen = math.exp(model.log_total_ - model.log_n_cells_)
    grid = [0.5 * chosen, 0.98 * chosen, chosen, 1.02 * chosen, 2 * chosen, 1.0]
    evidence = [slow_evidence(table.weights.tolist(), 32, a) for a in grid]
    assert max(evidence) == evidence[2]
    assert model.log_evidence_ == pytest.approx(evidence[2], rel=1e-9)
    fixed = SmoothedHistogram(1.0).fit(table)
    assert fixed.log_evidence_ == pytest.approx(evidence[-1], rel=1e-9)


def test_the_evidence_is_of_densities() -> None:
    """Of continuous columns it must change with their unit as that of a tree does."""
    rows = pd.DataFrame({"x": np.linspace(0, 1, 40) ** 2, "y": ["a", "b"] * 20})
    scaled = rows.assign(x=10 * rows["x"])
    first, second = (
        SmoothedHistogram(1.0, continuous={"x": 4}).fit(frame) for frame in (rows, scaled)
    )
    assert first.log_evidence_ - second.log_evidence_ == pytest.approx(40 * math.log(10))


def test_rows_more_even_than_by_chance_are_uniform() -> None:
    """The thesis's extreme case: no value stands twice, and none should be thought rare."""
    frame = pd.read_csv(DATA / "extreme_uniform.csv")
    ordinal = {"x": list(range(1, 101))}
    half = frame.iloc[::2]
    scores = SmoothedHistogram(ordinal=ordinal).fit(half).score_samples(frame)
    assert_allclose(scores, -math.log(100), atol=1e-3)
    assert SmoothedHistogram(1.0, ordinal=ordinal).fit(half).score(frame) < scores.sum()


@pytest.mark.parametrize("n_columns", [9, 60, pytest.param(1500, marks=pytest.mark.slow)])
def test_more_cells_than_a_float_can_count(n_columns: int, rng: np.random.Generator) -> None:
    """Only the cells with rows may cost anything."""
    rows = rng.integers(0, 3, (50, n_columns)).astype(str)
    model = SmoothedHistogram(nominal={j: ["0", "1", "2"] for j in range(n_columns)}).fit(rows)
    scores = model.score_samples(np.concatenate([rows, rows[:1, ::-1]]))
    assert np.isfinite(scores).all()
    assert str(model).startswith("smoothed histogram of ")
    assert model.log_n_cells_ == pytest.approx(n_columns * math.log(3))
