"""How boxes are gone through and kept: threads, files and short numbers change no digit."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bayescascade import BranchCascade, LeafCascade
from bayescascade.base.errors import InternalError, TooLargeError
from bayescascade.data.table import Table
from bayescascade.methods.density.trees.exact import (
    lattice,
    pieces,
    plan,
    recursion,
    solve,
    solve_by_tilts,
)
from bayescascade.methods.density.trees.exact.cost import cheapest_boxes
from bayescascade.methods.density.trees.posterior import BranchPosterior, LeafPosterior
from tests.interrupts import interrupted
from tests.methods.density.trees.exact.test_exact_cost import random_table

TABLES = {
    "binary": ((2,) * 6, {}),
    "grouped": ((3, 4, 2, 3), {}),
    "pairs": ((4, 3, 5), {"max_branches": 2}),
    "levels": ((4, 3, 5, 2), {"partitions": "levels"}),
}


@pytest.fixture
def in_threads(monkeypatch):
    monkeypatch.setattr(pieces, "_MANY_TERMS", 0)
    monkeypatch.setattr(plan, "_MANY_BOXES", 1)


def values_of(exact):
    """Return the logs of all boxes' values, maxima and sums."""
    boxes = exact._sums
    found = []
    for maximize in (True, False):
        boxes.run(maximize, n_jobs=2)
        found.append(np.log(boxes.values.mantissa) + boxes.values.exponent * recursion.UNIT)
    return found


@pytest.mark.slow  # it alone compiles kernels for long numbers
@pytest.mark.usefixtures("in_threads")
@pytest.mark.parametrize("name", TABLES)
def test_the_short_way_leads_where_the_long_one_does(name, monkeypatch):
    """A faster sum that is another sum would be wrong on every large table."""
    n_levels, parameters = TABLES[name]
    posterior = BranchPosterior(random_table(n_levels), **parameters)
    short = solve(posterior)
    assert short._sums.tables is not None
    assert short._sums.counts.dtype == np.uint16
    short_values = values_of(short)
    rows = np.array([[0] * len(n_levels), [q - 1 for q in n_levels]], np.int32).T
    averages, used = short.log_predictive(rows), short.split_probabilities.used
    monkeypatch.setattr(plan, "_FEW_ROWS", 0)
    long = solve(posterior)
    assert long._sums.tables is None
    for found, expected in zip(short_values, values_of(long), strict=True):
        assert_allclose(found, expected, rtol=1e-12, atol=1e-9)
    assert long.tree == short.tree
    assert_allclose(averages, long.log_predictive(rows), rtol=0, atol=1e-9)
    assert_allclose([*used.values()], [*long.split_probabilities.used.values()], atol=1e-9)


@pytest.mark.slow
@pytest.mark.usefixtures("in_threads")
def test_exponents_too_large_for_short_numbers_are_kept_in_long_ones(monkeypatch):
    """Of a prior or weights so extreme that exponents wrap, everything would be wrong."""
    posterior = LeafPosterior(random_table((3, 2, 3)))
    found = []
    for few_rows in (plan._FEW_ROWS, 0):
        monkeypatch.setattr(plan, "_FEW_ROWS", few_rows)
        boxes = recursion.Recursion.of(posterior, plan.SearchPlan.of(posterior, None))
        for tilt in (-0.5, 2e7, -2e7, -0.5):
            boxes.run(tilt=tilt, n_jobs=2)
            found.append(boxes.log_values()[0])
    assert found[:4] == pytest.approx(found[4:], rel=1e-12)
    assert found[0] == found[3]


@pytest.mark.slow
@pytest.mark.usefixtures("in_threads")
def test_long_exponents_are_refused_where_only_short_ones_fit():
    """What was announced and checked must not be exceeded in the middle of a search."""
    posterior = LeafPosterior(random_table((3, 2, 3)))
    plans = plan.SearchPlan.of(posterior, None)
    needed = plans.memory_bytes + 8 * plans.index().n_entries
    for limit, extreme in ((needed, 2e7), (needed - 1, 0.0)):
        _, boxes = cheapest_boxes(posterior, plans, limit, np.inf, 1)
        boxes.run(tilt=extreme)
    with pytest.raises(TooLargeError, match=r"memory_limit must be at least .* GB for long expon"):
        boxes.run(tilt=2e7)
    assert boxes.values.exponent.dtype == np.int16


