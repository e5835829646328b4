"""Compiled sweeps of every family are the same chains as their plain moves."""

from dataclasses import replace

import numpy as np
import pytest

import samplers
from bayescascade.methods.density.trees import tree_posterior
from bayescascade.methods.density.trees.kernels.sweep import sweep
from bayescascade.methods.lists.kernels import layout
from bayescascade.methods.lists.posterior import RuleListPosterior
from bayescascade.methods.lists.rule_list import RuleList
from tests.methods.density.trees import problems as cascades
from tests.methods.density.trees.problems import INCLUSION, LEAF
from tests.methods.lists import problems as rules
from tests.statistical import tiny_spaces as tiny
from tests.statistical.chi_square import fits
from tests.statistical.spaces import Space, each, lists, trees

N_STEPS = 1000
FEWER_STEPS = 600  # of a move alone, which leads to fewer states
# few are accepted, or a lost Hastings term changes little
MORE_STEPS = {("graft",): 10_000, ("edit",): 1000, ("redraw",): 2000}


def is_plain_step(
    space: Space, state, rng, names=None, beta=1.0, broken=False, posterior=None, wrong_beta=None
):  # fmt: skip
    """Whether compiled steps from a state pass for plain ones."""
    states, chances = space.step(state, names or space.names, beta, broken)
    index = {state: i for i, state in enumerate(states)}
    posterior = posterior or space.posterior()
    heated = beta if wrong_beta is None else wrong_beta
    n_steps = MORE_STEPS.get(names, FEWER_STEPS) if names else N_STEPS
    drawn = (posterior.advance(rng, state, 1, heated)[0] for _ in range(n_steps))
    try:
        return fits([index[state] for state in drawn], chances)
    except KeyError:  # it went where no plain step leads
        return False


@each(*tiny.TREES, tiny.BY_BRANCHES, *tiny.OPTIONS, *tiny.LEVELS[:2], trees(cascades.ORDINAL, LEAF),
      tiny.MIXED_WAYS, trees(cascades.TERNARY_THREE_WAY, INCLUSION), *tiny.LISTS,
      *tiny.LONG_LISTS, *tiny.BUDGETS, *tiny.CUTS, *tiny.BOUGHT,
      quick=(*tiny.CORE, tiny.LONG_LISTS[1]))  # fmt: skip
def test_compiled_steps_are_the_plain_ones(space, rng):
    """The compiled sweep is a second program for the moves: it must be the same chain."""
    is_long = space in tiny.LONG_LISTS  # of a hundred candidates of several sizes, as in use
    for state in tiny.large_states(space, rng, 3) if is_long else space.some_states(rng, 3):
        assert is_plain_step(space, state, rng), state


@each(tiny.MULTIWAY, tiny.BY_BRANCHES, tiny.PAIR, tiny.SUPPORTED, tiny.TWO, tiny.GROUPED,
      tiny.WEIGHED, tiny.CUT_PAIR, tiny.DEEP, tiny.THREE_CUTS, tiny.BOUGHT[1],
      quick=(tiny.SUPPORTED, tiny.WEIGHED))  # fmt: skip
@pytest.mark.parametrize(
    "beta", [0.4, *(pytest.param(b, marks=pytest.mark.slow) for b in (0.0, 3.0))]
)
def test_compiled_steps_know_the_temperature(space, beta, rng):
    """Annealing would otherwise cool something else."""
    for state in space.some_states(rng, 3):
        assert is_plain_step(space, state, rng, beta=beta), state


@pytest.mark.slow
@each(tiny.MULTIWAY, tiny.BY_BRANCHES, tiny.PAIR, tiny.SUPPORTED, quick=(tiny.MULTIWAY, tiny.PAIR))
def test_broken_steps_are_told_apart(space, rng):
    """The tests above must be able to fail: without Hastings terms, and at another temperature."""
    telling = telling_states(space, space.names, 1.0)
    assert not all(is_plain_step(space, state, rng, broken=True) for state in telling)
    best = space.states[int(np.argmax(space.log_densities()))]
    assert not is_plain_step(space, best, rng, beta=0.3, wrong_beta=2.0)


