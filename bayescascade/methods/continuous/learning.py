"""Learning of a continuous mixture: Adam on batches of rows, each at fresh points; then at its own.

First the network learns at K points of a standard normal, which are the next ones of a scrambled
Sobol sequence for each batch of 256 rows. So it cannot adapt to any points, and the map from points
to log odds becomes smooth. Then more points are fixed, and learned as well as their shares, while
the network goes on at a tenth of the rate. Both phases have rates that decrease by a cosine.

A fifth of the rows, at most 3,000, is held out. Both phases end at their best log density, and all
rows then learn for as many epochs. If few steps are best, as in tables of few rows, a strong weight
decay is tried as well. A row that is heavier than others is split into several, because one heavy
row in a batch would lead all others.
D. Kingma and J. Ba, Adam: a method for stochastic optimization, ICLR (2015).
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from bayescascade.base.arrays import Floats, Integers, Reals
from bayescascade.base.threads import single_threaded
from bayescascade.base.watch import check_time
from bayescascade.data.splitting import hold_out
from bayescascade.data.table import Table
from bayescascade.methods.continuous.density import ContinuousDensity
from bayescascade.methods.continuous.network import (
    DENSE_UP_TO,
    N_UNITS,
    Features,
    NetState,
    Network,
    TreeCells,
    chow_liu,
    gradient,
    memberships,
)

N_DIMS, N_FRESH, BATCH = 4, 512, 256

_STEPS, _REFINING_STEPS = 1_200, 500
_N_CHECKS, _PATIENCE = 25, 6  # scores of held-out rows in a phase; worse ones before it ends
_LEAST_GAIN = 1e-3  # nats, to wait on
_NETWORK_RATE = 0.1  # factor, while points and shares learn
_EDGE = 1e-6  # of the unit cube
_FIRST_BETA, _SECOND_BETA, _TINY = 0.9, 0.999, 1e-8
_DECAYS, _EARLY = (0.01, 5.0), 0.5  # the next one is tried if this share of the steps was enough
_HEAVIEST = 1.0  # times the mean weight
_FEWEST_POINTS, _MOST_POINTS, _MOST_PROBABILITIES = 64, 1024, 3_500_000  # 20 MB in a file
_FEWEST_CELLS, _FEWEST_ROWS = 30_000, 100  # of distinct rows; columns of one level do not count


class ContinuousSettings(NamedTuple):
    """The settings of a continuous mixture: numbers of steps, weight decay, number of points."""

    n_steps: int
    n_refining_steps: int
    decay: float
    n_points: int


class _Data(NamedTuple):
    """Complete rows as features."""

    cells: TreeCells
    features: Features
    weights: Floats

    @classmethod
    def of(cls, cells: TreeCells, table: Table) -> "_Data":
        return cls(cells, cells.features(table.codes.astype(np.int64)), table.weights)

    def part(self, rows: Integers) -> Features:
        """Return the features of some rows, float32."""
        return self.features[rows].astype(np.float32, copy=False)

    def score(self, state: NetState) -> float:
        """Return the mean log density, without widths."""
        log_tables = self.cells.log_tables(state.network.layers(state.points)[2])
        of_features, total = self.cells.expand.T @ log_tables, 0.0
        for i in range(0, self.weights.size, BATCH):
            rows = np.arange(i, min(i + BATCH, self.weights.size))
            joint = self.part(rows) @ of_features + state.log_shares
            total += float(self.weights[rows] @ memberships(joint).astype(np.float64))
        return total / float(self.weights.sum())

    def batches(self, rng: np.random.Generator) -> Iterator[tuple[Features, Reals]]:
        """Yield features of batches of rows, and their weights of mean 1/BATCH over all."""
        parts = np.ceil(self.weights / (_HEAVIEST * self.weights.mean())).astype(np.int64)
        rows = np.repeat(np.arange(parts.size), parts)
        weights = (self.weights / parts)[rows]
        size = min(BATCH, rows.size)
        weights = (weights / weights.sum() * (rows.size / size)).astype(np.float32)
        while True:
            order = rng.permutation(rows.size)
            for i in range(0, rows.size - size + 1, size):
                own = order[i : i + size]
                yield self.part(rows[own]), weights[own]


class _Phase(NamedTuple):
    """What learns in a phase, and how fast."""

    rate: float
    least_rate: float  # factor at the end
    warm_up: int  # steps of growing rate
    is_refining: bool  # whether points and shares learn, and the network more slowly

    def rate_at(self, step: int, n_steps: int) -> float:
        """Return the rate of a step."""
        falling = (1 - self.least_rate) * 0.5 * (1 + np.cos(np.pi * step / n_steps))
        return self.rate * min(1.0, (step + 1) / self.warm_up) * float(self.least_rate + falling)


_AT_FRESH = _Phase(0.01, 0.02, 100, is_refining=False)
_AT_OWN = _Phase(0.02, 0.0, 1, is_refining=True)


class _Adam:
    """Adam with decoupled weight decay, for arrays with their own factors of the rate."""

    def __init__(self, state: NetState, phase: _Phase, decay: float) -> None:
        slow = _NETWORK_RATE if phase.is_refining else 1.0
        self.arrays = [own.copy() for own in state.network]
        self._factors, self._decays = [slow] * len(self.arrays), [decay, 0.0] * 3
        if phase.is_refining:
            self.arrays += [state.points.copy(), state.shares.copy()]
            self._factors, self._decays = [*self._factors, 1.0, 1.0], [*self._decays, 0.0, 0.0]
        self._means = [np.zeros_like(own) for own in self.arrays]
        self._squares = [np.zeros_like(own) for own in self.arrays]
        self._t = 0

    def climb(self, slopes: NetState, rate: float) -> None:
        """Move the arrays uphill, in place."""
        self._t += 1
        of_mean, of_square = 1 - _FIRST_BETA**self._t, np.sqrt(1 - _SECOND_BETA**self._t)
        given = [*slopes.network, slopes.points, slopes.shares][: len(self.arrays)]
        every = zip(
            self.arrays, self._factors, self._decays, self._means, self._squares, given, strict=True
        )
        for own, factor, decay, mean, square, slope in every:
            mean += (1 - _FIRST_BETA) * (slope - mean)
            square += (1 - _SECOND_BETA) * (slope * slope - square)
            own *= 1 - rate * factor * decay
            own += (rate * factor / of_mean) * mean / (np.sqrt(square) / of_square + _TINY)

    def state(self, points: Reals, shares: Reals) -> NetState:
        """Return what is learned, at these points unless they are learned."""
        return NetState(Network(*self.arrays[:6]), *(self.arrays[6:] or (points, shares)))


class _Best(NamedTuple):
    """The best state of a phase."""

    state: NetState
    n_steps: int
    score: float  # of held-out rows; NaN without any


def _climb(
    start: NetState, phase: _Phase, n_steps: int, decay: float, data: _Data, held: _Data | None,
    rng: np.random.Generator,
) -> _Best:  # fmt: skip
    """Return the best state of a phase by held-out rows, or the last one without them."""
    adam, fresh, batches = _Adam(start, phase, decay), _sobol(rng), data.batches(rng)
    equal, waited = np.zeros(N_FRESH, np.float32), 0
    best = _Best(start, 0, held.score(start) if held else np.nan)
    n_between = max(1, n_steps // _N_CHECKS)
    for step in range(n_steps):
        check_time()
        state = adam.state(start.points, start.shares)
        if not phase.is_refining:
            state = NetState(state.network, _normal(fresh, N_FRESH), equal)
        _, slopes = gradient(state, data.cells, *next(batches))
        adam.climb(slopes, phase.rate_at(step, n_steps))
        if held and (step + 1) % n_between == 0:
            state = adam.state(start.points, start.shares)
            score = held.score(state)
            waited = 0 if score > best.score + _LEAST_GAIN else waited + 1
            if score > best.score:
                state = NetState(Network(*map(np.copy, state.network)), *map(np.copy, state[1:]))
                best = _Best(state, step + 1, score)
            if waited >= _PATIENCE:
                break
    return best if held else _Best(adam.state(start.points, start.shares), n_steps, np.nan)


def _sobol(rng: np.random.Generator) -> Any:
    """Return a scrambled Sobol sequence: each 2^m points in turn cover the cube evenly."""
    from scipy.stats import qmc  # takes a second

    return qmc.Sobol(N_DIMS, scramble=True, rng=rng)


def _normal(sequence: Any, n: int) -> Reals:
    """Return the next n points, (N_DIMS, n) float32, as of a standard normal."""
    points: Reals = ndtri(sequence.random(n).T.clip(_EDGE, 1 - _EDGE)).astype(np.float32)
    return np.ascontiguousarray(points)


def _learned(
    tree: tuple[TreeCells, Reals], settings: ContinuousSettings, table: Table, held: Table | None,
    seed: int,
) -> tuple[NetState, ContinuousSettings, float]:  # fmt: skip
    """Return the state after both phases, its settings, and the score of held-out rows."""
    cells, log_odds = tree
    drawn_by, first_by, then_by = np.random.default_rng(seed).spawn(3)
    data, scored = _Data.of(cells, table), None if held is None else _Data.of(cells, held)
    network = Network.random(log_odds, N_DIMS, drawn_by)
    points = _normal(_sobol(drawn_by), settings.n_points)
    start = NetState(network, points, np.zeros(settings.n_points, np.float32))
    n_steps, n_refining_steps, decay, _ = settings
    with single_threaded():
        first = _climb(start, _AT_FRESH, n_steps, decay, data, scored, first_by)
        own = first.state
        best = _climb(own, _AT_OWN, n_refining_steps, decay, data, scored, then_by)
    found = settings._replace(n_steps=first.n_steps, n_refining_steps=best.n_steps)
    return best.state, found, best.score


def _operations(cells: TreeCells, n_points: int, n_held: float) -> float:
    """Return the number of multiplications, or their equal, to choose and to learn."""
    n_features = cells.expand.shape[1] if cells.is_dense else DENSE_UP_TO * cells.sizes.size
    of_network = 6 * N_UNITS * (cells.coded.size + N_UNITS)
    of_step = 4 * BATCH * n_features + of_network + 40 * cells.block.size + 30 * BATCH
    of_row = 2 * n_features + 20
    n_columns = _STEPS * N_FRESH + _REFINING_STEPS * n_points
    # two decays are tried, and a quarter more rows learn
    return float(3.25 * n_columns * of_step + 4 * _N_CHECKS * n_points * n_held * of_row)


def choose(table: Table, seed: int, most_operations: float) -> ContinuousSettings | None:
    """Return settings by held-out rows; None if that is too much work or it is not worth it.

    It is not for fewer than 30,000 cells in distinct rows, such as 1,500 rows of 20 columns: there
    mixtures of a few classes and cascades score better. Wide tables need fewer rows, because each
    of them says more about its point. most_operations: of `choose` and `fitted` together, about
    3e10 per second.
    """
    sizes, n = table.schema.n_levels, table.weights.size
    is_small = n < _FEWEST_ROWS or n * np.count_nonzero(sizes > 1) < _FEWEST_CELLS
    if is_small or 2.0 * n * float(sizes.sum()) ** 2 > most_operations:
        return None
    own, others = hold_out(table, np.random.default_rng(seed))
    tree = chow_liu(own)
    n_points = min(_MOST_POINTS, 2 ** int(np.log2(_MOST_PROBABILITIES / tree[0].block.size)))
    n_operations = _operations(tree[0], n_points, others.weights.size)
    if n_points < _FEWEST_POINTS or n_operations > most_operations:
        return None
    tried = list[tuple[ContinuousSettings, float]]()
    for decay in _DECAYS:
        limits = ContinuousSettings(_STEPS, _REFINING_STEPS, decay, n_points)
        tried.append(_learned(tree, limits, own, others, seed)[1:])
        if tried[-1][0].n_steps > _EARLY * _STEPS:
            break
    best, _ = max(tried, key=lambda one: one[1])
    if best.n_steps + best.n_refining_steps == 0:  # the tree was the best
        return None
    n_steps, n_refining = (round(n / own.weights.size * steps) for steps in best[:2])
    return best._replace(n_steps=n_steps, n_refining_steps=n_refining)  # for as many epochs


def fitted(table: Table, settings: ContinuousSettings, seed: int) -> ContinuousDensity:
    """Return a continuous mixture of a table by these settings."""
    tree = chow_liu(table)
    state, _, _ = _learned(tree, settings, table, None, seed)
    return ContinuousDensity.of(table.schema, tree[0], state)
