"""Weights of an average of densities: the largest log score of held-out rows."""

import numpy as np
import pytest
from scipy.optimize import minimize

from bayescascade.model.stacking import stacking_weights


@pytest.mark.parametrize("is_weighted", [True, False])
def test_weights_maximize_the_log_score(rng, is_weighted):
    """Of weighted rows, as an optimizer finds it; not of rows that count once. Others get 0."""
    scores, weights = rng.normal(size=(3, 200)), rng.exponential(size=200) ** 2
    dominated = [*scores, scores[0] - 1.0]
    *found, last = stacking_weights(np.array(dominated), weights if is_weighted else np.ones(200))

    def loss(shares):
        return -weights @ np.log(shares @ np.exp(scores)) / weights.sum()

    best = minimize(lambda logits: loss(np.exp(logits) / np.exp(logits).sum()), np.zeros(3))
    assert last == 0.0
    assert (loss(np.array(found)) - best.fun < 1e-6) == is_weighted