@pytest.mark.slow
@pytest.mark.usefixtures("in_threads")
def test_an_interrupt_in_a_thread_stops_them_all(monkeypatch):
    """Ctrl-C must not leave threads at work for minutes."""
    posterior = BranchPosterior(random_table((3,) * 4))
    boxes = solve(posterior)._sums
    evaluate = interrupted(10, recursion.evaluate_lines)
    monkeypatch.setattr(recursion, "evaluate_lines", evaluate)
    with pytest.raises(KeyboardInterrupt):
        boxes.run(n_jobs=2)
    assert evaluate.n_calls < 30


TABLE = random_table((3, 3, 2, 4))
WAYS = {"branch": (BranchPosterior, solve), "leaf": (LeafPosterior, partial(solve_by_tilts, rng=0))}


def summed(name, **limits):
    posterior, way = WAYS[name]
    found = way(posterior(TABLE), n_jobs=2, **limits)
    return found, found.sample(200, 1)


@pytest.mark.parametrize("name", ["branch", pytest.param("leaf", marks=pytest.mark.slow)])
def test_short_numbers_and_threads_change_nothing(name, monkeypatch):
    """Large tables take other ways through the same sums."""
    few, drawn = summed(name)
    monkeypatch.setattr(pieces, "_MANY_TERMS", 0)
    monkeypatch.setattr(plan, "_MANY_BOXES", 1)
    many, others = summed(name)
    for value in ("log_density", "log_normalizer", "log_evidence", "gap", "error"):
        assert getattr(many, value) == pytest.approx(getattr(few, value), abs=1e-8, rel=0)
    assert others == drawn


LISTED = {
    "leaf": LeafCascade(leaf="independent", search="exact", random_state=0),
    "process": LeafCascade(leaf="uniform", prior="generative", search="exact", random_state=0),
    "branch": BranchCascade(leaf="uniform", partitions="levels", search="exact", random_state=0),
    "subsets": BranchCascade(leaf="independent", search="exact", random_state=0),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LISTED)
@pytest.mark.parametrize("n_rows", [5_000, 1_000_000])
def test_what_is_listed_changes_no_digit(name, n_rows, rng, monkeypatch):
    """Evidence, best tree and averages are those with all weights listed."""
    codes = np.array(np.meshgrid(range(3), range(2), range(2))).reshape(3, -1)
    weights = rng.multinomial(n_rows, rng.dirichlet(np.full(12, 0.3))).astype(float)
    frame = {f"x{j}": row.repeat(weights.astype(int)).astype(str) for j, row in enumerate(codes)}
    table = Table.from_arrays(frame)

    def found():
        model = LISTED[name].fit(table)
        scores = model.score_codes(table.codes.astype(np.int32))
        return model.exact_.log_evidence, model.tree_.n_leaves, scores.tolist()

    few = found()
    assert np.isfinite(few[2]).all()
    monkeypatch.setattr(lattice, "_WEIGHTS_A_BOX", np.inf)
    assert found() == few


def test_weights_left_out_are_noticed(monkeypatch):
    """A weight that some box has, but the list has not, must not go unseen by the test above."""
    table = Table.from_arrays({"a": ["x"] * 3_000 + ["y"] * 2_000, "b": ["u", "v"] * 2_500})
    monkeypatch.setattr(recursion, "weights_of", lambda *_: np.zeros(1, np.int64))
    model = LISTED["subsets"]
    try:
        scores = model.fit(table).score_codes(table.codes.astype(np.int32))
    except (InternalError, ValueError):
        return
    assert not np.isfinite([model.exact_.log_evidence, *scores]).all()
