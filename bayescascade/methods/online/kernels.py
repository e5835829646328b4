"""Rounds of the gate: asking, predicting, and learning from a label."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.jit import kernel

HORIZON, ANYTIME, ADAPTIVE = 0, 1, 2


class RoundConstants(NamedTuple):
    """Constants of all rounds."""

    rates: int  # HORIZON, ANYTIME or ADAPTIVE
    eta: float  # for HORIZON; for the others the factor of (log K / t)^(2/3)
    gamma: float  # for HORIZON
    log_experts: float
    cost: float
    is_mixed: bool  # gamma is mixed in, otherwise it is a floor
    is_known: bool  # experts that ask are charged the cost in every round


class RoundSums(NamedTuple):
    """The learned sums, which are changed in place."""

    losses: NDArray[np.float64]  # (K,) sums of estimated losses
    # numbers of rounds and labels, loss, sum of the variances of losses, and last eta
    sums: NDArray[np.float64]
    scratch: NDArray[np.float64]  # (K,)


class GateRounds(NamedTuple):
    """Rows to play, and results."""

    decisions: NDArray[np.int16]  # (n, K) class, or -1 to ask
    labels: NDArray[np.int64]  # (n,) class, or -1 if not known yet
    uniforms: NDArray[np.float64]  # (n, 2) in [0, 1)
    answers: NDArray[np.int64]  # (n,) prediction, or the label if it was asked for
    asked: NDArray[np.bool_]  # (n,)
    chances: NDArray[np.float64]  # (n,) probability of asking


@kernel
def play(
    constants: RoundConstants, totals: RoundSums, rows: GateRounds, first: int, most_labels: float
) -> int:
    """Play rows from `first` on; return the row with a missing label, or the end."""
    losses, sums, weights = totals.losses, totals.sums, totals.scratch
    n_experts = losses.shape[0]
    for row in range(first, rows.labels.shape[0]):
        t = sums[0] + 1.0
        eta, gamma = constants.eta, constants.gamma
        if constants.rates != HORIZON:
            variance = 1.0
            if constants.rates == ADAPTIVE:
                variance = sums[3] / t
            eta *= (constants.log_experts / t) ** (2.0 / 3.0) * variance ** (-1.0 / 3.0)
            eta = min(eta, 2.0 * constants.cost / variance)
            if constants.rates == ANYTIME and t > 1.0:
                eta = min(eta, sums[4])
            gamma = min(np.sqrt(eta * variance / (2.0 * constants.cost)), 1.0)
        least = losses[0]
        for i in range(1, n_experts):
            least = min(least, losses[i])
        total, asking = 0.0, 0.0
        for i in range(n_experts):
            weights[i] = np.exp(-eta * (losses[i] - least))
            total += weights[i]
            if rows.decisions[row, i] < 0:
                asking += weights[i]
        chance = asking / total
        chance = (1.0 - gamma) * chance + gamma if constants.is_mixed else max(chance, gamma)
        asks = rows.uniforms[row, 0] < chance
        label = rows.labels[row]
        if asks and label < 0:
            return row
        sums[0], sums[4] = t, eta
        rows.chances[row], rows.asked[row] = chance, asks
        if asks:
            mean, square = 0.0, 0.0
            for i in range(n_experts):
                decision = rows.decisions[row, i]
                loss = constants.cost if decision < 0 else 1.0 if decision != label else 0.0
                mean += weights[i] * loss
                square += weights[i] * loss * loss
                if decision >= 0 or not constants.is_known:
                    losses[i] += loss / chance
            mean, square = mean / total, square / total
            sums[3] += max(square - mean * mean, 0.0) / chance
            sums[1] += 1.0
            sums[2] += constants.cost
            rows.answers[row] = label
        else:
            aim, at = rows.uniforms[row, 1] * (total - asking), -1
            for i in range(n_experts):
                if rows.decisions[row, i] >= 0:
                    aim -= weights[i]
                    at = i
                    if aim < 0.0:
                        break
            rows.answers[row] = rows.decisions[row, at]
        if constants.is_known:
            for i in range(n_experts):
                if rows.decisions[row, i] < 0:
                    losses[i] += constants.cost
        if asks and sums[1] >= most_labels:
            return row + 1
    return int(rows.labels.shape[0])
