"""Stacking: the weights of densities in an average, by the density of held-out rows.

For densities p_k and held-out rows x_i of weight v_i, the weights w >= 0 of sum 1 maximize the log
score ``sum_i v_i ln sum_k w_k p_k(x_i)`` (Yao, Vehtari, Simpson and Gelman, *Using Stacking to
Average Bayesian Predictive Distributions*, Bayesian Analysis 13(3), 2018). It is concave in w, so
EM for the shares of a mixture with fixed components reaches the maximum from equal weights.
"""

import numpy as np

from bayescascade.base.arrays import Floats

_LEAST, _MOST_STEPS, _TOL = 0.01, 2_000, 1e-6  # smaller weights become 0


def stacking_weights(scores: Floats, weights: Floats) -> Floats:
    """Return the weights of densities, (n_densities,) float64 >= 0 of sum 1.

    scores (n_densities, n_rows) float64: log densities of held-out rows, nats, in each column one
    that is finite; weights (n_rows,) float64 >= 0. A weight below 0.01 is 0.
    """
    relative = np.exp(scores - scores.max(axis=0))
    shares = np.full(len(scores), 1.0 / len(scores))
    for _ in range(_MOST_STEPS):
        belongs = shares[:, np.newaxis] * relative
        belongs /= belongs.sum(axis=0)
        before, shares = shares, belongs @ weights / weights.sum()
        if abs(shares - before).max() < _TOL:
            break
    kept: Floats = np.where(shares < _LEAST, 0.0, shares)
    kept /= kept.sum()
    return kept
