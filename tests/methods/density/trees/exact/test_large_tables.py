"""What is proved of tables of any size: best tree, bounds and evidence, to all trees in 45 digits.

Sums of log gamma functions of thousands of rows lose digits that decide which tree is the best.
"""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from bayescascade import BranchCascade
from bayescascade.base import jit
from bayescascade.base.errors import InternalError, TooLargeError
from bayescascade.data.column import Column
from bayescascade.data.schema import Schema
from bayescascade.data.table import Table
from bayescascade.methods.density.trees.exact import (
    posterior as exact_posterior,
    recursion,
    solve,
    solve_by_tilts,
)
from bayescascade.methods.density.trees.exact.expansion import Expansion
from bayescascade.methods.density.trees.exact.kernels import choices
from bayescascade.methods.density.trees.exact.kernels.choices import choose_splits
from bayescascade.methods.density.trees.exact.kernels.terms import list_log_gamma
from bayescascade.methods.density.trees.exact.passes import Passes
from bayescascade.methods.density.trees.exact.plan import SearchPlan
from bayescascade.methods.density.trees.exact.rounding import (
    TILT,
    PassRounding,
    of_sums_without_rows,
)
from bayescascade.methods.density.trees.posterior import BranchPosterior, LeafPosterior
from bayescascade.methods.density.trees.shallow_trees import ShallowTrees
from bayescascade.model import guard
from bayescascade.model.record import load
from tests.methods.density.trees.exact.decimal_twin import log_gamma, precisely
from tests.methods.density.trees.exact.large_problems import (
    WEIGHTS,
    LargeProblem,
    draw_problem,
    problems_of_dependent,
    problems_of_draws,
    problems_of_sums,
)

by_style = pytest.mark.parametrize("style", WEIGHTS)

FOUR_CELLS = pd.DataFrame({"a": list("uuvv"), "b": list("uvuv")})
THOUSANDS = [3538.0, 3393.0, 1447.0, 4706.0]


def complaints_of(problem, exact, trees):
    return [*problems_of_sums(problem, exact), *problems_of_draws(problem, exact, trees)]


@pytest.mark.slow
@by_style
def test_all_boxes_keep_their_promises(style, rng):
    """An exact tree that is none, or an evidence beyond its error, would be a broken promise."""
    for _ in range(25):
        problem = draw_problem(rng, style)
        exact = solve(problem.posterior)
        assert not complaints_of(problem, exact, exact.sample(20, rng)), problem


def test_many_cells_take_a_pass_more_for_the_error(rng, monkeypatch):
    """Of more cells than rounding can be bounded for, it is by the leaves that are probable."""
    monkeypatch.setattr("bayescascade.methods.density.trees.exact.rounding._MUCH", 0.0)
    for _ in range(10):
        problem = draw_problem(rng)
        exact = solve(problem.posterior)
        assert not complaints_of(problem, exact, exact.sample(5, rng)), problem
        bounds, log_sum = exact._bounds, exact._log_sum
        assert bounds.of_sum(log_sum, log_sum + TILT) <= bounds.of_sum(log_sum) + 1e-12


@pytest.mark.parametrize("name", ["concentration", "expected_leaves", "leaf_concentration"])
def test_numbers_beyond_floats_are_refused(name):
    """NaN would come of them, after all the work."""
    table = Table.from_frame(FOUR_CELLS)
    for solver in (solve, solve_by_tilts):
        with pytest.raises(TooLargeError, match=rf"{name} must be at most 9.0e.15 .* got 1.0e.300"):
            solver(LeafPosterior(table, **{name: 1e300}))


@pytest.mark.slow
@by_style
@pytest.mark.parametrize(("most", "n_tried"), [(None, 15), (3, 5)], ids=["all", "few listed"])
def test_tilts_keep_their_promises(most, n_tried, style, rng, monkeypatch):
    """Gap and error are bounds, however many rows there are, and numbers of leaves listed."""
    if most is not None:
        monkeypatch.setattr("bayescascade.methods.density.trees.exact.passes._MOST_LISTED", most)
    errors = []
    while len(errors) < n_tried:
        problem = draw_problem(rng, style)
        if "expected_leaves" in problem.parameters and not problem.parameters["max_leaves"]:
            found = solve_by_tilts(problem.posterior, rng=0, n_draws=20)
            assert not complaints_of(problem, found, found.draws), problem
            assert np.isfinite(found.gap)
            errors.append(found.error)
    assert most is not None or sum(error < 1e-2 for error in errors) > 10


@pytest.mark.slow
def test_trees_of_more_leaves_than_are_listed_are_found(monkeypatch):
    """A prior that wants as many leaves as there are cells; and heavy rows, which want few."""
    monkeypatch.setattr("bayescascade.methods.density.trees.exact.passes._MOST_LISTED", 100)
    rows = np.random.default_rng(0).integers(0, 2, (5, 8))
    rows[1] = 1 - rows[0]  # so that no column is constant
    frame = pd.DataFrame(rows.astype(str)).add_prefix("c")
    posterior = LeafPosterior(Table.from_frame(frame), expected_leaves=1e9, partitions="levels")
    found = solve_by_tilts(posterior, rng=0, n_draws=1)
    assert found.tree.n_leaves == 256
    assert posterior.log_density(found.tree) == found.log_density
    assert found.draws == []  # none that is listed is probable
    heavy = Table.from_frame(frame, weights=np.full(5, 1e6))
    assert solve_by_tilts(LeafPosterior(heavy, partitions="levels"), rng=0).gap < 1e-3


