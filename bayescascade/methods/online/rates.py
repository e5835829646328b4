"""Learning and exploration rates of the gate, and their bounds.

With K experts, T rounds and a cost c of asking, the expected regret is the expected sum of losses
minus that of the best expert in hindsight. Estimated losses are >= 0 and seen with probability P_t
>= gamma_t, so for any rates eta_t that do not grow

    regret  <=  log K / eta_T  +  sum_t [ eta_t / (2 gamma_t) + c gamma_t ]

(Nan 2018, 6.12 to 6.16; the factor 1/2 in the second-order bound of exponential weights holds for
losses >= 0). It is also true if the probability of asking is max(Q_t, gamma_t) instead of a
mixture, Q_t the weight of the experts that ask, and if the cost of asking is charged as known,
because this charge has no variance.

* "horizon": the thesis's eta = c^(-1/3) (log K / T)^(2/3), gamma = c^(-2/3) (log K / T)^(1/3),
  which needs ``T >= log K / c^2``. Its bound (6.16) is log K / eta + eta T / gamma + c gamma T.
* "anytime", without a horizon: eta_t = .9615 c^(-1/3) (log K / t)^(2/3), at most 2 c, and gamma_t =
  sqrt(eta_t / (2 c)), for which the bracket is sqrt(2 c eta_t).
* "adaptive": the same with the variance V_t of losses under the weights instead of 1, a running
  mean with importance weights: if experts agree, asking teaches nothing. No bound is proved for it.
"""

from math import cbrt, ceil, log

import numpy as np

from bayescascade.base.errors import ParameterError
from bayescascade.base.validation import check_integer, check_real
from bayescascade.methods.online.kernels import ADAPTIVE, ANYTIME, HORIZON, RoundConstants

RATES = ("adaptive", "anytime", "horizon")
_KINDS = {"horizon": HORIZON, "anytime": ANYTIME, "adaptive": ADAPTIVE}
_FACTOR = 0.9615  # minimizes the bound's factor of T^(2/3)


def game_of(
    rates: str, horizon: int | None, n_experts: int, cost: float, *, is_mixed: bool, is_known: bool
) -> RoundConstants:
    """Return the game of a gate's options; only rates "horizon" have a horizon."""
    eta, gamma = _FACTOR * cost ** (-1 / 3), 0.0
    if horizon is not None:
        eta, gamma = thesis_rates(horizon, n_experts, cost)
    return RoundConstants(_KINDS[rates], eta, gamma, log(n_experts), cost, is_mixed, is_known)


def thesis_rates(n_rounds: int, n_experts: int, cost: float) -> tuple[float, float]:
    """Return eta and gamma of the thesis (1412); ParameterError if gamma would exceed 1."""
    log_k = log(n_experts)
    least = ceil(log_k / cost**2)
    if n_rounds < least:
        raise ParameterError(
            f"horizon must be at least {least:,} for {n_experts:,} experts and a cost of {cost:g}, "
            f"got {n_rounds:,}"
        )
    share = log_k / n_rounds
    return cost ** (-1 / 3) * share ** (2 / 3), cost ** (-2 / 3) * share ** (1 / 3)


def regret_bound(
    n_rounds: int, n_experts: int, cost: float, rates: str, vc_dimension: int | None = None
) -> float | None:
    """Return the bound on the expected regret after some rounds; None if none is proved.

    With a VC dimension d, the number of experts is ``(e T / d)^d`` (Nan 2018, 1418).
    """
    t = check_integer("n_rounds", n_rounds, minimum=1)
    check_real("cost", cost, above=0.0, maximum=1.0)
    log_k = log(n_experts)
    if vc_dimension is not None:
        d = check_integer("vc_dimension", vc_dimension, minimum=1)
        log_k = d * (1 + log(max(t, d) / d))
    if rates == "adaptive":
        return None
    if rates == "horizon":  # at most the maximum sum of losses
        return min(3 * cbrt(cost * log_k * t * t), float(t))
    eta = _FACTOR * cost ** (-1 / 3) * (log_k / np.arange(1, t + 1)) ** (2 / 3)
    eta = np.minimum(eta, 2 * cost)
    return min(log_k / float(eta[-1]) + float(np.sqrt(2 * cost * eta).sum()), float(t))


def regret_lower_bound(n_rounds: int, n_experts: int) -> float:
    """Return a lower bound on any player's expected regret, for some losses and cost 1.

    Nan (2018), section 6.3 as corrected in the errata of the documentation; 0 for up to 3
    experts.
    """
    t = check_integer("n_rounds", n_rounds, minimum=1)
    k = check_integer("n_experts", n_experts, minimum=1)
    if k <= 3:
        return 0.0
    c = log(k - 1)
    first = cbrt(t * t * c / 16) * (1 - 1 / c)
    return max(first - cbrt(16 * t / c) * (1 / c + c - 2) / 32, 0.0)
