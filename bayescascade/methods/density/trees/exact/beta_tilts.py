"""The sum over all trees of a leaf model with the generative prior: a mixture of tilts.

`passes` defines the terms. Without a Poisson, with n rows, ::

    w_K = G(K alpha) / G(n + K alpha) = 1 / G(n) * integral over u > 0 of
          exp(-K alpha u) (1 - exp(-u))**(n - 1) du,

a Beta integral, so that ``Z = sum_K w_K S_K`` is the integral of ``(1 - exp(-u))**(n - 1) / G(n)``
times the sum over all trees with the tilt ``-alpha u``. Nothing cancels, and in ``t = ln u`` the
trapezoid rule converges geometrically. Its nodes are tilts with coefficients, and `expansion`
bounds their error. Independent draws are made from them, too.
"""

import numpy as np
from scipy.special import digamma, logsumexp, polygamma

from bayescascade.base.arrays import Floats
from bayescascade.methods.density.trees.exact.expansion import NEGLIGIBLE, Expansion, Mixture, Sum
from bayescascade.methods.density.trees.exact.passes import Passes

_STEP = 0.85  # between nodes, in standard deviations of ln u given the number of leaves
_FAR, _FARTHER = 35.0, 70.0  # nats below the largest at which nodes end, first and second try
_MOST_NODES = 600
_DOUBLINGS = 6  # numbers of leaves that determine the step: the guess, doubled repeatedly
_FINE = 1e-6  # nats of error; beyond, more nodes are tried
_BELOW = np.array([2.0, 4.0, 8.0])  # multiples of the lowest tilt, to bound trees of few leaves
_BEYOND = (0.25, 1.0, 4.0, 16.0)  # tilts that bound the sum over trees with more leaves than listed


def add_up_by_beta(
    passes: Passes, log_least: float, guess: int, rng: np.random.Generator, precise: float
) -> Sum:
    """Sum until the error is below `precise` nats; `guess`: leaves of a probable tree."""
    expansion = Expansion(passes, log_least)
    nodes = _Nodes(passes, guess, rng, 1.0, _FAR)
    log_sum, error = expansion.given(*nodes.tilts_and_logs())
    lowest = min(passes.sums)
    for tilt in (*(_BELOW * lowest), *(_BEYOND if passes.has_more else ())):
        passes.sum_of(float(tilt), rng)
    for step, far in ((1.0, _FAR), (1.0, _FAR), (0.5, _FARTHER)):  # the second with a better guess
        if error <= max(precise, _FINE):
            break
        nodes = _Nodes(passes, guess, rng, step, far)
        expansion.cover(max(log_least, log_sum - error), rng)
        log_sum, error = expansion.given(*nodes.tilts_and_logs())
    return Sum(log_sum, error, nodes.mixture())


class _Nodes:
    """Nodes of the trapezoid rule about `guess` leaves, usual steps apart, down to `far` nats."""

    def __init__(
        self, passes: Passes, guess: int, rng: np.random.Generator, step: float, far: float
    ) -> None:
        self._passes, self._rng = passes, rng
        self._n, self._alpha = passes.total, float(passes.posterior.model.concentration)
        self._guess = min(max(guess, 1), passes.k.size)
        k = self._guess * 2.0 ** np.arange(_DOUBLINGS)
        a = self._alpha * k[k <= passes.most]
        means = digamma(a + self._n) - digamma(a)  # means of u given the number of leaves
        spreads = np.sqrt(polygamma(1, a) - polygamma(1, a + self._n))
        self._center = float(np.log(means[0]))
        self._step = step * _STEP * float((spreads / means).min())
        self._worths: dict[int, float] = {}  # by steps from the center
        self._find(far)

    def _find(self, far: float) -> None:
        """Add nodes on both sides until their terms are this many nats below the largest."""
        self._add(0)
        for side in (1, -1):
            place = side
            while len(self._worths) < _MOST_NODES:
                self._add(place)
                if self._worths[place] < max(self._worths.values()) - far:
                    break
                place += side

    def _add(self, place: int) -> None:
        if place in self._worths:
            return
        tilt, log_density = self._of(place)
        self._passes.sum_of(tilt, self._rng)
        self._worths[place] = log_density + self._passes.sums[tilt]

    def _of(self, place: int) -> tuple[float, float]:
        """Return a node's tilt, and the log of the integrand in t without its sum over trees."""
        t = self._center + place * self._step
        u = float(np.exp(t))
        log_share = float(np.log(-np.expm1(-u))) if u > 0.0 else t  # of light rows u underflows
        return -self._alpha * u, t + (self._n - 1.0) * log_share

    def tilts_and_logs(self) -> tuple[list[float], Floats]:
        """Return the tilts, largest contribution first, and the logs of their coefficients.

        They give ``w_K`` at the guess exactly, so that rounding of log gammas does not change it.
        """
        order = sorted(self._worths, key=lambda place: -self._worths[place])
        found = [self._of(place) for place in order]
        tilts, logs = [tilt for tilt, _ in found], np.array([log for _, log in found])
        k = float(self._guess)
        log_w = float(self._passes.log_w[self._guess - 1])
        return tilts, logs + log_w - float(logsumexp(logs + k * np.array(tilts)))

    def mixture(self) -> Mixture:
        """Return the tilts to draw from, in proportion to their terms; all draws are accepted."""
        tilts, logs = self.tilts_and_logs()
        worths = logs + np.array([self._passes.sums[tilt] for tilt in tilts])
        shares = np.exp(worths - logsumexp(worths))
        kept = shares > NEGLIGIBLE / shares.size
        accepted = np.zeros(self._passes.k.size)
        return Mixture(np.array(tilts)[kept], shares[kept] / shares[kept].sum(), accepted, 1.0)
