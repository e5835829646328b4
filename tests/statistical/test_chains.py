"""Chains of every family: balanced move by move, compiled as plain, visiting what is probable."""

import math
from dataclasses import replace

import numpy as np
import pytest

import samplers
from bayescascade.methods.cascades.tree import Tree
from bayescascade.methods.rules.kernels import layout
from bayescascade.methods.rules.posterior import RuleListPosterior
from bayescascade.methods.rules.rule_list import RuleList
from tests import rules_reference
from tests.methods.cascades import problems as cascades
from tests.methods.cascades.problems import (
    BRANCH,
    GENERATIVE,
    INCLUSION,
    INDEPENDENT_BRANCH,
    LEAF,
    SIZE,
)
from tests.methods.classifier_trees import problems as classifiers
from tests.methods.cost_trees import problems as budgeted
from tests.methods.prunings import problems as prunings
from tests.methods.rules import problems as rules
from tests.samplers.exhaustive import enumerate_states
from tests.statistical.chi_square import fits
from tests.statistical.spaces import Space, bought, budgets, cuts, each, lists, trees

N_STEPS = 1500
FEWER_STEPS = 600  # of a move alone, which leads to fewer states
MANY_STEPS = {("graft",): 10_000}  # few are accepted, and a factor of 2 must be seen
N_DRAWS = 500  # per chain, of four chains

TREES = [
    trees(cascades.BINARY, LEAF), trees(cascades.MULTIWAY, LEAF),
    trees(cascades.MULTIWAY, INCLUSION), trees(cascades.BINS, LEAF),
    trees(cascades.FRACTIONAL, INCLUSION), trees(cascades.CONSTANT, LEAF),
]  # fmt: skip
BINARY, MULTIWAY, MULTIWAY_INCLUSION, BINS, FRACTIONAL, CONSTANT = TREES
BY_BRANCHES = trees(cascades.MULTIWAY, BRANCH)
OPTIONS = [trees(*pair) for pair in cascades.WITH_OPTIONS]
LISTS = [lists(problem) for problem in (*rules.FEW, rules.MISSING, rules.GAPS)]
PAIR, LIST_BINS, LIST_FRACTIONS, SUPPORTED, THREE_CLASSES, MISSING, GAPS = LISTS
BUDGETS = [
    budgets(budgeted.TWO), budgets(budgeted.GROUPED, groups=()), budgets(budgeted.THREE_CLASSES),
    budgets(budgeted.WEIGHED), budgets(budgeted.CONSTANT),
]  # fmt: skip
TWO, GROUPED, THREE_BUDGETED, WEIGHED, CONSTANT_BUDGETED = BUDGETS
CUTS = [cuts(problem) for problem in prunings.PROBLEMS]
CUT_PAIR, DEEP, THREE_CUTS, FREE, STUMP = CUTS
BOUGHT = [bought(problem) for problem in (classifiers.ROOT, classifiers.TWO_LEAVES)]
HEATED = (MULTIWAY, MULTIWAY_INCLUSION, PAIR, SUPPORTED, *BUDGETS, *CUTS, *BOUGHT)
ALL = (*TREES, BY_BRANCHES, *OPTIONS, *LISTS, *BUDGETS, *CUTS, *BOUGHT)
CORE = (MULTIWAY, FRACTIONAL, OPTIONS[0], PAIR, WEIGHED, CUT_PAIR, BOUGHT[1])
"""Of every family, what differs most; the others are for the slow tests."""

SYMMETRIC = {("swap",), ("relocate",)}  # of lists: as likely as their reverse


# -- plain moves -----------------------------------------------------------------------------------


def imbalance(space: Space, names, beta=1.0, broken=False):
    """Return the largest difference between a flow of probability and the flow back."""
    flow = space.probabilities(beta)[:, None] * space.matrix(names, beta, broken)
    return np.abs(flow - flow.T).max()


