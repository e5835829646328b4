"""One compiled step of a rule list is distributed as one step of the plain moves."""

from functools import cache

import numpy as np
import pytest

import samplers
from bayescascade.methods.rules import posterior as posteriors
from bayescascade.methods.rules.rule_list import RuleList
from tests.methods.rules.problems import (
    BINS,
    FEW,
    PAIR,
    PROBLEMS,
    SUPPORTED,
    THREE,
    Problem,
    Remembered,
    each,
    groups,
    slowly,
    unseen,
)
from tests.methods.rules.slow_moves import moves as slow_moves
from tests.statistical.chi_square import fits
from tests.statistical.proposals import one_step, without_hastings

N_DRAWS = 1500


@cache
def plain_step(problem, state, names, inverse_temperature, broken=False, rates=()):
    """Return the lists that one plain step leads to, and their exact probabilities."""
    posterior = Remembered(problem.posterior(**dict(rates)))
    moves = {name: move for name, move in slow_moves(posterior).items() if name in names}
    if broken:
        moves = without_hastings(moves)
    weights = posterior.move_weights()
    return one_step(moves, weights, posterior.log_density, state, inverse_temperature)


def compiled_steps(posterior, state, rng, inverse_temperature, n=N_DRAWS):
    for _ in range(n):
        yield posterior.advance(rng, state, 1, inverse_temperature)[0]


def is_plain_step(
    problem, state, rng, names=None, inverse_temperature=1.0, broken=False, rates=(), n=N_DRAWS
):
    """Whether compiled steps from a list pass for plain ones."""
    posterior = problem.posterior(**dict(rates))
    names = tuple(posterior.move_weights()) if names is None else names
    states, probabilities = plain_step(problem, state, names, inverse_temperature, broken, rates)
    index = {state: i for i, state in enumerate(states)}
    drawn = compiled_steps(posterior, state, rng, inverse_temperature, n)
    try:
        return fits([index[state] for state in drawn], probabilities)
    except KeyError:  # it went where no plain step leads
        return False


def some_lists(problem, rng):
    """Return the list without rules, a short one, a middling one, and one of the longest."""
    third = len(problem.lists) // 3
    chosen = [0, rng.integers(1, third), rng.integers(third, 2 * third), -1]
    return [problem.lists[int(i)] for i in chosen]


@slowly(*PROBLEMS)
def test_compiled_steps_are_the_plain_ones(problem, rng):
    """The compiled sweep is a second program for the moves: it must be the same chain."""
    for state in some_lists(problem, rng):
        assert is_plain_step(problem, state, rng), state


LARGER = Problem("larger", ("nominal", "ordinal", "continuous"), (3, 3, 2), 3, (1,), n_rows=60)
LARGER_LABELS = Problem(
    "larger-labels", ("continuous", "nominal", "ordinal"), (3, 2, 4), 2, (2,), n_classes=3,
    n_rows=90, min_support=0.05, fractional=True,
)  # fmt: skip


@each(LARGER, LARGER_LABELS)
def test_compiled_steps_from_longer_lists_are_the_plain_ones(problem, rng):
    """A hundred candidates of several sizes, as in use."""
    posterior = problem.posterior()
    n_tested = 0
    while n_tested < 3:
        drawn = rng.choice(len(posterior.antecedents), size=3 + n_tested, replace=False)
        state = RuleList(tuple(drawn.tolist()))
        if posterior.log_density(state) > -np.inf:
            assert is_plain_step(problem, state, rng), state
            n_tested += 1


# Where a step is accepted with certainty its ratio may be anything: these make it uncertain, for
# steps to more rules and conditions, and for steps to fewer.
RATES = {
    "short": (("expected_rules", 0.2), ("expected_size", 0.2)),
    "long": (("expected_rules", 8.0), ("expected_size", 4.0)),
    "few": (("expected_rules", 0.4), ("expected_size", 6.0)),
}


def alone(monkeypatch, names):
    """Try these moves only, from now on."""
    chosen = {name: (name in names) / len(names) for name in posteriors.MOVE_WEIGHTS}
    monkeypatch.setattr(posteriors, "MOVE_WEIGHTS", chosen)


def lists_for_moves(problem):
    """Return short lists whose rules are of one and of two conditions."""
    sizes = [len(one) for one in problem.record["candidates"]]
    short = [state for state in problem.lists if 1 <= state.n_rules <= 2]
    patterns = {tuple(sizes[rule] for rule in state.rules): state for state in short}
    assert {(1,), (2,), (1, 1), (1, 2), (2, 1)} <= set(patterns)
    return list(patterns.values())


GROUPS = groups(tuple(posteriors.MOVE_WEIGHTS))[:-1]


