r"""The privacy guarantee of rados, and the exact distribution of a protected coordinate.

Let feature j be boolean, coded as -1 and 1, so edges have y_i x_ij = +-1, P of them +1 and N = m -
P of them -1. With a uniform signature, the coordinate of a rado is A - B, A ~ Bin(P, 1/2) and B ~
Bin(N, 1/2): **pi_j = K - N with K = A + N - B ~ Bin(m, 1/2)**, for all data. DP-Feat (Nock and
others, 2015, Algorithm 2) only uses signatures with K from c to m - c, c = ceil(beta (m + 1)),
equation 16. A neighbor whose feature differs in one row has N + 1 or N - 1: its law is shifted by
one. With p the law of K, therefore exactly, for one rado,

    delta(epsilon) = sum_k max(0, p(k) - exp(epsilon) p(k + 1)),   p(m - c + 1) = 0,

and the same in the other direction, because p is symmetric. **For n rados**, all n coordinates
shift by the same one. Let L = log p(K) / p(K + 1) = log (K + 1) / (m - K) be the privacy loss,
infinite at k = m - c (with probability q). For all t > 0, (1 - exp(-x))_+ <= exp(t x) t^t / (1 +
t)^(1 + t), so

    delta_n(epsilon) <= 1 - (1 - q)^n
                        + min_t E[exp(t L); L < inf]^n exp(-t epsilon) t^t / (1 + t)^(1 + t);

and delta_n(epsilon) <= n delta(epsilon / n). The guarantee has the smaller one.

**Departures from the paper.** Its theorem 6 is asymptotic; this is for the given m. And cutting off
tails *costs* privacy: the last value kept has no counterpart in a neighbor, and a cut makes this
value more probable. `coordinate_delta` is least for c = 0, the plain rados, for every m, epsilon
and n = 1, and grows with c: let k* be the least k with p(k) > exp(epsilon) p(k + 1) for the uncut
law p, and S(i, j) its mass from i to j. If m - c <= k*, only the last value counts, delta = p(m -
c) / S(c, m - c), and a smaller c has a smaller numerator and a larger denominator. Otherwise delta
= (p(k*) - (exp(epsilon) - 1) S(k* + 1, m - c)) / S(c, m - c), with the same result. So the cut is 0
by default.

Only the coordinate is protected. With the other coordinates, one may recover the signature, and
from it the cell: `Rados.sample_gaussian` protects whole rows.
"""

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy.optimize import minimize_scalar

from bayescascade.base.arrays import Floats, Integers
from bayescascade.base.errors import PrivacyError
from bayescascade.base.store import Within, Words
from bayescascade.methods.rados.signatures import Draw
from bayescascade.privacy.accounting import times_text
from bayescascade.report.page import Page, Pieces, warning
from bayescascade.report.printed import Printed

_MOST_DEVIATIONS = 36.0  # beyond this all probabilities of K are left out
_TINY, _LEFT_OUT = 1e-280, 1e-270  # ratios to the middle left out, and bound on their sum
_UP = 1.0 + 2.0**-20  # factor for rounding up floating-point results
_MOST_TRIED = 150.0  # largest epsilon tried