@each(*ALL, quick=(*CORE, BY_BRANCHES, GAPS))
def test_moves_are_in_detailed_balance(space):
    """With a wrong ratio the chain samples another posterior than the one printed."""
    for names in (*space.groups, space.names):
        for beta in (0.0, 0.4, 1.0) if space in HEATED else (1.0,):
            assert imbalance(space, names, beta) < 1e-12, (names, beta)


@each(MULTIWAY, BY_BRANCHES, PAIR, SUPPORTED, TWO, WEIGHED, CUT_PAIR, DEEP, THREE_CUTS,
      *BOUGHT, quick=(MULTIWAY, PAIR, WEIGHED, CUT_PAIR, BOUGHT[1]))  # fmt: skip
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


MIXED_WAYS = trees(cascades.MIXED_WAYS, BRANCH)
LEVELS = [
    trees(cascades.LEVELS, model) for model in (LEAF, INCLUSION, INDEPENDENT_BRANCH, GENERATIVE)
]
LARGE_LISTS = [
    lists(rules.Problem("large", rules.KINDS, (3, 2, 3), 3, n_rows=80)),
    lists(
        rules.Problem(
            "large-labels", ("nominal", "ordinal", "nominal"), (3, 3, 2), 3, (1,), n_classes=3,
            n_rows=80,
        )
    ),
]  # fmt: skip

# Trading three branches over two for two over three has a ratio only if there are more splits.
TRADABLE = Tree.from_nested(
    (0, [((k,), (1, [((0,), (2, [((0,), None), ((1,), None)]) if k else None), ((1,), None)]))
         for k in range(3)]),
    cascades.MIXED_WAYS.nominal,
)  # fmt: skip


def large_states(space: Space, rng, n):
    """Return trees of five and more leaves, lists of two to four rules: small ones are above."""
    if space not in LARGE_LISTS:
        large = [state for state in space.states if state.n_leaves > 4]
        chosen = [large[int(i)] for i in rng.choice(len(large), size=n, replace=False)]
        return [*chosen, TRADABLE] if space is MIXED_WAYS else chosen
    found, n_candidates = [], len(space.posterior().antecedents)
    while len(found) < n:
        drawn = rng.choice(n_candidates, size=int(rng.integers(2, 5)), replace=False)
        state = RuleList(tuple(drawn.tolist()))
        found += [state] * (space.log_density(state) > -np.inf)
    return found


@pytest.mark.slow
@each(MIXED_WAYS, trees(cascades.TERNARY_THREE_WAY, LEAF), trees(cascades.ORDINAL, LEAF),
      *LEVELS, *LARGE_LISTS, quick=(MIXED_WAYS, LEVELS[0], LARGE_LISTS[1]))  # fmt: skip
def test_moves_are_in_balance_around_larger_states(space, rng):
    """Swaps and rotations do most where several splits stand above each other."""
    for names in space.groups:
        for state in large_states(space, rng, 2):
            assert relative_imbalance(space, names, state, rng) < 1e-9, names


@pytest.mark.slow
@each(MIXED_WAYS, LEVELS[0], LARGE_LISTS[1])
def test_each_move_without_its_hastings_term_is_out_of_balance(space, rng):
    """The test above must be able to fail, for every move that has such a term."""
    for names in space.groups:
        states = large_states(space, rng, 6 if space is not LEVELS[0] else 40)
        found = (relative_imbalance(space, names, one, rng, True, 20) for one in states)
        symmetric = space in LARGE_LISTS and names in SYMMETRIC
        if not symmetric and not (space is LEVELS[0] and names == ("change",)):
            assert any(difference > 0.01 for difference in found), names


@each(BINARY, MULTIWAY, BINS, trees(cascades.UNEVEN_LEVELS, LEAF), PAIR, MISSING, SUPPORTED,
      *BUDGETS, *CUTS, *BOUGHT, quick=(MULTIWAY, PAIR, *BUDGETS, *CUTS, *BOUGHT))  # fmt: skip
