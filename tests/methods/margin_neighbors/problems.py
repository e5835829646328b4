"""Small policies, whose rows are few enough to list all of them."""

import numpy as np

from bayescascade import FeatureCosts
from bayescascade.methods.margin_neighbors.boxes import BoxTable
from bayescascade.methods.margin_neighbors.policy_posterior import PolicyPosterior

COSTS = FeatureCosts({0: 0.7, 1: 0.2}, groups={"blood": [1, 2]})


def problem(seed, sizes=(2, 2, 3), n=9, weight=1.0, **how):
    """Return a posterior over policies of few rows, and its rows."""
    generator = np.random.default_rng(seed)
    bins = np.stack([generator.integers(0, size, n) for size in sizes], axis=1)
    labels, weights = generator.integers(0, 2, n), weight * generator.integers(1, 4, n)
    items = COSTS.resolve(range(len(sizes)))
    table = BoxTable.of(bins, sizes, labels, weights.astype(float), 2, items)
    return PolicyPosterior(table, **how), (bins, labels, weights, sizes)


def small():
    """Return one of them."""
    return problem(0, tradeoff=0.1)[0]
