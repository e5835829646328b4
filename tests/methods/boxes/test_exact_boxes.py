"""The best union of boxes: against all unions, two programs, and searches that end early."""

from fractions import Fraction

import numpy as np
import pytest

from bayescascade.base.errors import InternalError, ParameterError, TooLargeError
from bayescascade.base.watch import Watch
from bayescascade.methods.boxes.exact import search as searches
from bayescascade.methods.boxes.exact.levels import Costs, LevelRows, balanced
from bayescascade.methods.boxes.exact.search import best_union, solve_program
from bayescascade.methods.boxes.union import BoxUnion
from tests.fuzz.boxes import best as best_worth, exact
from tests.fuzz.running import Found, Problem
from tests.methods.boxes.reference import printed_program

COSTS = [
    (1.0, 0.0, 0.0), (0.3, 0.5, 0.0), (2.0, 0.0, 0.25), (0.1, 1.0, 0.5), (1.0, 0.25, 10.0),
    (0.0, 0.5, 0.25), (1e-9, 0.0, 0.0), (1e9, 0.5, 0.25),
]  # fmt: skip


def small(rng, n_columns, n_rows, n_values, weighted=False):
    """Return a few rows with many ties."""
    rows = rng.integers(0, n_values, (n_rows, n_columns)).astype(float)
    is_positive = rng.random(n_rows) < 0.5
    is_positive[:2] = True, False
    weights = rng.integers(1, 4, n_rows).astype(float) if weighted else np.ones(n_rows)
    return rows, is_positive, weights


@pytest.mark.parametrize("costs", [one for one in COSTS if one[0] < 1e9])
def test_what_is_hardly_better_than_what_is_known_is_found(rng, costs):
    """A bound that is too low goes unnoticed where a search begins with the best union."""
    for n_boxes, n_rows in ((1, 30), (2, 12)) * 4:
        rows = LevelRows(*small(rng, 2, n_rows, 6), Costs(*costs))
        gain = best_union(rows, n_boxes).objective - rows.constant
        search = searches._BoxSearch(rows, Watch(None), np.inf, None, np.empty((0, 4)), 0.0)
        found = [search.look(rows, n, gain - 1e-6)[1] for n in range(1, n_boxes + 1)]
        gains = [rows.gain(levels) for levels in found if levels is not None]
        assert gain == 0.0 or max(gains, default=0.0) == pytest.approx(gain, abs=1e-9)


def broken_promises(seeds):
    """Return how many of some extreme problems are answered wrongly."""
    n_broken = 0
    for seed in seeds:
        try:
            exact(Problem(np.random.default_rng([seed, 32])))
        except (Found, InternalError):
            n_broken += 1
    return n_broken


@pytest.mark.parametrize("seeds", [range(k, k + 12) for k in range(0, 60, 12)], ids=str)
def test_extreme_problems_are_proved(seeds):
    """Weights, costs, ties and copies of any kind, against all unions in fractions."""
    assert broken_promises(seeds) == 0


def test_a_bound_that_is_none_is_noticed(monkeypatch):
    """Broken twin: negatives of the largest boxes in place of those of the smallest."""
    arrays = searches._arrays

    def low(rows, n_boxes, gain):
        read, work = arrays(rows, n_boxes, gain)
        work.highs[0] = np.maximum(1, rows.n_levels - 1)  # boxes are taken for larger than they are
        return read, work

    monkeypatch.setattr(searches, "_arrays", low)
    assert broken_promises(range(12)) > 0


@pytest.mark.slow
def test_programs_find_the_same(rng):
    """Both HiGHS's by levels and the one of the thesis, with its M and epsilon."""
    for place in range(12):
        problem = small(rng, 1 + place % 2, 8, 6, weighted=place % 3 == 0)
        n_boxes = 1 + place % 2
        for costs in (COSTS[0], COSTS[1], COSTS[2]):
            rows = LevelRows(*problem, Costs(*costs))
            program, branch = solve_program(rows, n_boxes), best_union(rows, n_boxes)
            assert program.objective == pytest.approx(branch.objective)
            assert program.is_optimal
            assert program.union.n_boxes <= n_boxes
        free = LevelRows(*problem, Costs(0.7))
        assert printed_program(*problem, 0.7, n_boxes) == pytest.approx(
            best_union(free, n_boxes).objective
        )


def hard(rng, n_rows=300, n_columns=6):
    """Return rows whose labels are noise, so that no search is soon through."""
    rows = rng.normal(size=(n_rows, n_columns))
    is_positive = rng.random(n_rows) < 0.4
    return LevelRows(rows, is_positive, np.ones(n_rows), Costs(0.6, 0.0, 0.1))


