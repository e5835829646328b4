"""The noise of a private direction, which is public, and what it implies in advance.

`Protection` computes sensitivities, scales of noise and proposals from settings and a number of
rows, without any rows. `agreement` is the probability that noise does not change the order of two
scores, which `PrivacyPlan` uses.

**How much a test row can change a score.** Neighbors differ in one of the m test rows: u_k of a and
v_k of b are replaced. All numbers are within declared bounds, scaled to [-1, 1]; kernels are
Gaussian, so ``0 <= k <= k(u, u) = 1``; bandwidths and proposals do not depend on any row.

* *kendall*: m - 1 pairs change by at most 2 of m (m - 1) / 2, hence ``4 / m`` (thesis, theorem 3).
* *spearman*: with c, d the centered ranks of a and b, the own product ``c_k d_k``, within ``(m -
  1)^2 / 4`` of 0, changes by at most ``(m - 1)^2 / 2``. Moving u_k shifts the ranks between the old
  and new place by at most 1, all in the same direction, so ``sum_{i != k} (c_i - c~_i) d_i`` is at
  most the sum of the positive d, or of the negative, ``m^2 / 8``: the sum of |d| is half the number
  of ordered pairs of which one is counted up and the other down, at most ``m^2 / 4``. The same
  holds for v_k. Times ``12 / (m (m^2 - 1))``: ``(3 m^2 + 6 (m - 1)^2) / (m (m^2 - 1))``, about 9 /
  m. (The thesis has 30 / m.)
* *hsic*: let mu, nu be the means of the other rows' features, ``A = (phi(u_k) - mu) x (psi(v_k) -
  nu)`` and B the same for the new row. The cross-covariances C of all rows differ by ``(m - 1) /
  m^2 (A - B)``, and the score is ``m / (m - 1) |C|``: it changes by at most ``|A - B| / m``. With
  ``p = phi(u_k) - mu``, p~ for the new row, and q, q~ by psi, let ``e = |mu|^2 - <phi(u_k), mu> -
  <phi(u~_k), mu>``, so that ``<p, p~> >= e`` and ``|p|^2 + |p~|^2 = 2 + 2 e``, and e' for q. If e,
  e' >= 0, then ``|A - B|^2 = |p|^2 |q|^2 + |p~|^2 |q~|^2 - 2 <p, p~> <q, q~> <= 2 (1 + e)(1 + e') +
  2 t t' - 2 e e'`` where ``t = (|p|^2 - |p~|^2) / 2`` is within ``1 - e`` of 0, because means of
  kernels are >= 0 and ``|mu| <= 1``; this is at most ``4 + 2 e e' <= 6``. If the inner products
  have different signs, say ``-c = <p, p~> < 0``, then ``c <= -e``, and ``|A - B|^2 <= max(|q|^2,
  |q~|^2) (2 + 2 e + 2 c) <= 4``, as ``|q|^2 <= 2``; if they have the same sign but e < 0, ``|A -
  B|^2 <= 2 (2 + 2 e) <= 4``. Hence ``sqrt(6) / m``. (For HSIC itself, the square, this proves
  ``sqrt(6) / (m - 1)``, as ``|C| <= 1 / 2``; the thesis has ``(12 m - 11) / (m - 1)^2``, not
  proved.)

**A distance.** `iqr_distance` returns the minimum number of rows to replace until another row might
change the score by more than proposed. Replacing one row changes it by at most 1, as
propose-test-release requires. It is the first k at which a bound u_k on the change exceeds the
proposal, where u_k of a neighbor is at most u_{k+1}.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import ParameterError
from bayescascade.base.validation import check_real
from bayescascade.methods.causal.pair import LEAST_ROWS
from bayescascade.methods.causal.regression import GaussianFeatures, regression_error
from bayescascade.methods.causal.scores import interquartile
from bayescascade.privacy.accounting import Cost
from bayescascade.privacy.mechanisms import TEST_SHARE, stability_threshold
from bayescascade.report.page import Heading, Page, Pieces
from bayescascade.report.printed import Readable

ROUNDING = 1e-7
"""A generous bound on the floating-point error of a score.

Features have relative errors of at most 1e-9, because eigenvalues below 1e-13 of the largest are
excluded; ranks have none.
"""

MOST_ERROR = 0.05
"""The error of private regressions up to which directions are mostly still right.

