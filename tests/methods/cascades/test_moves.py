"""The moves in plain Python: exact transition matrices are balanced, draws are as listed."""

import numpy as np
import pytest

import samplers
from bayescascade.methods.cascades.tree import Tree
from tests.methods.cascades.problems import (
    BINARY,
    BINS,
    BRANCH,
    INCLUSION,
    INDEPENDENT_BRANCH,
    LEAF,
    LEVELS,
    MIXED_WAYS,
    MULTIWAY,
    ORDINAL,
    SMALL,
    TERNARY,
    TERNARY_THREE_WAY,
    UNEVEN_LEVELS,
    WITH_OPTIONS,
    each,
    groups,
    listed_moves,
    pairs,
    slowly,
    step_matrix,
)
from tests.statistical.chi_square import fits
from tests.statistical.proposals import draws_as_listed, without_hastings


def imbalance(problem, model, names, inverse_temperature=1.0):
    """Return the largest difference between a flow of probability and the flow back."""
    matrix = step_matrix(problem, model, names, inverse_temperature)
    log_densities = inverse_temperature * model.reference(problem)
    density = np.exp(log_densities - np.logaddexp.reduce(log_densities))
    flow = density[:, None] * matrix
    return np.abs(flow - flow.T).max()


@slowly(*SMALL, model=BRANCH)
def test_moves_are_in_detailed_balance(problem, model):
    """With a wrong ratio the chain samples another posterior than the one printed."""
    for names in groups(model.on(problem)):
        assert imbalance(problem, model, names) < 1e-12, names


@pairs(*WITH_OPTIONS)
def test_moves_are_in_detailed_balance_with_options(problem, model):
    """The same where splits are others, leaves are not uniform, or large trees have no density."""
    for names in groups(model.on(problem)):
        assert imbalance(problem, model, names) < 1e-12, names


def test_prune_without_its_reverse_is_out_of_balance():
    """Moves are grouped with their reverse for a reason, and the test above can fail."""
    assert imbalance(MULTIWAY, LEAF, ("prune",)) > 1e-3


@each(MULTIWAY, models=[LEAF, INCLUSION])
@pytest.mark.parametrize("inverse_temperature", [0.0, 0.2])
def test_moves_are_in_balance_at_other_temperatures(problem, model, inverse_temperature):
    """Annealing and replica exchange run the same moves hotter."""
    for names in groups(model.on(problem)):
        found = imbalance(problem, model, names, inverse_temperature)
        assert found < 1e-12, names


def flows_from(posterior, moves, tree):
    """Return the flow of probability to every other tree, relative to the tree's own density."""
    weights, log_density = posterior.move_weights(), posterior.log_density(tree)
    total = sum(weights[name] for name in moves)
    flows = {}
    for name, move in moves.items():
        for proposal, probability in move.proposals(tree):
            if proposal.log_q_ratio > -np.inf and proposal.state != tree:
                ratio = posterior.log_density(proposal.state) - log_density + proposal.log_q_ratio
                flow = weights[name] / total * probability * np.exp(min(0.0, ratio))
                flows[proposal.state] = flows.get(proposal.state, 0.0) + flow
    return flows


def relative_imbalance(posterior, moves, tree):
    """Return by how much, at most, a flow from the tree differs from the flow back."""
    log_density = posterior.log_density(tree)
    differences = [0.0]
    for other, flow in flows_from(posterior, moves, tree).items():
        back = flows_from(posterior, moves, other).get(tree, 0.0)
        back *= np.exp(posterior.log_density(other) - log_density)
        differences.append(abs(flow - back) / max(flow, back))
    return max(differences)


@pairs((LEVELS, LEAF), (LEVELS, INCLUSION), (LEVELS, INDEPENDENT_BRANCH))
def test_moves_are_in_balance_around_larger_trees_of_levels(problem, model, rng):
    """Changes, swaps and grafts need two columns with as many levels below a third."""
    posterior = model.on(problem)
    moves = listed_moves(posterior)
    without = without_hastings(moves)
    for names in groups(posterior):
        chosen, broken = ({name: m[name] for name in names} for m in (moves, without))
        trees = some_trees(problem, rng, 6)
        assert max(relative_imbalance(posterior, chosen, tree) for tree in trees) < 1e-9, names
        if names != ("change",):  # in place of a split over leaves; others are symmetric
            trees = some_trees(problem, rng, 40)
            assert any(relative_imbalance(posterior, broken, tree) > 0.01 for tree in trees), names


