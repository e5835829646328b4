"""A tree of columns whose log odds are functions of a hidden point z; the log density's gradient.

A row x has the density of a mixture at K points z_k in R^d of shares w_k ::

    p(x) = sum_k w_k prod_u P(x_u | x_parent(u), z_k)

A cell is a column u, a level m of its parent (none for a root) and a level l of its own. The cells
of one (u, m) are a block: ``P(l | m, z) = exp(h_l) / sum_l' exp(h_l')``, with h_0 = 0 for the first
level. The other log odds h come from a network of two layers of leaky rectifiers g, the second one
with a skip ::

    a = g(A z + a0)    b = g(B a + b0) + a    h = C b + c0

A row is in one cell of each column, so ``ln p(x | z_k)`` is a product of the row's indicators of
cells and of the log tables (cells, K). There are fewer features than cells: a 1, an indicator of
each level but a column's first, and products of those of a column and of its parent. The indicators
of a column's levels are ``e_u = M f_u``, with ``f_u = (1, indicators)`` and M the identity but for
its first row, (1, -1, .., -1). Those of its cells are the Kronecker product of ``e_parent`` and
``e_u``, so ``(M x M)(f_parent x f_u)``; `expand` collects these. If there are many levels, the
features are the indicators of cells, which are sparse.

For responsibilities R (n, K) of weighted rows, the expected counts of cells are ``N = expand F' R``
for the features F, and the derivative of ``sum ln p`` by h of a cell in block b is ``N - N_b P``.
A. Correia, G. Gala, E. Quaeghebeur, C. de Campos and R. Peharz, Continuous mixtures of tractable
probabilistic models, AAAI (2023). A departure is that points and shares are learned at the end.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array, vstack

from bayescascade.base.arrays import Integers, Reals
from bayescascade.data.table import Table
from bayescascade.methods.density.mixtures.em import EMSettings, Indicators, maximized

Features: TypeAlias = NDArray[Any] | csr_array

N_UNITS = 64  # of each hidden layer
DENSE_UP_TO = 8  # features for each column; with more, sparse products take less time
_SLOPE = 0.1  # of the rectifiers below 0
_MOST_LOG_ODDS = 30.0
_FIRST_BIAS, _LAST_WEIGHT = 0.5, 0.3  # standard deviation, and factor, of the first network


@dataclass(frozen=True, eq=False)
class TreeCells:
    """The cells of a tree of columns, one column after the other, and the features of rows."""

    sizes: Integers  # (p,), numbers of levels
    parents: Integers  # (p,), -1 for a root
    starts: Integers  # (p + 1,), the first cell of each column
    block: Integers  # (n_cells,), each cell's block
    coded: Integers  # cells with log odds of their own
    sums: csr_array  # (n_blocks, n_cells), for sums over the cells of each block
    coded_sums: csr_array  # (n_blocks, n_coded), for sums over those with log odds
    places: tuple[Integers, ...]  # each column's features by the parent's level and its own
    expand: csr_array  # (n_cells, n_features)
    is_dense: bool

    @classmethod
    def of(cls, sizes: Integers, parents: Integers) -> "TreeCells":
        """Return the cells of columns with these numbers of levels and these parents."""
        above = np.where(parents >= 0, sizes[parents], 1)
        starts = np.concatenate([[0], np.cumsum(above * sizes)])
        n_cells, within = int(starts[-1]), np.repeat(sizes, above)
        cells, firsts = np.arange(n_cells), np.cumsum(within) - within
        block = np.repeat(np.arange(within.size), within)
        own = np.cumsum(np.concatenate([[1], (sizes - 1)]))  # features of levels, then of pairs
        pairs = np.cumsum(np.concatenate([[own[-1]], (sizes - 1) * (above - 1)]))
        is_dense = bool(pairs[-1] <= DENSE_UP_TO * sizes.size)
        places, expand = list[Integers](), eye_array(n_cells, dtype=np.float32, format="csr")
        for j, (size, n_above) in enumerate(zip(sizes, above, strict=True)):
            shape, v = (n_above, size), parents[j]
            found = np.arange(starts[j], starts[j + 1]).reshape(shape)
            if is_dense:
                found[0, 0], found[0, 1:] = 0, np.arange(own[j], own[j + 1])
                found[1:, 0] = np.arange(own[v], own[v] + n_above - 1)
                found[1:, 1:] = np.arange(pairs[j], pairs[j + 1]).reshape(n_above - 1, size - 1)
            places.append(found)
        if is_dense:
            parts = [
                csr_array(np.kron(*map(_differences, found.shape)))
                @ _indicators(found.ravel(), int(pairs[-1]))
                for found in places
            ]
            expand = csr_array(vstack(parts))
        coded = np.delete(cells, firsts)
        sums = _indicators(block, within.size).T.tocsr()
        more = sums, sums[:, coded], tuple(places), expand, is_dense
        return cls(sizes, parents, starts, block, coded, *more)

    def features(self, codes: Integers) -> Features:
        """Return features of complete rows (p, n), (n, n_features): bool, or sparse float32."""
        n = codes.shape[1]
        found = [
            places[codes[v] if v >= 0 else 0, own]
            for places, v, own in zip(self.places, self.parents, codes, strict=True)
        ]
        if not self.is_dense:
            return _indicators(np.array(found).T, self.expand.shape[1])
        features = np.zeros((n, self.expand.shape[1]), bool)
        features[:, 0] = True
        rows = np.arange(n)
        for places, own, pair in zip(self.places, codes, found, strict=True):
            features[rows, places[0, own]] = features[rows, pair] = True
        return features

    def log_tables(self, log_odds: Reals) -> Reals:
        """Return log probabilities of cells (n_cells, K) from log odds (n_coded, K)."""
        # beyond, the exponential overflows; the gradient ignores it, so log odds can come back
        log_odds = log_odds.clip(-_MOST_LOG_ODDS, _MOST_LOG_ODDS)
        log_tables: Reals = -np.log1p(self.coded_sums @ np.exp(log_odds))[self.block]
        log_tables[self.coded] += log_odds
        return log_tables


def _indicators(places: Integers, n: int) -> csr_array:
    """Return rows of n zeros with ones at places, (n_rows,) or (n_rows, ones in a row)."""
    places = places.reshape(len(places), -1)
    ends = np.arange(0, places.size + 1, places.shape[1])
    return csr_array((np.ones(places.size, np.float32), places.ravel(), ends), (len(places), n))


def _differences(n_levels: int) -> Reals:
    """Return M of the module: indicators of levels from a 1 and those of levels but the first."""
    found = np.eye(n_levels, dtype=np.float32)
    found[0, 1:] = -1.0
    return found


def chow_liu(table: Table) -> tuple[TreeCells, Reals]:
    """Return the cells of the Chow-Liu tree of a table, and its log odds, (n_coded,)."""
    rows = Indicators.of(table)
    settings, together = EMSettings("dependent", 1.0, 1), np.ones((rows.weights.size, 1))
    found = maximized(rows, settings, together)
    assert found.parents is not None
    assert found.log_ratios is not None
    cells = TreeCells.of(table.schema.n_levels.astype(np.int64), found.parents[0])
    log_tables, ratios = list[Reals](), found.log_ratios[0]
    for start, size, v in zip(rows.starts, cells.sizes, cells.parents, strict=True):
        own = found.log_levels[0, start : start + size]
        if v >= 0:
            above = slice(rows.starts[v], rows.starts[v] + cells.sizes[v])
            part = ratios[above, start : start + size]
            own = own + (part if isinstance(part, np.ndarray) else part.toarray())
        log_tables.append((own - own[..., :1]).ravel())
    return cells, np.concatenate(log_tables)[cells.coded]


class Network(NamedTuple):
    """The weights of the network from points to log odds, see the module."""

    first: Reals  # (N_UNITS, d)
    first_bias: Reals  # (N_UNITS, 1)
    second: Reals  # (N_UNITS, N_UNITS)
    second_bias: Reals  # (N_UNITS, 1)
    last: Reals  # (n_coded, N_UNITS)
    last_bias: Reals  # (n_coded, 1)

    @classmethod
    def random(cls, log_odds: Reals, n_dims: int, rng: np.random.Generator) -> "Network":
        """Return a network in float32 that starts near these log odds."""

        def drawn(n: int, n_inputs: int, scale: float) -> Reals:
            deviation = scale * np.sqrt(2.0 / n_inputs)
            weights: Reals = deviation * rng.normal(size=(n, n_inputs))
            return weights.astype(np.float32)

        bias = (_FIRST_BIAS * rng.normal(size=(N_UNITS, 1))).astype(np.float32)
        return cls(
            drawn(N_UNITS, n_dims, 1.0), bias,
            drawn(N_UNITS, N_UNITS, 1.0), np.zeros_like(bias),
            drawn(log_odds.size, N_UNITS, _LAST_WEIGHT), log_odds.astype(np.float32)[:, np.newaxis],
        )  # fmt: skip

    def layers(self, points: Reals) -> tuple[Reals, Reals, Reals]:
        """Return both hidden layers (N_UNITS, K) and log odds (n_coded, K) at points (d, K)."""
        a = _rectified(self.first @ points + self.first_bias)
        b = _rectified(self.second @ a + self.second_bias) + a
        return a, b, self.last @ b + self.last_bias

    def back(self, points: Reals, a: Reals, b: Reals, to_odds: Reals) -> "tuple[Network, Reals]":
        """Return derivatives by weights, and by points, from layers and those by log odds."""
        to_b = self.last.T @ to_odds
        inner = np.where(b > a, to_b, _SLOPE * to_b)
        to_a = self.second.T @ inner + to_b
        outer = np.where(a > 0, to_a, _SLOPE * to_a)
        by_weights = Network(
            outer @ points.T, outer.sum(axis=1, keepdims=True),
            inner @ a.T, inner.sum(axis=1, keepdims=True),
            to_odds @ b.T, to_odds.sum(axis=1, keepdims=True),
        )  # fmt: skip
        return by_weights, self.first.T @ outer


def _rectified(values: Reals) -> Reals:
    rectified: Reals = np.maximum(values, _SLOPE * values)
    return rectified


class NetState(NamedTuple):
    """What is learned: a network, points (d, K), and log shares up to a constant, (K,)."""

    network: Network
    points: Reals
    shares: Reals

    @property
    def log_shares(self) -> Reals:
        """Log shares of the points, (K,)."""
        shifted = self.shares - self.shares.max()
        log_shares: Reals = shifted - np.log(np.exp(shifted).sum())
        return log_shares


def memberships(joint: Reals) -> Reals:
    """Replace log share times density (n, K) by class probabilities; return log densities (n,)."""
    most = joint.max(axis=1, keepdims=True)
    joint -= most
    np.exp(joint, out=joint)
    totals = joint.sum(axis=1, keepdims=True)
    joint /= totals
    log_densities: Reals = (most + np.log(totals))[:, 0]
    return log_densities


def gradient(
    state: NetState, cells: TreeCells, features: Features, weights: Reals
) -> tuple[float, NetState]:
    """Return the log density of weighted rows, and its derivatives by all that is learned."""
    a, b, log_odds = state.network.layers(state.points)
    log_tables, log_shares = cells.log_tables(log_odds), state.log_shares
    joint = features @ (cells.expand.T @ log_tables) + log_shares
    log_densities = memberships(joint)
    joint *= weights[:, np.newaxis]
    counts = cells.expand @ (features.T @ joint)
    of_blocks = (cells.sums @ counts)[cells.block[cells.coded]]
    to_odds = counts[cells.coded] - of_blocks * np.exp(log_tables[cells.coded])
    network, points = state.network.back(state.points, a, b, to_odds)
    shares = joint.sum(axis=0) - weights.sum() * np.exp(log_shares)
    return float(weights @ log_densities), NetState(network, points, shares)