@dataclass(frozen=True, slots=True)
class Promise(Printed):
    """The privacy guarantee of rados: a bound on what they reveal about one row.

    Parameters
    ----------
    protects : {"feature", "rows"}
        "feature": the coordinate of one feature is protected, for neighbors that differ in it in
        one row. "rows": all rados are protected, for neighbors with one different row and label.
    epsilon, delta : float
    feature : str
        The protected feature; empty if rows are protected.
    noise : str
        The source of privacy, such as "Gaussian noise of scale 2.31 on each edge".
    is_private : bool
        Whether randomness came from the operating system, and was not simulated.
    """

    protects: Annotated[str, Words("feature", "rows")]
    epsilon: Annotated[float, Within(above=0)]
    delta: Annotated[float, Within(0, below=1)]
    feature: str
    noise: str
    is_private: bool

    def __post_init__(self) -> None:
        if bool(self.feature) != (self.protects == "feature"):
            raise ValueError("a promise must name the feature that it protects, and only that")

    @property
    def guarantee(self) -> str:
        """The guarantee as a sentence."""
        if not self.is_private:
            return "Simulated, not private: anyone who knows the seed can undo it."
        budget = f"(epsilon {self.epsilon:g}, delta {self.delta:.3g})"
        times = f"{times_text(self.epsilon)} times as probable"
        if self.protects == "rows":
            return (
                f"Whatever else an observer knows, replacing one row, its label included, makes no "
                f"result more than {times}, except with probability {self.delta:.3g} {budget}."
            )
        return (
            f'If "{self.feature}" changes in one row, no values of its coordinate in the rados '
            f"become more than {times}, except with probability {self.delta:.3g} {budget}. "
            "The other coordinates are not protected. With them, an observer may recover the cell."
        )

    def page(self) -> Page:
        """Return the guarantee."""
        guarantee = Pieces([self.guarantee]) if self.is_private else warning(self.guarantee)
        return (*([Pieces([self.noise], "dim")] if self.noise else []), guarantee)


def released_together(promises: list[Promise | None], *, same_rows: bool) -> Promise | None:
    """Return the joint guarantee of releases; None if there is none.

    For different rows it is the weakest, because each person is in one release; for the same rows,
    costs add up.
    """
    known = [promise for promise in promises if promise is not None]
    if (
        len(known) < len(promises)
        or len({(promise.protects, promise.feature) for promise in known}) > 1
    ):
        return None
    joined = math.fsum if same_rows else max
    delta = joined(promise.delta for promise in known)
    if delta >= 1.0:
        return None
    noises = list(dict.fromkeys(promise.noise for promise in known))
    return Promise(
        known[0].protects,
        joined(promise.epsilon for promise in known),
        delta,
        known[0].feature,
        "; ".join(noises),
        all(promise.is_private for promise in known),
    )


