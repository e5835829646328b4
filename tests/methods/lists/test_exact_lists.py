"""The certified best list: what is called certain is so, and every bound holds.

A bound that is too low makes a list "optimal" that is not, and nobody would notice.
"""

import math
import signal
from itertools import combinations, permutations
from math import lgamma

import numpy as np
import pandas as pd
import pytest

from bayescascade.base.errors import TooLargeError
from bayescascade.data.table import Table
from bayescascade.methods.lists.exact import (
    bounds as bounds_module,
    points as points_module,
    search as search_module,
)
from bayescascade.methods.lists.exact.bounds import Prefix
from bayescascade.methods.lists.exact.search import best_list
from bayescascade.methods.lists.excess import log_excess
from bayescascade.methods.lists.kernels.layout import LABELS
from bayescascade.methods.lists.kernels.parts import PartModel, Stairs, climb, partition
from bayescascade.methods.lists.posterior import DensityListPosterior, LabelListPosterior
from bayescascade.methods.lists.rule_list import RuleList
from tests import reference, rules_reference
from tests.documents import ROOT
from tests.methods.lists.large import lists_of, shortfalls
from tests.methods.lists.problems import (
    BINS,
    DENSITIES,
    FRACTIONAL,
    GAPS,
    PAIR,
    PROBLEMS,
    THREE,
    each,
)

ROUNDING = 1e-9
MEMORY = 2e9


def games(n_columns, rng, *, n_classes=2, noise=0.0, weight=1.0):
    """Return a classifier's posterior on ternary columns; classes follow from them but for noise.

    Points of one class alone are what the stairs count.
    """
    codes = np.array(list(np.ndindex((3,) * n_columns)))
    first, second = codes[:, 0], codes[:, 1]
    labels = first == second if n_classes == 2 else (first + second) % n_classes
    flipped = rng.random(len(codes)) < noise
    frame = pd.DataFrame(codes, columns=[f"c{j}" for j in range(n_columns)]).astype(str)
    frame["label"] = np.where(flipped, 0, labels).astype(int).astype(str)
    doubled = pd.concat([frame, frame.iloc[::4].assign(label="1")]) if noise else frame
    weights = weight * rng.integers(1, 6, len(doubled))
    table = Table.from_frame(doubled, weights=weights)
    return LabelListPosterior(table, "label", min_support=0.02)


def sparse_cells(rng):
    """Return a density's posterior where most cells have no rows, and the others differ much."""
    codes = rng.integers(0, 3, (12, 3)) * rng.integers(0, 2, (12, 3))
    frame = pd.DataFrame(codes, columns=list("abc")).astype(str)
    frame = pd.concat([frame, pd.DataFrame({"a": ["2"], "b": ["2"], "c": ["2"]})])
    table = Table.from_frame(frame, weights=rng.integers(1, 30, len(frame)))
    return DensityListPosterior(table, max_size=1)


POSTERIORS = {
    "two-classes": lambda rng: games(2, rng),
    "three-columns": lambda rng: games(3, rng),
    "three-classes": lambda rng: games(2, rng, n_classes=3),
    "noisy": lambda rng: games(2, rng, noise=0.2),
    "noisy-classes": lambda rng: games(2, rng, n_classes=3, noise=0.3),
    "light": lambda rng: games(2, rng, weight=0.03),
    "densities": sparse_cells,
}


def short_lists(posterior, rng):
    """Return the log densities of short lists of some candidates, good ones too, by their rules."""
    good = best_list(posterior, max_visited=100).state.rules[:4]
    others = rng.choice(len(posterior.antecedents), 5, replace=False).tolist()
    found = {}
    for length in range(4):
        for rules in permutations(sorted({*good, *others}), length):
            log_density = posterior.log_density(RuleList(rules))
            if log_density > -np.inf:
                found[rules] = log_density
    return found


def worst(pairs):
    """Return the lowest of each kind."""
    lowest = {}
    for kind, _, shortfall in pairs:
        lowest[kind] = min(lowest.get(kind, np.inf), shortfall)
    return lowest


@pytest.mark.parametrize(
    "problem",
    [pytest.param(p, marks=[pytest.mark.slow] * (p in (GAPS, THREE))) for p in PROBLEMS],
    ids=lambda problem: problem.name,
)
def test_every_bound_holds_for_every_prefix(problem):
    """Else a better list would be left out; and lists that children end must be valued right."""
    log_densities = dict(zip(problem.chosen, problem.log_densities().tolist(), strict=True))
    found = worst(shortfalls(problem.posterior(), log_densities))
    assert found["closed"] > -ROUNDING
    assert min(found.values()) > -ROUNDING


