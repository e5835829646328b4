"""Latent classes as densities: inside a class columns are independent, and EM finds the classes.

Each class's and level's probability is its expected count plus a half, divided by their sum. The
number of classes is that by which a fifth of the rows to learn from has the largest likelihood.
StepMix does the same without pseudo-counts, but for the tiny ones that it has by itself.
"""

import numpy as np
from scipy.special import logsumexp

from bayescascade.data.splitting import split_rows, with_weights

NUMBERS = (1, 2, 4, 8, 16, 32, 64, 128)
_RESTARTS, _ITERATIONS, _SMOOTHING = 2, 200, 0.5


class LatentClasses:
    """A mixture with a given number of classes, the best that EM finds from random starts."""

    def __init__(self, table, n_classes, rng):
        self._sizes = table.schema.n_levels
        found = [self._climb(table, n_classes, rng) for _ in range(_RESTARTS)]
        _, self._log_shares, self._log_levels = max(found, key=lambda one: one[0])

    def _climb(self, table, n_classes, rng):
        rows, weights = _one_hot(table), table.weights[:, None]
        belongs = rng.dirichlet(np.full(n_classes, 0.5), size=rows.shape[0])
        starts = np.concatenate([[0], np.cumsum(self._sizes)[:-1]])
        before = -np.inf
        for _ in range(_ITERATIONS):
            counts = rows.T @ (weights * belongs) + _SMOOTHING
            sums = np.add.reduceat(counts, starts, axis=0)
            log_levels = np.log(counts) - np.log(np.repeat(sums, self._sizes, axis=0))
            shares = (weights * belongs).sum(axis=0) + _SMOOTHING
            log_shares = np.log(shares / shares.sum())
            joint = rows @ log_levels + log_shares
            rows_of = logsumexp(joint, axis=1, keepdims=True)
            value = float((weights * rows_of).sum())
            belongs = np.exp(joint - rows_of)
            if value - before < 1e-5 * abs(value):
                break
            before = value
        return value, log_shares, log_levels

    def score_rows(self, table):
        """Return the log density of each distinct row, nats."""
        return logsumexp(_one_hot(table) @ self._log_levels + self._log_shares, axis=1)


class StepMixClasses:
    """What StepMix finds, of as many classes; the parameters are those of `LatentClasses`."""

    def __init__(self, table, n_classes, rng):
        from stepmix.stepmix import StepMix

        self._most = int(table.schema.n_levels.max())
        self._model = StepMix(
            n_classes, measurement="categorical", n_init=_RESTARTS, max_iter=_ITERATIONS,
            random_state=int(rng.integers(2**31)), progress_bar=0,
            measurement_params={"max_n_outcomes": self._most},
        )  # fmt: skip
        self._model.fit(table.codes.T.astype(float), sample_weight=table.weights)

    def score_rows(self, table):
        """Return the log density of each distinct row, nats."""
        levels = self._model.get_parameters()["measurement"]["pis"]  # classes x (columns * most)
        joint = np.log(self._model.weights_) + np.zeros((table.codes.shape[1], 1))
        for j, codes in enumerate(table.codes.astype(np.int64)):
            joint += np.log(levels[:, j * self._most + codes].T)
        return logsumexp(joint, axis=1)


def latent_classes(table, make=LatentClasses, numbers=NUMBERS):
    """Return the mixture of as many classes as held-out rows speak for; more until they do not."""
    rng = np.random.default_rng(0)
    held = split_rows(table.weights, 5, rng)[0]
    seen, asked = with_weights(table, table.weights - held), with_weights(table, held)
    best, chosen = -np.inf, numbers[0]
    for n_classes in (n for n in numbers if n <= seen.n_distinct):
        score = float(asked.weights @ make(seen, n_classes, rng).score_rows(asked))
        if score < best:
            break
        best, chosen = score, n_classes
    return make(table, chosen, rng)


def _one_hot(table):
    return np.concatenate(
        [np.eye(n)[codes] for n, codes in zip(table.schema.n_levels, table.codes, strict=True)],
        axis=1,
    )
