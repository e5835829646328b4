"""From classifiers that rows go through with some probability to a tree that sends them one way."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bayescascade.methods.classifier_trees.leaves import no_gate
from bayescascade.methods.classifier_trees.scaling import Standard
from bayescascade.methods.classifier_trees.tree import ClassifierNode, ClassifierTree

Floats = NDArray[np.float64]


def hardened(
    tree: ClassifierTree,
    standard: Standard,
    coefficients: Floats,
    thresholds: Floats,
    directions: Floats,
    weights: Floats,
    cut: float,
) -> ClassifierTree:
    """Return a tree of the same shape, by coefficients of standardized columns, without small ones.

    coefficients (K, p + 1, c), intercepts last; thresholds, weights (K,); directions (K, c).
    """
    feature, n_features = tree.basis.feature, tree.n_features
    squares = (coefficients[:, :-1] ** 2).sum(axis=2)
    norms = np.sqrt([np.bincount(feature, square, n_features) for square in squares])
    reads = norms > cut
    has, bought = reads.copy(), reads.copy()
    for place, node in enumerate(tree.nodes):
        for child in node.children:
            if child >= 0:
                bought[child] &= ~has[place]
                has[child] |= has[place]
    nodes = []
    for place, node in enumerate(tree.nodes):
        own = coefficients[place]
        features = np.flatnonzero(bought[place])
        features = features[np.argsort(-norms[place][features], kind="stable")]
        known = np.flatnonzero(has[place][feature])
        leaf = standard.linear(0.5 * own[:-1], 0.5 * own[-1] + 0.5, known, "shares")
        gate = no_gate()
        if not node.is_leaf:
            columns = np.flatnonzero(reads[place][feature])
            along = own @ directions[place][:, np.newaxis]
            gate = standard.linear(along[:-1], along[-1], columns, "shares")
        nodes.append(
            ClassifierNode(
                features, norms[place][features], 0.0, 1.0, False, float(weights[place]), gate,
                float(thresholds[place]), node.children, leaf,
            )
        )  # fmt: skip
    return replace(tree, nodes=tuple(nodes))