# Where a step is accepted with certainty its ratio may be anything: these make it uncertain, for
# steps to more rules and conditions, and for steps to fewer.
RATES = {
    "short": {"expected_rules": 0.2, "expected_size": 0.2},
    "long": {"expected_rules": 8.0, "expected_size": 4.0},
    "few": {"expected_rules": 0.4, "expected_size": 6.0},
}
UNSEEN_LISTS = {
    problem.name: [lists(rules.unseen(problem), f"-{n}", **rates) for n, rates in RATES.items()]
    for problem in (rules.PAIR, rules.SUPPORTED)
}


def states_for_moves(space: Space, rng):
    """Return short lists whose rules are of one and of two conditions; other states at random."""
    if space.states[0] != RuleList():
        return space.some_states(rng)
    sizes = space.posterior().antecedents.sizes
    short = [state for state in space.states if 1 <= state.n_rules <= 2]
    patterns = {tuple(int(sizes[rule]) for rule in state.rules): state for state in short}
    assert {(1,), (2,), (1, 1), (1, 2), (2, 1)} <= set(patterns)
    return list(patterns.values())


@pytest.mark.slow
@each(tiny.MULTIWAY, tiny.MULTIWAY_INCLUSION,
      *(s for three in UNSEEN_LISTS.values() for s in three), tiny.CUT_PAIR, tiny.THREE_CUTS,
      tiny.DEEP, quick=(tiny.MULTIWAY, UNSEEN_LISTS["pair"][2], tiny.CUT_PAIR))  # fmt: skip
def test_each_move_alone_is_the_plain_one(space, rng, monkeypatch):
    """With all moves together a rare one could be wrong unnoticed."""
    for names in space.groups:
        with monkeypatch.context() as patch:
            posterior = space.restricted(names, patch)
            others = () if names in MORE_STEPS else states_for_moves(space, rng)
            for state in [*others, *telling_states(space, names, 1.0)]:
                assert is_plain_step(space, state, rng, names, posterior=posterior), (names, state)


class Watched(float):
    """A random number that knows which chance it was compared with, and is below small ones."""

    chance, least = 1.0, 0.0

    def __lt__(self, chance):
        self.chance = chance
        return float(self) < max(chance, self.least)


class WatchedGenerator:
    """Draws numbers for a step that runs as Python, the first for its move, and keeps the last."""

    def __init__(self, rng):
        self.rng, self.last = rng, None

    def random(self):
        is_first, self.last = self.last is None, Watched(self.rng.random())
        self.last.least = 0.0 if is_first else 0.4
        return self.last


def test_each_ratio_of_moves_on_trees_is_the_plain_one(rng, monkeypatch):
    """A lost factor may show in many thousands of draws only: in Python, steps tell the ratio."""
    monkeypatch.setattr(tree_posterior, "sweep", getattr(sweep, "_python", sweep))
    space, uncertain = tiny.BY_BRANCHES, set()
    posterior = space.posterior(move_weights={**dict.fromkeys(space.names, 1.0), "graft": 3.0})
    for beta in (1.0, -1.0) * 300:  # below zero what is more probable is uncertain
        before, watched = space.states[rng.integers(len(space.states))], WatchedGenerator(rng)
        state, counts = posterior.sweep(watched, before, 1, beta)
        if state == before:
            continue
        (name,) = (name for name, n in counts.accepted.items() if n)
        proposals = [p for p, _ in space.moves([name])[name].proposals(before) if p.state == state]
        gain, chance = space.log_density(state) - space.log_density(before), watched.last.chance
        plain = np.exp([min(0.0, beta * gain + proposal.log_q_ratio) for proposal in proposals])
        assert np.isclose(chance, plain, rtol=1e-9, atol=0.0).any(), name
        if chance < 1.0:
            uncertain.add((name, state.n_nodes > before.n_nodes))
    result = {(name, False) for name in ("prune", "change", "swap", "graft", "regroup")}
    assert uncertain >= result | {(name, True) for name in ("grow", "graft", "regroup")}