Of 40 simulated pairs, 0.57 were right at an error of 0.07, 0.91 at 0.04 and 0.98 at 0.03.
"""

_MOST_ROWS = 10**12
_RANGES = {"n_rows": (LEAST_ROWS, _MOST_ROWS), "margin": (1e-9, 1e3), "epsilon": (1e-8, 1e6)}
_PLACES = 1 << 50  # number of steps in a range


def by_test_row(score: str, m: int) -> float:
    """Return the maximum change of "spearman", "kendall" or "hsic" by one of m >= 3 rows."""
    if score == "kendall":
        return 4 / m
    if score == "spearman":
        return (3 * m * m + 6 * (m - 1) ** 2) / (m * (m * m - 1))
    return math.sqrt(6) / m


def iqr_distance(samples: Sequence[Floats], proposed: float) -> int:
    """Return the number of rows to replace until one more may change a log IQR too much.

    Let v be the sorted numbers and i the place of a quartile. After k rows are replaced, the
    numbers next to the quartile may be those that are k + 1 places apart, a window around i;
    another row moves one or both quartiles by a place, in the same direction, so the IQR changes by
    at most the widest window g_k. The IQR is at least I_k, the least difference of numbers that are
    k + 1 places closer: ``u_k = log(1 + g_k / I_k)``.

    `samples` are (m,) float64 each; the result is their smallest distance; proposed > 0, nats, is
    the maximum change of each log IQR.
    """
    return min(
        bisect_right(range(len(numbers)), proposed, key=_iqr_bound(np.sort(numbers)))
        for numbers in samples
    )


def _iqr_bound(ordered: Floats) -> Callable[[int], float]:
    low, high = interquartile(len(ordered))

    def bound(k: int) -> float:
        if k + 1 > low:  # beyond the smallest number: no bound
            return math.inf
        places = np.arange(k + 2)
        starts = np.array([[low], [high]]) - places  # starts of windows
        gap = float((ordered[starts + k + 1] - ordered[starts]).max())
        least = float((ordered[high - (k + 1) + places] - ordered[low + places]).min())
        return math.log1p(gap / least) if least > 0 else math.inf

    return bound


@dataclass(frozen=True, slots=True)
class Protection:
    """Public settings of a private direction; the fields are those of `PrivateAdditiveNoiseModel`.

    Raises ParameterError if they contradict each other.
    """

    score: str
    epsilon: float
    delta: float
    protect: str
    publish: str
    bandwidth: float
    proposed: float | None
    test_share: float

    def __post_init__(self) -> None:
        if not self.is_tested:
            return
        why = f"score {self.score!r} with protect={self.protect!r} is tested for stability"
        if self.delta == 0.0:
            raise ParameterError(f"delta must be > 0, such as 1e-6, as {why}, got 0")
        if self.publish == "direction":
            raise ParameterError(f"publish must be 'scores', as {why}, got 'direction'")

    @property
    def is_tested(self) -> bool:
        """Whether there is no bound for all rows, so that the given rows are tested privately."""
        return self.score == "iqr" and self.protects_test

    @property
    def protects_test(self) -> bool:
        """Whether test rows are protected."""
        return self.protect != "train"

    @property
    def protects_training(self) -> bool:
        """Whether training rows are protected."""
        return self.protect != "test"

    @property
    def cost(self) -> Cost:
        """The privacy cost of a release."""
        if self.publish == "direction":
            return Cost(self.epsilon, rho=self.epsilon**2 / 8)
        return Cost(self.epsilon, self.delta if self.is_tested else 0.0)

    @property
    def kernels(self) -> tuple[GaussianFeatures, GaussianFeatures]:
        """Features of the kernels of HSIC, for a cause and for residuals."""
        return GaussianFeatures(self.bandwidth, -1, 1), GaussianFeatures(self.bandwidth, -2, 2)

    def n_test(self, n_rows: int) -> int:
        """Return the number of test rows; the others are training rows."""
        return min(max(round(n_rows * self.test_share), 3), n_rows - 3)

    def sensitivity(self, n_rows: int) -> float:
        """Return the bound on the change of each score by a row: proved, or proposed for a test.

        By default approximately normal rows almost surely pass the test: distances must reach the
        threshold T, and 2 T + 6 leaves room for the noise. Within that number of places of its
        quartiles, the log of a normal IQR changes by 2.33 / m per place.
        """
        m = self.n_test(n_rows)
        if self.is_tested:
            by_default = 2 * (2 * self._threshold + 6) * (4 / m)
            return by_default if self.proposed is None else self.proposed
        return by_test_row(self.score, m) if self.protects_test else 0.0

    def scale(self, n_rows: int) -> float:
        """Return the scale of the Laplace noise on each score."""
        epsilon = self.epsilon * (1 - TEST_SHARE) if self.is_tested else self.epsilon
        sensitivity = self.sensitivity(n_rows)
        return 2 * (sensitivity + 2 * ROUNDING) / epsilon if sensitivity else 0.0

    def regression_error(self, n_rows: int) -> float:
        """Return the error of private regressions by noise; 0 without noise."""
        if not self.protects_training:
            return 0.0
        return regression_error(n_rows - self.n_test(n_rows), self.epsilon)

    def can_pass(self, n_rows: int) -> bool:
        """Return whether some rows can pass the stability test, if any, with probability over 1/2.

        It does not depend on the rows.
        """
        return not self.is_tested or interquartile(self.n_test(n_rows))[0] >= self._threshold

    @property
    def _threshold(self) -> int:
        return stability_threshold(self.epsilon * TEST_SHARE, self.delta)


def agreement(margin: float, scale: float) -> float:
    """Return the probability that Laplace noise does not change the order of two scores.

    margin >= 0 is their difference; scale > 0 is that of the noise on each (Kusner, theorem 4).
    """
    ratio = margin / scale
    return 1 - (ratio + 2) / 4 * math.exp(-ratio)


def credibility(margin: float, scale: float, largest: float) -> float:
    """Return the probability of an order of the scores, given a noisy margin.

    The prior of the margin without noise is uniform from minus to plus `largest` (infinite if
    unknown). Then the noise is in ``[margin - largest, margin + largest]``, and the result is the
    probability of the part below the margin, >= 0, of the noisy scores. scale > 0 is that of the
    noise on each.
    """
    if not math.isfinite(largest):
        return agreement(margin, scale)
    nearest = max(margin - largest, 0.0)  # its exponential, which may underflow, is factored out

    def beyond(noise: float) -> float:
        """Return the probability that the difference of two noises is larger."""
        ratio = abs(noise) / scale
        tail = (ratio + 2) / 4 * math.exp((nearest - abs(noise)) / scale)
        return tail if noise >= 0 else 1 - tail

    low = beyond(margin - largest)
    return (low - beyond(margin)) / (low - beyond(margin + largest))


@dataclass(frozen=True)
class PrivacyPlan(Readable):
    """The plan of a study, from `PrivateAdditiveNoiseModel.plan`."""

    n_rows: int
    margin: float  # > 0, difference of the scores without noise
    epsilon: float
    probability: float  # that noise does not change the direction
    protection: Protection
    computed: str  # which of the four was computed

    def to_dict(self) -> dict[str, Any]:
        """Return the four quantities."""
        names = ("n_rows", "margin", "epsilon", "probability")
        return {name: getattr(self, name) for name in names}

    def page(self) -> Page:
        """Return the four quantities as a sentence."""
        texts = {
            "n_rows": f"{self.n_rows:,} rows",
            "margin": f"scores that differ by {self.margin:.3g}",
            "epsilon": f"epsilon {self.epsilon:.3g}",
            "probability": f"probability {self.probability:.3f} that noise does not change the "
            "direction",
        }
        found = texts.pop(self.computed)
        tested = ["if the rows pass the test of stability"] if self.protection.is_tested else []
        whose = {"both": "all", "train": "training"}.get(self.protection.protect, "test")
        kept = f"score {self.protection.score}, {whose} rows protected"
        return Heading([found]), Pieces(["with " + ", ".join(texts.values()), *tested, kept])


def planned(
    protection: Callable[[float], Protection], computed: str, known: Mapping[str, float]
) -> PrivacyPlan:
    """Return the plan, with the missing number `computed` computed from the `known` ones.

    These are fields of `PrivacyPlan`; ParameterError if one is out of its range, or there is no
    solution.
    """

    def reached(number: float) -> float:
        """Return the probability for a value of the missing number."""
        numbers = {**known, computed: number}
        settings, n_rows = protection(numbers["epsilon"]), int(numbers["n_rows"])
        if not settings.can_pass(n_rows) or settings.regression_error(n_rows) > MOST_ERROR:
            return 0.5  # a guess: no answer, or one by the noise in regressions
        noise, margin = settings.scale(n_rows), numbers["margin"]
        if not noise:
            return 1.0
        if settings.publish == "direction":
            return float(expit(margin / noise))
        return agreement(margin, noise)

    if computed == "probability":
        found = reached(0.0)
    else:
        wanted = check_real("probability", known["probability"], above=0.5, below=1.0)
        found = _least(computed, reached, wanted)
    numbers = {**known, computed: found}
    return PrivacyPlan(
        int(numbers["n_rows"]),
        numbers["margin"],
        numbers["epsilon"],
        numbers["probability"],
        protection(numbers["epsilon"]),
        computed,
    )


def _least(computed: str, reached: Callable[[float], float], wanted: float) -> float:
    """Return the smallest number that reaches a probability, which increases with it."""
    low, high = _RANGES[computed]

    def number(place: int) -> float:
        if computed == "n_rows":
            return float(LEAST_ROWS + place)
        return float(low * (high / low) ** (place / _PLACES))

    places = range(_MOST_ROWS if computed == "n_rows" else _PLACES)
    found = bisect_left(places, True, key=lambda place: reached(number(place)) >= wanted)
    if found == len(places):
        raise ParameterError(
            f"probability must be one that some {computed} can reach, got {wanted:g}"
        )
    return number(found)
