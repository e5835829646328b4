"""The posterior over unions of boxes: its density, its moves, its draws, its files."""

import numpy as np
import pytest

from bayescascade.base.errors import DataError, ModelFileError, ParameterError
from bayescascade.methods.boxes.posterior import MOVE_WEIGHTS, BoxPosterior
from tests.methods.boxes.slow_moves import Problem, transitions
from tests.statistical.chi_square import fits, independent_steps

PROBLEMS = [
    Problem("one column", (5,), 2),
    Problem("gibbs", (5,), 2, "gibbs", weighted=True),
    Problem("two columns", (3, 3), 2),
    Problem("three boxes", (2, 2), 3, "gibbs"),
    Problem("long", (8,), 2, settings={"side_cost": 0.0}),
    Problem("constant", (3, 1), 2, weighted=True),
    # all rows are inside, and those outside are rounding errors of both signs
    Problem("all inside", (2, 3), 2, weighted=True, n_rows=18, settings={"side_cost": 0.0}),
]
each = pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
GROUPS = (("slide",), ("toggle",), ("shift",), ("add", "drop"), ("split", "join"))


@each
def test_density_is_the_formula(problem):
    """What is sampled must be what the module says; the kernels' may differ by a constant."""
    posterior = problem.posterior()
    assert len(problem.states()) > 10
    for state in problem.states()[::7]:
        expected = problem.log_density(state)
        assert posterior.log_density(state) == pytest.approx(expected, abs=1e-9)
        rows, flags, _ = problem.rows
        inside = posterior.union(state).contains(rows)
        weights = posterior.weights_inside(state)
        assert weights.sum() == pytest.approx(problem.rows[2][inside].sum())
        assert weights[0] == pytest.approx(problem.rows[2][inside & flags].sum())


@each
def test_moves_are_in_detailed_balance(problem):
    """Each by itself, and hot or not."""
    states = problem.states()
    for names in GROUPS:
        for beta in (0.4, 1.0):
            weights = dict.fromkeys(names, 1.0)
            matrix, chances = transitions(problem, states, weights, beta)
            flow = chances[:, np.newaxis] * matrix
            assert np.abs(flow - flow.T).max() < 1e-12, (names, beta)


@pytest.mark.parametrize("names", [("toggle",), ("add", "drop"), ("split", "join")])
def test_without_ratios_moves_are_out_of_balance(names):
    """The test above must be able to fail."""
    problem = PROBLEMS[2]
    weights = dict.fromkeys(names, 1.0)
    matrix, chances = transitions(problem, problem.states(), weights, broken=True)
    flow = chances[:, np.newaxis] * matrix
    assert np.abs(flow - flow.T).max() > 1e-5


def telling_places(right, wrong, rng):
    """Return the places of three states that a lost ratio changes most, or of any three."""
    change = np.abs(wrong - right).sum(axis=1)
    if change.any():
        return change.argsort()[-3:]
    stays = right.diagonal()
    return rng.choice(np.flatnonzero((stays > 0.05) & (stays < 0.95)), 3, replace=False)


def fit_of_steps(problem, weights, rng):
    """Whether single compiled steps pass for those of the twin; whether, for one without ratios."""
    states, posterior = problem.states(), problem.posterior()
    index = {state: place for place, state in enumerate(states)}
    right, wrong = (transitions(problem, states, weights, broken=b)[0] for b in (False, True))
    passes, wrong_passes = [], []
    for place in telling_places(right, wrong, rng):
        drawn = [index[posterior.advance(rng, states[place], 1, 1.0)[0]] for _ in range(1000)]
        passes.append(fits(drawn, right[place]))
        wrong_passes.append(fits(drawn, wrong[place]))
    return all(passes), all(wrong_passes)


@pytest.mark.parametrize(
    "problem",
    [pytest.param(p, marks=[pytest.mark.slow] * (p not in PROBLEMS[1:3])) for p in PROBLEMS],
    ids=lambda problem: problem.name,
)
def test_compiled_steps_are_plain_ones(problem, rng):
    """From some states, single steps have the probabilities of the twin's; a wrong twin has not."""
    passes, wrong_passes = fit_of_steps(problem, MOVE_WEIGHTS, rng)
    assert passes
    assert not wrong_passes or problem.n_boxes == 3  # whose many states hide it


@pytest.mark.parametrize("names", GROUPS, ids="+".join)
def test_each_move_alone_is_the_plain_one(names, rng, monkeypatch):
    """Among steps of all moves a wrong ratio of one is hardly seen."""
    problem = PROBLEMS[4 if names == ("shift",) else 2]
    monkeypatch.setattr(BoxPosterior, "tries", {one: float(one in names) for one in MOVE_WEIGHTS})
    passes, wrong_passes = fit_of_steps(problem, dict.fromkeys(names, 1.0), rng)
    assert passes
    assert not wrong_passes or names in (("slide",), ("shift",))  # which are as likely as reversed