def test_rounding_of_huge_concentrations_is_not_negative():
    """A negative error would make any evidence look proved."""
    table = Table.from_frame(FOUR_CELLS, weights=np.array([0.5, 1.25, 0.3, 0.1]))
    for concentration in (1e9, 1e11, 1e12, 1e15):
        exact = solve(BranchPosterior(table, 2.0, concentration))
        assert exact.error > 0.0
        bounds = exact._bounds
        assert bounds.of_sum(-5.0, -4.99) >= bounds.of_sums * 1.0


def test_short_ways_count_all_their_additions():
    """Of an ordered column of 22 levels in three parts, 210 partitions are added one by one."""
    column = Column("c", "ordinal", tuple(f"{code:02}" for code in range(22)))
    table = Table.from_arrays([["00"], ["21"]], schema=Schema((column,)))
    plan = SearchPlan.of(BranchPosterior(table, max_branches=3), None)
    assert plan.is_short
    assert of_sums_without_rows(plan) >= (210 + 21) * guard.UNIT


@pytest.mark.slow
@by_style
def test_dependent_leaves_keep_their_promises(style, rng):
    """The tree called exact is the best of all, and their sum is right."""
    n_tried = 0
    while n_tried < 6:
        problem = draw_problem(rng, style)
        if problem.table.schema.n_columns > 1:
            assert not [*problems_of_dependent(problem, 2, rng)], problem
            n_tried += 1


def test_a_million_rows_of_dependent_leaves_end_in_the_guard(monkeypatch):
    """The broken twin of what is exact there: a leaf where splits are worth more."""
    cells = [cell for cell in np.ndindex(2, 2, 2) if sum(cell) % 2 == 0]
    frame = pd.DataFrame(cells, columns=list("abc")).astype(str)
    table = Table.from_frame(frame, weights=np.full(4, 250_000.0))
    posterior = BranchPosterior(table, leaf="dependent", partitions="levels")
    assert ShallowTrees(posterior, 2).tree.n_leaves > 1
    build = ShallowTrees._tree
    monkeypatch.setattr(
        ShallowTrees, "_tree", lambda own, _: build(own, lambda _: own._n_levels.size)
    )
    with pytest.raises(InternalError):
        _ = ShallowTrees(posterior, 2).tree


def test_dependent_leaves_of_huge_concentrations_are_not_called_exact():
    """A split that is better by more than rounding shows must not be missed by a proof."""
    cells = [cell for cell in np.ndindex(2, 2, 2) if sum(cell) % 2 == 0]
    frame = pd.DataFrame(cells, columns=list("abc")).astype(str)
    table = Table.from_frame(frame, weights=np.full(4, 80.0))
    posterior = BranchPosterior(table, 2.49118e-25, 2.65e10, leaf="dependent", partitions="levels")
    trees = ShallowTrees(posterior, 1)
    assert trees.rounding > 1e-4
    assert ShallowTrees(BranchPosterior(
        table, leaf="dependent", partitions="levels"), 1).rounding < 1e-6  # fmt: skip


def test_thousands_of_rows_have_the_tree_that_is_printed():
    """Four cells of a few thousand rows each, by defaults."""
    model = BranchCascade(random_state=0).fit(FOUR_CELLS, sample_weight=THOUSANDS)
    assert "exact: no tree is more probable   log posterior -17,223.29" in str(model)
    assert model.posterior_.log_density(model.tree_) == pytest.approx(model.exact_.log_density)


def interpreted(*arguments):
    """Choose splits by the Python of the kernel, whose constants a test may change."""
    token = jit._is_interpreting.set(True)
    try:
        choose_splits.py_func(*arguments)
    finally:
        jit._is_interpreting.reset(token)


@pytest.mark.skipif(not hasattr(choose_splits, "py_func"), reason="nothing is compiled")
def test_the_last_choice_is_found_out_by_the_guard(monkeypatch):
    """The broken twin: the last choice looked at is taken; and without the guard, nobody knew."""
    table = Table.from_frame(FOUR_CELLS, weights=np.array(THOUSANDS))
    parameters = {"expected_branches": 2.0, "concentration": 2.0, "leaf": "uniform"}
    settings = {"partitions": "subsets", "max_branches": 4}
    problem = LargeProblem(table, settings, parameters, "whole")
    monkeypatch.setattr(recursion, "choose_splits", interpreted)
    assert not complaints_of(problem, solve(problem.posterior), [])
    monkeypatch.setattr(choices, "_BETTER", -1.0)
    with pytest.raises(InternalError, match="please report it"):
        solve(problem.posterior)
    monkeypatch.setattr(exact_posterior, "certified", lambda density, tree, *_: density(tree))
    assert complaints_of(problem, solve(problem.posterior), [])