@each(unseen(PAIR), unseen(SUPPORTED))
@pytest.mark.parametrize("rates", RATES)
@pytest.mark.parametrize("names", GROUPS, ids="+".join)
def test_each_move_alone_is_the_plain_one(problem, rates, names, rng, monkeypatch):
    """With all moves together a rare one could be wrong unnoticed."""
    alone(monkeypatch, names)
    for state in lists_for_moves(problem):
        assert is_plain_step(problem, state, rng, names, rates=RATES[rates]), state


@each(unseen(PAIR), unseen(SUPPORTED))
@pytest.mark.parametrize("names", [one for one in GROUPS if one not in [("swap",), ("relocate",)]],
                         ids="+".join)  # fmt: skip
def test_each_move_without_hastings_term_is_told_apart(problem, names, rng, monkeypatch):
    """The test above must be able to fail, for each move that has such a term."""
    alone(monkeypatch, names)
    verdicts = [
        is_plain_step(problem, state, rng, names, broken=True, rates=RATES[rates])
        for state in lists_for_moves(problem)
        for rates in RATES
    ]
    assert not all(verdicts)


@pytest.mark.slow
@each(LARGER, LARGER_LABELS)
@pytest.mark.parametrize("rates", RATES)
@pytest.mark.parametrize("names", GROUPS, ids="+".join)
def test_each_move_alone_is_the_plain_one_on_larger_problems(
    problem, rates, names, rng, monkeypatch
):
    """As above with candidates of three sizes, and data."""
    alone(monkeypatch, names)
    posterior = problem.posterior()
    n_tested = 0
    while n_tested < 4:
        drawn = rng.choice(len(posterior.antecedents), size=1 + n_tested, replace=False)
        state = RuleList(tuple(drawn.tolist()))
        if posterior.log_density(state) > -np.inf:
            for inverse_temperature in (0.3, 1.0):
                assert is_plain_step(
                    problem, state, rng, names, inverse_temperature, rates=RATES[rates], n=10_000
                ), state
            n_tested += 1


@each(PAIR, SUPPORTED)
@pytest.mark.parametrize("inverse_temperature", [0.0, 0.3, 3.0])
def test_compiled_steps_know_the_temperature(problem, inverse_temperature, rng):
    """Annealing would otherwise cool something else."""
    for state in some_lists(problem, rng)[1:]:
        assert is_plain_step(problem, state, rng, inverse_temperature=inverse_temperature)


@each(PAIR, SUPPORTED)
def test_steps_without_hastings_term_are_told_apart(problem, rng):
    """The tests above must be able to fail."""
    verdicts = [is_plain_step(problem, one, rng, broken=True) for one in some_lists(problem, rng)]
    assert not all(verdicts)


@each(PAIR, SUPPORTED)
def test_another_temperature_is_told_apart(problem, rng):
    """As above."""
    posterior = problem.posterior()
    best = problem.lists[int(np.argmax(problem.log_densities()))]
    states, probabilities = plain_step(problem, best, tuple(posterior.move_weights()), 0.3)
    index = {state: i for i, state in enumerate(states)}
    drawn = [index[state] for state in compiled_steps(posterior, best, rng, 2.0)]
    assert not fits(drawn, probabilities)


@each(BINS, THREE)
def test_compiled_and_plain_blocks_agree_on_acceptance(problem, rng):
    """Acceptance is reported per move, whichever engine ran."""
    posterior = Remembered(problem.posterior())
    state = problem.lists[int(np.argmax(problem.log_densities()))]
    _, counts = problem.posterior().advance(rng, state, 20_000, 1.0)
    chain = samplers.init(state, posterior)
    moves, weights = slow_moves(posterior), posterior.move_weights()
    accepted, tried = dict.fromkeys(moves, 0), dict.fromkeys(moves, 0)
    chances = np.array([weights[name] for name in moves])
    for name in rng.choice(list(moves), size=2000, p=chances / chances.sum()):
        chain, info = samplers.step(rng, chain, posterior, moves[name])
        tried[name] += 1
        accepted[name] += info.accepted
    assert list(counts.proposed) == list(moves)
    for name in moves:
        fast = counts.accepted[name] / counts.proposed[name]
        # successive steps are correlated: 5 standard errors of a tenth of the steps
        error = np.sqrt(0.25 * (10 / tried[name] + 10 / counts.proposed[name]))
        assert abs(fast - accepted[name] / tried[name]) < 5 * error
        expected = 20_000 * weights[name] / chances.sum()
        assert abs(counts.proposed[name] - expected) < 5 * np.sqrt(expected)


@each(*FEW)
def test_lists_before_the_first_change_are_kept(problem, rng):
    """A step changes at most what its move says: rules come and go one at a time."""
    posterior = problem.posterior()
    for state in some_lists(problem, rng):
        for after in compiled_steps(posterior, state, rng, 0.5, 100):
            assert abs(after.n_rules - state.n_rules) <= 1
            assert len(set(after.rules) ^ set(state.rules)) <= 2
