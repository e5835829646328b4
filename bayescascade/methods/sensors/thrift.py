"""What gates cost, and how they are kept within a budget."""

import numpy as np

from bayescascade.methods.sensors.models import Bools, Weights
from bayescascade.methods.sensors.signals import Floats, Signals


def fast_scores(weights: Weights, signals: Signals) -> Floats:
    """Return z (n, K), summed up in another order than one row would be."""
    products = signals.features * weights.gates
    return np.add.reduceat(products, signals.starts, axis=1) + weights.offsets


def fast_sends(weights: Weights, signals: Signals) -> Bools:
    """Return who sends, (n, K), by `fast_scores`."""
    return (fast_scores(weights, signals) > 0) & signals.alive


def within(weights: Weights, signals: Signals, costs: Floats, budget: float) -> Weights:
    """Return gates whose mean cost is at most a budget: all offsets less by the least number.

    The least positive scores are silenced first, as (7.5) projects; scores and not weights are
    fitted, so that the budget is kept, which least squares from projected scores does not do.
    """
    z = fast_scores(weights, signals)
    sends = (z > 0) & signals.alive
    excess = float((sends @ costs).sum()) - budget * len(z)
    if excess <= 1e-9 * max(budget, 1.0) * len(z):
        return weights
    rows, sensors = np.nonzero(sends)
    scores = z[rows, sensors]
    order = np.argsort(scores, kind="stable")
    saved = np.cumsum(costs[sensors[order]])
    last = min(int(np.searchsorted(saved, excess * (1 - 1e-12))), order.size - 1)
    shift = scores[order[last]]
    return weights._replace(offsets=weights.offsets - shift * (1 + 1e-9) - 1e-12)
