"""Continuous mixtures against enumeration: scores, missing cells, draws and records."""

import json
from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bayescascade import Table
from bayescascade.methods.density.continuous.density import ContinuousDensity
from bayescascade.methods.density.continuous.network import NetState, Network, TreeCells
from tests.statistical.chi_square import fits

SIZES = [2, 3, 2, 4, 1, 2]
PARENTS = np.array([1, -1, 1, 0, 0, 3])


@cache
def schema():
    """Return nominal columns of these sizes, and a continuous one of two bins."""
    levels = {f"c{j}": [f"l{k}" for k in range(size)] for j, size in enumerate(SIZES[:-1])}
    frame = pd.DataFrame({name: [own[0]] * 3 for name, own in levels.items()})
    frame["x"] = [0.1, 0.5, 2.0]
    return Table.from_frame(frame, nominal=levels, continuous={"x": [0.0, 0.3, 4.0]}).schema


@cache
def density(n_points=7):
    rng, cells = np.random.default_rng(5), TreeCells.of(np.array(SIZES), PARENTS)
    network = Network.random(rng.normal(size=cells.coded.size), 4, rng)
    points, shares = rng.normal(size=(4, n_points)), rng.normal(size=n_points)
    state = NetState(network, points.astype(np.float32), shares.astype(np.float32))
    return ContinuousDensity.of(schema(), 50.0, cells, state)


def every_row():
    return np.array(list(product(*map(range, SIZES))), np.int32).T


def volumes(codes):
    """Return the width of each row's cell."""
    return np.array([0.3, 3.7])[codes[-1]]


@cache
def by_class():
    """Return P(row, point) from the saved tables, in float64, equal for all columns."""
    codes, found = every_row(), []
    for k, share in enumerate(density().shares):
        probability = share
        for j, (parent, table) in enumerate(zip(PARENTS, density().tables, strict=True)):
            own = table[..., k].astype(np.float64)
            own /= own.sum(axis=1, keepdims=True)
            probability = probability * own[codes[parent] if parent >= 0 else 0, codes[j]]
        found.append(probability)
    return np.repeat(np.transpose(found)[:, np.newaxis], len(SIZES), axis=1)


@cache
def by_hand():
    """Return the probability of every row."""
    return by_class()[:, 0].sum(axis=1)


def test_complete_rows():
    """Densities of rows must be the formula's, and sum to one."""
    codes = every_row()
    found = np.exp(density().score_codes(codes)) * volumes(codes)
    assert_allclose(found, by_hand(), rtol=1e-9)
    assert found.sum() == pytest.approx(1.0, abs=1e-9)


def test_missing_cells_are_summed_out():
    """A row with gaps, whatever their pattern, must get what all ways to fill it get together."""
    codes = every_row()
    choices = [[-1, size - 1] for size in SIZES]
    asked = np.array([*product(*choices)], np.int32).T
    fills = ((asked.T[:, :, np.newaxis] < 0) | (asked.T[:, :, np.newaxis] == codes)).all(axis=1)
    widths = np.where(asked[-1] < 0, 1.0, 3.7)
    found = np.exp(density().score_codes(asked)) * widths
    assert_allclose(found, fills @ by_hand(), rtol=1e-9)
    # a conditional of one column is a ratio of two of them
    full, without = codes[:, :1].copy(), codes[:, :1].copy()
    without[3] = -1
    ratio = np.exp(density().score_codes(full) - density().score_codes(without))
    is_near = (codes == without).sum(axis=0) == len(SIZES) - 1
    expected = by_hand()[0] / by_hand()[is_near].sum()
    assert ratio[0] == pytest.approx(expected, rel=1e-9)


def test_draws_are_as_common_as_they_are_probable(rng):
    """Drawn rows must come from this density, and not from one that is only close."""
    codes = every_row()
    drawn = density().sample_codes(30_000, rng)
    places = np.ravel_multi_index(tuple(drawn), SIZES)
    assert fits(places, by_hand())
    independent = np.ones(codes.shape[1])  # broken twin: columns without dependences
    for j in range(len(SIZES)):
        shares = np.bincount(codes[j], by_hand())
        independent *= shares[codes[j]]
    assert not fits(places, independent)


def test_records_are_the_same_to_the_last_bit():
    """A saved model must score as the one that was saved."""
    record = json.loads(json.dumps(density().to_record()))
    again = ContinuousDensity.from_record(record, schema())
    for ours, read in zip(density().tables, again.tables, strict=True):
        assert_array_equal(ours, read)
    codes = every_row()
    assert_array_equal(density().score_codes(codes), again.score_codes(codes))
