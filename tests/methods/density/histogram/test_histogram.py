"""The smoothed histogram is a density whatever is missing; its pseudo-count is most probable."""

import math

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from bayescascade import SmoothedHistogram, Table
from tests.cli.conftest import DATA, TITANIC
from tests.methods.density.trees.problems import BINS, FRACTIONAL, MIXED_WAYS, Problem
from tests.methods.lists.lists import cells_of

PROBLEMS = (BINS, FRACTIONAL, MIXED_WAYS)


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_the_density_by_hand(problem: Problem) -> None:
    cells, volumes = cells_of(problem.table.schema)
    counts = dict(zip(problem.record["rows"], problem.record["weights"], strict=True))
    total = sum(counts.values()) + 0.3 * cells.shape[1]
    expected = [(counts.get(tuple(cell), 0.0) + 0.3) / total for cell in cells.T.tolist()]
    model = SmoothedHistogram(0.3).fit(problem.table)
    assert_allclose(np.exp(model.score_codes(cells)), np.array(expected) / volumes, rtol=1e-12)
    is_alike = (cells[1:, :, np.newaxis] == cells[1:, np.newaxis]).all(axis=0)
    volumes /= problem.columns[0].widths[cells[0]]  # without a cell it is integrated out
    cells[0] = -1
    assert_allclose(np.exp(model.score_codes(cells)), is_alike @ expected / volumes, rtol=1e-12)


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


EVIDENCE = [{}, {0: (1,)}, {0: (0, 1), 1: (1,)}, {1: (0,)}]


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
@pytest.mark.parametrize("evidence", EVIDENCE, ids=str)
def test_parts_are_all_there_is(problem: Problem, evidence: dict[int, tuple[int, ...]]) -> None:
    """Enumerated: shares, volumes and what is printed are those of the cells' densities."""
    whole = SmoothedHistogram(0.4).fit(problem.table).cells_
    schema = problem.table.schema
    known = {
        schema.columns[j].name: [schema.columns[j].levels[code] for code in codes]
        if schema.columns[j].kind != "continuous"
        else tuple(schema.columns[j].edges[k] for k in (codes[0], codes[-1] + 1))
        for j, codes in evidence.items()
    }
    given = whole.condition(known)
    cells, volumes = cells_of(problem.table.schema)
    left = np.all([np.isin(cells[j], codes) for j, codes in evidence.items()], axis=0)
    left = left & np.ones(volumes.size, bool)
    assert given.probabilities.sum() == pytest.approx(1.0)
    assert np.exp(given.log_volumes).sum() == pytest.approx(volumes[left].sum())
    assert math.exp(given.log_domain) == pytest.approx(volumes[left].sum())
    with_rows = given.score_codes(given.cells)
    assert_allclose(given.log_densities[: given.n_cells], with_rows, atol=1e-12)
    assert max(map(len, str(given).splitlines())) <= 80
    assert len(given.to_dict()["cells"]) == given.n_cells
    twice = whole.condition(known).condition(known)
    assert_allclose(twice.probabilities, given.probabilities)


def test_evidence_that_no_row_agrees_with_leaves_the_pseudo_counts() -> None:
    """Nothing was seen there, so all is equally probable; and it can be drawn and explained."""
    rows = pd.DataFrame({"a": ["x", "x", "y"], "b": ["u", "v", "u"], "c": [1, 2, 1]})
    model = SmoothedHistogram(1.0).fit(rows)
    given = model.condition({"a": "y", "b": "v"})
    assert given.n_cells == 0
    assert given.conditions_probability == pytest.approx(2 / (3 + 8))
    assert given.probabilities.tolist() == [1.0]
    assert set(given.sample_codes(50, np.random.default_rng(0))[2]) == {0, 1}
    text = "a is y and b is v and c is 1: 0 of 0 rows, probability 0.5, density 0.5, 1 x uniform"
    assert given.explain({"a": "y", "b": "v", "c": 1}) == text
    assert model.explain({"a": "x", "b": None, "c": None}) == (
        "a is x: 2 of 3 rows, probability 0.5455, average density in this group 0.1364 "
        "(1.09 x uniform)"
    )
    assert model.cells_.plot().patches


@pytest.mark.parametrize("n_columns", [9, 60, pytest.param(1500, marks=pytest.mark.slow)])
def test_more_cells_than_a_float_can_count(n_columns: int, rng: np.random.Generator) -> None:
    """Only the cells with rows may cost anything."""
    rows = rng.integers(0, 3, (50, n_columns)).astype(str)
    model = SmoothedHistogram(nominal={j: ["0", "1", "2"] for j in range(n_columns)}).fit(rows)
    scores = model.score_samples(np.concatenate([rows, rows[:1, ::-1]]))
    assert np.isfinite(scores).all()
    assert str(model).startswith("smoothed histogram of ")
    assert str(model.cells_)
    assert model.log_n_cells_ == pytest.approx(n_columns * math.log(3))
    assert np.isfinite(model.score_samples(model.sample(20, random_state=0))).all()
    given = model.condition({"x0": "1"})
    assert given.probabilities.sum() == pytest.approx(1.0)
    assert given.conditions_probability == pytest.approx((rows[:, 0] == "1").mean(), abs=0.2)
