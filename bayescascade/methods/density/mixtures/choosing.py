"""Choice of the number, kind and smoothing of classes by the density of held-out rows.

For each kind the number of classes grows as long as the score improves, with some patience. Then
smoothing and number move alternately to neighbors on their grids. Tables with fewer than 2,000 rows
are split into five folds; for larger ones a fifth is held out. A trial ends after the fold in which
it is worse than the best of its kind by more than a standard error. The operations of each trial
are counted beforehand, so the choice depends on rows and seed, not on the clock.

EM starts from boxes, from distant rows, or at random.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import product
from math import nan
from threading import Event
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from bayescascade.base.arrays import Flags, Floats
from bayescascade.base.store import INLINE, Within
from bayescascade.base.watch import Watch
from bayescascade.data.splitting import split_rows, with_weights
from bayescascade.data.table import Table
from bayescascade.methods.density.mixtures.em import (
    Climb,
    EMSettings,
    Indicators,
    climb,
    log_cells,
    memberships,
)

SMOOTHINGS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
NUMBERS = (1, 2, 3, 5, 8, 12, 20, 30, 50, 80)

_FIRST = 4.0  # smoothing while the number grows
_PATIENCE = 2  # worse numbers of classes before the growth ends
_N_FOLDS, _MANY_ROWS = 5, 2_000
_N_STARTS = 2  # for each candidate and fold
_ITERATIONS = {"independent": 40, "dependent": 15}  # approximate number for EM
_OF_BOXES, _OF_BOX = 4.0, 2_000.0  # times squared codes, for each row and each box of a start
_OF_STEP = 1e7  # for any number of rows
_MOST_ITERATIONS, _LOOSER = 50, 3.0  # for candidates; factor of the tolerance

_CERTAIN = 0.9  # initial probability of a row's class in a cluster


class Scored(NamedTuple):
    """Settings, and the mean log density of held-out rows, nats; NaN without such rows."""

    settings: Annotated[EMSettings, INLINE]
    held_out: Annotated[float, Within(null=nan)]


@dataclass
class MixtureChooser:
    """Compares settings by held-out rows; see the module."""

    table: Table
    # candidate kinds, smoothings and numbers of components
    grid: tuple[Sequence[str], Sequence[float], Sequence[int]]
    seed: np.random.SeedSequence
    max_iter: int  # this and `tol` are for `climb` on all rows; candidates need fewer steps
    tol: float
    n_threads: int
    watch: Watch
    report: Callable[[float], None]  # called with the finished share, from 0 to 1
    most_steps: float  # operations for all candidates
    known: dict[EMSettings, float] = field(init=False, default_factory=dict)
    # The folds, (learned, held out); none if there are too few rows or no choice.
    split: list[tuple[Table, Table]] = field(init=False, default_factory=list)
    # For each tried setting, (n_folds,): log density of all held-out rows in each fold, nats.
    of_folds: dict[EMSettings, Floats] = field(init=False, default_factory=dict)
    # For each of these, (n,): the log densities of all held-out rows, nats.
    _of_rows: dict[EMSettings, Floats] = field(init=False, default_factory=dict)
    is_interrupted: bool = field(init=False, default=False)

    def choose(self) -> list[Scored]:
        """Return the candidates, the best first; Ctrl-C ends it once there is one."""
        split_by, self._seed = self.seed.spawn(2)
        kinds, smoothings, numbers = self.grid
        numbers = [n for n in numbers if n <= self.table.n_distinct]
        first = min(smoothings, key=lambda a: abs(np.log(a / _FIRST)))
        only = EMSettings(kinds[0], first, numbers[0])
        if max(map(len, self.grid)) == 1:
            return [Scored(only, np.nan)]
        self.split = list(self._split(np.random.default_rng(split_by)))
        self._folds = [
            (Indicators.of(learned), Indicators.of(held)) for learned, held in self.split
        ]
        self._spent = 0.0
        if not self._folds:
            return [Scored(only, np.nan)]
        try:
            for kind in kinds:
                self._climb_grid(kind, first, list(smoothings), numbers)
        except KeyboardInterrupt:
            if not self.of_folds:
                raise
            self.is_interrupted = True
        found = [Scored(one, self.known[one]) for one in self.of_folds]
        found = found or [Scored(only, np.nan)]
        return sorted(found, key=lambda one: -one.held_out)

    def _split(self, rng: np.random.Generator) -> Iterator[tuple[Table, Table]]:
        weights, n_held = self.table.weights, 0.0
        for held in split_rows(weights, _N_FOLDS, rng):
            if held.any() and (held < weights).any() and n_held < _MANY_ROWS / _N_FOLDS:
                if self.table.total_weight >= _MANY_ROWS:
                    n_held = np.inf
                yield with_weights(self.table, weights - held), with_weights(self.table, held)

    def _climb_grid(
        self, kind: str, smoothing: float, smoothings: list[float], numbers: list[int]
    ) -> None:
        """Grow the number of classes, then move to better neighbors as long as there are any."""
        best, waited = EMSettings(kind, smoothing, numbers[0]), 0
        for n in numbers:
            settings = EMSettings(kind, smoothing, n)
            is_worse = self._worth(settings, best) < self._worth(best)
            waited = waited + 1 if is_worse else 0
            best = best if is_worse else settings
            if waited >= _PATIENCE:
                break
        is_moving = True
        while is_moving:
            is_moving = False
            for step in (2, -2, 1, -1):
                here = smoothings.index(best.smoothing) + step
                if 0 <= here < len(smoothings):
                    other = best._replace(smoothing=smoothings[here])
                    if self._worth(other, best) > self._worth(best):
                        best, is_moving = other, True
            for step in (1, -1):
                here = numbers.index(best.n_components) + step
                if 0 <= here < len(numbers):
                    other = best._replace(n_components=numbers[here])
                    if self._worth(other, best) > self._worth(best):
                        best, is_moving = other, True

    def _worth(self, settings: EMSettings, rival: EMSettings | None = None) -> float:
        """Return the mean log density of held-out rows, -inf if it takes too many operations.

        If a rival is better by more than a standard error in the first folds, these are all.
        """
        if settings in self.known:
            return self.known[settings]
        rows, n_dense = self._folds[0][0].dense.shape
        n = settings.n_components
        if settings.kind == "dependent":  # separate products for each class
            steps = ((2.0 * n_dense + 100) * rows * n_dense + _OF_STEP) * n
        else:
            steps = 4.0 * rows * n_dense * n + _OF_STEP
        steps *= _ITERATIONS[settings.kind]
        if settings.n_components > 1:  # for starts by boxes
            steps += n_dense**2 * (_OF_BOXES * rows + _OF_BOX * settings.n_components)
        steps *= _N_STARTS
        is_too_much = self._spent + steps * len(self._folds) > self.most_steps
        self.known[settings] = -np.inf
        if (is_too_much or self.watch.is_over()) and self._spent > 0:
            return -np.inf
        of_rows = np.empty(0)
        beside = self._of_rows.get(rival or settings, of_rows)
        every = np.concatenate([held.weights for _, held in self._folds])
        for (seen, held), (_, table) in zip(self._folds, self.split, strict=True):
            self._spent += steps
            (found,), is_interrupted = climb_all(
                [seen], settings, self._seed, _N_STARTS, min(self.max_iter, _MOST_ITERATIONS),
                _LOOSER * self.tol, self.n_threads, self.watch,
            )  # fmt: skip
            if is_interrupted:
                raise KeyboardInterrupt
            best = max(found, key=lambda one: one.objective[-1])
            log_densities = memberships(best.components.log_joint(held))[1] - log_cells(table)
            of_rows = np.concatenate([of_rows, log_densities])
            if rival is not None and of_rows.size < beside.size:
                weights, gains = every[: of_rows.size], of_rows - beside[: of_rows.size]
                gain = float(np.average(gains, weights=weights))
                if gain < -np.sqrt(weights @ (gains - gain) ** 2) / weights.sum():
                    self.known[settings] = self.known[rival] + gain
                    return self.known[settings]
        self._of_rows[settings] = of_rows
        starts = np.cumsum([0] + [held.weights.size for _, held in self._folds[:-1]])
        self.of_folds[settings] = np.add.reduceat(every * of_rows, starts)
        self.known[settings] = float(np.average(of_rows, weights=every))
        self.report(min(1.0, self._spent / self.most_steps))
        return self.known[settings]


def climb_all(
    tables: Sequence[Indicators],
    settings: EMSettings,
    seed: np.random.SeedSequence,
    n_starts: int,
    max_iter: int,
    tol: float,
    n_threads: int,
    watch: Watch,
) -> tuple[list[list[Climb]], bool]:
    """Return the results of EM from each start, for each table, and whether Ctrl-C came.

    Each start has its own seed, so threads have no effect; the first runs even without time.
    """
    if settings.n_components == 1:
        n_starts = 1
    entropy, key, stopped = seed.entropy, seed.spawn_key, Event()

    def is_over() -> bool:
        return stopped.is_set() or watch.is_over()

    def run(task: tuple[Indicators, int]) -> Climb | None:
        rows, i = task
        if i > 0 and is_over():
            return None
        rng = np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(*key, i)))
        start = tuple(STARTS.values())[i % len(STARTS)]
        belongs = start(rows, settings.n_components, rng, is_over)
        return climb(rows, settings, belongs, max_iter, tol, is_over)

    with ThreadPoolExecutor(n_threads) as pool:
        futures = [pool.submit(run, task) for task in product(tables, range(n_starts))]
        try:
            wait(futures)
        except KeyboardInterrupt:
            stopped.set()
            wait(futures)
        finally:
            stopped_early = stopped.is_set()
            stopped.set()  # stops all threads after any exception
    found = [one.result() for one in futures]
    parts = (found[i : i + n_starts] for i in range(0, len(found), n_starts))
    return [[one for one in part if one is not None] for part in parts], stopped_early


def _grown(
    rows: Indicators, n_components: int, _: np.random.Generator, is_over: Callable[[], bool]
) -> Floats:
    """Start from boxes: repeatedly split off the level with the largest evidence gain."""
    alpha, places = 1.0 / np.bincount(rows.column)[rows.column], rows.grown
    with rows.growing:
        if not places:
            places.append(np.zeros(rows.weights.size, int))
            rows.splits[0] = _best_split(rows, places[0] == 0, alpha)
        while len(places) < n_components:
            box = max(rows.splits, key=lambda one: rows.splits[one][0])
            gain, level = rows.splits[box]
            if gain == -np.inf or is_over():
                break
            j, place = rows.column[level], places[-1].copy()
            is_split = (place == box) & (rows.codes[j] == level - rows.starts[j])
            place[is_split] = len(places)
            for one in (box, len(places)):
                rows.splits[one] = _best_split(rows, place == one, alpha)
            places.append(place)
    return _clustered(places[min(len(places), n_components) - 1], n_components)


def _best_split(rows: Indicators, inside: Flags, alpha: Floats) -> tuple[float, int]:
    """Return the largest gain, -inf if there is none, and its level."""
    pairs = rows.pairs(np.where(inside, rows.weights, 0.0))
    counts = pairs.diagonal()

    def evidence(counts: Floats) -> Floats:
        terms: Floats = (gammaln(counts + alpha) - gammaln(alpha)).sum(axis=-1)
        terms -= gammaln(rows.sums(counts) + 1.0).sum(axis=-1)
        return terms

    gains = evidence(pairs) + evidence((counts - pairs).clip(min=0.0)) - evidence(counts)
    total = float(rows.sums(counts)[0])
    gains[(counts < 1e-6 * total) | (counts > (1 - 1e-6) * total)] = -np.inf
    return float(gains.max()), int(gains.argmax())


def _near(
    rows: Indicators, n_components: int, rng: np.random.Generator, is_over: Callable[[], bool]
) -> Floats:
    """Start from distant rows, drawn as in k-means++, each with its nearest rows."""
    nearest, place = np.ones(rows.weights.size), np.zeros(rows.weights.size, int)
    for k in range(n_components):
        chances = nearest * rows.weights
        if not chances.sum() > 0 or (k > 0 and is_over()):
            break
        row = rng.choice(chances.size, p=chances / chances.sum())
        distances = (rows.codes != rows.codes[:, [row]]).sum(axis=0).astype(float)
        place = np.where(distances < nearest, k, place) if k else place
        nearest = np.minimum(nearest, distances) if k else distances
    return _clustered(place, n_components)


def _random(
    rows: Indicators, n_components: int, rng: np.random.Generator, _: Callable[[], bool]
) -> Floats:
    """Start from random classes."""
    return rng.dirichlet(np.full(n_components, 0.5), size=rows.weights.size)


def _clustered(place: NDArray[np.integer], n_components: int) -> Floats:
    belongs = np.full((place.size, n_components), (1 - _CERTAIN) / n_components)
    belongs[np.arange(place.size), place] += _CERTAIN
    return belongs


STARTS = {"grown": _grown, "near": _near, "random": _random}
"""The starts of EM."""