def cut_of(n_rows: int, truncation: float) -> int:
    """Return the minimum number of agreements K of signatures, at most half the rows.

    truncation in [0, 1/2) is the paper's beta.
    """
    return min(math.ceil(truncation * (n_rows + 1)), n_rows // 2)


def agreement_law(n_rows: int, cut: int) -> tuple[int, Floats]:
    """Return the least K, and the probabilities of K from there on: Bin(m, 1/2) cut at both ends.

    They are products of ratios from the middle, C(m, k + 1) / C(m, k) = (m - k) / (k + 1), down to
    1e-280, with a relative error of a few units in the last place per step.
    """
    reach = math.ceil(_MOST_DEVIATIONS * math.sqrt(n_rows) / 2.0) + 1
    first = max(cut, n_rows // 2 - reach)
    middle = n_rows // 2
    steps = np.arange(middle, first, -1)  # down from the middle, C(m, k - 1) / C(m, k)
    below = np.cumprod(np.concatenate([[1.0], steps / (n_rows - steps + 1.0)]))[::-1]
    half = below if n_rows % 2 else below[:-1]
    weights = np.concatenate([below, half[::-1]])
    n_tiny = int(np.argmax(below > _TINY))
    weights = weights[n_tiny : len(weights) - n_tiny]
    return first + n_tiny, weights / weights.sum()


def coordinate_delta(n_rows: int, cut: int, epsilon: float, n_rados: int = 1) -> float:
    """Return a delta such that the protected coordinate of n rados is (epsilon, delta)-private.

    For one rado it is the least; for more it is a bound; see the module. n_rows >= 1: number of
    rows of the rados; cut from 0 to n_rows / 2: see `cut_of`; epsilon >= 0.
    """
    first, law = agreement_law(n_rows, cut)
    k = np.arange(first, first + len(law) - 1, dtype=np.float64)
    losses = np.log((k + 1.0) / (n_rows - k))
    gaps = -np.expm1(np.minimum(epsilon / n_rados - losses, 0.0))  # 1 - exp(epsilon) p(k+1) / p(k)
    one = float(law[:-1] @ gaps + law[-1])
    if n_rados == 1:
        return min(1.0, one)
    infinite = -math.expm1(n_rados * math.log1p(-law[-1])) if law[-1] < 1.0 else 1.0

    def log_bound(log_t: float) -> float:
        t = math.exp(log_t)
        tilted = t * losses
        top = float(tilted.max())
        log_moment = top + math.log(float(law[:-1] @ np.exp(tilted - top)))
        factor = t * math.log(t) - (1.0 + t) * math.log1p(t)
        return n_rados * log_moment - t * epsilon + factor

    rest = 0.0
    if losses.size:
        found = minimize_scalar(log_bound, bounds=(-9.0, 16.0), method="bounded")
        rest = math.exp(min(0.0, float(found.fun)))
    return min(1.0, n_rados * one, infinite + rest)


def check_budget(
    n_rows: int, cut: int, epsilon: float, delta: float, n_rados: int, rounding: float = 0.0
) -> float:
    """Return the delta guaranteed at `epsilon`, which is at most the given one, in (0, 1).

    rounding >= 0: bound on the error of each signature's law in total variation, which adds (1 +
    exp(epsilon)) times as much, because both laws have it; the others as in `coordinate_delta`.
    Raises PrivacyError if there is no such guarantee; the message says for which epsilon, or for
    how many rados, there is one.
    """

    def promised(at: float, n: int) -> float:
        off = n * (1.0 + math.exp(at)) * rounding
        return coordinate_delta(n_rows, cut, at, n) * _UP + n * _LEFT_OUT + off

    reached = promised(epsilon, n_rados)
    if reached <= delta:
        return reached
    hints, (low, high) = [], (epsilon, epsilon)
    while promised(high, n_rados) > delta and high < _MOST_TRIED:
        low, high = high, 2.0 * high
    if high < _MOST_TRIED:
        for _ in range(12):
            middle = 0.5 * (low + high)
            is_enough = promised(middle, n_rados) <= delta
            low, high = (low, middle) if is_enough else (middle, high)
        hints.append(f"epsilon must be at least {1.005 * high:.3g}")  # not rounded down
    fewest, most = 0, n_rados
    while most - fewest > 1:
        n = (fewest + most) // 2
        fewest, most = (n, most) if promised(epsilon, n) <= delta else (fewest, n)
    if fewest:
        hints.append(f"n_rados at most {fewest:,}")
    raise PrivacyError(
        f"{n_rados:,} rados of {n_rows:,} rows must be within epsilon {epsilon:g} and delta "
        f"{delta:g}, got delta {reached:.3g}; "
        + (" or ".join(hints) or "there are too few rows, or the truncation is too narrow")
    )


def draw_agreements(draw: Draw, n_rows: int, cut: int, n_rados: int) -> tuple[Integers, float]:
    """Draw K for each rado, and return a bound on the distance of their law from `agreement_law`.

    This takes one random number per rado for any truncation; the paper rejects signatures until one
    is inside, which near beta = 1/2 takes minutes. The distance is a total variation. With u =
    2**-53, each of l probabilities has a relative error of at most 3 l u; each sum of them,
    computed as (F + p)(1 + e) with abs(e) <= u, adds an error of u, and so does the random number,
    a multiple of u.
    """
    first, law = agreement_law(n_rows, cut)
    cumulative = np.cumsum(law)
    words = np.frombuffer(draw(8 * n_rados), np.uint64)
    uniform = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
    places = np.searchsorted(cumulative, uniform * cumulative[-1], side="right")
    rounding = 8.0 * (len(law) + 8.0) * 2.0**-53
    return first + np.minimum(places, len(law) - 1).astype(np.int64), rounding
