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
from bayescascade.base.watch import check_time, last_of
from bayescascade.data.splitting import hold_out, n_hold_outs
from bayescascade.data.table import Table
from bayescascade.methods.density.continuous.density import ContinuousDensity
from bayescascade.methods.density.continuous.network import (
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
from bayescascade.methods.density.mixtures.em import EMSettings, log_cells

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

    @property
    def at_start(self) -> "ContinuousSettings":
        """Those of the start: nearly a tree of columns."""
        return self._replace(n_steps=0, n_refining_steps=0)

    @property
    def as_classes(self) -> EMSettings:
        """Kind and number of points; there is no smoothing."""
        return EMSettings("continuous", np.nan, self.n_points)


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
    score: float  # of held-out rows


def _steps(
    start: NetState, phase: _Phase, n_steps: int, decay: float, data: _Data,
    rng: np.random.Generator,
) -> Iterator[NetState]:  # fmt: skip
    """Yield the start, and the state after each step of a phase; later steps change it in place."""
    adam, fresh, batches = _Adam(start, phase, decay), _sobol(rng), data.batches(rng)
    equal = np.zeros(N_FRESH, np.float32)
    yield start
    for step in range(n_steps):
        check_time()
        state = adam.state(start.points, start.shares)
        if not phase.is_refining:
            state = NetState(state.network, _normal(fresh, N_FRESH), equal)
        _, slopes = gradient(state, data.cells, *next(batches))
        adam.climb(slopes, phase.rate_at(step, n_steps))
        yield adam.state(start.points, start.shares)


def _climb(states: Iterator[NetState], n_steps: int, held: _Data) -> _Best:
    """Return the best state of a phase by held-out rows."""
    n_between, waited = max(1, n_steps // _N_CHECKS), 0
    start = next(states)
    best = _Best(start, 0, held.score(start))
    for step, state in enumerate(states, start=1):
        if step % n_between == 0:
            score = held.score(state)
            waited = 0 if score > best.score + _LEAST_GAIN else waited + 1
            if score > best.score:
                own = NetState(Network(*map(np.copy, state.network)), *map(np.copy, state[1:]))
                best = _Best(own, step, score)
            if waited >= _PATIENCE:
                break
    return best


def _sobol(rng: np.random.Generator) -> Any:
    """Return a scrambled Sobol sequence: each 2^m points in turn cover the cube evenly."""
    from scipy.stats import qmc  # takes a second

    return qmc.Sobol(N_DIMS, scramble=True, rng=rng)


def _normal(sequence: Any, n: int) -> Reals:
    """Return the next n points, (N_DIMS, n) float32, as of a standard normal."""
    drawn = sequence.random(1 << (n - 1).bit_length())[:n]  # it wants a power of two
    points: Reals = ndtri(drawn.T.clip(_EDGE, 1 - _EDGE)).astype(np.float32)
    return np.ascontiguousarray(points)


def _start(
    tree: tuple[TreeCells, Reals], settings: ContinuousSettings, seed: int
) -> tuple[NetState, list[np.random.Generator]]:
    """Return a network near the log odds of a tree, at points, and a generator for each phase."""
    drawn_by, *by = np.random.default_rng(seed).spawn(3)
    network = Network.random(tree[1], N_DIMS, drawn_by)
    points = _normal(_sobol(drawn_by), settings.n_points)
    return NetState(network, points, np.zeros(settings.n_points, np.float32)), by


def _scored(
    tree: tuple[TreeCells, Reals], settings: ContinuousSettings, table: Table, held: Table,
    seed: int,
) -> tuple[float, ContinuousSettings]:  # fmt: skip
    """Return the best mean log density of held-out rows, and the steps of both phases to it."""
    data, scored = _Data.of(tree[0], table), _Data.of(tree[0], held)
    (n_steps, n_refining, decay, _), (start, (first_by, then_by)) = (
        settings, _start(tree, settings, seed)
    )  # fmt: skip
    log_volume = float(np.average(log_cells(held), weights=held.weights))
    with single_threaded():
        states = _steps(start, _AT_FRESH, n_steps, decay, data, first_by)
        first = _climb(states, n_steps, scored)
        states = _steps(first.state, _AT_OWN, n_refining, decay, data, then_by)
        best = _climb(states, n_refining, scored)
    found = settings._replace(n_steps=first.n_steps, n_refining_steps=best.n_steps)
    return best.score - log_volume, found


def _operations(cells: TreeCells, n_points: int, n_held: float) -> float:
    """Return the number of multiplications, or their equal, to choose and to learn."""
    n_features = cells.expand.shape[1] if cells.is_dense else DENSE_UP_TO * cells.sizes.size
    of_network = 6 * N_UNITS * (cells.coded.size + N_UNITS)
    of_step = 4 * BATCH * n_features + of_network + 40 * cells.block.size + 30 * BATCH
    of_row = 2 * n_features + 20
    n_columns = _STEPS * N_FRESH + _REFINING_STEPS * n_points
    # two decays are tried, and a quarter more rows learn
    return float(3.25 * n_columns * of_step + 4 * _N_CHECKS * n_points * n_held * of_row)


def is_worth(table: Table) -> bool:
    """Return whether there are 30,000 cells in distinct rows, such as 1,500 rows of 20 columns.

    With fewer, mixtures of a few classes and cascades score better. Wide tables need fewer rows,
    because each of them says more about its point.
    """
    n, sizes = table.n_distinct, table.schema.n_levels
    return bool(n >= _FEWEST_ROWS and n * np.count_nonzero(sizes > 1) >= _FEWEST_CELLS)


def usual(
    table: Table, most: float, n_points: int | None = None, _: float | None = None,
    *, cells: TreeCells | None = None,
) -> ContinuousSettings:  # fmt: skip
    """Return settings for a table, as they are without held-out rows; fewer steps if it is wide.

    most: operations of `choose` and `fitted` together, about 3e10 per second.
    """
    cells = cells or chow_liu(table)[0]
    if n_points is None:
        n_points = min(_MOST_POINTS, 2 ** int(np.log2(_MOST_PROBABILITIES / cells.block.size)))
        n_points = max(n_points, _FEWEST_POINTS)
    share = min(1.0, most / _operations(cells, n_points, table.n_distinct / n_hold_outs(table)))
    n_steps, n_refining = (max(1, round(share * n)) for n in (_STEPS, _REFINING_STEPS))
    return ContinuousSettings(n_steps, n_refining, _DECAYS[0], n_points)


def choose(
    table: Table, seed: int, most: float, n_points: int | None = None, _: float | None = None,
    *, is_whole: bool = False,
) -> list[tuple[float, ContinuousSettings]]:  # fmt: skip
    """Return settings with the mean log density of held-out rows, the best first.

    There are none without such rows. is_whole: none either if all steps would exceed `most`, or
    all points the size of a file, rather than fewer; or if a single tree is the best.
    """
    n_pairs = float(table.schema.n_levels.sum()) ** 2
    own, others = hold_out(table, np.random.default_rng(seed))
    if min(own.n_distinct, others.n_distinct) == 0:
        return []
    if is_whole and 2.0 * table.n_distinct * n_pairs > most:
        return []
    tree = chow_liu(own)
    limits = usual(table, most, n_points, cells=tree[0])
    is_too_large = limits.n_points * tree[0].block.size > _MOST_PROBABILITIES
    if is_whole and (limits.n_steps < _STEPS or is_too_large):
        return []
    tried = list[tuple[float, ContinuousSettings]]()
    for decay in _DECAYS:
        tried.append(_scored(tree, limits._replace(decay=decay), own, others, seed))
        if tried[-1][1].n_steps > _EARLY * limits.n_steps:
            break
    more = table.n_distinct / own.n_distinct  # for as many epochs
    found = [
        (score, one._replace(
            n_steps=round(more * one.n_steps), n_refining_steps=round(more * one.n_refining_steps)
        ))
        for score, one in sorted(tried, reverse=True)
    ]  # fmt: skip
    is_tree = found[0][1].n_steps + found[0][1].n_refining_steps == 0
    return [] if is_whole and is_tree else found


def fitted(
    table: Table, settings: ContinuousSettings, seed: int
) -> tuple[ContinuousDensity, KeyboardInterrupt | None]:
    """Return the density of a table by these settings, and what ended the learning early."""
    tree = chow_liu(table)
    data, ended = _Data.of(tree[0], table), None
    (n_steps, n_refining, decay, _), (state, (first_by, then_by)) = (
        settings, _start(tree, settings, seed)
    )  # fmt: skip
    with single_threaded():
        state, ended = last_of(_steps(state, _AT_FRESH, n_steps, decay, data, first_by))
        if ended is None:
            state, ended = last_of(_steps(state, _AT_OWN, n_refining, decay, data, then_by))
        return ContinuousDensity.of(table.schema, table.total_weight, tree[0], state), ended
