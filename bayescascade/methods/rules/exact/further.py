"""What further rules can add to the log prior, whatever they are: bounds by their number.

A prefix has ``m`` rules, ``u_c`` of them of size ``c``, so that ``a_c = N_c - u_c`` candidates of
that size are left. The log prior of ``k`` further rules of sizes ``c_1 .. c_k`` is, by `ListPrior`,
``H(m + k)`` and a sum over the rules j of ``s(c_j) - ln Z_j - ln(a_{c_j} - i_j)``: ``H`` is the log
probability of the length, and for densities the likelihood's term for the number of parts with it;
``s`` the log weight of a size; ``i_j`` how many of the further rules before j have that size;
``Z_j`` the summed weights of the sizes of which a candidate is left.

* Sizes with ``a_c >= j`` cannot have run out before rule j, so ``Z_j`` is at least the sum of their
  weights, or if there are none the least weight of a size that is left: ``L_j``.
* With ``k_c`` further rules of size c, the other terms are ``sum_c sum_{i < k_c} [s(c) - ln(a_c -
  i)]``. `Further.totals` maximizes them over all ways to write k as the sum of some ``k_c <= a_c``.
* Let ``w_c = s(c) - ln Z_1 - ln a_c``, the log prior of a next rule of size c. The same maximum of
  ``sum_c sum_{i < k_c} [ln a_c - ln(a_c - i)]`` leads to an excess ``G(k)`` for which the log
  prior is at most ``G(k) + sum_j w_{c_j}``. With any slope ``mu``, ``G(k) <= max_k' [G(k') - mu k']
  + mu k``: an offset, and a cost of ``-(w_c + mu)`` for each rule. Slopes are those of G at a few
  numbers of rules, but so low that no cost is negative.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from bayescascade.methods.rules.posterior import DensityListPosterior, RuleListPosterior

__all__ = ["N_SLOPES", "Further", "FurtherRules"]

Floats = NDArray[np.float64]

_SLOPES_AT = (2, 8)
N_SLOPES = len(_SLOPES_AT)


class Further(NamedTuple):
    """Bounds on the log prior of what may follow a prefix, with S slopes.

    next_rule : (H + 1,) float64
        Log prior of a next rule of each size, -inf if none is left.
    totals : (K + 1,) float64
        The most that 0, 1, .. further rules contribute, their number included.
    slopes : (S,) float64
    offsets : (2, S) float64
        What one or more, and two or more, further rules exceed the line of a slope by, at most.
    costs : (S, H + 1) float64 >= 0
        Price of a rule of each size, infinite if none is left.
    empty_gain : (H + 1,) float64
        Bound on how much more probable a list becomes by a rule of each size that captures nothing.
    """

    next_rule: Floats
    totals: Floats
    slopes: Floats
    offsets: Floats
    costs: Floats
    empty_gain: Floats


class FurtherRules:
    """The bounds of a posterior, kept for each vector of how many rules have each size.

    Parameters
    ----------
    posterior : DensityListPosterior or LabelListPosterior

    Attributes
    ----------
    lengths : (M + 1,) float64
        What a list of 0, 1, .. rules has for its length, ``H``.
    """

    def __init__(self, posterior: RuleListPosterior) -> None:
        candidates = posterior.antecedents
        self._n_of_size = candidates.n_of_size
        self._log_sizes = posterior.prior.log_sizes(candidates.max_size)
        self.lengths = posterior.prior.log_lengths(len(candidates))
        if isinstance(posterior, DensityListPosterior):
            alphas = posterior.concentration * np.arange(1, self.lengths.size + 1)
            total = float(posterior.table.weights.sum())
            self.lengths = self.lengths + gammaln(alphas) - gammaln(total + alphas)
        self._longest = self.lengths.size - 1
        self._known: dict[tuple[int, ...], Further] = {}

    def after(self, used: tuple[int, ...]) -> Further:
        """Return the bounds after a prefix with so many rules of 0 (none), 1, .. conditions."""
        found = self._known.get(used)
        if found is None:
            found = self._known[used] = self._bounds(np.array(used))
        return found

    def leave_out(self, least: Floats) -> None:
        """Leave out lists that are so long that they cannot matter.

        Parameters
        ----------
        least : (M + 1,) float64
            What the log prior of a list of 0, 1, .. rules must reach.
        """
        totals = self.after((0,) * self._n_of_size.size).totals
        longest = int(np.flatnonzero(totals >= least[: totals.size]).max(initial=0))
        if longest < self._longest:
            self._longest = longest
            self._known.clear()

    def _bounds(self, used: NDArray[np.int64]) -> Further:
        n_rules, left = int(used.sum()), self._n_of_size - used
        most = max(0, min(self._longest - n_rules, int(left.sum())))
        lengths = self.lengths[n_rules : n_rules + most + 1]
        sizes = np.flatnonzero(left)
        log_left = np.log(np.maximum(left, 1))
        next_rule = np.full(left.size, -np.inf)
        next_rule[sizes] = (self._log_sizes - log_left)[sizes] - self._log_norm(sizes)
        depletion = [log_left[c] - np.log(left[c] - np.arange(min(left[c], most))) for c in sizes]
        terms = [
            d + self._log_sizes[c] - log_left[c] for d, c in zip(depletion, sizes, strict=True)
        ]
        fixed = lengths - np.concatenate([[0.0], np.cumsum(self._least_log_norms(left, most))])
        one_norm = self._log_norm(sizes) if sizes.size else 0.0
        excess = fixed + _best_split(depletion, most) + one_norm * np.arange(most + 1)
        slopes, offsets = _lines(excess, -float(next_rule.max(initial=-np.inf)))
        return Further(
            next_rule=next_rule,
            totals=fixed + _best_split(terms, most),
            slopes=slopes,
            offsets=offsets,
            costs=np.maximum(0.0, -(next_rule + slopes[:, np.newaxis])),
            empty_gain=self._empty_gain(left, lengths),
        )

    def _log_norm(self, sizes: NDArray[np.intp]) -> float:
        return float(np.logaddexp.reduce(self._log_sizes[sizes]))

    def _least_log_norms(self, left: NDArray[np.int64], most: int) -> Floats:
        """Return a lower bound on the log of the summed weights at each further rule."""
        norms = np.empty(most)
        for before in range(most):
            sure = np.flatnonzero(left > before)
            norms[before] = self._log_norm(sure) if sure.size else self._log_sizes[left > 0].min()
        return norms

    def _empty_gain(self, left: NDArray[np.int64], lengths: Floats) -> Floats:
        """Return what a rule that captures nothing can gain, by size.

        A list with k further rules has one length more with it, and one candidate of its size less
        for each of them: it is more probable by ``H(m + k + 1) - H(m + k) + s(c) - ln Z - ln(a_c -
        k_c)`` than the list without it, and ``k_c <= k``. Where a size may run out, ``Z`` would
        change as well: there the gain is not bounded, but infinite.
        """
        gain = np.full(left.size, -np.inf)
        most = lengths.size - 1
        sizes = np.flatnonzero(left)
        if most > 0 and sizes.size:
            may_run_out = left[sizes].min() <= most
            for size in sizes:
                depleted = np.log(np.maximum(1, left[size] - np.arange(most)))
                each = np.diff(lengths) - depleted + self._log_sizes[size] - self._log_norm(sizes)
                gain[size] = np.inf if may_run_out else each.max()
        return gain


def _lines(excess: Floats, highest: float) -> tuple[Floats, Floats]:
    """Return slopes of at most `highest`, and the offsets of the lines above the excess."""
    steps = np.diff(excess)
    if not steps.size:  # nothing can follow
        return np.zeros(N_SLOPES), np.full((2, N_SLOPES), -np.inf)
    slopes = np.minimum(steps[np.minimum(_SLOPES_AT, steps.size - 1)], highest)
    above = excess - slopes[:, np.newaxis] * np.arange(excess.size)
    offsets = [above[:, least:].max(axis=1, initial=-np.inf) for least in (1, 2)]
    return slopes, np.array(offsets)


def _best_split(terms: list[Floats], most: int) -> Floats:
    """Return the largest sum of the first few terms of each list, 0 .. most of them in all."""
    best = np.full(most + 1, -np.inf)
    best[0] = 0.0
    for each in terms:
        sums = np.concatenate([[0.0], np.cumsum(each)])
        after = best.copy()
        for k in range(1, sums.size):
            after[k:] = np.maximum(after[k:], best[: most + 1 - k] + sums[k])
        best = after
    return best
