"""Trees of hidden states against enumeration: scores, missing cells, counts, draws, records."""

import json
from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bayescascade import Table
from bayescascade.data.splitting import split_rows, with_weights
from bayescascade.methods.density.auto.averaging import stacked
from bayescascade.methods.density.hidden_trees import learning
from bayescascade.methods.density.hidden_trees.density import HiddenDensity
from bayescascade.methods.density.hidden_trees.em import (
    HiddenTrees,
    epochs,
    expected_counts,
    started,
    with_missing,
)
from bayescascade.methods.density.hidden_trees.learning import HiddenSettings, choose
from bayescascade.methods.density.mixtures.em import Components, Indicators, memberships
from tests.statistical.chi_square import fits

SIZES = (2, 3, 2, 4)
STARTS = np.cumsum(SIZES) - SIZES
PARENTS = np.array([1, -1, 1, 0])
N_MEMBERS, N_STATES = 2, 3
MERGED = np.array([[0, 1, 2], [1, 0, 0]])


def fitted(table, settings, seed):
    density, ended = learning.fitted(table, settings, seed)
    assert ended is None
    return density


@cache
def schema():
    """Return three nominal columns and a continuous one of two bins."""
    levels = {f"c{j}": [f"l{k}" for k in range(size)] for j, size in enumerate(SIZES[:-1])}
    frame = pd.DataFrame({name: [own[0]] * 5 for name, own in levels.items()})
    frame["x"] = [0.1, 0.5, 1.5, 2.5, 3.5]
    edges = [0.0, 0.3, 1.0, 2.0, 4.0]
    return Table.from_frame(frame, nominal=levels, continuous={"x": edges}).schema


@cache
def density():
    rng = np.random.default_rng(5)
    first = rng.dirichlet(np.ones(N_STATES), N_MEMBERS)
    moves = rng.dirichlet(0.4 * np.ones(N_STATES), (len(SIZES), N_MEMBERS, N_STATES))
    levels = [rng.dirichlet(np.ones(n), (N_MEMBERS, N_STATES)).swapaxes(1, 2) for n in SIZES]
    singles = [one.astype(np.float32) for one in levels]
    return HiddenDensity(
        schema=schema(), total_weight=50.0, parents=PARENTS, first=first.astype(np.float32),
        moves=moves.astype(np.float32), levels=tuple(singles), merged=MERGED,
    )  # fmt: skip


def every_row():
    return np.array(list(product(*map(range, SIZES))), np.int32).T


def joint(trees, member):
    """Return P(states, row) of each of all states, (n_all_states, n_all_rows), in float64."""
    codes, states = every_row(), np.array(list(product(range(N_STATES), repeat=len(SIZES)))).T
    found = 1.0
    for j, parent in enumerate(PARENTS):
        if parent < 0:
            found = found * trees.first[member, 0][states[j]][:, np.newaxis]
        else:
            found = found * trees.moves[j, member][states[parent], states[j]][:, np.newaxis]
        found = found * trees.levels[member, STARTS[j] + codes[j]][:, states[j]].T
    return found, states


@cache
def by_class():
    """Return P(row, state of the column's class) of every row, (n_rows, p, m h)."""
    found = np.zeros((every_row().shape[1], len(SIZES), N_MEMBERS * N_STATES))
    for i in range(N_MEMBERS):
        of_states, states = joint(density()._trees, i)
        for j, own in enumerate(states):
            np.add.at(found[:, j].T, i * N_STATES + own, of_states / N_MEMBERS)
    return found


@cache
def by_hand():
    """Return the probability of every row."""
    return sum(joint(density()._trees, i)[0].sum(axis=0) for i in range(N_MEMBERS)) / N_MEMBERS


def test_missing_cells_are_summed_out():
    """A row with gaps must get what all ways to fill it get together, and all rows sum to one."""
    codes = every_row()
    asked = np.array([*product(*[[-1, size - 1] for size in SIZES])], np.int32).T
    fills = ((asked.T[:, :, np.newaxis] < 0) | (asked.T[:, :, np.newaxis] == codes)).all(axis=1)
    last_bin = np.where(asked[-1] < 0, 1.0, 2.0)
    found = np.exp(density().score_codes(asked)) * last_bin
    assert_allclose(found, fills @ by_hand(), rtol=1e-9)
    assert by_hand().sum() == pytest.approx(1.0, abs=1e-9)


