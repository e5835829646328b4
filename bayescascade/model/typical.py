"""The typical one of many densities drawn from a posterior: that which is nearest to all others.

The squared distance of two densities f and g is the mean of ``(log f(x) - log g(x))^2`` over rows x
drawn from the average of all: to second order twice the Kullback-Leibler divergence, so that it
counts what two densities say of rows, not how two trees are written. No row of the data is needed,
and a model from a file has the same typical draw. The sum of a draw's squared distances to all
others is its squared distance to the mean of the log densities, times how many there are, plus a
constant: K draws are compared by K scores of the same rows, not by K^2 pairs. A draw whose parts
are its own alone is far from that mean; the nearest has what most have.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bayescascade.model.density_parts import DensityParts
from bayescascade.model.kept_draws import even_places

MOST_COMPARED = 250
"""Different draws that are compared: of more, as many at equal distances in their order."""

_N_ROWS, _SEED = 500, 0


def typical_draw(densities: Sequence[DensityParts], shares: NDArray[np.float64]) -> int:
    """Return the place of the typical one of some densities, each with its share of the draws."""
    if len(densities) > MOST_COMPARED:
        kept = even_places(len(densities), MOST_COMPARED)
        few = [densities[place] for place in kept]
        return int(kept[typical_draw(few, shares[kept] / shares[kept].sum())])
    rng = np.random.default_rng(_SEED)
    times = rng.multinomial(_N_ROWS, shares).tolist()
    codes = np.concatenate(
        [one.sample_codes(n, rng) for one, n in zip(densities, times, strict=True) if n], axis=1
    )
    scores = np.array([one.score_codes(codes) for one in densities])
    scores = np.maximum(scores, scores[np.isfinite(scores)].min())  # of what one thinks impossible
    distances = ((scores - shares @ scores) ** 2).mean(axis=1)
    return int(np.argmin(distances))
