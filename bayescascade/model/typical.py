"""The typical density among posterior draws: the one that is nearest to all others.

The squared distance of two densities f and g is the mean of ``(log f(x) - log g(x))^2`` over rows x
drawn from the average of all: to second order this is twice the Kullback-Leibler divergence. It
compares densities, not the form of trees. It needs no training rows, so a loaded model has the same
typical draw. The sum of a draw's squared distances to all others is its squared distance to the
mean of the log densities, times their number, plus a constant: K draws are compared by K scores of
the same rows, not by K^2 pairs. A draw with unusual parts is far from that mean.
"""

from collections.abc import Sequence

import numpy as np

from bayescascade.base.arrays import Floats
from bayescascade.model.density_parts import DensityParts
from bayescascade.model.draws import even_places

MOST_COMPARED = 250
"""Maximum number of compared draws; of more, those at equal distances in their order."""

_N_ROWS, _SEED = 500, 0


def typical_draw(densities: Sequence[DensityParts], shares: Floats) -> int:
    """Return the position of the typical density; each has its share of the draws."""
    if len(densities) > MOST_COMPARED:
        kept = even_places(len(densities), MOST_COMPARED)
        few = [densities[place] for place in kept]
        return int(kept[typical_draw(few, shares[kept] / shares[kept].sum())])
    rng = np.random.default_rng(_SEED)
    times = rng.multinomial(_N_ROWS, shares).tolist()
    codes = np.concatenate(
        [density.sample_codes(n, rng) for density, n in zip(densities, times, strict=True) if n],
        axis=1,
    )
    scores = np.array([density.score_codes(codes) for density in densities])
    scores = np.maximum(scores, scores[np.isfinite(scores)].min())  # where one density is zero
    distances = ((scores - shares @ scores) ** 2).mean(axis=1)
    return int(np.argmin(distances))
