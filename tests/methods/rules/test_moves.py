"""The moves in plain Python: exact transition matrices are balanced, draws are as listed."""

import numpy as np
import pytest

import samplers
from bayescascade.methods.rules.rule_list import RuleList
from tests.methods.rules.problems import (
    FEW,
    GAPS,
    KINDS,
    MISSING,
    PAIR,
    PROBLEMS,
    SUPPORTED,
    THREE,
    Problem,
    Remembered,
    each,
    groups,
    slowly,
    step_matrix,
)
from tests.methods.rules.slow_moves import moves as slow_moves
from tests.statistical.chi_square import fits
from tests.statistical.proposals import draws_as_listed, without_hastings

MOVES = ("add", "remove", "replace", "edit", "swap", "relocate")


def imbalance(problem, names, inverse_temperature=1.0):
    """Return the largest difference between a flow of probability and the flow back."""
    matrix = step_matrix(problem, names, inverse_temperature)
    log_densities = inverse_temperature * problem.log_densities()
    density = np.exp(log_densities - np.logaddexp.reduce(log_densities))
    flow = density[:, None] * matrix
    return np.abs(flow - flow.T).max()


@slowly(*PROBLEMS)
def test_moves_are_in_detailed_balance(problem):
    """With a wrong ratio the chain samples another posterior than the one printed."""
    for names in groups(MOVES):
        assert imbalance(problem, names) < 1e-12, names


@each(PAIR, SUPPORTED)
def test_add_without_its_reverse_is_out_of_balance(problem):
    """Moves are grouped with their reverse for a reason, and the test above can fail."""
    assert imbalance(problem, ("add",)) > 1e-3


@each(PAIR, SUPPORTED)
@pytest.mark.parametrize("inverse_temperature", [0.0, 0.2])
def test_moves_are_in_balance_at_other_temperatures(problem, inverse_temperature):
    """Annealing and replica exchange run the same moves hotter."""
    for names in groups(MOVES):
        assert imbalance(problem, names, inverse_temperature) < 1e-12, names


LARGE = Problem("large", KINDS, (3, 2, 3), 3, n_rows=80)
LARGE_LABELS = Problem(
    "large-labels", ("nominal", "ordinal", "nominal"), (3, 3, 2), 3, (1,), n_classes=3, n_rows=80
)


def flow(posterior, moves, state, other):
    """Return the flow of probability to another list, relative to the list's own density."""
    weights = posterior.move_weights()
    total = sum(weights[name] for name in moves)
    ratio = posterior.log_density(other) - posterior.log_density(state)
    flowing = 0.0
    for name, move in moves.items():
        for proposal, probability in move.proposals(state):
            if proposal.log_q_ratio > -np.inf and proposal.state == other:
                accepted = np.exp(min(0.0, ratio + proposal.log_q_ratio))
                flowing += weights[name] / total * probability * accepted
    return flowing


def neighbors(posterior, moves, state, rng, n):
    """Return some of the lists that moves lead to and that have a density."""
    proposed = [p for move in moves.values() for p, _ in move.proposals(state)]
    valid = {p.state: None for p in proposed if p.log_q_ratio > -np.inf and p.state != state}
    possible = [other for other in valid if posterior.log_density(other) > -np.inf]
    return [possible[int(i)] for i in rng.permutation(len(possible))[:n]]


def relative_imbalance(posterior, moves, state, rng, n_others=8):
    """Return by how much, at most, a flow from the list differs from the flow back."""
    differences = [0.0]
    for other in neighbors(posterior, moves, state, rng, n_others):
        there = flow(posterior, moves, state, other)
        back = flow(posterior, moves, other, state)
        back *= np.exp(posterior.log_density(other) - posterior.log_density(state))
        differences.append(abs(there - back) / max(there, back))
    return max(differences)


def some_lists(posterior, rng, n):
    """Return lists of two to four rules that have a density."""
    found = []
    while len(found) < n:
        size = int(rng.integers(2, 5))
        drawn = rng.choice(len(posterior.antecedents), size=size, replace=False)
        state = RuleList(tuple(drawn.tolist()))
        if posterior.log_density(state) > -np.inf:
            found.append(state)
    return found


@each(LARGE, LARGE_LABELS)
def test_moves_are_in_balance_around_longer_lists(problem, rng):
    """A hundred candidates and more, of three sizes: too many lists to list them all."""
    posterior = Remembered(problem.posterior())
    assert posterior.antecedents.n_of_size.min() == 0 < posterior.antecedents.n_of_size[3]
    moves = slow_moves(posterior)
    for names in groups(MOVES)[:-1]:
        chosen = {name: moves[name] for name in names}
        for state in some_lists(posterior, rng, 2):
            assert relative_imbalance(posterior, chosen, state, rng) < 1e-9, names