def heavy_problem():
    """Return 698,702 rows in 18 cells: twelve tilts whose sums differ in their tenth digit."""
    rng = np.random.default_rng(3)
    schema = Schema(
        tuple(Column(f"c{j}", "nominal", tuple("abc"[:q])) for j, q in enumerate((3, 3, 2)))
    )
    weights = np.rint(rng.dirichlet(np.ones(18)) * 698_702)
    cells = ["".join("abc"[code] for code in cell) for cell in np.ndindex(3, 3, 2)]
    table = Table.from_arrays([list(cell) for cell in cells], sample_weight=weights, schema=schema)
    parameters = {
        "expected_leaves": 3.17, "concentration": 60.3, "leaf": "independent",
        "leaf_concentration": 1.0,
    }  # fmt: skip
    return LargeProblem(table, {"partitions": "levels", "max_branches": 2}, parameters, "whole")


def test_tilted_sums_of_many_rows_have_the_error_that_is_proved(monkeypatch):
    """The broken twin: logs of two million nats, and no rounding term; it is far off, and sure."""
    problem = heavy_problem()
    found = solve_by_tilts(problem.posterior, rng=0)
    assert not complaints_of(problem, found, [])
    assert found.error < 1e-6
    run = Passes.run

    def absolute(passes, tilt, maximize):
        passes.log.origin = 0
        return run(passes, tilt, maximize)

    monkeypatch.setattr(Passes, "run", absolute)
    honest = solve_by_tilts(problem.posterior, rng=0)
    assert not complaints_of(problem, honest, [])
    nothing = PassRounding(0.0, 0.0, 0.0, 18.0, 18.0)
    monkeypatch.setattr(PassRounding, "of", lambda *_: nothing)
    monkeypatch.setattr(Passes, "lost", lambda passes, *_: np.zeros(passes.k.size))
    monkeypatch.setattr(Passes, "rounding_of_common", 0.0)
    monkeypatch.setattr(Expansion, "_roundings", lambda own: dict.fromkeys(own._passes.sums, 0.0))
    monkeypatch.setattr("bayescascade.methods.density.trees.exact.expansion.EVALUATED", 0.0)
    assert complaints_of(problem, solve_by_tilts(problem.posterior, rng=0), [])


@precisely
def test_listed_log_gammas_have_the_digits_of_two_floats():
    """All choices rest on them."""
    for alpha, multiple in ((1e-3, 1), (0.7, 3), (2.0, 1), (150.0, 2)):
        listed = np.empty((3_000, 2))
        list_log_gamma(alpha, multiple, 1.0, np.arange(3_000), listed)
        for n in (0, 1, 2, 7, 19, 20, 21, 300, 2_999):
            true = log_gamma(multiple * Decimal(alpha) + n)
            assert abs(Decimal(listed[n, 0]) + Decimal(listed[n, 1]) - true) < Decimal("5e-18")


def test_bounds_on_rounding_hold_for_log_densities(rng):
    """The guard allows for no more than what may happen, and for no less."""
    shares = []
    for _ in range(30):
        problem = draw_problem(rng)
        posterior = problem.posterior
        tree = posterior.initial_state(rng)
        off = abs(float(problem.precise(tree) - Decimal(posterior.log_density(tree))))
        shares.append(off / posterior.rounding(tree))
    assert max(shares) <= 1.0
    assert max(shares) > 1e-4  # a bound that says nothing would hold, too


def test_sizes_bound_what_they_should():
    """Of every number: the log gamma function, and x times its derivative."""
    from scipy.special import digamma, gammaln

    x = 10.0 ** np.linspace(-300, 300, 5_001)
    sizes = guard.log_gamma_sizes(x)
    with np.errstate(over="ignore"):
        assert (np.abs(gammaln(x)) <= sizes * (1 + 1e-12)).all()
        assert (np.abs(x * digamma(x)) <= sizes * (1 + 1e-12)).all()
    assert_allclose(guard.share_of_sums(np.ones(9)), 0.0)
    assert guard.share_of_sums(np.full(9, 0.1)) == 9 * guard.UNIT


def test_rounding_that_a_print_would_show_is_not_called_exact():
    """Of real weights that come to 1e15, the second decimal may be anything."""
    weights = np.random.default_rng(0).dirichlet(np.ones(4)) * 1e15
    model = BranchCascade(random_state=0).fit(FOUR_CELLS, sample_weight=weights)
    assert "exact" not in str(model).split("log evidence")[0]
    assert "no tree is more probable by more than" in " ".join(str(model).split())


def test_what_rounding_leaves_open_is_not_put_down_to_time(tmp_path):
    """Who gave no time limit would look for one, and wait longer for nothing."""
    rows = np.random.default_rng(0).integers(0, 2, (300, 200)).astype(str)
    model = BranchCascade(max_depth=0, partitions="levels", leaf="dependent").fit(rows)
    model.save(tmp_path / "model.json")
    for one in (model, load(tmp_path / "model.json")):
        text = " ".join(str(one).split())
        words = "complete search, up to rounding: no tree of depth up to 0 is more probable by"
        assert words in text
        assert "in its time" not in text
