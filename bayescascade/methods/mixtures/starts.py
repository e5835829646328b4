"""Where EM starts: from boxes, from rows that are far from each other, or at random."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from bayescascade.methods.mixtures.rows import Rows

Floats = NDArray[np.float64]

_CERTAIN = 0.9  # of a row's class where it is in a cluster


def _grown(rows: Rows, n_components: int, _: np.random.Generator) -> Floats:
    """Start from boxes: the level that explains most, over all boxes, is split off, and so on.

    What a split explains is the evidence of independent leaves, whose priors are worth a row.
    """
    alpha, place = 1.0 / np.bincount(rows.column)[rows.column], np.zeros(rows.weights.size, int)
    best = {0: _best_split(rows, place == 0, alpha)}
    while len(best) < n_components:
        box = max(best, key=lambda one: best[one][0])
        gain, level = best[box]
        if gain == -np.inf:
            break
        j = rows.column[level]
        is_split = (place == box) & (rows.codes[j] == level - rows.starts[j])
        place[is_split] = len(best)
        for one in (box, len(best)):
            best[one] = _best_split(rows, place == one, alpha)
    return _clustered(place, n_components)


def _best_split(rows: Rows, inside: NDArray[np.bool_], alpha: Floats) -> tuple[float, int]:
    """Return the largest gain, -inf if there is none, and the level that is split off."""
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


def _near(rows: Rows, n_components: int, rng: np.random.Generator) -> Floats:
    """Start from rows far from each other, drawn as by k-means++, and those nearest to each."""
    nearest, place = np.ones(rows.weights.size), np.zeros(rows.weights.size, int)
    for k in range(n_components):
        chances = nearest * rows.weights
        if not chances.sum() > 0:
            break
        row = rng.choice(chances.size, p=chances / chances.sum())
        distances = (rows.codes != rows.codes[:, [row]]).sum(axis=0).astype(float)
        place = np.where(distances < nearest, k, place) if k else place
        nearest = np.minimum(nearest, distances) if k else distances
    return _clustered(place, n_components)


def _random(rows: Rows, n_components: int, rng: np.random.Generator) -> Floats:
    """Start from random classes."""
    belongs: Floats = rng.dirichlet(np.full(n_components, 0.5), size=rows.weights.size)
    return belongs


def _clustered(place: NDArray[np.integer], n_components: int) -> Floats:
    belongs = np.full((place.size, n_components), (1 - _CERTAIN) / n_components)
    belongs[np.arange(place.size), place] += _CERTAIN
    return belongs


STARTS: dict[str, Callable[[Rows, int, np.random.Generator], Floats]] = {
    "grown": _grown,
    "near": _near,
    "random": _random,
}
"""How EM starts."""