def test_a_search_that_ends_early_keeps_union_and_bound(rng):
    """By the number of ranges, by time, and by Ctrl-C."""
    rows = hard(rng)
    few = best_union(rows, 2, most_work=4e5)
    assert not few.is_optimal
    assert few.objective <= few.upper_bound < np.inf
    more = best_union(rows, 2, most_work=1.4e7)
    assert max(few.objective, more.objective) <= min(few.upper_bound, more.upper_bound)
    assert more.gap == more.upper_bound - more.objective > 0.0
    late = best_union(rows, 2, watch=Watch(1e-9))
    assert late.timed_out
    assert late.upper_bound >= more.objective

    def stop(*_):
        raise KeyboardInterrupt

    ended = best_union(rows, 2, progress=stop)
    assert ended.interrupted
    assert not ended.is_optimal
    assert not ended.is_best_given_others
    assert ended.upper_bound >= more.objective


def test_each_box_is_the_best_given_the_others(rng):
    """Beyond reach of a proof for all boxes, there is one for each."""
    rows, is_positive, weights = small(rng, 2, 14, 6)
    read = LevelRows(rows, is_positive, weights, Costs(0.5, 0.1, 0.05))
    found = best_union(read, 3, most_work=1e4)
    assert found.is_best_given_others
    costs, proved = (0.5, 0.1, 0.05), found.n_proved
    assert proved == 2
    best = best_worth(rows, is_positive, weights, costs, proved)
    assert found.objective >= best - 1e-9
    for place in range(found.union.n_boxes):
        others = BoxUnion(*(np.delete(sides, place, axis=0)
                            for sides in (found.union.lower, found.union.upper)))  # fmt: skip
        left = ~others.contains(rows)
        if is_positive[left].any():
            alone = best_worth(rows[left], is_positive[left], weights[left], (0.5, 0.1, 0.05), 1)
            let_in = read.costs.negative_weight * weights[~left & ~is_positive].sum()
            best = alone + read.worth(others) - read.costs.worth(
                0.0, weights[left & ~is_positive].sum(), 0, 0)  # fmt: skip
            assert found.objective >= best - 1e-9
            assert let_in >= 0.0


def test_a_start_is_kept_where_nothing_is_better(rng):
    """And made better where a single side can be."""
    rows = hard(rng, 60, 2)
    best = best_union(rows, 1)
    again = best_union(rows, 1, start=best.union.halfway(rows.rows))
    assert again.objective == pytest.approx(best.objective)
    assert again.n_visited <= best.n_visited
    polished = rows.polished(rows.levels(BoxUnion([[-9.0, -9.0]], [[9.0, 9.0]])), Watch(None))
    assert rows.gain(polished) > rows.gain(rows.levels(BoxUnion([[-9.0, -9.0]], [[9.0, 9.0]])))


def test_limits_are_checked(rng):
    """Memory before it is taken, costs before they are paid."""
    with pytest.raises(TooLargeError, match="a search for unions of 2 boxes takes 1 MB"):
        best_union(hard(rng), 2, memory_limit=1e4)
    with pytest.raises(ParameterError, match="side_cost must be a finite number >= 0, got -1"):
        Costs(1.0, 0.0, -1)
    with pytest.raises(ParameterError, match="n_boxes must be an integer from 1 to 64, got 0"):
        best_union(hard(rng), 0)
    is_positive = np.array([True, False, False])
    assert balanced(is_positive, np.array([3.0, 1.0, 2.0])) == 1.0


@pytest.mark.parametrize("n", [1_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_the_best_interval_of_many_rows_is_that_of_fractions(n, rng):
    """What is called exact must be so at a million rows: by the best run of sums, without error."""
    x, weights = np.sort(rng.normal(size=n)), rng.random(n) * 10.0 ** rng.integers(-3, 4, n)
    is_positive = rng.random(n) < np.where(np.abs(x - 0.3) < 0.1, 0.05, 0.005)
    costs = Costs(negative_weight=0.05, box_cost=0.0, side_cost=0.0)
    rows = LevelRows(x[:, np.newaxis], is_positive, weights, costs)
    found = best_union(rows, 1)
    assert found.is_optimal
    best = run = Fraction(0)
    for is_one, weight in zip(is_positive.tolist(), weights.tolist(), strict=True):
        run = max(Fraction(0), run + Fraction(weight) * (1 if is_one else -Fraction(0.05)))
        best = max(best, run)
    gain = found.objective - rows.constant
    assert abs(gain - best) <= found.rounding
    second = gain * (1 - 1e-9)  # a union worth less by that is no longer the best
    assert abs(second - best) > found.rounding