def test_moves_reach_every_state_and_no_other(space):
    """A state that cannot be reached is never reported, however probable."""
    found = enumerate_states(space, space.states[0], space.moves(space.names))
    assert set(found) == set(space.states)


# -- the compiled sweeps ---------------------------------------------------------------------------


def is_plain_step(
    space: Space, state, rng, names=None, beta=1.0, broken=False, posterior=None, wrong_beta=None,
    n_steps=None,
):  # fmt: skip
    """Whether compiled steps from a state pass for plain ones."""
    states, chances = space.step(state, names or space.names, beta, broken)
    index = {state: i for i, state in enumerate(states)}
    posterior = posterior or space.posterior()
    heated = beta if wrong_beta is None else wrong_beta
    n_steps = n_steps or (4000 if broken else FEWER_STEPS if names else N_STEPS)
    drawn = (posterior.advance(rng, state, 1, heated)[0] for _ in range(n_steps))
    try:
        return fits([index[state] for state in drawn], chances)
    except KeyError:  # it went where no plain step leads
        return False


LONG_LISTS = [
    lists(rules.Problem("longer", rules.KINDS, (3, 3, 2), 3, (1,), n_rows=60)),
    lists(
        rules.Problem(
            "longer-labels", ("continuous", "nominal", "ordinal"), (3, 2, 4), 2, (2,), n_classes=3,
            n_rows=90, min_support=0.05, fractional=True,
        )
    ),
]  # fmt: skip
LARGE_LISTS += LONG_LISTS


@each(*TREES, BY_BRANCHES, *OPTIONS, *LEVELS[:2], trees(cascades.ORDINAL, LEAF), MIXED_WAYS,
      trees(cascades.TERNARY_THREE_WAY, INCLUSION), *LISTS, *BUDGETS, *CUTS, *BOUGHT,
      quick=(*CORE, BY_BRANCHES, SUPPORTED))  # fmt: skip
def test_compiled_steps_are_the_plain_ones(space, rng):
    """The compiled sweep is a second program for the moves: it must be the same chain."""
    for state in space.some_states(rng):
        assert is_plain_step(space, state, rng), state


@each(*LONG_LISTS, quick=LONG_LISTS[1:])
def test_compiled_steps_from_longer_lists_are_the_plain_ones(space, rng):
    """A hundred candidates of several sizes, as in use."""
    for state in large_states(space, rng, 3):
        assert is_plain_step(space, state, rng), state


@each(MULTIWAY, BY_BRANCHES, PAIR, SUPPORTED, TWO, GROUPED, WEIGHED, CUT_PAIR, DEEP, THREE_CUTS,
      BOUGHT[1], quick=(MULTIWAY, SUPPORTED, WEIGHED, BOUGHT[1]))  # fmt: skip
@pytest.mark.parametrize(
    "beta", [0.4, *(pytest.param(b, marks=pytest.mark.slow) for b in (0.0, 3.0))]
)
def test_compiled_steps_know_the_temperature(space, beta, rng):
    """Annealing would otherwise cool something else."""
    for state in space.some_states(rng, 3):
        assert is_plain_step(space, state, rng, beta=beta), state


@pytest.mark.slow
@each(MULTIWAY, BY_BRANCHES, PAIR, SUPPORTED, quick=(MULTIWAY, PAIR))
def test_broken_steps_are_told_apart(space, rng):
    """The tests above must be able to fail: without Hastings terms, and at another temperature."""
    assert not all(is_plain_step(space, s, rng, broken=True) for s in space.some_states(rng, 8))
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
@each(MULTIWAY, MULTIWAY_INCLUSION, *(s for three in UNSEEN_LISTS.values() for s in three),
      CUT_PAIR, THREE_CUTS, DEEP, quick=(MULTIWAY, UNSEEN_LISTS["pair"][2], CUT_PAIR))  # fmt: skip