def test_expected_counts_are_those_of_all_states():
    """EM must count states, pairs and levels as they are probable given the rows."""
    rng, codes = np.random.default_rng(1), every_row()
    weights, trees = rng.random(codes.shape[1]), density()._trees
    counts = expected_counts(trees, codes, weights)
    for i in range(N_MEMBERS):
        found, states = joint(trees, i)
        belief = found / found.sum(axis=0) * weights
        for j, parent in enumerate(PARENTS):
            levels = np.zeros((SIZES[j], N_STATES))
            np.add.at(levels, (codes[j][np.newaxis], states[j][:, np.newaxis]), belief)
            assert_allclose(counts.levels[i, STARTS[j] :][: SIZES[j]], levels, rtol=1e-5)
            pairs = np.zeros((N_STATES, N_STATES))
            if parent >= 0:
                np.add.at(pairs, (states[parent], states[j]), belief.sum(axis=1))
                assert_allclose(counts.moves[j, i], pairs, rtol=1e-5)
            else:
                assert_allclose(counts.first[i, 0], levels.sum(axis=0), rtol=1e-5)


@pytest.mark.parametrize("evidence", [{}, {"c0": "l1", "c1": ["l0", "l2"]}])
def test_neighbors_in_one_class_are_counted_over_all_states(evidence):
    """What is said of two columns must be the sum over the states of both, given evidence, too."""
    given, codes = density().condition(evidence), every_row()
    agree = np.ones(codes.shape[1], bool)
    if evidence:
        agree = (codes[0] == 1) & np.isin(codes[1], [0, 2])
    expected, left = dict.fromkeys([0, 2, 3], 0.0), by_hand()[agree].sum()
    for i in range(N_MEMBERS):
        found, states = joint(density()._trees, i)
        of_states, merged = found[:, agree].sum(axis=1) / (left * N_MEMBERS), MERGED[i][states]
        for j in expected:
            expected[j] += of_states[merged[j] == merged[PARENTS[j]]].sum()
    assert [one.share for one in given.neighbors] == sorted(one.share for one in given.neighbors)
    assert {one.below: one.share for one in given.neighbors} == pytest.approx(expected, abs=1e-9)
    assert all(one.above == PARENTS[one.below] for one in given.neighbors)
    assert f"{100 * given.neighbors[0].share:.1f} %" in str(given)


def test_draws_are_as_common_as_they_are_probable(rng):
    """Drawn rows must come from this density, and not from one that is only close."""
    codes = every_row()
    places = np.ravel_multi_index(tuple(density().sample_codes(30_000, rng)), SIZES)
    assert fits(places, by_hand())
    independent = np.ones(codes.shape[1])  # broken twin: columns without dependences
    for j in range(len(SIZES)):
        independent *= np.bincount(codes[j], by_hand())[codes[j]]
    assert not fits(places, independent)


def test_records_are_the_same_to_the_last_bit():
    """A saved model must score as the one that was saved."""
    again = HiddenDensity.from_record(json.loads(json.dumps(density().to_record())), schema())
    assert_array_equal(density().score_codes(every_row()), again.score_codes(every_row()))


def chained_frame(n, rng):
    """Return nine columns; each keeps the level of the one before in nine of ten rows."""
    codes = np.empty((9, n), int)
    codes[0] = rng.integers(3, size=n)
    for j in range(1, 9):
        codes[j] = np.where(rng.random(n) < 0.9, codes[j - 1], rng.integers(3, size=n))
    return pd.DataFrame(codes.T, columns=[f"c{j}" for j in range(9)]).astype(str)


def chained(n, rng):
    return Table.from_frame(chained_frame(n, rng))


def test_the_start_is_a_mixture_where_all_states_are_kept(rng):
    """EM must begin at the classes of a mixture, or it ends in worse maxima."""
    rows = Indicators.of(chained(200, rng))
    levels = np.concatenate([rng.dirichlet(np.ones(3), 2).T for _ in range(9)])
    mixture = Components(np.log([0.3, 0.7]), np.log(levels.T), None, None)
    trees = started(rows, [mixture])
    moves = np.broadcast_to(np.eye(2), trees.moves.shape)
    scores = expected_log(trees._replace(moves=moves), rows.codes)
    assert_allclose(scores, memberships(mixture.log_joint(rows))[1], rtol=1e-5)


def expected_log(trees, codes):
    """Return log probabilities of coded rows by a loop over rows, columns and states."""
    logs = np.empty(codes.shape[1])
    for i, row in enumerate(codes.T):
        below = {j: np.ones(trees.first.shape[2]) for j in range(len(row))}
        for j in reversed(trees.order):
            own = trees.levels[0, trees.starts[j] + row[j]] * below[j]
            if trees.parents[j] >= 0:
                below[trees.parents[j]] = below[trees.parents[j]] * (trees.moves[j, 0] @ own)
        logs[i] = np.log(trees.first[0, 0] @ own)
    return logs


