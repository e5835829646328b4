"""Small trees whose classifiers move together."""

import numpy as np

from bayescascade import CostSensitiveTreePosterior, FeatureCosts
from bayescascade.methods.budget.classifier_trees.basis import Basis
from bayescascade.methods.budget.classifier_trees.growing import GrowingRows, NodeGrowth, grow

COSTS = FeatureCosts({0: 1.0, 1: 2.0, 4: 0.0}, groups={"blood": [2, 3]}, default=0.5)


def posterior(n_classes=2, seed=0, **how):
    """Return the posterior of a tree of depth 3 over five columns; weights are not alike."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, 5)) * [1.0, 10.0, 0.1, 1.0, 1.0] + 2.0
    y = np.where(X[:, 0] > 2.0, X[:, 1] > 2.0, X[:, 3] > 2.3).astype(np.int64)
    y = np.where(X[:, 4] > 3.0, n_classes - 1, y)
    basis = Basis.of("linear", X, np.arange(5))
    rows = GrowingRows.of(basis, X, y, rng.uniform(0.5, 2.0, 80), n_classes)
    items = COSTS.resolve(range(5))
    growth = NodeGrowth((2.0,), "greedy", 3, "soft", "least_squares")
    given = {"tradeoff": 0.2, "penalty": 0.05, "smoothing": 0.05}
    return CostSensitiveTreePosterior(grow(rows, items, growth), rows, items, **given | how)
