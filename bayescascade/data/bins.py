"""Equal-frequency bins of a continuous column, from a bounded sample of its values."""

import math

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.arrays import Floats, Integers

SAMPLE_SIZE = 250_000  # a quantile is then off by at most about 0.3 % of the rows

_FEWEST_BINS, _MOST_BINS = 2, 10


def default_bins(weight: float) -> int:
    """Return the default number of bins, by the number of rows."""
    return min(_MOST_BINS, max(_FEWEST_BINS, round(math.cbrt(weight))))


class RowSample:
    """Up to `SAMPLE_SIZE` rows, drawn without replacement; they do not depend on blocks."""

    def __init__(self) -> None:
        self._keys = np.empty(0, dtype=np.uint64)
        self._values = np.empty(0)
        self._weights = np.empty(0)

    def add(self, values: Floats, weights: Floats, rows: Integers) -> None:
        """Add values and weights of the data rows with numbers `rows`; all (n,)."""
        self._keys = np.append(self._keys, _random_keys(rows))
        self._values = np.append(self._values, values)
        self._weights = np.append(self._weights, weights)
        if len(self._keys) > SAMPLE_SIZE:
            kept = np.argpartition(self._keys, SAMPLE_SIZE)[:SAMPLE_SIZE]
            self._keys = self._keys[kept]
            self._values = self._values[kept]
            self._weights = self._weights[kept]

    def edges(self, n_bins: int, lowest: float, highest: float) -> tuple[float, ...]:
        """Return edges of equal-frequency bins from `lowest` to `highest`."""
        return equal_frequency_edges(self._values, self._weights, n_bins, lowest, highest)

    def whole_edges(self, n_bins: int, lowest: float, highest: float) -> tuple[float, ...]:
        """Return `edges` halfway between integers, so that a width is a number of integers."""
        inner = self.edges(n_bins, lowest, highest)[1:-1]
        return (lowest - 0.5, *(math.ceil(edge) - 0.5 for edge in inner), highest + 0.5)


def equal_frequency_edges(
    values: Floats, weights: Floats, n_bins: int, lowest: float, highest: float
) -> tuple[float, ...]:
    """Return increasing edges of at most `n_bins` bins of nearly equal weight.

    The inner edges are midpoints between neighboring distinct values, each where the weight below
    comes closest to its share; shares that fall on the same midpoint are merged.
    values, weights (n,) float64, weights >= 0; lowest < highest are the outer edges, and no value
    lies outside.
    """
    # Sorting by weight as well makes the sums independent of the order of equal values.
    order = np.lexsort((weights, values))
    values, weights = values[order], weights[order]
    starts = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
    distinct = values[starts]
    weight_up_to = np.cumsum(np.add.reduceat(weights, starts))
    # Cut k lies between distinct values k and k + 1 and leaves weight_below[k] below it.
    weight_below = weight_up_to[:-1]
    if not len(weight_below):
        return (lowest, highest)
    shares = weight_up_to[-1] * np.arange(1, n_bins) / n_bins
    above = np.clip(np.searchsorted(weight_below, shares), 0, len(weight_below) - 1)
    below = np.maximum(above - 1, 0)
    is_below_closer = np.abs(shares - weight_below[below]) <= np.abs(weight_below[above] - shares)
    cuts = np.unique(np.where(is_below_closer, below, above))
    lower, upper = distinct[cuts], distinct[cuts + 1]
    middles = lower / 2 + upper / 2
    # Between neighboring floats there is no middle: the upper one starts the next bin.
    inner = np.where(middles > lower, middles, upper)
    inner = inner[(inner > lowest) & (inner < highest)]
    return (lowest, *inner.tolist(), highest)


def _random_keys(rows: Integers) -> NDArray[np.uint64]:
    """Return a hash of each row number (the finalizer of splitmix64; Steele et al. 2014)."""
    keys = rows.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))