def test_each_move_alone_is_the_plain_one(space, rng, monkeypatch):
    """With all moves together a rare one could be wrong unnoticed."""
    for names in space.groups:
        with monkeypatch.context() as patch:
            posterior = space.restricted(names, patch)
            for state in [*states_for_moves(space, rng), *telling_states(space, names, 1.0)]:
                assert is_plain_step(
                    space, state, rng, names, posterior=posterior, n_steps=MANY_STEPS.get(names)
                ), (names, state)


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


@pytest.mark.parametrize(
    ("start", "expected_size"),
    [("a=0", 0.3), ("b=0", 0.3), ("a=0 b=0", 3.0)],
)
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


@each(TWO, WEIGHED, *BOUGHT, quick=(WEIGHED, BOUGHT[1]))
def test_each_move_on_trees_with_costs_is_the_plain_one(space, rng, monkeypatch):
    """As above, where a step is accepted less surely."""
    for names in space.groups:
        with monkeypatch.context() as patch:
            posterior = space.restricted(names, patch)
            for state in space.some_states(rng):
                assert is_plain_step(space, state, rng, names, 0.4, posterior=posterior), names


@pytest.mark.parametrize(
    ("spaces", "beta"),
    [([WEIGHED], 0.4), ([CUT_PAIR], 1.0), (BOUGHT, 1.0), (UNSEEN_LISTS["pair"], 1.0),
     *(pytest.param(spaces, beta, marks=pytest.mark.slow) for spaces, beta in
       (([TWO], 0.4), ([DEEP], 1.0), ([THREE_CUTS], 1.0), (UNSEEN_LISTS["supported"], 1.0)))],
    ids=lambda value: value[0].name if isinstance(value, list) else "",
)  # fmt: skip
def test_each_move_without_hastings_term_is_told_apart(spaces, beta, rng, monkeypatch):
    """The tests above must be able to fail, for each move that has such a term."""
    for names in set(spaces[0].groups) - SYMMETRIC:
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


@each(MULTIWAY, BY_BRANCHES, LIST_BINS, THREE_CLASSES, quick=(MULTIWAY, THREE_CLASSES))
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


@each(CUT_PAIR, THREE_CUTS, quick=(CUT_PAIR,))
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


# -- long runs -------------------------------------------------------------------------------------


def visits(space: Space, rng, engine=samplers.metropolis, **settings):
    """Return the indices of the states drawn, as good as independent."""
    run = engine(
        space.posterior(),
        n_steps=space.thinning * (N_DRAWS + 20),
        warmup=20 / (N_DRAWS + 20),
        n_draws=N_DRAWS,
        n_chains=4,
        seed=rng,
        **settings,
    )
    return [space.index[state] for chain in run.draws for state in chain]


@each(BINARY, MULTIWAY, BINS, FRACTIONAL, *OPTIONS, PAIR, LIST_BINS, LIST_FRACTIONS, SUPPORTED,
      TWO, GROUPED, THREE_BUDGETED, WEIGHED, *CUTS, *BOUGHT, quick=CORE)  # fmt: skip
def test_chains_visit_states_as_often_as_they_are_probable(space, rng):
    """What is said of leaf counts, of columns and their costs is read off these visits."""
    drawn = visits(space, rng)
    assert fits(drawn, space.probabilities())
    assert not fits(drawn, space.probabilities(**space.wrong))


@each(MULTIWAY, BY_BRANCHES, PAIR, SUPPORTED, THREE_CUTS, quick=(PAIR,))
def test_the_cold_replica_visits_states_as_often_as_they_are_probable(space, rng):
    """Replica exchange must not let the hot chains' states into the draws."""
    drawn = visits(space, rng, samplers.tempering, n_temperatures=3)
    assert fits(drawn, space.probabilities())
    assert not fits(drawn, space.probabilities(0.5))


def unseen(problem, model):
    return trees(replace(problem, name=f"{problem.name}-unseen", n_rows=0), model)