# How likely edits of a rule on columns of two and three levels propose another, and it this one.
# They exchange, add or drop a condition, each a third of the time; what comes is on either column.
EDITS = {
    "a=0": {"a=1": (1 / 12, 1 / 12), "b=0": (1 / 18, 1 / 12), "b=1": (1 / 18, 1 / 12),
            "b=2": (1 / 18, 1 / 12), "a=0 b=0": (1 / 18, 1 / 6), "a=0 b=1": (1 / 18, 1 / 6),
            "a=0 b=2": (1 / 18, 1 / 6)},
    "b=0": {"b=1": (1 / 18, 1 / 18), "b=2": (1 / 18, 1 / 18), "a=0": (1 / 12, 1 / 18),
            "a=1": (1 / 12, 1 / 18), "a=0 b=0": (1 / 12, 1 / 6), "a=1 b=0": (1 / 12, 1 / 6)},
    "a=0 b=0": {"a=0": (1 / 6, 1 / 18), "b=0": (1 / 6, 1 / 12), "a=1 b=0": (1 / 24, 1 / 24),
                "a=0 b=1": (1 / 36, 1 / 36), "a=0 b=2": (1 / 36, 1 / 36)},
}  # fmt: skip


@pytest.mark.parametrize(("start", "expected_size"), [("a=0", 0.3), ("b=0", 0.3), ("a=0 b=0", 3.0)])
def test_edits_of_a_rule_have_the_chances_computed_by_hand(start, expected_size, rng, monkeypatch):
    """Two programs for a ratio could share a mistake; the broken twin takes all edits for even."""
    monkeypatch.setattr(RuleListPosterior, "tries", dict.fromkeys(layout.MOVES, 0.0) | {"edit": 1})
    problem = rules.Problem("edits", ("nominal",) * 2, (2, 3), 2, n_classes=2, faint=True)
    posterior = problem.posterior(expected_size=expected_size)
    names = [" ".join(f"{'ab'[c.column]}={c.low}" for c in one) for one in posterior.antecedents]
    rule = RuleList((names.index(start),))
    steps = [posterior.advance(rng, rule, 1, 1.0)[0].rules[0] for _ in range(2500)]

    def chances(is_even):
        prior = {1: 1 / 5, 2: expected_size / 2 / 6}  # of a rule of a size: 5 of one, 6 of two
        found = np.zeros(len(names))
        for other, (there, back) in EDITS[start].items():
            gain = prior[len(other.split())] / prior[len(start.split())]
            found[names.index(other)] = min(there, gain * (there if is_even else back))
        found[names.index(start)] = 1.0 - found.sum()  # else it stays
        return found

    assert fits(steps, chances(is_even=False))
    assert not fits(steps, chances(is_even=True))


@each(tiny.TWO, tiny.WEIGHED, *tiny.BOUGHT, quick=(tiny.WEIGHED,))
def test_each_move_on_trees_with_costs_is_the_plain_one(space, rng, monkeypatch):
    """As above, where a step is accepted less surely."""
    for names in space.groups:
        with monkeypatch.context() as patch:
            posterior = space.restricted(names, patch)
            for state in space.some_states(rng):
                assert is_plain_step(space, state, rng, names, 0.4, posterior=posterior), names


@pytest.mark.parametrize(
    ("spaces", "beta"),
    [([tiny.WEIGHED], 0.4), ([tiny.CUT_PAIR], 1.0), (tiny.BOUGHT, 1.0), (UNSEEN_LISTS["pair"], 1.0),
     pytest.param([tiny.TWO], 0.4, marks=pytest.mark.slow),
     *(pytest.param(spaces, 1.0, marks=pytest.mark.slow)
       for spaces in ([tiny.DEEP], [tiny.THREE_CUTS], UNSEEN_LISTS["supported"]))],
    ids=lambda value: value[0].name if isinstance(value, list) else "",
)  # fmt: skip
def test_each_move_without_hastings_term_is_told_apart(spaces, beta, rng, monkeypatch):
    """The tests above must be able to fail, for each move that has such a term."""
    for names in set(spaces[0].groups) - tiny.SYMMETRIC:
        assert any(is_told_apart(space, names, beta, rng, monkeypatch) for space in spaces), names


