"""The log density of continuous mixtures and its derivatives, against slow formulas."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bayescascade.methods.density.continuous import network as network_module
from bayescascade.methods.density.continuous.network import (
    NetState,
    Network,
    TreeCells,
    gradient,
    memberships,
)

SIZES, PARENTS = np.array([2, 4, 3, 1, 2]), np.array([1, -1, 1, 2, -1])
ROWS = np.array(list(product(*map(range, SIZES)))).T
SPARSE = pytest.mark.parametrize("dense_up_to", [0, 8])


def cells(monkeypatch, dense_up_to):
    monkeypatch.setattr(network_module, "DENSE_UP_TO", dense_up_to)
    found = TreeCells.of(SIZES, PARENTS)
    assert found.is_dense == (dense_up_to > 0)
    return found


def drawn_state(cells, rng, n_points=6):
    """Return a state in float64, as finite differences need it."""
    network = Network.random(rng.normal(size=cells.coded.size), 4, rng)
    network = Network(*(own.astype(np.float64) for own in network))
    return NetState(network, rng.normal(size=(4, n_points)), rng.normal(size=n_points))


def slow_log_densities(state, codes):
    """Return the log densities of rows by the formula, one row, point and column at a time."""
    net, shares = state.network, np.exp(state.shares) / np.exp(state.shares).sum()
    densities = np.zeros(codes.shape[1])
    for k, share in enumerate(shares):
        z = state.points[:, [k]]
        a = net.first @ z + net.first_bias
        a = np.where(a > 0, a, 0.1 * a)
        b = net.second @ a + net.second_bias
        b = np.where(b > 0, b, 0.1 * b) + a
        log_odds = iter((net.last @ b + net.last_bias)[:, 0])
        tables = []
        for size, parent in zip(SIZES, PARENTS, strict=True):
            blocks = []
            for _ in range(SIZES[parent] if parent >= 0 else 1):
                odds = np.exp([0.0] + [next(log_odds) for _ in range(size - 1)])
                blocks.append(odds / odds.sum())
            tables.append(blocks)
        for i, row in enumerate(codes.T):
            probability = share
            for code, parent, table in zip(row, PARENTS, tables, strict=True):
                probability *= table[row[parent] if parent >= 0 else 0][code]
            densities[i] += probability
    return np.log(densities)


@SPARSE
def test_products_of_features_are_the_formula(monkeypatch, rng, dense_up_to):
    """A wrong feature would make densities that do not sum to one, and no run would notice."""
    own = cells(monkeypatch, dense_up_to)
    state, features = drawn_state(own, rng), own.features(ROWS).astype(np.float64)
    log_tables = own.log_tables(state.network.layers(state.points)[2])
    joint = features @ (own.expand.T @ log_tables) + state.log_shares
    log_densities = memberships(joint)
    assert_allclose(log_densities, slow_log_densities(state, ROWS), rtol=0, atol=1e-9)
    assert np.exp(log_densities).sum() == pytest.approx(1.0, abs=1e-9)
    assert_allclose(joint.sum(axis=1), 1.0)


def agrees_with_differences(cells, state, found):
    """Return whether derivatives of the mean log density agree with its differences."""
    rng, weights = np.random.default_rng(1), np.linspace(0.5, 2.0, ROWS.shape[1])
    features = cells.features(ROWS).astype(np.float64)
    for which, own in enumerate([*state.network, state.points, state.shares]):
        move = rng.normal(size=own.shape)
        values = []
        for sign in (1, -1):
            arrays = [*state.network, state.points, state.shares]
            arrays[which] = own + sign * 1e-6 * move
            moved = NetState(Network(*arrays[:6]), *arrays[6:])
            values.append(gradient(moved, cells, features, weights)[0])
        slope = (values[0] - values[1]) / 2e-6
        ours = float((([*found.network, found.points, found.shares][which]) * move).sum())
        if abs(ours - slope) > 1e-5 * max(1.0, abs(slope)):
            return False
    return True


@SPARSE
def test_derivatives_are_differences(monkeypatch, rng, dense_up_to):
    """Learning with a wrong derivative ends somewhere else, often only a little worse."""
    own = cells(monkeypatch, dense_up_to)
    state, weights = drawn_state(own, rng), np.linspace(0.5, 2.0, ROWS.shape[1])
    value, found = gradient(state, own, own.features(ROWS).astype(np.float64), weights)
    assert value == pytest.approx(weights @ slow_log_densities(state, ROWS))
    assert agrees_with_differences(own, state, found)
    # broken twins: without the skip of the second layer, and without the shares' own part
    skipped = found.network._replace(first=0.9 * found.network.first)
    assert not agrees_with_differences(own, state, found._replace(network=skipped))
    shares = found.shares + weights.sum() * np.exp(state.log_shares)
    assert not agrees_with_differences(own, state, found._replace(shares=shares))
