"""Small labeled tables, and the posterior's formulas written out number by number."""

import math

import numpy as np

from bayescascade import PrototypePosterior
from bayescascade.methods.compress.parameters import METRICS


def blobs(n_rows=60, n_columns=3, n_classes=3, seed=0):
    """Return rows of overlapping classes, and their labels."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n_rows) % n_classes
    means = rng.normal(size=(n_classes, n_columns))
    return means[labels] + rng.normal(size=(n_rows, n_columns)), np.array(list("abcdef"))[labels]


def strokes(n_rows, seed, n_columns=16, n_classes=10):
    """Return rows near closed curves, one of each class and the same for all seeds; and labels."""
    curves = np.random.default_rng(7).normal(size=(2, n_classes, 3, n_columns))
    rng = np.random.default_rng(seed)
    labels = np.arange(n_rows) % n_classes
    turns = rng.uniform(0.0, 2.0 * np.pi, size=(n_rows, 1)) * np.arange(1, 4)
    waves = np.stack([np.cos(turns), np.sin(turns)])
    rows = np.einsum("inj,injd->nd", waves, curves[:, labels])
    return rows + 0.5 * rng.normal(size=rows.shape), labels


KINDS = [{"metric": metric} for metric in METRICS] + [
    {"metric": "linear", "rank": 2},
    {"metric": "diagonal", "fixed_metric": [0.3, -0.2, 0.1]},
    {"prior_scale": None},
]


def posterior(n_prototypes=(2, 3, 1), seed=0, **options):
    X, y = blobs(seed=seed)
    return PrototypePosterior(X, y, n_prototypes, **options)


def slow_probabilities(posterior, state, row):
    """Return the probability that each prototype is a row's neighbor: (3.3) and (3.7)."""
    layout = posterior.layout
    points = np.array(state[: layout.n_prototypes * layout.n_columns])
    points = points.reshape(layout.n_prototypes, layout.n_columns)
    numbers = state[points.size :] if layout.fixed_metric is None else layout.fixed_metric
    if layout.metric == "linear":
        matrix = np.array(numbers).reshape(layout.rank, layout.n_columns)
    else:
        matrix = np.diag([math.exp(n) for n in np.broadcast_to(numbers, layout.n_columns)])
    distances = [float(np.sum((matrix @ (row - point)) ** 2)) for point in points]
    weights = [math.exp(-distance) for distance in distances]
    return [weight / sum(weights) for weight in weights]


def slow_log_likelihood(posterior, state, rows, labels):
    """Return the sum of log p over rows: (3.2) and (3.5) with the sign of a likelihood."""
    names = posterior.classes[posterior.layout.labels]
    return sum(
        math.log(
            sum(
                p
                for p, name in zip(slow_probabilities(posterior, state, row), names, strict=True)
                if name == label
            )
        )
        for row, label in zip(rows, labels, strict=True)
    )
