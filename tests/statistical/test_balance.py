"""Plain moves of every family are in detailed balance, and reach every state."""

import numpy as np
import pytest

from tests.methods.density.trees import problems as cascades
from tests.methods.density.trees.problems import LEAF
from tests.samplers.exhaustive import enumerate_states
from tests.statistical import tiny_spaces as tiny
from tests.statistical.spaces import Space, each, trees


def imbalance(space: Space, names, beta=1.0, broken=False):
    """Return the largest difference between a flow of probability and the flow back."""
    flow = space.probabilities(beta)[:, None] * space.matrix(names, beta, broken)
    return np.abs(flow - flow.T).max()


@each(*tiny.ALL, quick=(*tiny.CORE, tiny.BY_BRANCHES))
def test_moves_are_in_detailed_balance(space):
    """With a wrong ratio the chain samples another posterior than the one printed."""
    for names in (*space.groups, space.names):
        for beta in (0.0, 0.4, 1.0) if space in tiny.HEATED else (1.0,):
            assert imbalance(space, names, beta) < 1e-12, (names, beta)


@each(tiny.MULTIWAY, tiny.BY_BRANCHES, tiny.PAIR, tiny.SUPPORTED, tiny.TWO, tiny.WEIGHED,
      tiny.CUT_PAIR, tiny.DEEP, tiny.THREE_CUTS, *tiny.BOUGHT,
      quick=(tiny.MULTIWAY, tiny.PAIR, tiny.WEIGHED, tiny.CUT_PAIR, tiny.BOUGHT[1]))  # fmt: skip
def test_without_hastings_term_or_reverse_moves_are_out_of_balance(space):
    """The test above must be able to fail."""
    assert imbalance(space, space.names, 0.4, broken=True) > 1e-4
    for name in {"prune", "add", "sell"} & set(space.names):
        assert imbalance(space, (name,)) > 1e-4


def relative_imbalance(space: Space, names, state, rng, broken=False, n_others=8):
    """Return by how much, at most, a flow from a state differs from a flow back."""
    there, chances = space.step(state, names, broken=broken)
    differences = [0.0]
    others = [(o, q) for o, q in zip(there, chances, strict=True) if o != state and q > 0]
    for i in rng.permutation(len(others))[:n_others]:
        other, flow = others[i]
        back = dict(zip(*space.step(other, names, broken=broken), strict=True)).get(state, 0.0)
        back *= np.exp(space.log_density(other) - space.log_density(state))
        differences.append(abs(flow - back) / max(flow, back))
    return max(differences)


@pytest.mark.slow
@each(tiny.MIXED_WAYS, trees(cascades.TERNARY_THREE_WAY, LEAF), trees(cascades.ORDINAL, LEAF),
      *tiny.LEVELS, *tiny.LARGE_LISTS,
      quick=(tiny.MIXED_WAYS, tiny.LEVELS[0], tiny.LARGE_LISTS[1]))  # fmt: skip
def test_moves_are_in_balance_around_larger_states(space, rng):
    """Swaps and rotations do most where several splits stand above each other."""
    for names in space.groups:
        for state in tiny.large_states(space, rng, 2):
            assert relative_imbalance(space, names, state, rng) < 1e-9, names


@pytest.mark.slow
@each(tiny.MIXED_WAYS, tiny.LEVELS[0], tiny.LARGE_LISTS[1])
def test_each_move_without_its_hastings_term_is_out_of_balance(space, rng):
    """The test above must be able to fail, for every move that has such a term."""
    for names in space.groups:
        states = tiny.large_states(space, rng, 6 if space is not tiny.LEVELS[0] else 40)
        found = (relative_imbalance(space, names, one, rng, True, 20) for one in states)
        symmetric = space in tiny.LARGE_LISTS and names in tiny.SYMMETRIC
        if not symmetric and not (space is tiny.LEVELS[0] and names == ("change",)):
            assert any(difference > 0.01 for difference in found), names


@each(tiny.BINARY, tiny.MULTIWAY, tiny.BINS, trees(cascades.UNEVEN_LEVELS, LEAF), tiny.PAIR,
      tiny.MISSING, tiny.SUPPORTED, *tiny.BUDGETS, *tiny.CUTS, *tiny.BOUGHT,
      quick=(*tiny.CORE, tiny.TWO, tiny.BOUGHT[0]))  # fmt: skip
def test_moves_reach_every_state_and_no_other(space):
    """A state that cannot be reached is never reported, however probable."""
    found = enumerate_states(space, space.states[0], space.moves(space.names))
    assert set(found) == set(space.states)
