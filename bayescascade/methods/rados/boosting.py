"""RadoBoost.

With z_jk = pi_jk / pi_*k, pi_*k = max_j |pi_jk|, and initially equal weights w of the rados, a
round picks a feature k and takes (Nock and others, 2015, Algorithm 1, equations 9 to 11)

    r = sum_j w_j z_jk,   theta_k += 1 / (2 kappa pi_*k) log (1 + r) / (1 - r),
    w_j <- w_j (1 - r z_jk) / (1 - r^2).

Because exp(-a z) <= (1 - r z) / sqrt(1 - r^2) for a = log((1 + r) / (1 - r)) / 2 and |z| <= 1, the
exponential rado-risk, the mean of exp(-theta pi_j), is at most exp(-sum_t r_t^2 / (2 kappa)) after
every round (equations 12 and 17), and even at most prod_t (1 - r_t^2)^(1 / (2 kappa)), which is
`Boosted.log_bounds`.

**Departures from the paper.** theta is infinite at |r| = 1: r is clipped to +-(1 - 2**-20). The
bound remains true, because (1 - r r') / (1 - r^2) <= 1 if the clipped r is nearer to 0 than r'.
Weights are divided by their sum, which is 1 - r^2 except for clipping, and kept as logarithms.
Features with pi_*k = 0 are skipped. The text around (17) has a step twice as large, for which the
bound is wrong (for kappa = 1, z = +-1, a round does not lower the risk at all). Here the step is
that of (10), divided by kappa. The weights do not depend on kappa, so it scales theta and changes
no prediction. The result is the theta of the least risk, not the last one.
"""

import math
from dataclasses import dataclass

import numpy as np

from bayescascade.base.arrays import Floats, Integers
from bayescascade.base.threads import single_threaded
from bayescascade.base.watch import watch_in_use

LARGEST_EDGE = 1.0 - 2.0**-20
_LEAST_EDGE = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Boosted:
    """The result of boosting, and its rounds."""

    theta: Floats  # (n_columns,), with the least risk
    best_round: int  # round of theta; 0 for theta = 0
    features: Integers  # (n_rounds,), picked
    edges: Floats  # (n_rounds,), r after clipping
    log_risks: Floats  # (n_rounds,), log of the mean of exp(-theta pi) after each round
    log_bounds: Floats  # (n_rounds,), upper bounds of log_risks
    has_converged: bool  # whether finally no feature was better than chance

    @property
    def n_rounds(self) -> int:
        """Number of rounds."""
        return len(self.features)

    @property
    def log_risk(self) -> float:
        """The least logarithm of the risk."""
        return float(self.log_risks[self.best_round - 1]) if self.best_round else 0.0


def boost(
    vectors: Floats, n_rounds: int, *, weak_learner: str = "best", kappa: float = 1.0
) -> Boosted:
    """Boost over rados; the current watch may end it after a round.

    vectors (n, n_columns) float64; weak_learner: "best" picks the feature with the largest |r|,
    "prudential" the one with the median |r|, for rados with noise (section 5.2); kappa >= 1 divides
    theta.
    """
    largest = np.abs(vectors).max(axis=0)
    used = np.flatnonzero(largest > np.finfo(np.float64).tiny)
    # stored by columns, because each round reads one
    scaled = np.asfortranarray(vectors[:, used] / largest[used])
    n, n_used = scaled.shape
    log_weights, margins = np.zeros(n), np.zeros(n)
    weights = np.full(n, 1.0 / n)
    theta, best = np.zeros(n_used), np.zeros(n_used)
    features, edges = np.empty(n_rounds, np.int64), np.empty(n_rounds)
    log_risks = np.empty(n_rounds)
    least, best_round, done, has_converged = 0.0, 0, 0, not n_used
    middle = (n_used - 1) // 2
    with single_threaded():
        while done < n_rounds and not has_converged:
            all_edges = weights @ scaled
            sizes = np.abs(all_edges)
            k = int(sizes.argmax())
            if weak_learner == "prudential":
                k = int(np.argpartition(sizes, middle)[middle])
            edge = float(all_edges[k])
            if abs(edge) < _LEAST_EDGE:
                has_converged = True
                break
            edge = min(max(edge, -LARGEST_EDGE), LARGEST_EDGE)
            step, column = math.atanh(edge), scaled[:, k]
            theta[k] += step
            margins += step * column
            log_weights += np.log1p(-edge * column)
            log_weights -= log_weights.max()
            np.exp(log_weights, out=weights)
            weights /= weights.sum()
            away = margins / -kappa
            highest = float(away.max())
            log_risk = highest + math.log(float(np.exp(away - highest).mean()))
            features[done], edges[done], log_risks[done] = used[k], edge, log_risk
            done += 1
            if log_risk < least:
                least, best_round, best = log_risk, done, theta.copy()
            if watch_in_use().is_over():
                break
    found = np.zeros(vectors.shape[1])
    with np.errstate(over="ignore"):
        found[used] = np.nan_to_num(best / largest[used] / kappa)
    bounds = np.cumsum(0.5 * np.log1p(-(edges[:done] ** 2))) / kappa
    return Boosted(
        found, best_round, features[:done], edges[:done], log_risks[:done], bounds, has_converged
    )