@pytest.mark.parametrize(
    "problem",
    [PROBLEMS[1], *(pytest.param(problem, marks=pytest.mark.slow) for problem in PROBLEMS[2:4])],
    ids=lambda problem: problem.name,
)
def test_draws_are_of_the_posterior(problem, rng):
    """As enumerated; with another cost of a side they are not."""
    states = problem.states()
    index = {state: place for place, state in enumerate(states)}
    matrix, chances = transitions(problem, states, MOVE_WEIGHTS)
    thinning = independent_steps(matrix, chances)
    for changed, is_right in ((problem, True), (problem.changed(side_cost=1.2), False)):
        posterior, state, drawn = changed.posterior(), states[0], []
        state, _ = posterior.advance(rng, state, 20 * thinning, 1.0)
        for _ in range(2000):
            state, _ = posterior.advance(rng, state, thinning, 1.0)
            drawn.append(index[state])
        assert fits(drawn, chances) == is_right


@pytest.mark.parametrize("likelihood", ["beta", "gibbs"])
def test_sums_stay_right_over_many_steps(rng, likelihood, monkeypatch):
    """What kernels add up, strip by strip or by words of bits, is what is counted row by row."""
    X, weights = rng.normal(size=(300, 4)).round(1), rng.random(300) + 0.5
    given = (X, X[:, 0] * X[:, 1] > 0.3, weights)
    settings = {"likelihood": likelihood, "side_cost": 0.5, "max_cuts": 20}
    posterior, by_rows = (BoxPosterior(*given, **settings) for _ in range(2))
    state = posterior.initial_state(rng)
    for _ in range(10):
        state, counts = posterior.advance(rng, state, 1000, 0.5)
        assert posterior._problem(state) is None
        with monkeypatch.context() as patch:
            patch.setattr("bayescascade.methods.boxes.posterior._MANY_CUTS", 0)
            expected = by_rows.weights_inside(state)
        np.testing.assert_allclose(posterior.weights_inside(state), expected, rtol=1e-12)
        assert counts.log_density == pytest.approx(by_rows.log_density(state), abs=1e-9)
        assert counts.best_log_density >= counts.log_density


def test_cuts_are_halfway_and_evenly_among_rows(rng):
    """A cut between any two values if there are few, quantiles if there are many."""
    flags = np.array([True, False, True])
    assert BoxPosterior([[1.0], [2.0], [4.0]], flags).cuts[0].tolist() == [1.5, 3.0]
    X = np.exp(3 * rng.normal(size=(2000, 1)))
    posterior = BoxPosterior(X, rng.random(2000) < 0.5, max_cuts=9)
    shares = np.bincount(np.searchsorted(posterior.cuts[0], X[:, 0])) / 2000
    np.testing.assert_allclose(shares, 0.1, atol=0.005)
    union = BoxPosterior(X, rng.random(2000) < 0.5, max_cuts=9).union(((2, 4),))
    inside = (X[:, 0] > posterior.cuts[0][1]) & (X[:, 0] <= posterior.cuts[0][4])
    assert (union.contains(X) == inside).all()
    assert posterior.state(union) == ((2, 4),)


def test_rates_are_posterior_means():
    """Of a row outside and of one inside, with the prior's rows."""
    flags = np.array([True, True, False, False])
    posterior = BoxPosterior([[1.0], [2.0], [3.0], [4.0]], flags, [1.0, 2.0, 1.0, 1.0])
    assert posterior.log_density(((3, 3),)) == -np.inf  # around the other class
    assert posterior.rates(((0, 2),)).tolist() == [1 / 3, 4 / 6]
    assert posterior.rates(()).tolist() == [4 / 7, 1 / 2]


def test_states_that_are_none_are_refused():
    """Of another number of columns, out of range, twice the same, or no whole numbers."""
    posterior = PROBLEMS[2].posterior()
    for encoded in (
        None,
        [[0]],
        [[2, 1, 0, 0]],
        [[0, 9, 0, 0]],
        [[0, 1, 0, 1]] * 2,
        [[0.0, 1] * 2],
    ):
        with pytest.raises(ModelFileError, match="a stored union"):
            posterior.decode_state(encoded)
    others = [PROBLEMS[2].changed(side_cost=9.0).posterior(), PROBLEMS[1].posterior()]
    assert len({one.fingerprint() for one in (posterior, *others, PROBLEMS[2].posterior())}) == 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_boxes": 0}, "n_boxes must be an integer from 1 to 64, got 0"),
        ({"side_cost": -1.0}, "side_cost must be a finite number >= 0, got -1.0"),
        ({"temperature": 0.0}, "temperature must be a finite number > 0, got 0.0"),
        ({"likelihood": "probit"}, "likelihood must be"),
        ({"negative_weight": "even"}, "negative_weight must be"),
    ],
)
def test_impossible_parameters_are_refused(settings, message):
    """At once, by name."""
    with pytest.raises(ParameterError, match=message):
        PROBLEMS[0].posterior(**settings)


def test_rows_must_be_of_both_kinds():
    """A class that is nowhere, or everywhere, has no boxes."""
    with pytest.raises(DataError, match="rows must be of both kinds"):
        BoxPosterior([[1.0], [2.0]], np.array([True, True]))
    with pytest.raises(DataError, match="rows must be of both kinds"):
        BoxPosterior([[1.0], [2.0]], np.array([True, False]), [0.0, 1.0])
    with pytest.raises(DataError, match="X must be a matrix of finite numbers"):
        BoxPosterior([[np.nan], [2.0]], np.array([True, False]))
    with pytest.raises(DataError, match="a truth value per row"):
        BoxPosterior([[1.0], [2.0]], [1, 0])
