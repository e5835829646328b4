"""The compiled sweep: its running sums are exact, its lists valid, its work space large enough."""

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings, strategies as st

from bayescascade.data.table import Table
from bayescascade.methods.lists.kernels.layout import PRIOR_KEPT
from bayescascade.methods.lists.models import MAX_RULES
from bayescascade.methods.lists.posterior import DensityListPosterior, LabelListPosterior
from bayescascade.methods.lists.rule_list import RuleList
from tests.methods.lists import problems as tiny
from tests.methods.lists.problems import TARGET, Problem, each, small_problems


def assert_consistent(posterior, state, counts):
    """Check what `advance` returned against computation from scratch."""
    for rules, claimed in (
        (state, counts.log_density),
        (counts.best_state, counts.best_log_density),
    ):
        assert rules.problem(len(posterior.antecedents)) is None
        exact = posterior.log_density(rules)
        assert abs(claimed - exact) <= 1e-9 * (1 + abs(exact))
    assert counts.best_log_density >= counts.log_density - 1e-9 * (1 + abs(counts.log_density))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    problem=st.one_of(small_problems("density"), small_problems("labels", min_support=0.02)),
    seed=st.integers(0, 2**32),
    inverse_temperature=st.sampled_from([0.0, 0.05, 0.5, 1.0, 4.0]),
    expected_rules=st.sampled_from([0.5, 3.0, 12.0]),
)
def test_lists_stay_valid_and_sums_exact(problem, seed, inverse_temperature, expected_rules):
    """Whatever columns, weights and temperature: an invalid list would be printed as a model."""
    record = problem.record
    assume(record["candidates"] and len(set(record["labels"])) >= min(2, problem.n_classes))
    posterior = problem.posterior(expected_rules=expected_rules)
    rng = np.random.default_rng(seed)
    state = posterior.initial_state(rng)
    for n_steps in (1, 7, 400):
        state, counts = posterior.advance(rng, state, n_steps, inverse_temperature)
        assert sum(counts.proposed.values()) == n_steps
        assert all(counts.accepted[name] <= counts.proposed[name] for name in counts.proposed)
        assert_consistent(posterior, state, counts)


SIXTY_ROWS = Problem("sixty", tiny.KINDS, (4, 5, 4), 3, (1,), n_rows=130)
TWO_CLASSES = Problem("two", tiny.KINDS, (4, 5, 4), 3, (1,), n_classes=2, n_rows=70)
THREE_CLASSES = Problem("three", tiny.KINDS, (4, 5, 4), 2, (1,), n_classes=3, n_rows=1500)
FRACTIONS = Problem(
    "fractions", tiny.KINDS, (4, 5, 4), 2, (0,), n_classes=3, n_rows=1500, fractional=True
)
DENSITY_FRACTIONS = Problem("density", tiny.KINDS, (5, 5, 5), 2, (2,), n_rows=1500, fractional=True)


@each(SIXTY_ROWS, TWO_CLASSES, THREE_CLASSES, FRACTIONS, DENSITY_FRACTIONS)
@pytest.mark.parametrize("expected_rules", [3.0, 25.0])
def test_running_sums_are_those_of_the_formula(problem, expected_rules, rng):
    """After thousands of steps the density is still the twin's, not a sum of rounding errors."""
    posterior = problem.posterior(expected_rules=expected_rules)
    state = posterior.initial_state(rng)
    n_accepted = 0
    for _ in range(12):
        state, counts = posterior.advance(rng, state, 500, 1.0)
        n_accepted += sum(counts.accepted.values())
        assert_consistent(posterior, state, counts)
        exact = problem.twin(state.rules, expected_rules=expected_rules)
        assert counts.log_density == pytest.approx(exact, abs=1e-9)
    assert n_accepted > 100


