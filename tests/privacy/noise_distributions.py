"""Laws of discrete noise by brute force, what separates two of them, and noise that is told."""

import numpy as np


def laplace_law(scale, most):
    """Return P(k) for k from -most to most."""
    weights = np.exp(-np.abs(np.arange(-most, most + 1)) / scale)
    return weights / weights.sum()


def gaussian_law(scale, most):
    weights = np.exp(-(np.arange(-most, most + 1) ** 2) / (2 * scale**2))
    return weights / weights.sum()


def shifted(law, by, most):
    """Return a law as it is `by` further on, on a support that is `most` longer at either end."""
    return np.pad(law, (most + by, most - by))


def hockey_stick(first, second, epsilon):
    """Return the least delta for which two laws are (epsilon, delta)-close, either way round."""
    return max(
        np.maximum(p - np.exp(epsilon) * q, 0).sum() for p, q in ((first, second), (second, first))
    )


class Told:
    """A source whose noise is always the same, so that releases show what they were made of."""

    is_private = False

    def __init__(self, noise=0):
        self.noise, self.scales, self.scores = noise, [], None

    def laplace(self, scale, n):
        self.scales.append(scale)
        return np.full(n, self.noise)

    gaussian = laplace

    def choose(self, scores, scale):
        self.scales.append(scale)
        self.scores = scores
        return 0
