"""Levels that stand out inside an independent leaf, far from their share of its box.

By width, a set of levels has the share ``u`` of its column's levels left; in the leaf it has the
probability ``q``. Stating that is worth ``q ln(q / u) + (1 - q) ln((1 - q) / (1 - u))`` nats.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import rel_entr

from bayescascade.data.schema import Schema
from bayescascade.report.numbers import probability_text

Floats = NDArray[np.float64]

_LEAST_NATS = 0.1  # a row
_LEAST_TOTAL = 3.0  # nats, over a leaf's rows: 20 times as likely as by width
_MOST_LEVELS = 3  # of a nominal column, named together
_MOST_RATIO = 0.5  # of a level that is rare


class Standout(NamedTuple):
    """Levels of a column that stand out inside a leaf."""

    column: int
    codes: tuple[int, ...]  # ascending
    probability: float  # of those levels together, inside the leaf

    def words(self, schema: Schema) -> str:
        """Return it in words, such as "wind is yes 0.93"."""
        condition = schema.columns[self.column].condition_words(self.codes)
        return f"{condition} {probability_text(self.probability)}"


def standouts(density: Any, leaf: int) -> list[Standout]:
    """Return the sets of levels that most rows of a leaf have, the most telling first.

    Of each column the set with the largest ``q - u``, contiguous if ordered and else of at most
    three; told if worth at least 0.1 nats, and 3 nats over all of the leaf's rows, for a few rows
    may be alike by chance.
    """
    if density.level_probabilities is None:
        return []
    least = _LEAST_TOTAL / density.counts[leaf] if density.counts[leaf] > 0 else np.inf
    found = []
    for column, codes in enumerate(density.boxes[leaf]):
        shares, by_width = density.level_shares(leaf, column), density.width_shares(leaf, column)
        excess = shares - by_width
        if density.is_nominal[column]:
            order = np.argsort(-excess, kind="stable")[:_MOST_LEVELS]
            chosen = np.sort(order[excess[order] > 0])
        else:
            chosen = _largest_run(excess)
        q, u = min(1.0, float(shares[chosen].sum())), min(1.0, float(by_width[chosen].sum()))
        worth = float(rel_entr(q, u) + rel_entr(1 - q, 1 - u))
        if q >= 0.5 and q > u and worth >= max(_LEAST_NATS, least):
            found.append((worth, Standout(column, tuple(codes[i] for i in chosen), q)))
    found.sort(key=lambda item: -item[0])
    return [standout for _, standout in found]


def rarities(density: Any, leaf: int, codes: NDArray[np.int32]) -> list[Standout]:
    """Return which levels of a coded row have ``q`` of at most half of ``u``, rarest first."""
    found = []
    for column, (code, left) in enumerate(zip(codes.tolist(), density.boxes[leaf], strict=True)):
        if code < 0:
            continue
        share = float(density.level_shares(leaf, column)[left.index(code)])
        ratio = share / float(density.width_shares(leaf, column)[left.index(code)])
        if ratio <= _MOST_RATIO:
            found.append((ratio, Standout(column, (code,), share)))
    found.sort(key=lambda item: item[0])
    return [standout for _, standout in found]


def _largest_run(excess: Floats) -> NDArray[np.intp]:
    """Return the positions of the run of numbers with the largest sum."""
    before = np.concatenate([[0.0], np.cumsum(excess)])
    gains = before[1:] - np.minimum.accumulate(before)[:-1]
    last = int(np.argmax(gains))
    first = int(np.argmin(before[: last + 1]))
    return np.arange(first, last + 1)