@pytest.mark.slow
@pytest.mark.parametrize("name", POSTERIORS)
def test_bounds_hold_where_points_are_pure(name, rng):
    """Here rules are paid for by what they capture; lists of a few candidates are enough to see."""
    posterior = POSTERIORS[name](rng)
    found = worst(shortfalls(posterior, short_lists(posterior, rng)))
    assert min(found.values()) > -ROUNDING


@pytest.mark.parametrize(
    "name",
    ["noisy", *(pytest.param(n, marks=pytest.mark.slow) for n in ("two-classes", "three-columns"))],
)
def test_prices_too_high_are_seen(name, rng, monkeypatch):
    """The broken twin: with rules at four times their cost some bound fails."""
    climb = bounds_module.parts.climb

    def dear(model, sizes, fates, captured, whole, least, costs, stairs):
        climb(model, sizes, fates, captured, whole, least, 4.0 * costs, stairs)

    monkeypatch.setattr(bounds_module.parts, "climb", dear)
    posteriors = (POSTERIORS[name](rng) for _ in range(4))
    found = (worst(shortfalls(one, short_lists(one, rng))) for one in posteriors)
    assert any(min(one["stairs"], one["child"]) < -0.1 for one in found)


@each(PAIR, BINS, FRACTIONAL)
def test_densities_without_slack_are_seen(problem, monkeypatch):
    """The broken twin: parts of densities exceed their saturated value."""
    monkeypatch.setattr(Prefix, "_slack_of_parts", lambda self: np.zeros(self.further.lengths.size))
    log_densities = dict(zip(problem.chosen, problem.log_densities().tolist(), strict=True))
    found = worst(shortfalls(problem.posterior(), log_densities))
    assert min(found["prefix"], found["child"]) < -0.1


def test_after_a_rule_that_captures_all_rows_a_list_can_gain(monkeypatch):
    """The broken twin forgets what may follow a child, and certifies another list."""
    frame = pd.DataFrame({"a": list("uuv"), "b": list("xyx")})
    table = Table.from_frame(frame, weights=[5.0, 5.0, 1e-12])
    posterior = DensityListPosterior(table, concentration=1e-6, expected_rules=20.0, max_size=1)
    log_densities = dict(lists_of(posterior))
    best = pytest.approx(max(log_densities.values()), abs=ROUNDING)
    found = best_list(posterior)
    assert found.is_optimal
    assert found.log_density == best
    assert worst(shortfalls(posterior, log_densities))["child"] > -ROUNDING

    value_children = bounds_module.parts.value_children

    def forgetful(model, sizes, fates, captured, left, next_rule, further, *others):
        nothing = np.zeros_like(further)
        value_children(model, sizes, fates, captured, left, next_rule, nothing, *others)

    monkeypatch.setattr(bounds_module.parts, "value_children", forgetful)
    assert worst(shortfalls(posterior, log_densities))["child"] < -5.0
    assert best_list(posterior).log_density != best


