"""Splitting rows into parts: every row once, parts of equal size, and as by shuffling."""

import math

import numpy as np
import pytest

from bayescascade import Table
from bayescascade.data.splitting import split_by_class, split_rows, with_weights
from tests.cli.conftest import TITANIC
from tests.statistical.chi_square import fits

WEIGHTS = np.array([5.0, 3.0, 1.0, 4.0])


@pytest.mark.parametrize("n_parts", [1, 2, 3, 13, 20])
def test_every_row_is_dealt_once(n_parts, rng):
    split = split_rows(WEIGHTS, n_parts, rng)
    assert (split.sum(axis=0) == WEIGHTS).all()
    assert (split >= 0).all()
    assert split.sum(axis=1).max() - split.sum(axis=1).min() <= 1


def test_a_fraction_stays_in_one_piece(rng):
    split = split_rows(np.array([0.25, 2.5]), 3, rng)
    assert split.sum(axis=0).tolist() == [0.25, 2.5]
    assert np.sort(split % 1, axis=0)[-1].tolist() == [0.25, 0.5]
    pieces = [split_rows(np.array([0.25]), 3, rng)[:, 0].argmax() for _ in range(100)]
    assert set(pieces) == {0, 1, 2}


def with_replacement(weights, n_parts, rng):
    """Draw the first part as a broken twin does: it may get a row twice."""
    size = int(weights.sum()) // n_parts
    return rng.multinomial(size, weights / weights.sum())[np.newaxis]


@pytest.mark.parametrize(("splitting", "is_right"), [(split_rows, True), (with_replacement, False)])
def test_parts_are_as_likely_as_by_shuffling(rng, splitting, is_right):
    """Else the halves would be more alike, or less, than halves of the rows are."""
    drawn = [int(splitting(WEIGHTS, 2, rng)[0, 0]) for _ in range(20_000)]
    ways = [math.comb(5, k) * math.comb(8, 6 - k) for k in range(6)]
    outcomes = np.minimum(drawn, 5)
    assert fits(outcomes, np.array(ways) / math.comb(13, 6)) is is_right


def test_a_billion_rows_are_dealt(rng):
    split = split_rows(np.array([3e9, 1.0, 2e9]), 2, rng)
    assert (split.sum(axis=0) == [3e9, 1, 2e9]).all()
    assert split.sum(axis=1) == pytest.approx([2.5e9, 2.5e9], rel=1e-3)


def test_a_part_keeps_the_schema_of_the_whole():
    """A level that one half lacks must have density for the other."""
    table = Table.from_csv(TITANIC)
    weights = np.where(table.codes[0] == 0, 0.0, table.weights)
    part = with_weights(table, weights)
    assert part.schema == table.schema
    assert part.codes.flags.c_contiguous
    assert (part.codes[0] > 0).all()
    assert (part.n_rows, part.total_weight) == (1876, 1876.0)
    assert table.total_weight == 2201
    assert part.n_distinct < table.n_distinct


def test_each_class_is_dealt_alike(rng):
    """A rare class that is tested but was not learned would be counted as an error."""
    labels = np.array(["a"] * 100 + ["b"] * 10 + ["c"] * 2 + ["d"])
    parts = split_by_class(labels, [0.5, 0.25, 0.25], rng)
    counts = [np.bincount(parts[labels == label], minlength=3).tolist() for label in "abcd"]
    assert counts == [[50, 25, 25], [5, 3, 2], [1, 1, 0], [1, 0, 0]]
    again = split_by_class(labels, [0.5, 0.25, 0.25], rng)
    assert (parts != again).any()