@pytest.mark.parametrize("n_rows", [1, 63, 64, 65, 127, 128, 129])
@pytest.mark.parametrize("n_classes", [0, 2])
def test_any_number_of_rows(n_rows, n_classes):
    """Bits beyond the last row are no rows."""
    rng = np.random.default_rng(n_rows)
    cells = rng.permutation(16 * 9)[:n_rows]
    labels = np.arange(n_rows) % 2
    names, kinds = ["a", "b", TARGET], {"ordinal": {"a": range(16), "b": range(9)}}
    columns = np.column_stack([cells // 9, cells % 9, labels])
    if not n_classes:
        table = Table.from_arrays(columns[:, :2], names=names[:2], **kinds)
        posterior = DensityListPosterior(table, max_size=2)
    elif n_rows == 1:
        return
    else:
        table = Table.from_arrays(columns, names=names, nominal=[TARGET], **kinds)
        posterior = LabelListPosterior(table, TARGET, max_size=2, min_support=0.0)
    assert table.n_distinct == n_rows
    state = posterior.initial_state(rng)
    for _ in range(3):
        state, counts = posterior.advance(rng, state, 400, 0.5)
        assert posterior.counts(state).sum() == n_rows
        assert_consistent(posterior, state, counts)


def random_rows(rng, n_rows):
    return np.column_stack([rng.integers(k, size=n_rows) for k in (5, 7, 3, 4, 2)])


WEIGHTS = {
    "equal": lambda _, n: np.ones(n),
    "fives": lambda _, n: np.full(n, 5.0),
    "few": lambda rng, n: rng.integers(1, 4, n).astype(float),
    "distinct": lambda rng, n: rng.permutation(n) + 1.0,
    "fractions": lambda rng, n: rng.random(n) + 0.01,
    "far-apart": lambda rng, n: 10.0 ** rng.integers(-3, 7, n),
    "huge": lambda rng, n: rng.integers(1, 4, n) * 1e9,
}


@pytest.mark.parametrize("weights", WEIGHTS)
def test_any_weights(weights, rng):
    """Rows are grouped by weight for counting: one group, a few, or as many as rows."""
    rows = random_rows(rng, 900)
    weight = WEIGHTS[weights](rng, len(rows))
    names = ["a", "b", "c", "d", TARGET]
    table = Table.from_arrays(rows, names=names, sample_weight=weight)
    for posterior in (
        DensityListPosterior(table, expected_rules=8.0, max_size=2),
        LabelListPosterior(table, TARGET, expected_rules=8.0, max_size=2, min_support=0.01),
    ):
        state = posterior.initial_state(rng)
        for inverse_temperature in (1e-3, 0.2, 1.0):
            state, counts = posterior.advance(rng, state, 700, inverse_temperature)
            assert_consistent(posterior, state, counts)


@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_lists_as_long_as_they_may_be(n_classes, rng):
    """The work space has room for 62 rules; a 63rd must not be written behind its end."""
    kinds = tiny.KINDS[1:]
    problem = Problem("long", kinds, (14, 14), 1, n_classes=n_classes, n_rows=150)
    posterior = problem.posterior(
        expected_rules=4000.0, **({"min_support": 0.0} if n_classes else {})
    )
    assert len(posterior.antecedents) > 2 * MAX_RULES
    state = posterior.initial_state(rng)
    longest = 0
    for _ in range(10):
        state, counts = posterior.advance(rng, state, 2000, 0.3)
        longest = max(longest, state.n_rules)
        assert_consistent(posterior, state, counts)
    assert longest <= MAX_RULES
    if n_classes:
        assert longest == MAX_RULES


@pytest.mark.slow
def test_wide_columns_and_many_of_them(rng):
    """256 levels are the last code of a byte, 300 need two; 150 columns are many to cut."""
    wide = Problem("wide", tiny.KINDS, (64, 40, 30), 2, n_rows=200)
    codes = np.column_stack([rng.integers(300, size=200), rng.integers(3, size=200)])
    long = Table.from_arrays(codes, ordinal={0: range(300)})
    many = Table.from_arrays(rng.integers(2, size=(120, 150)))
    for posterior in (
        wide.posterior(),
        DensityListPosterior(long, max_size=1),
        DensityListPosterior(many, max_size=2, expected_rules=6.0),
    ):
        state, counts = posterior.advance(rng, posterior.initial_state(rng), 1500, 0.7)
        assert_consistent(posterior, state, counts)


@each(tiny.BINS, tiny.SUPPORTED)
def test_stored_states_are_checked(problem):
    """A checkpoint that was tampered with is refused, not run."""
    posterior = problem.posterior()
    n = len(posterior.antecedents)
    for state in problem.lists[::7]:
        assert posterior.decode_state(posterior.encode_state(state)) == state
    forged = ([0, 0], [n], [-1], [0.0], [True], ["0"], [[0]], 3, "01", None)
    for record in (*({"rules": rules} for rules in forged), {"other": []}, [0], "x", None):
        with pytest.raises(ValueError, match="stored rule list"):
            posterior.decode_state(record)


def test_stored_lists_that_have_no_density_are_refused():
    """A chain that starts where the density is zero accepts anything."""
    density = tiny.PAIR.posterior()
    covered = next(
        [first, second]
        for first in range(8)
        for second in range(8)
        if first != second and density.log_density(RuleList((first, second))) == -np.inf
    )
    long = Problem("long", (tiny.ORDINAL,), (12,), 1, n_classes=2, n_rows=60).posterior()
    for posterior, rules in ((density, covered), (long, list(range(MAX_RULES + 1)))):
        with pytest.raises(ValueError, match="stored rule list"):
            posterior.decode_state({"rules": rules})


@pytest.mark.parametrize(
    ("n_steps", "n_rounds", "order"),
    [(1, 0, [1, 0, 3, 2]), (1, 1, [0, 2, 1, 3]), (2, 0, [1, 3, 0, 2]), (2, 1, [2, 0, 3, 1])],
)
def test_pairs_of_neighbors_swap_in_turn(n_steps, n_rounds, order):
    """Of equal temperatures all swaps are accepted; lists of 0, 6, 12, 18 rules are known again."""
    posterior = TWO_CLASSES.posterior()
    states = [RuleList(tuple(range(6 * k))) for k in range(4)]
    rng = np.random.default_rng(0)
    found = posterior.exchange(rng, states, n_steps, 1, (1.0,) * 4, n_rounds)
    assert [round(state.n_rules / 6) for state in found.states] == order
    turns = np.array([[1, 0, 1], [0, 1, 0]] * 2)[n_rounds : n_rounds + n_steps].sum(axis=0)
    assert found.tried == found.accepted == tuple(turns)


@each(TWO_CLASSES, DENSITY_FRACTIONS)
def test_swaps_weigh_what_heat_leaves_of_the_prior(problem, rng):
    """Of targets exp(b log density + (1 - b) PRIOR_KEPT log prior), as in `kernels.sweep`."""
    posterior, gains = problem.posterior(expected_rules=12.0), []
    states = [posterior.initial_state(rng)] * 2
    for _ in range(20):
        found = posterior.exchange(rng, states, 30, 30, (1.0, 0.3), 1)  # not this pair's turn
        assert (found.tried, found.accepted) == ((0.0,), (0.0,))
        states = list(found.states)
        (of_density, of_prior) = (
            of(states[1]) - of(states[0]) for of in (posterior.log_density, posterior.log_prior)
        )
        gains.append((of_density - PRIOR_KEPT * of_prior, of_density))
        assert found.log_densities == pytest.approx(tuple(map(posterior.log_density, states)))
        expected = np.exp(min(0.0, 0.7 * gains[-1][0]))
        assert found.probabilities[0] == pytest.approx(expected, rel=1e-9)
    assert any(0.0 > whole != pytest.approx(part) for whole, part in gains)