def test_stairs_are_no_dearer_than_what_whole_weights_capture():
    """The least that a step of the grid stands for is whole; the twin rounds each sum by itself."""
    first, others, alpha, n_steps = 45, 38, 1000.0, 32
    alphas = alpha * np.array([1.0, 1.0, 2.0])

    def overhead(x, y):
        weights = [int(x + 0.5), int(y + 0.5), int(x + y + 0.5)]
        one, other, both = (lgamma(n + a) - lgamma(a) for n, a in zip(weights, alphas, strict=True))
        return both - one - other

    excesses = log_excess(np.arange(first + others + 1), alphas[:, np.newaxis])
    grid = np.empty((n_steps + 1, n_steps + 1))
    stairs = Stairs(grid, grid.copy(), np.empty((2, *grid.shape)), np.empty((1, *grid.shape)))
    climb(
        PartModel(LABELS, 2, 83.0, True, alphas, excesses), *np.empty((2, 0), np.int8),
        np.empty((0, 6)), np.array([0, 0, first, others, 0, 0.0]), np.ones(2), np.ones((1, 2)),
        stairs,
    )  # fmt: skip
    dearest = 0.0
    for i, j in np.ndindex(grid.shape):
        by = [(k - 1) * n // n_steps + 1 if k else 0 for k, n in ((i, first), (j, others))]
        left = [-(-(n_steps - k) * n // n_steps) for k, n in ((i, first), (j, others))]
        assert stairs.overheads[i, j] <= overhead(*by) + ROUNDING
        assert stairs.ends[i, j] <= overhead(*left) + ROUNDING
        twin = overhead(first * (n_steps - i) / n_steps, others * (n_steps - j) / n_steps)
        dearest = max(dearest, twin - overhead(*left))
    assert dearest > 1.0


@pytest.mark.parametrize("is_sorted", [True, False])
def test_intervals_of_sorted_groups_are_the_best_partition(is_sorted, rng):
    """Else a list that parts points otherwise may beat the bound; out of order, some does."""
    alpha = 0.7
    alphas = alpha * np.array([1.0, 1.0, 2.0])
    model = PartModel(LABELS, 2, 0.0, False, alphas, np.empty((3, 0)))
    missed = 0.0
    for _ in range(20):
        shares = np.sort(rng.random(6)) if is_sorted else rng.random(6)
        features = np.column_stack([shares, 1 - shares, np.zeros((6, 4))])
        weights = rng.gamma(1.0, 10.0, 6)
        best = np.empty(6)
        assert partition(
            model, features, weights, np.empty(6, np.int64), np.empty((6, 6)), np.empty(6),
            np.empty(6), best,
        )  # fmt: skip
        counts = weights[:, np.newaxis] * features[:, :2]
        for parts in reference.partitions(tuple(range(6))):
            sums = [counts[list(part)].sum(axis=0).tolist() for part in parts]
            value = rules_reference.label_log_likelihood(sums, alpha)
            missed = max(missed, value - best[len(parts) - 1])
    assert missed < ROUNDING if is_sorted else missed > 0.1


@each(*PROBLEMS)
@pytest.mark.parametrize("expected_rules", [1.7, 10.0])
def test_the_best_of_all_lists_is_found(problem, expected_rules):
    """It is what "certified" says, also where the prior expects more rules than the data need."""
    posterior = problem.posterior(expected_rules=expected_rules)
    found = best_list(posterior)
    assert found.is_optimal
    assert found.gap == 0.0
    truth = problem.log_densities(expected_rules=expected_rules).max()
    assert found.log_density == pytest.approx(truth, abs=ROUNDING)
    assert found.log_density == posterior.log_density(found.state)


@each(*PROBLEMS)
def test_stopped_early_the_bound_holds(problem):
    """Whenever one stops, the truth is between the list found and the bound, which only falls."""
    posterior = problem.posterior()
    truth = problem.log_densities().max()
    upper_bounds = []
    for max_visited in (*range(1, 12), *range(12, 200, 17)):
        found = best_list(posterior, max_visited=max_visited)
        assert found.n_visited <= max_visited
        assert found.log_density <= truth + ROUNDING
        assert found.upper_bound >= truth - ROUNDING
        assert found.gap >= 0.0
        upper_bounds.append(found.upper_bound)
        if found.is_optimal:
            break
    assert np.all(np.diff(upper_bounds) <= ROUNDING)
    assert found.is_optimal


def test_of_prefixes_that_go_on_alike_the_better_is_followed(rng):
    """In whatever order they are met: else the lists that the better begins would be lost."""
    posterior = games(2, rng, noise=0.2)
    prefix, sizes = Prefix(posterior, MEMORY), posterior.antecedents.sizes
    pairs = []
    for rules in combinations(range(len(sizes)), 2):
        values = [(prefix.value(both), both) for both in (rules, rules[::-1])]
        used = tuple(np.bincount(sizes[list(rules)], minlength=sizes.max() + 1).tolist())
        prefix.enter(rules, used)
        if prefix.bound() > -np.inf:
            closed = prefix.closed()
            pairs.append((*sorted((value - closed, both) for value, both in values), used))
    worse, better, used = min(
        (pair for pair in pairs if pair[1][0] > pair[0][0] + 1e-3), key=lambda p: p[1][0] - p[0][0]
    )
    assert better[0] < worse[0] + 1.0
    for order, n_visited in (((worse, better), 2), ((better, worse), 1)):
        search = search_module._ListSearch(
            Prefix(posterior, MEMORY), (-np.inf, ()), 0.0, np.inf, MEMORY, np.inf, None
        )
        search._likely = search.prefix.most_likely()
        for value, rules in order:
            search._look(rules, used, value, np.inf)
        assert search.n_visited == n_visited
        assert search.best[0] == pytest.approx(posterior.log_density(RuleList(search.best[1])))


@pytest.mark.parametrize("name", ["three-columns", "noisy", "densities"])
def test_depth_first_finds_the_same(name, rng, monkeypatch):
    """When memory runs out, the search must neither lose a list nor go on filling memory."""
    posterior = POSTERIORS[name](rng)
    usual = best_list(posterior)
    monkeypatch.setattr(search_module, "_BYTES_OF_BRANCH", 1e12)
    stingy = best_list(posterior)
    assert usual.is_optimal
    assert stingy.is_optimal
    assert stingy.log_density == pytest.approx(usual.log_density, abs=ROUNDING)
    for max_visited in (2, 5, 20, 100):
        stopped = best_list(posterior, max_visited=max_visited)
        assert stopped.log_density <= usual.log_density <= stopped.upper_bound + ROUNDING


def test_a_good_start_is_kept(rng):
    """What annealing found must not be lost, however little time there is."""
    posterior = games(2, rng, noise=0.2)
    plain = best_list(posterior)
    started = best_list(posterior, start=plain.state)
    assert started.log_density == plain.log_density
    stopped = best_list(posterior, start=plain.state, time_limit=0.0)
    assert stopped.log_density == plain.log_density
    assert stopped.upper_bound >= plain.log_density


@pytest.mark.parametrize("n_looks", [0, 1, 4])
def test_a_limit_ends_the_rules_of_one_prefix(n_looks, rng, monkeypatch):
    """Of millions of cells, the rules that may follow a prefix take minutes."""
    posterior = POSTERIORS["two-classes"](rng)
    proved = best_list(posterior)
    monkeypatch.setattr(bounds_module, "_AT_ONCE", 1)
    assert best_list(posterior).state == proved.state
    times = iter(range(10**6))
    monkeypatch.setattr(bounds_module, "perf_counter", lambda: times.__next__() * 1e6)
    monkeypatch.setattr(search_module, "perf_counter", lambda: 0.0)
    found = best_list(posterior, start=proved.state, time_limit=max(0.0, n_looks * 1e6 - 1.0))
    assert next(times) <= n_looks + 3
    assert not found.interrupted
    assert not found.is_optimal
    assert found.log_density == pytest.approx(proved.log_density, abs=ROUNDING)
    assert found.upper_bound >= proved.log_density


def exceeded(monkeypatch):
    """Return by how much densities of lists exceed a bound for which no cell was listed, nats."""
    found = []
    for problem in DENSITIES:
        posterior = problem.posterior(expected_rules=20.0)  # more parts, so more slack
        with monkeypatch.context() as patch:
            patch.setattr(points_module, "_LISTING", math.inf)
            ended = best_list(posterior, time_limit=1e9)
        assert (ended.n_visited, ended.is_optimal, ended.state) == (0, False, RuleList())
        assert ended.log_density == pytest.approx(posterior.log_density(RuleList()))
        found.append(float(problem.log_densities(expected_rules=20.0).max()) - ended.upper_bound)
    return found


def test_a_limit_ends_the_list_of_cells_with_a_bound(monkeypatch):
    """Ten million cells took 14 seconds of a limit of four."""
    assert max(exceeded(monkeypatch)) <= 0.0


def test_bounds_without_slack_of_unlisted_cells_are_seen(monkeypatch):
    """The broken twin."""
    monkeypatch.setattr(bounds_module, "slack", lambda n, *_: np.zeros(n))
    assert max(exceeded(monkeypatch)) > 0.0


def test_the_trace_ends_in_the_result(rng, monkeypatch):
    """Whoever draws the gap over time needs a lower curve that rises, and an upper that falls."""
    monkeypatch.setattr(search_module, "_SECONDS_BETWEEN_REPORTS", 0.0)
    texts = []
    found = best_list(games(3, rng, noise=0.2), progress=texts.append, max_visited=300)
    assert set(texts) <= set(found.trace)
    assert len(texts) > 10
    seconds, visited, lower, upper = np.array(found.trace).T
    for rising in (seconds, visited, lower, -upper):
        assert np.all(np.diff(rising) >= -ROUNDING)
    assert (lower[-1], upper[-1]) == (found.log_density, found.upper_bound)


def test_an_interrupt_keeps_what_was_found(rng, monkeypatch):
    monkeypatch.setattr(search_module, "_SECONDS_BETWEEN_REPORTS", 0.0)
    posterior = games(2, rng, noise=0.2)
    certain = best_list(posterior)

    def interrupt(point):
        if point.n_visited > 5:
            signal.raise_signal(signal.SIGINT)

    found = best_list(posterior, progress=interrupt)
    assert found.interrupted
    assert not found.is_optimal
    assert not certain.interrupted
    assert found.log_density <= certain.log_density <= found.upper_bound
    assert found.upper_bound < np.inf


def test_titanic_is_certain():
    """The figures that the documentation may print."""
    frame = pd.read_csv(ROOT / "data" / "titanic.csv")
    found = best_list(DensityListPosterior(Table.from_frame(frame.drop(columns="survived"))))
    assert found.is_optimal
    assert found.log_density == pytest.approx(-4165.149813, abs=1e-6)
    found = best_list(LabelListPosterior(Table.from_frame(frame), "survived"))
    assert found.is_optimal
    assert found.log_density == pytest.approx(-1095.081816, abs=1e-6)


def test_a_domain_too_large_is_refused():
    """At once, with what it would take: a domain's cells grow with every column."""
    frame = pd.DataFrame({f"c{j}": ["a", "b"] for j in range(60)})
    posterior = DensityListPosterior(Table.from_frame(frame), max_size=1)
    with pytest.raises(TooLargeError, match=r"memory_limit must be at least .* cells") as caught:
        best_list(posterior)
    assert "1,152,921,504,606,846,976 cells" in caught.value.needed