@each(LARGE_LABELS)
def test_without_its_hastings_term_a_move_is_out_of_balance(problem, rng):
    """The tests above must be able to fail, for every move that has such a term."""
    posterior = Remembered(problem.posterior())
    broken = without_hastings(slow_moves(posterior))
    for names in groups(MOVES)[:-1]:
        chosen = {name: broken[name] for name in names}
        found = [
            relative_imbalance(posterior, chosen, state, rng, 20)
            for state in some_lists(posterior, rng, 3)
        ]
        if names in (("relocate",), ("swap",)):  # as likely as their reverse
            assert max(found) < 1e-9, names
        else:
            assert max(found) > 0.01, names


@each(PAIR, MISSING, SUPPORTED)
def test_moves_reach_every_list(problem):
    """A list that cannot be reached is never reported, however probable."""
    posterior = problem.posterior()
    moves = {name: slow_moves(posterior)[name] for name in ("add", "remove")}
    found = samplers.enumerate_states(posterior, RuleList(), moves)
    assert set(found) == set(problem.lists)


@each(*FEW)
def test_proposals_sum_to_one(problem):
    """What is missing would be a chain that sometimes has nowhere to go."""
    for name, move in slow_moves(problem.posterior()).items():
        for state in problem.lists[::5]:
            total = sum(probability for _, probability in move.proposals(state))
            assert total == pytest.approx(1.0, abs=1e-9), name


@each(PAIR, SUPPORTED, LARGE_LABELS)
def test_proposals_are_what_propose_draws(problem, rng):
    """The exact tests list `proposals`; the generic engines draw with `propose`."""
    posterior = problem.posterior()
    for name, move in slow_moves(posterior).items():
        for state in [RuleList(), RuleList((0,)), *some_lists(posterior, rng, 2)]:
            assert draws_as_listed(move, state, rng), (name, state)


def test_other_proposals_are_told_apart(rng):
    """The comparison of frequencies above must be able to fail."""
    move = slow_moves(SUPPORTED.posterior())["add"]
    state = RuleList()
    listed = [(p, q) for p, q in move.proposals(state) if q > 0]
    index = {proposal: i for i, (proposal, _) in enumerate(listed)}
    drawn = [index[move.propose(rng, state)] for _ in range(2000)]
    probabilities = np.array([q for _, q in listed])
    assert fits(drawn, probabilities)
    skewed = probabilities * np.linspace(0.5, 1.5, len(probabilities))
    assert not fits(drawn, skewed / skewed.sum())


@each(PAIR, THREE, GAPS)
def test_proposed_lists_are_valid(problem):
    """A rule that occurs twice, or no candidate, has no meaning."""
    posterior = problem.posterior()
    n_candidates = len(posterior.antecedents)
    for move in slow_moves(posterior).values():
        for state in problem.lists[::5]:
            for proposal, _ in move.proposals(state):
                if proposal.log_q_ratio > -np.inf:
                    assert proposal.state.problem(n_candidates) is None
                assert proposal.log_q_ratio < np.inf


@each(PAIR, SUPPORTED)
def test_moves_are_the_six(problem):
    """Acceptance is reported by these names; add and remove are tried equally often."""
    posterior = problem.posterior()
    assert tuple(posterior.move_weights()) == MOVES
    weights = posterior.move_weights()
    assert set(weights) == set(MOVES)
    assert min(weights.values()) > 0
    assert weights["add"] == weights["remove"]


def test_a_list_without_rules_can_only_grow():
    """All other moves have nothing to change, and say so."""
    for problem in (PAIR, SUPPORTED):
        for name, move in slow_moves(problem.posterior()).items():
            valid = [p.log_q_ratio > -np.inf for p, _ in move.proposals(RuleList())]
            assert any(valid) == (name == "add")


def test_a_list_of_all_candidates_cannot_grow():
    """Nor can a rule be replaced when none is left."""
    moves = slow_moves(SUPPORTED.posterior())
    full = RuleList(tuple(range(len(SUPPORTED.record["candidates"]))))
    for name in ("add", "replace", "edit"):
        assert all(p.log_q_ratio == -np.inf for p, _ in moves[name].proposals(full)), name
    for name in ("remove", "swap", "relocate"):
        assert any(p.log_q_ratio > -np.inf for p, _ in moves[name].proposals(full)), name
