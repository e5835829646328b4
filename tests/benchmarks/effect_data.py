"""Rows of which both outcomes are known: made by formulas, by the thesis's text, or ACIC 2016's.

Made worlds have ten columns uniform on [-1, 1], P(y = 1) = s(x_2 + x_3^2 - 1/3 + t g) with
g = 2 (x_0 + x_1), or 1.5 where x_0, x_1 > 0 and else -.75, or 0, and P(t = 1) = 1/2 or, confounded,
s(1.5 x_2 + x_0). Designs of Goh (2018) are those of tables 4.1 and 4.3 to 4.6; half of the rows is
to learn from. Its text gives no number of rows for table 4.4: 400 fit the deviations it prints. Of
table 4.5, y_T where the norm is at most 3 is read as 1 with probability .2. What tables 4.1 and 4.6
print does not follow from these designs, but from those called "as printed": spirals of which each
outcome is turned around by itself, with half the probability, and the largest coordinate in place
of the norm. Of table 4.5 there is no such design: a row whose outcomes differ has probability .68,
and one sign for all rows loses 36 %, where 50 is printed.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import norm

Floats = NDArray[np.float64]

_ACIC = "acic2016_x.csv", "acic2016_outcomes.csv"


class Known(NamedTuple):
    """Rows, what is seen of them, and what is not."""

    X: Floats | pd.DataFrame
    y: NDArray[np.bool_]
    treatment: NDArray[np.bool_]
    effect: Floats  # P(good if treated) - P(good if not)
    drawn: Floats  # -1, 0 or 1, the difference of both outcomes
    propensity: float | None = None

    def part(self, rows):
        """Return some of the rows."""
        X = self.X.iloc[rows] if isinstance(self.X, pd.DataFrame) else self.X[rows]
        y, treatment, effect, drawn = (each[rows] for each in self[1:5])
        return Known(X, y, treatment, effect, drawn, self.propensity)


def _seen(rng, X, chances, share, propensity):
    """Draw both outcomes by their chances, (treated, not), and show one."""
    treatment = rng.random(len(X)) < share
    treated, control = (rng.random(len(X)) < chance for chance in chances)
    effect = chances[0] - chances[1]
    drawn = treated.astype(float) - control
    return Known(X, np.where(treatment, treated, control), treatment, effect, drawn, propensity)


def world(truth, is_confounded, seed, n=7000):
    """Return rows of a made world, "linear", "rules", or "none", where nothing has an effect."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, 10))
    gain = 2.0 * (X[:, 0] + X[:, 1])
    if truth == "rules":
        gain = np.where((X[:, 0] > 0) & (X[:, 1] > 0), 1.5, -0.75)
    gain = gain * (truth != "none")
    base = X[:, 2] + X[:, 3] ** 2 - 1.0 / 3.0
    share = expit(1.5 * X[:, 2] + X[:, 0]) if is_confounded else 0.5
    return _seen(rng, X, (expit(base + gain), expit(base)), share, None)


def spirals(flipped, seed):
    """Return two spirals, on one of which treating helps; a share of effects is the reverse."""
    rng, X, signs = _two_spirals(seed)
    drawn = np.where(rng.random(len(signs)) < flipped, -signs, signs)
    treatment = rng.random(len(signs)) < 0.5
    return Known(X, (drawn > 0) == treatment, treatment, (1 - 2 * flipped) * signs, drawn, 0.5)


def noisy_spirals(flipped, seed):
    """Return the same, of which each of the two outcomes is the reverse, by itself."""
    rng, X, signs = _two_spirals(seed)
    good = np.where(signs > 0, 1.0 - flipped, flipped)
    return _seen(rng, X, (good, 1.0 - good), 0.5, 0.5)


def _two_spirals(seed):
    rng = np.random.default_rng(seed)
    i = np.arange(971)
    radius, angle = 6.5 * (1.0 - i / 1040.0), i * np.pi / 160.0
    one = np.column_stack([radius * np.sin(angle), radius * np.cos(angle)])
    signs = np.repeat([1.0, -1.0], 971)
    order = rng.permutation(len(signs))
    return rng, np.vstack([one, -one])[order], signs[order]


def changing(seed):
    """Return the rows of table 4.4, where the effect changes twice."""
    rng = np.random.default_rng(seed)
    X = rng.random((400, 2))
    treated = np.select([X[:, 0] < 0.6, X[:, 0] < 0.8], [0.4, 0.3], 0.8)
    return _seen(rng, X, (treated, 1.0 - treated), 0.5, 0.5)


def imbalanced(seed):
    """Return the rows of table 4.5, of which nearly all gain."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(1000, 20)), rng.uniform(-1.0, 1.0, (1000, 10))])
    treated = np.where(np.linalg.norm(X, axis=1) > 3.0, 0.8, 0.2)
    return _seen(rng, X, (treated, np.full(1000, 0.2)), 0.7, 0.7)


def many_columns(seed, order=2.0):
    """Return the rows of table 4.6: none has a 2-norm below 4, so that none has an effect.

    Most have a largest coordinate below 3, which is the norm of infinite order.
    """
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(1000, 60)), rng.uniform(-1.0, 1.0, (1000, 60))])
    size = np.linalg.norm(X, order, axis=1)
    chances = (np.select([size < 3.0, size < 4.0], each, 0.2) for each in ([0.4, 0.3], [0.6, 0.7]))
    return _seen(rng, X, (next(chances), next(chances)), 0.5, 0.5)


DESIGNS = {
    "4.1": lambda seed: spirals(0.2, seed),
    "4.1 as printed": lambda seed: noisy_spirals(0.1, seed),
    "4.3": lambda seed: spirals(0.0, seed),
    "4.4": changing,
    "4.5": imbalanced,
    "4.6": many_columns,
    "4.6 as printed": lambda seed: many_columns(seed, np.inf),
}
"""By table of the thesis."""


def acic(folder, setting):
    """Return a setting of ACIC 2016: good is an outcome above the median of those seen."""
    X, outcomes = (pd.read_csv(folder / name) for name in _ACIC)
    of = outcomes[outcomes["setting"] == setting].reset_index(drop=True)
    treatment = of["z"].to_numpy() == 1
    seen = np.where(treatment, of["y1"], of["y0"])
    cut = np.median(seen)
    spread = (seen - np.where(treatment, of["mu1"], of["mu0"])).std()
    chances = [norm.cdf((of[mean].to_numpy() - cut) / spread) for mean in ("mu1", "mu0")]
    drawn = (of["y1"] > cut).to_numpy().astype(float) - (of["y0"] > cut).to_numpy()
    return Known(X, seen > cut, treatment, chances[0] - chances[1], drawn)
