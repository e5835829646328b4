"""Learning of trees of hidden states: settings by held-out rows, then all rows for as many epochs.

Three members of 16 states each are learned from small tables. From larger ones one member of 32
states is, because more states gain more than the average, and cost less. A fifth of the rows, at
most 3,000, is held out to choose the smoothing and the number of epochs, for the average of all
members: one alone would need fewer epochs. The members start from mixtures of random classes.
"""

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np

from bayescascade.base.threads import single_threaded
from bayescascade.base.watch import last_of, watch_in_use
from bayescascade.data.splitting import hold_out
from bayescascade.data.table import Table
from bayescascade.methods.density.hidden_trees.density import HiddenDensity
from bayescascade.methods.density.hidden_trees.em import (
    EPOCHS,
    HiddenTrees,
    epochs,
    pass_up,
    started,
)
from bayescascade.methods.density.mixtures.choosing import STARTS
from bayescascade.methods.density.mixtures.em import EMSettings, Indicators, climb, log_cells

_FEW_ROWS = 3_000  # by weight
_SMOOTHINGS = (1.0, 0.3, 4.0)  # the last if the second is worse than the first
_PATIENCE, _LEAST_GAIN = 4, 1e-3  # epochs without this gain, nats
_STEPS, _OF_START = 20, 2.0  # of EM for a mixture; its smoothing, times that of the trees
_FEWEST_ROWS = 10  # distinct
_OF_COLUMN = 1e6  # operations of a column in a batch, at least, as Python takes time


class HiddenSettings(NamedTuple):
    """The settings of trees of hidden states."""

    n_members: int
    n_states: int
    smoothing: float
    n_epochs: int

    @property
    def at_start(self) -> "HiddenSettings":
        """Those of the start: a mixture of classes."""
        return self._replace(n_epochs=0)

    @property
    def as_classes(self) -> EMSettings:
        """Kind, smoothing and number of states."""
        return EMSettings("hidden", self.smoothing, self.n_states)


def is_worth(table: Table) -> bool:
    """Return whether there are enough rows, and columns that could depend on each other."""
    n_columns = np.count_nonzero(table.schema.n_levels > 1)
    return bool(table.n_distinct >= _FEWEST_ROWS and n_columns >= 2)


def usual(
    table: Table, most: float, n_states: int | None = None, smoothing: float | None = None
) -> HiddenSettings:
    """Return settings for a table, as they are without held-out rows, by those that are given."""
    del most  # there are no fewer epochs
    m, h = (3, 16) if table.total_weight < _FEW_ROWS else (1, 32)
    n_states = n_states or min(h, table.n_distinct)
    return HiddenSettings(m, n_states, smoothing or _SMOOTHINGS[0], EPOCHS)


def choose(
    table: Table, seed: int, most: float, n_states: int | None = None,
    smoothing: float | None = None, *, is_whole: bool = False,
) -> list[tuple[float, HiddenSettings]]:  # fmt: skip
    """Return settings with the mean log density of held-out rows, the best first.

    There are none without such rows. most: operations of this and of `fitted` together, about 3e10
    per second; is_whole: none either if one try would exceed them.
    """
    limits = usual(table, most, n_states, smoothing)
    m, h, _, _ = limits
    of_epoch = table.schema.n_columns * (12.0 * m * h * h * table.n_distinct + 20 * _OF_COLUMN)
    n_tried = int(most / (of_epoch * EPOCHS)) - 1
    own, others = hold_out(table, np.random.default_rng(seed))
    if (is_whole and n_tried < 1) or min(own.n_distinct, others.n_distinct) == 0:
        return []
    rows, found = Indicators.of(own), list[tuple[float, HiddenSettings]]()
    of_grid = _SMOOTHINGS if smoothing is None else (smoothing,)
    for i, a in enumerate(of_grid[: max(n_tried, 1)]):
        if i < 2 or found[0][0] > found[1][0]:
            found.append(_scored(rows, others, limits._replace(smoothing=a), seed))
    return sorted(found, reverse=True)


def fitted(
    table: Table, settings: HiddenSettings, seed: int
) -> tuple[HiddenDensity, KeyboardInterrupt | None]:
    """Return the density of a table by these settings, and what ended the learning early."""
    with single_threaded():
        every = _epochs(Indicators.of(table), settings, seed)
        trees, ended = last_of(islice(every, settings.n_epochs + 1))
        return HiddenDensity.of(table.schema, table.total_weight, trees), ended


def _scored(
    rows: Indicators, others: Table, settings: HiddenSettings, seed: int
) -> tuple[float, HiddenSettings]:
    """Return the best mean log density of other rows, and its number of epochs."""
    codes, best, n_worse = others.codes.astype(np.int32), (-np.inf, settings), 0
    log_volume = float(np.average(log_cells(others), weights=others.weights))
    with single_threaded():
        for i, trees in enumerate(islice(_epochs(rows, settings, seed), 1, None), start=1):
            scores = np.logaddexp.reduce(pass_up(trees, codes)[2]) - np.log(settings.n_members)
            score = float(np.average(scores, weights=others.weights)) - log_volume
            n_worse = 0 if score > best[0] + _LEAST_GAIN else n_worse + 1
            best = max(best, (score, settings._replace(n_epochs=i)))
            if n_worse == _PATIENCE:
                break
    return best


def _epochs(rows: Indicators, settings: HiddenSettings, seed: int) -> Iterator[HiddenTrees]:
    """Yield the trees at the start, which are mixtures of random classes, and after each epoch."""
    rng, watch = np.random.default_rng(seed), watch_in_use()
    of_start = EMSettings("independent", _OF_START * settings.smoothing, settings.n_states)
    mixtures = []
    for _ in range(settings.n_members):
        belongs = STARTS["random"](rows, settings.n_states, rng, watch.is_over)
        mixtures.append(climb(rows, of_start, belongs, _STEPS, 1e-9, watch.is_over).components)
    trees = started(rows, mixtures)
    yield trees
    yield from epochs(rows, trees, settings.smoothing, rng)