def some_trees(problem, rng, n):
    """Return trees of many leaves, at random: small ones are few and covered above."""
    large = [tree for tree in problem.trees if tree.n_leaves > 4]
    return [large[int(i)] for i in rng.choice(len(large), size=n, replace=False)]


@each(TERNARY_THREE_WAY, MIXED_WAYS, ORDINAL)
def test_moves_are_in_balance_around_larger_trees(problem, model, rng):
    """Swaps and rotations do most where several splits stand above each other."""
    posterior = model.on(problem)
    moves = listed_moves(posterior)
    for names in groups(posterior):
        if names != tuple(moves):
            chosen = {name: moves[name] for name in names}
            for tree in some_trees(problem, rng, 4) + [TRADABLE] * (problem is MIXED_WAYS):
                assert relative_imbalance(posterior, chosen, tree) < 1e-9, names


# Trading three branches over two for two over three has a ratio only if there are more splits.
TRADABLE = Tree.from_nested(
    (0, [((k,), (1, [((0,), (2, [((0,), None), ((1,), None)]) if k else None), ((1,), None)]))
         for k in range(3)]),
    MIXED_WAYS.nominal,
)  # fmt: skip


@each(MIXED_WAYS, models=[LEAF, BRANCH])
def test_without_its_hastings_term_a_move_is_out_of_balance(problem, model, rng):
    """The tests above must be able to fail, for every move."""
    posterior = model.on(problem)
    moves = without_hastings(listed_moves(posterior))
    for names in groups(posterior):
        chosen = {name: moves[name] for name in names}
        trees = [*some_trees(problem, rng, 5), TRADABLE]
        found = [relative_imbalance(posterior, chosen, tree) for tree in trees]
        assert max(found) > 0.01, names


@pytest.mark.slow
@each(ORDINAL, TERNARY)
def test_all_moves_are_in_balance_on_larger_spaces(problem, model):
    """As above, everywhere at once."""
    assert imbalance(problem, model, tuple(model.on(problem).move_weights())) < 1e-12


@pairs((BINARY, LEAF), (MULTIWAY, LEAF), (BINS, LEAF), (UNEVEN_LEVELS, LEAF))
def test_moves_reach_every_tree(problem, model):
    """A tree that cannot be reached is never reported, however probable."""
    posterior = model.on(problem)
    found = samplers.enumerate_states(posterior, problem.trees[-1], listed_moves(posterior))
    assert set(found) == set(problem.trees)


@pairs((BINARY, LEAF), (MULTIWAY, LEAF), (BINS, LEAF), (LEVELS, LEAF))
def test_proposals_are_what_propose_draws(problem, model, rng):
    """The exact tests list `proposals`; the generic engines draw with `propose`."""
    posterior = model.on(problem)
    for name, move in listed_moves(posterior).items():
        for tree in rng.choice(np.array(problem.trees, object), size=2, replace=False):
            assert sum(q for _, q in move.proposals(tree)) == pytest.approx(1.0, abs=1e-9), name
            assert draws_as_listed(move, tree, rng, 300), name


@each(MULTIWAY, models=[LEAF])
def test_other_proposals_are_told_apart(problem, model, rng):
    """The comparison of frequencies above must be able to fail."""
    move = listed_moves(model.on(problem))["grow"]
    listed = move.proposals(problem.trees[0])
    probabilities = np.array([q for _, q in listed])
    index = {proposal.state: i for i, (proposal, _) in enumerate(listed)}
    drawn = [index[move.propose(rng, problem.trees[0]).state] for _ in range(300)]
    assert fits(drawn, probabilities)
    assert not fits(drawn, probabilities[::-1])


@each(*SMALL, UNEVEN_LEVELS, models=[BRANCH])
def test_proposed_trees_are_valid(problem, model):
    """An invalid tree has no meaning, whatever its density is."""
    posterior = model.on(problem)
    listed = set(problem.trees)
    for move in listed_moves(posterior).values():
        for tree in problem.trees[::5]:
            for proposal, _ in move.proposals(tree):
                assert proposal.state in listed
                assert (proposal.log_q_ratio == -np.inf) <= (proposal.state == tree)


def test_moves_of_weight_zero_are_not_tried():
    """Who restricts the moves gets these and no others."""
    posterior = LEAF.on(MULTIWAY, move_weights={"grow": 1.0, "prune": 1.0, "change": 0.0})
    assert posterior.move_weights() == {"grow": 1.0, "prune": 1.0}
