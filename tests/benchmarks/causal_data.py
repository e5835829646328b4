"""Pairs of columns of which one causes the other: made by additive noise models, or measured.

Made pairs are ``effect = mechanism(cause) + noise``: every combination of five mechanisms, two
laws of the cause, two of the noise and two sizes of the noise, beside the mechanism's spread. The
measured pairs are the Tuebingen cause-effect pairs (Mooij et al., Distinguishing cause from effect
using observational data, JMLR 17(32), 2016); weights there sum to one over pairs of one source.
"""

from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Column = NDArray[np.float64]

MECHANISMS = {
    "tanh": lambda x: np.tanh(2.0 * x),
    "cubic": lambda x: x**3 + 0.5 * x,
    "line and sine": lambda x: x + np.sin(3.0 * x),
    "square": lambda x: x**2 + 0.5 * x,
    "sine": lambda x: np.sin(2.0 * x),
}
LAWS = {  # of mean 0 and variance 1
    "uniform": lambda rng, n: rng.uniform(-np.sqrt(3.0), np.sqrt(3.0), n),
    "normal": lambda rng, n: rng.normal(size=n),
}
NOISES = (0.2, 0.4)


class Pair(NamedTuple):
    """Two columns, (n,) float64 each, and what is known of them.

    ``is_forward`` says that x causes y. ``weight`` is positive.
    """

    name: str
    x: Column
    y: Column
    is_forward: bool
    weight: float = 1.0


def made_pairs(n=500, seed=0):
    """Yield 40 pairs of n rows, half of them, on average, with the effect first."""
    cases = list(product(MECHANISMS, LAWS, LAWS, NOISES))
    streams = np.random.SeedSequence(seed).spawn(len(cases))
    for (mechanism, law, law_of_noise, size), stream in zip(cases, streams, strict=True):
        rng = np.random.default_rng(stream)
        cause = LAWS[law](rng, n)
        clean = MECHANISMS[mechanism](cause)
        effect = clean + size * clean.std() * LAWS[law_of_noise](rng, n)
        name = f"{mechanism}, {law} cause, {law_of_noise} noise of {size:g}"
        if rng.random() < 0.5:
            yield Pair(name, cause, effect, is_forward=True)
        else:
            yield Pair(name, effect, cause, is_forward=False)


def cause_effect_pairs(folder):
    """Yield the pairs of two columns and positive weight in a folder with `pairmeta.txt`.

    Pairs with more columns, of several causes or with a flag, are left out.
    """
    for line in (folder / "pairmeta.txt").read_text().splitlines():
        number, first_cause, *_, weight = line.split()
        columns = np.loadtxt(folder / f"pair{number}.csv", delimiter=",", skiprows=1, unpack=True)
        if len(columns) == 2 and float(weight) > 0.0:
            yield Pair(number, *columns, is_forward=first_cause == "1", weight=float(weight))


def drawn(pair, n_most, seed=0):
    """Return a pair of at most so many rows, drawn without replacement."""
    if len(pair.x) <= n_most:
        return pair
    chosen = np.random.default_rng(seed).choice(len(pair.x), n_most, replace=False)
    return pair._replace(x=pair.x[chosen], y=pair.y[chosen])
