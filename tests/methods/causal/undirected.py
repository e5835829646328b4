"""Pairs of columns without a direction: exchangeable in a common unit, or independent."""

import numpy as np
import pytest

from bayescascade import AdditiveNoiseModel
from bayescascade.methods.causal.pair import Pair
from bayescascade.methods.causal.scores import SCORES


def normal(rng, n, correlation):
    """Return two columns on a straight line; (2, n)."""
    first, rest = rng.normal(size=(2, n))
    return np.array([first, correlation * first + (1 - correlation**2) ** 0.5 * rest])


def with_shared(rng, n, law):
    """Return two columns that share an addend; (2, n)."""
    shared, *own = law(rng, (3, n))
    return shared + np.array(own)


def circle(rng, n):
    angle = rng.uniform(0, 2 * np.pi, n)
    return np.array([np.cos(angle), np.sin(angle)]) + 0.2 * rng.normal(size=(2, n))


KINDS = {
    "normal, weak line": lambda rng, n: normal(rng, n, 0.3),
    "normal, strong line": lambda rng, n: normal(rng, n, 0.9),
    "Cauchy, independent": lambda rng, n: rng.standard_cauchy((2, n)),
    "Cauchy, dependent": lambda rng, n: normal(rng, n, 0.7) / abs(rng.normal(size=n)),
    "t3": lambda rng, n: normal(rng, n, 0.6) / np.sqrt(rng.chisquare(3, n) / 3),
    "lognormal": lambda rng, n: np.exp(normal(rng, n, 0.6)),
    "uniform": lambda rng, n: with_shared(rng, n, lambda rng, size: rng.uniform(size=size)),
    "whole numbers": lambda rng, n: with_shared(rng, n, lambda rng, size: rng.poisson(8.0, size)),
    "two clusters": lambda rng, n: rng.choice([-3.0, 3.0], n) + rng.normal(size=(2, n)),
    "circle": circle,
    "other margins": lambda rng, n: (rng.lognormal(size=n), rng.uniform(size=n)),
}
"""From a generator and n rows to both columns, (n,) float64 each."""

ONE_CONSTANT = {"hsic": 0.4, "spearman": 1.8, "kendall": 1.8, "iqr": 3.0, "variance": 1.0}
"""The old way: this multiple of the scores of independent rows decided, for all laws."""


def decided(kind, score, n, n_pairs):
    """Return how many of `n_pairs` pairs of n rows get a direction, and got one in the old way."""
    first = [n, list(KINDS).index(kind), list(SCORES).index(score)]
    now, before = 0, 0
    for i in range(n_pairs):
        x, y = KINDS[kind](np.random.default_rng([*first, i]), n)
        model = AdditiveNoiseModel(score=score, random_state=i)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Pair, "tied", lambda _: None)  # by chance, of 20 whole numbers
            model.fit(x, y)
        now += model.is_decided_
        before += model.margin_ >= ONE_CONSTANT.get(score, 0.5) * SCORES[score].independent(n)
    return now, before
