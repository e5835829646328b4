r"""Whether scores differ by more than in pairs without a direction: randomization tests.

Two kinds of pairs have no direction: columns that are *independent*, and columns that are
*exchangeable* in a common unit, ``(x, y) ~ (y, x)``, as normal ones on a straight line are. A test
draws pairs of a kind from the rows at hand, and rejects it if no draw has scores that differ as
much. This keeps the margins of the columns, heavy tails and all, at any number of rows:

* independent: y is permuted;
* exchangeable: both columns get a common unit, and then x and y of each row change places or not,
  by a coin.

A direction needs that all tests reject. The common unit must be estimated, and no estimate suits
all columns: a standard deviation is an outlier's in heavy tails, and quartiles jump where the
middle is empty (two clusters, a circle). So exchangeability is tested twice, in units of standard
deviations and of quartiles. A unit may also be reversed, which no score notices: with standard
deviations, y is turned so that the columns rise together, and with quartiles, both so that they are
skewed to the right.

The tests end with the first draw that differs as much (Besag & Clifford 1991): most pairs without a
direction take a few draws. They also end where the rows differ by twice as much as the first
quarter of the draws.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from bayescascade.base.arrays import Floats

N_DRAWS = 99
"""Maximum number of draws of a test: its level is 1 / (1 + N_DRAWS), 1 %."""

MOST_ROWS = 500
"""Maximum number of rows of a test; of more rows, as many are drawn."""

_QUARTER = 24  # draws; a difference of twice their largest is called larger than all would be
_CLEARLY = 2.0

Difference = Callable[[Floats, Floats], float]
"""Returns the score of "x->y" less that of "y->x" for two columns; units do not change it."""

Draw = Callable[[np.random.Generator], tuple[Floats, Floats]]


def exceeds_chance(
    observed: float, x: Floats, y: Floats, difference: Difference, rng: np.random.Generator
) -> bool:
    """Return whether the observed difference is larger than in drawn pairs without a direction.

    x, y (n,) float64 that vary, n >= 20. Of more rows than `MOST_ROWS`, those that are drawn must
    also show the observed direction.
    """
    if len(x) > MOST_ROWS:
        kept = rng.choice(len(x), MOST_ROWS, replace=False)
        x, y, whole = x[kept], y[kept], observed
        observed = difference(x, y)
        if not observed * whole > 0:
            return False
    largest, draws = 0.0, pairs_without_direction(x, y)
    for done in range(N_DRAWS):
        if done == _QUARTER and abs(observed) >= _CLEARLY * largest:
            return True
        for draw in draws:  # in turn, as any of them may end it
            drawn = abs(difference(*draw(rng)))
            if not drawn < abs(observed):  # also nan, of two infinite scores
                return False
            largest = max(largest, drawn)
    return True


def pairs_without_direction(x: Floats, y: Floats) -> tuple[Draw, Draw, Draw]:
    """Return what draws exchangeable pairs, in both units, and independent ones."""
    return (
        partial(_exchanged, *_by_deviations(x, y)),
        partial(_exchanged, *_by_quartiles(x, y)),
        lambda rng: (x, rng.permutation(y)),
    )


def _exchanged(x: Floats, y: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    is_kept = rng.random(len(x)) < 0.5
    return np.where(is_kept, x, y), np.where(is_kept, y, x)


def _by_deviations(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return both with mean 0 and variance 1, y turned so that they rise together."""
    x, y = ((column - column.mean()) / column.std() for column in (x, y))
    return x, y if x @ y >= 0 else -y


def _by_quartiles(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return both with median 0 and quartiles 1 apart, turned to be skewed to the right.

    Whole numbers, in any unit, are in steps instead, with means less than a step apart: other units
    would mix two grids, and the quartiles of these are more often equal than those of either.
    """
    x, y = (column if column.mean() >= np.median(column) else -column for column in (x, y))
    steps = [_step(column) for column in (x, y)]
    if all(steps):
        x, y = ((c - c.min()) / step for c, step in zip((x, y), steps, strict=True))
        return x, y + np.round(x.mean() - y.mean())
    return _in_quartiles(x), _in_quartiles(y)


def _in_quartiles(numbers: Floats) -> Floats:
    low, middle, high = np.quantile(numbers, [0.25, 0.5, 0.75])
    scaled: Floats = (numbers - middle) / (high - low or numbers.std())
    return scaled


def _step(numbers: Floats) -> float:
    """Return the usual distance of neighbors if most numbers are repeated, else 0.0."""
    values = np.unique(numbers)
    return float(np.median(np.diff(values))) if 2 * len(values) < len(numbers) else 0.0
