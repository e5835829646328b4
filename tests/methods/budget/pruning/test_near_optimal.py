"""What prunings that are nearly as good as the best one pay for."""

import dataclasses
import math

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

import samplers
from bayescascade.base.errors import ParameterError
from bayescascade.costs.feature_costs import FeatureCosts
from bayescascade.methods.budget.forests.forest import Forest
from bayescascade.methods.budget.pruning import near_optimal as pruning_sampler
from bayescascade.methods.budget.pruning.budget_prune import BudgetPruneClassifier
from bayescascade.methods.budget.pruning.posterior import PruningPosterior
from bayescascade.methods.budget.pruning.program import PruningProgram
from bayescascade.model.search import Search
from bayescascade.model.trace import read_trace
from tests.methods.budget.pruning.problems import DEEP, THREE, PruningProblem

N_STEPS = 20_000

WIDE = PruningProblem(
    "wide", ((-1, 0, 1, 1, 0, 4, 5),) * 12, n_uses=60, tradeoff=0.05, base_error=9.0
)


def near_optimal(*problem, n_steps=None, n_chains=4, random_state=None, **settings):
    """Sample as `BudgetPruneClassifier.near_optimal` does."""
    search = Search("metropolis", n_steps, n_chains, None, random_state, None, False, None)
    settings = {"tolerance": 0.01, "n_draws": 500, **settings}
    return pruning_sampler.near_optimal(*problem, search, **settings)


def with_items(problem):
    """Return the program whose use u is of item u % 3, and the items' costs, twice their shares."""
    items = FeatureCosts(default=2.0).resolve(["age", "blood", "scan"])
    use_item = np.arange(problem.n_uses, dtype=np.int32) % 3
    return dataclasses.replace(problem.program, use_item=use_item), items


def exact(problem, tolerance, temperature):
    """Return, by listing them, what near-optimal prunings need and which shares of rows pay."""
    objectives = np.array([problem.objective(kept) for kept in problem.sets])
    is_near = objectives <= (1 + tolerance) * objectives.min()
    weights = is_near * np.exp(-(objectives - objectives.min()) / temperature)
    weights /= weights.sum()
    shares = np.zeros((len(problem.sets), 3))
    for use, (price, splits) in enumerate(
        zip(problem.record["price"], problem.record["asking"], strict=True)
    ):
        for row, kept in enumerate(problem.sets):
            shares[row, use % 3] += price / 2.0 * bool(kept & set(splits))
    return weights @ (shares > 0), weights @ shares, int(is_near.sum())


def best_of(problem):
    objectives = [problem.objective(kept) for kept in problem.sets]
    return problem.prunings[int(np.argmin(objectives))].kept


@pytest.mark.parametrize(
    ("problem", "tolerance", "temperature"),
    [(DEEP, 0.3, math.inf), pytest.param(THREE, 1.0, 0.2, marks=pytest.mark.slow)],
)
def test_shares_are_those_of_all_near_optimal_prunings(problem, tolerance, temperature, rng):
    """On problems this small they can all be listed."""
    program, items = with_items(problem)
    result = near_optimal(
        program, items, best_of(problem), problem.tradeoff, tolerance=tolerance,
        temperature=temperature, n_steps=N_STEPS, n_draws=500, random_state=rng,
    )  # fmt: skip
    needed, shares, n_near = exact(problem, tolerance, temperature)
    error = 5 * 0.5 / math.sqrt(1000)  # 2,000 draws that are hardly correlated: 5 standard errors
    np.testing.assert_allclose(result.needed, needed, atol=error)
    np.testing.assert_allclose(result.shares, shares, atol=0.2 * error)
    of_all, _, n_all = exact(problem, 1e9, 0.3)
    assert np.abs(of_all - needed).max() > error  # the test can fail
    drawn = {state for chain in result.run_.draws for state in chain}
    assert len(drawn) == n_near < n_all
    assert all(diagnostic.is_fine for diagnostic in result.summary_.diagnostics.values())
    assert result.optimum == pytest.approx(min(map(problem.objective, problem.sets)))
    assert result.best_shares.tolist() == pytest.approx(exact(problem, 1e-9, 0.2)[1].tolist())


@pytest.mark.slow
def test_no_draw_is_beyond_the_tolerance_or_better_than_the_best(rng):
    """Chains of millions of steps add up what they change: it must not carry them over."""
    items = FeatureCosts().resolve(["all"])
    best = annealed_best(WIDE)
    result = near_optimal(
        WIDE.program, items, best, WIDE.tradeoff, tolerance=0.1, n_steps=N_STEPS, random_state=rng
    )
    excess = result.run_.traces["objective"] / result.optimum - 1
    assert excess.min() >= -1e-9
    assert excess.max() <= 0.1 + 1e-9
    assert 0.02 < np.median(excess) < 0.07  # about half of what they may


def annealed_best(problem):
    """Return the best pruning that cooling down finds."""
    schedule = samplers.GeometricSchedule(100.0, 0.1)
    posterior = problem.posterior(temperature=1e-3)
    run = samplers.anneal(posterior, n_steps=200_000, n_chains=1, schedule=schedule, seed=0)
    return run.best_state.kept


@pytest.fixture(scope="module")
def pruned():
    """Return a pruned forest of six columns, of which labels need two."""
    X = np.random.default_rng(1).standard_normal((300, 6))
    y = X[:, 0] + X[:, 1] > 0
    forest = RandomForestClassifier(5, max_depth=4, max_features=None, random_state=0)
    return BudgetPruneClassifier(forest, tradeoff=0.01).fit(X[:200], y[:200], X[200:])