def test_many_children_do_not_underflow(rng):
    """A column that hundreds of others depend on must leave a finite density."""
    p, h = 400, 16
    levels = with_missing(rng.dirichlet(np.ones(2), (p, h)).swapaxes(1, 2).reshape(1, 2 * p, h), p)
    parents = np.where(np.arange(p) > 0, 0, -1)
    moves = rng.dirichlet(np.full(h, 0.1), (p, 1, h)).astype(np.float32)
    first = np.full((1, 1, h), 1 / h, np.float32)
    trees = HiddenTrees(parents, first, moves, levels.astype(np.float32), 2 * np.arange(p))
    codes = rng.integers(2, size=(p, 5))
    counts = expected_counts(trees, codes, np.ones(5))
    assert counts.first.sum() == pytest.approx(5.0, rel=1e-4)
    assert counts.moves[1:].sum(axis=(2, 3)) == pytest.approx(5.0, rel=1e-3)


def test_chains_of_columns_are_learned_better_than_by_classes(rng):
    """Where a column follows the one before, one class of the whole row is not enough."""
    table, others = chained(1_500, rng), chained(1_500, rng)
    found = fitted(table, HiddenSettings(1, 6, 1.0, 20), 0)
    rows, held = Indicators.of(table), others.codes.astype(np.int32)
    start = next(epochs(rows, started(rows, [of_classes(rows, 6)]), 1.0, rng))
    worse = HiddenDensity.of(table.schema, 1.0, start._replace(moves=np.broadcast_to(
        np.eye(6, dtype=np.float32), start.moves.shape).copy()))  # fmt: skip
    gains = found.score_codes(held) - worse.score_codes(held)
    assert np.average(gains, weights=others.weights) > 0.5


def of_classes(rows, n):
    """Return classes of equal shares, each a bit nearer to some rows."""
    rng = np.random.default_rng(0)
    levels = np.concatenate([rng.dirichlet(np.ones(3), n).T for _ in rows.codes])
    return Components(np.full(n, -np.log(n)), np.log(levels.T), None, None)


def test_heavy_rows_count_as_often_as_they_weigh(rng):
    """A row of weight 50 must be learned like 50 rows, in every batch."""
    codes = np.array([[0, 0]] * 400 + [[1, 1]] * 100 + [[0, 1]] * 10 + [[1, 0]] * 10)
    frame = pd.DataFrame(codes, columns=["a", "b"]).astype(str)
    frame["c"] = rng.integers(8, size=len(frame)).astype(str)
    table = Table.from_frame(frame)
    shares = np.exp(fitted(table, HiddenSettings(1, 4, 0.1, 20), 0).score_codes(
        np.array([[0, -1, -1], [0, 0, -1]], np.int32).T))  # fmt: skip
    assert shares == pytest.approx([410 / 520, 400 / 520], abs=0.01)


def test_a_seed_fixes_choice_and_fit(rng):
    """The same seed must give the same density; little work, or few rows, none."""
    table = chained(150, rng)
    tried = choose(table, 3, 1e12)
    assert tried == choose(table, 3, 1e12)
    assert tried == sorted(tried, reverse=True)
    settings = tried[0][1]
    codes = table.codes.astype(np.int32)
    scores = [fitted(table, settings, 3).score_codes(codes) for _ in range(2)]
    assert_array_equal(*scores)
    assert choose(table, 3, 1e6, is_whole=True) == []
    assert learning.is_worth(table)
    assert not learning.is_worth(chained(5, rng))
    assert learning.usual(chained(5, rng), 1e12).n_states <= 5


def test_hidden_trees_have_weight_where_states_move_along_a_chain(rng):
    """Held-out rows must find what made the table, and the average must be of all rows."""
    frame = chained_frame(700, rng)
    seen = frame.where(rng.random(frame.shape) < 0.7, "0")  # so that neighbors do not tell all
    table = Table.from_frame(seen)
    folds = [
        (with_weights(table, table.weights - held), with_weights(table, held))
        for held in split_rows(table.weights, 3, rng)
    ]
    alone = np.concatenate([np.full(held.n_distinct, -9 * np.log(3)) for _, held in folds])
    found = stacked(table, folds, alone, 0, 1)
    assert found.weights["hidden"] > 0.5
    scores = found.members["hidden"].score_codes(table.codes.astype(np.int32))
    assert np.average(scores, weights=table.weights) > -8.5
