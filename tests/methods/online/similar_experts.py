"""Streams on which experts hardly differ, as in a proof of what no player can avoid."""

import numpy as np

from bayescascade import OnlineGate


class Fixed:
    """An expert whose decisions are a column of the rows."""

    def __init__(self, column):
        self.column = column

    def decide(self, X):
        return np.asarray(X)[:, self.column]


def hardly_differing(rng, rates, n, k, cost):
    """Return the regret on the stream of Nan (2018), 6.3, beside the expert best in the mean.

    Experts answer by coins, one by a coin that is slightly better, and the last one asks. Rates
    "horizon" are with the thesis's exploration and its charge for asking.
    """
    epsilon = (np.log(k - 1) / (16 * n)) ** (1 / 3)
    y = rng.integers(0, 2, n)
    wrong = rng.random((n, k)) < 0.5 - epsilon * (np.arange(k) == 0)
    X = np.where(wrong, 1 - y[:, None], y[:, None]).astype(np.int16)
    X[:, -1] = -1
    thesis = {"horizon": n, "exploration": "mix", "known_cost": False}
    gate = OnlineGate(
        [Fixed(column) for column in range(k)], cost=cost, classes=[0, 1], rates=rates,
        random_state=rng, **(thesis if rates == "horizon" else {}),
    )  # fmt: skip
    lost = gate.partial_fit(X, y).played_.losses(y).sum()
    return float(lost - n * min(0.5 - epsilon, cost))
