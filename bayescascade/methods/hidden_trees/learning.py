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
from bayescascade.base.watch import watch_in_use
from bayescascade.data.splitting import hold_out
from bayescascade.data.table import Table
from bayescascade.methods.hidden_trees.density import HiddenDensity
from bayescascade.methods.hidden_trees.em import EPOCHS, HiddenTrees, epochs, pass_up, started
from bayescascade.methods.mixtures.choosing import STARTS
from bayescascade.methods.mixtures.em import EMSettings as MixtureSettings, Indicators, climb

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


def choose(table: Table, seed: int, most_operations: float) -> HiddenSettings | None:
    """Return settings by held-out rows; None if that is too much work or there are too few rows.

    most_operations: of `choose` and `fitted` together, about 3e10 per second.
    """
    n = table.n_distinct
    if n < _FEWEST_ROWS or np.count_nonzero(table.schema.n_levels > 1) < 2:
        return None
    m, h = (3, 16) if table.total_weight < _FEW_ROWS else (1, 32)
    of_epoch = table.schema.n_columns * (12.0 * m * h * h * n + 20 * _OF_COLUMN)
    n_tried = min(len(_SMOOTHINGS), int(most_operations / (of_epoch * EPOCHS)) - 1)
    if n_tried < 1:
        return None
    own, others = hold_out(table, np.random.default_rng(seed))
    rows = Indicators.of(own)
    found: list[tuple[float, HiddenSettings]] = []
    for a in _SMOOTHINGS[:n_tried]:
        if a != _SMOOTHINGS[2] or found[0][0] > found[1][0]:
            found.append(_scored(rows, others, HiddenSettings(m, h, a, EPOCHS), seed))
    return max(found)[1]


def fitted(table: Table, settings: HiddenSettings, seed: int) -> HiddenDensity:
    """Return the density of a table by these settings."""
    with single_threaded():
        every = _epochs(Indicators.of(table), settings, seed)
        trees = next(islice(every, settings.n_epochs - 1, None))
    return HiddenDensity.of(table.schema, trees)


def _scored(
    rows: Indicators, others: Table, settings: HiddenSettings, seed: int
) -> tuple[float, HiddenSettings]:
    """Return the best mean log density of other rows, without widths, and its number of epochs."""
    codes, best, n_worse = others.codes.astype(np.int32), (-np.inf, settings), 0
    with single_threaded():
        for i, trees in enumerate(_epochs(rows, settings, seed)):
            scores = np.logaddexp.reduce(pass_up(trees, codes)[2]) - np.log(settings.n_members)
            score = float(np.average(scores, weights=others.weights))
            n_worse = 0 if score > best[0] + _LEAST_GAIN else n_worse + 1
            best = max(best, (score, settings._replace(n_epochs=i + 1)))
            if n_worse == _PATIENCE:
                break
    return best


def _epochs(rows: Indicators, settings: HiddenSettings, seed: int) -> Iterator[HiddenTrees]:
    """Yield the trees after each epoch, from mixtures of random classes."""
    rng, watch = np.random.default_rng(seed), watch_in_use()
    of_start = MixtureSettings("independent", _OF_START * settings.smoothing, settings.n_states)
    mixtures = []
    for _ in range(settings.n_members):
        belongs = STARTS["random"](rows, settings.n_states, rng, watch.is_over)
        mixtures.append(climb(rows, of_start, belongs, _STEPS, 1e-9, watch.is_over).components)
    yield from epochs(rows, started(rows, mixtures), settings.smoothing, rng)