UNSEEN = [
    unseen(cascades.MULTIWAY, LEAF), unseen(cascades.BINS, INCLUSION),
    unseen(cascades.UNEVEN_LEVELS, LEAF), unseen(cascades.MULTIWAY, SIZE),
    *(lists(rules.unseen(p)) for p in (rules.PAIR, rules.BINS, rules.SUPPORTED)),
]  # fmt: skip


@each(*UNSEEN, quick=(UNSEEN[0], UNSEEN[3], UNSEEN[4]))
def test_without_data_the_chain_returns_the_prior(space, rng):
    """What is claimed to be learned from data must not come from the chain itself."""
    prior = np.exp([space.posterior().log_prior(state) for state in space.states])
    np.testing.assert_allclose(prior / prior.sum(), space.probabilities(), atol=1e-9)
    drawn = visits(space, rng)
    assert fits(drawn, space.probabilities())
    assert not fits(drawn, space.probabilities(**space.wrong))


def test_long_lists_without_data_are_those_of_the_prior():
    """Of more candidates than could be listed: a Poisson of rules, each by its size, then alike."""
    kinds = ("nominal", "ordinal", "nominal")
    problem = rules.Problem("prior", kinds, (2, 3, 2), 3, n_classes=2, n_rows=60, faint=True)
    sizes = [len(one) for one in problem.record["candidates"]]
    assert len(set(sizes)) == 3
    posterior, size = problem.posterior(expected_rules=3.0), rules.PARAMETERS["expected_size"]
    run = samplers.metropolis(posterior, n_steps=600_000, n_draws=2000, n_chains=1, seed=8)
    drawn = [state.rules for state in run.draws[0]]

    def lengths(expected):
        support = range(min(len(sizes), rules_reference.MAX_RULES) + 1)
        return np.exp([rules_reference.log_poisson(m, expected, support) for m in support])

    def following(taken, expected):
        left = [n for i, n in enumerate(sizes) if i != taken]
        log_sizes = {n: rules_reference.log_poisson(n, expected, sorted(set(left))) for n in left}
        return np.array([
            np.exp(log_sizes[n]) / left.count(n) if i != taken else 0.0 for i, n in enumerate(sizes)
        ])  # fmt: skip

    assert fits([len(one) for one in drawn], lengths(3.0))
    assert not fits([len(one) for one in drawn], lengths(3.5))
    first = following(None, size)
    second = sum(chance * following(i, size) for i, chance in enumerate(first))
    assert fits([one[0] for one in drawn if one], first)
    assert fits([one[1] for one in drawn if len(one) > 1], second)
    assert not fits([one[0] for one in drawn if one], following(None, 1.5 * size))


@each(*ALL, quick=CORE)
def test_annealing_finds_the_most_probable_state(space, rng):
    """It is what is printed; on problems this small the best of all states is known."""
    exact = space.log_densities()
    run = samplers.anneal(space.posterior(), n_steps=5000, n_chains=2, seed=rng)
    assert exact[space.index[run.best_state]] == pytest.approx(exact.max(), abs=1e-9)
    if space not in CUTS:
        assert run.best_log_density == pytest.approx(exact.max(), abs=1e-9)


@each(BINARY, SUPPORTED, GAPS)
def test_annealing_is_needed(space):
    """Chains that only draw random starts do not find it: the test above can fail."""
    starts = [space.posterior().initial_state(np.random.default_rng(seed)) for seed in range(2)]
    assert max(map(space.log_density, starts)) < space.log_densities().max() - 0.1


@each(MULTIWAY, *OPTIONS, *LISTS, *(lists(p) for p in (rules.ORDERED, rules.RUNS)))
def test_starts_are_possible_and_differ(space):
    """R-hat compares chains from different places; equal starts would flatter it."""
    rng, posterior = np.random.default_rng(0), space.posterior()
    starts = [posterior.initial_state(rng) for _ in range(60)]
    assert {space.index[state] for state in starts} <= set(np.flatnonzero(space.probabilities()))
    assert len(set(starts)) > 8
    assert math.isfinite(sum(map(space.log_density, starts)))