def telling_states(space: Space, names, beta):
    """Return the three states from which a lost Hastings term changes most."""
    right, wrong = (space.matrix(names, beta, broken) for broken in (False, True))
    return [space.states[i] for i in np.abs(wrong - right).sum(axis=1).argsort()[-3:]]


def is_told_apart(space: Space, names, beta, rng, monkeypatch):
    """Whether compiled steps of these moves are not their broken twins', from some state."""
    with monkeypatch.context() as patch:
        posterior = space.restricted(names, patch)
        return not all(
            is_plain_step(space, state, rng, names, beta, True, posterior)
            for state in telling_states(space, names, beta)
        )


@each(
    tiny.MULTIWAY,
    tiny.BY_BRANCHES,
    tiny.LIST_BINS,
    tiny.THREE_CLASSES,
    quick=(tiny.MULTIWAY, tiny.THREE_CLASSES),
)
def test_compiled_and_plain_blocks_agree_on_acceptance(space, rng):
    """Acceptance is reported per move, whichever engine ran."""
    state = space.states[int(np.argmax(space.log_densities()))]
    _, counts = space.posterior().advance(rng, state, 20_000, 1.0)
    chain, moves = samplers.init(state, space), space.moves(space.names)
    accepted, tried = dict.fromkeys(moves, 0), dict.fromkeys(moves, 0)
    chances = np.array(list(space.weights.values())) / sum(space.weights.values())
    for name in rng.choice(space.names, size=1500, p=chances):
        chain, info = samplers.step(rng, chain, space, moves[name])
        tried[name] += 1
        accepted[name] += info.accepted
    assert tuple(counts.proposed) == space.names
    for name, chance in zip(space.names, chances, strict=True):
        fast = counts.accepted[name] / counts.proposed[name]
        # successive steps are correlated: 5 standard errors of a tenth of the steps
        error = np.sqrt(0.25 * (10 / tried[name] + 10 / counts.proposed[name]))
        assert abs(fast - accepted[name] / tried[name]) < 5 * error
        assert abs(counts.proposed[name] - 20_000 * chance) < 5 * np.sqrt(20_000 * chance)


@each(tiny.CUT_PAIR, tiny.THREE_CUTS, quick=(tiny.CUT_PAIR,))
def test_compiled_steps_stay_below_the_bound(space, rng, monkeypatch):
    """The near-optimal prunings are those of a bound; within it, steps are in balance too."""
    objectives = -space.log_densities() * space.wrong["temperature"] / 2.0
    bound = float(np.sort(objectives)[len(objectives) // 2])
    bound += space.posterior().describe(space.states[int(objectives.argmin())])["objective"]
    bound -= objectives.min()
    bounded = replace(space, posterior=lambda: space.posterior(max_objective=bound), _known={})
    chances = space.probabilities() * [bounded.log_density(s) > -np.inf for s in space.states]
    assert 0 < np.count_nonzero(chances) < len(space.states)
    for names in space.groups:
        flow = chances[:, None] * bounded.matrix(names)
        np.testing.assert_allclose(flow, flow.T, atol=1e-14)
        with monkeypatch.context() as patch:
            posterior = bounded.restricted(names, patch)
            for start in np.flatnonzero(chances)[::6]:
                assert is_plain_step(bounded, space.states[start], rng, names, posterior=posterior)
    free = space.posterior()
    ends = [free.advance(rng, space.states[0], 50, 0.0)[0] for _ in range(50)]
    assert any(bounded.log_density(state) == -np.inf for state in ends)  # if nothing holds it