@pytest.mark.slow
def test_annealing_never_beats_the_certified_optimum(pruned):
    """Two programs that share no line of code: one would be wrong."""
    schedule = samplers.GeometricSchedule(300.0, 0.1)
    posterior = PruningPosterior(pruned.program_, 0.01, 1e-4)
    run = samplers.anneal(posterior, n_steps=60_000, n_chains=3, schedule=schedule, seed=0)
    objectives = [posterior.describe(state)["objective"] for state in run.final_states]
    assert min(objectives) >= pruned.lower_bound_ - 1e-12
    assert posterior.describe(run.best_state)["objective"] == pytest.approx(pruned.objective_)
    start = posterior.initial_state(np.random.default_rng(0))
    assert posterior.describe(start)["objective"] > 1.1 * pruned.objective_  # it had to be found


def test_a_fitted_pruning_tells_what_it_needs(pruned):
    """The columns that labels depend on, and hardly any other."""
    result = pruned.near_optimal(0.02, n_draws=100, random_state=0)
    assert result.names == ("x0", "x1", "x2", "x3", "x4", "x5")
    assert result.needed[:2].tolist() == [1.0, 1.0]
    assert result.shares[2:].max() < 0.3 < 0.9 < result.shares[:2].min()
    assert result.optimum == pytest.approx(pruned.objective_)
    np.testing.assert_allclose(result.best_shares, pruned.item_shares_)
    assert (result.run_.traces["objective"] >= pruned.lower_bound_ - 1e-12).all()


OF_THREE = (*with_items(THREE), best_of(THREE), THREE.tradeoff)


@pytest.fixture(scope="module")
def three():
    """Return what near-optimal prunings of a small problem need."""
    return near_optimal(*OF_THREE, tolerance=0.3, n_steps=5000, random_state=0)


def test_prints_as_a_table(three):
    """What a user reads."""
    result = dataclasses.replace(
        three,
        needed=np.array([0.25, 1.0, 0.0]),
        shares=np.array([0.1, 0.5, 0.0]),
        best_shares=np.array([0.0, 0.75, 0.0]),
    )
    lines = str(result).splitlines()
    assert lines[0] == "near-optimal prunings: at most 30 % above the best objective"
    assert lines[1].startswith("best objective 0.5   temperature ")
    assert "   2,000 draws of 4 chains" in lines[1]
    assert lines[-4:] == [
        "paid for   needed     rows   at best",
        "blood           1   50.0 %    75.0 %",
        "age          0.25   10.0 %     0.0 %",
        "never paid for: scan",
    ]
    assert max(map(len, lines)) <= 80


def test_chains_that_are_apart_say_what_that_means(three):
    """Longer chains might never help, and what the table says would be taken for known."""
    assert "chains do not agree" not in str(three)
    far = dataclasses.replace(three.summary_.diagnostics["cost"], r_hat=1.5)
    summary = dataclasses.replace(three.summary_, diagnostics={"cost": far})
    text = str(dataclasses.replace(three, summary_=summary))
    assert "there may be groups of prunings" in text
    assert max(map(len, text.splitlines())) <= 80


def test_draws_are_what_every_fit_returns(three, tmp_path):
    """A trace for ArviZ, in the names of what is paid for."""
    three.save_trace(tmp_path / "trace.nc")
    trace = read_trace(tmp_path / "trace.nc")
    assert trace.columns == ("age", "blood", "scan")
    np.testing.assert_allclose(trace.feature_used.mean(axis=(0, 1)), three.needed)
    assert list(three.summary_.diagnostics) == ["log_posterior", "objective", "cost", "n_splits"]


@pytest.mark.parametrize("name", ["tolerance", "temperature"])
def test_impossible_parameters_are_refused(name):
    """At once, by name."""
    with pytest.raises(ParameterError, match=f"{name} must be a finite number > 0, got 0.0"):
        near_optimal(*OF_THREE, **{name: 0.0})


def test_an_objective_of_zero_is_refused():
    """Nothing is one percent worse than nothing."""
    forest = Forest.from_preorder(
        np.array([0, -1, -1], np.int32), np.array([0.5, 0.0, 0.0]), np.zeros(3, bool),
        np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]]),
    )  # fmt: skip
    items = FeatureCosts(default=0.0).resolve([0])
    program = PruningProgram.of(forest, items, np.array([[0.0], [1.0]], np.float32))
    with pytest.raises(ParameterError, match="the best objective must be > 0 for a tolerance"):
        near_optimal(program, items, np.array([True]), 0.1)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_chains_go_on_unless_their_length_is_given(pruned, monkeypatch):
    """And the print says so; a fixed length is what it always was."""
    monkeypatch.setattr(pruning_sampler, "_STEPS", 4_000)
    monkeypatch.setattr(pruning_sampler, "_STEPS_PER_SPLIT", 0)
    found = pruned.near_optimal(0.02, random_state=0)
    assert found.summary_.n_rounds > 1
    assert f"4 chains, from the last of {found.summary_.n_rounds} rounds" in str(found)
    fixed = pruned.near_optimal(0.02, n_steps=4_000, random_state=0)
    assert fixed.summary_.n_rounds == 1
    assert "rounds" not in str(fixed)
    assert pruned.near_optimal(0.02, until="steps", random_state=0).run_ == fixed.run_
