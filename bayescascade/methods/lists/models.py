"""The rule lists' prior and their two likelihoods, formula by formula.

Goh (2018), section 3.2.3 (Model III), which follows Letham, Rudin, McCormick and Madigan (2015). A
list has ``m`` rules and an `else`: ``K = m + 1`` parts; ``n`` is the total weight, ``alpha`` =
`concentration`, ``lam`` = `expected_rules`, ``eta`` = `expected_size`, ``A`` the candidates. All in
nats.

* `ListPrior`, normalized::

      ln P(m)   = m ln lam - ln m! - ln sum_{j = 0 .. M} lam^j / j!,     M = min(|A|, 62)
      ln P(c_j) = c_j ln eta - ln c_j! - ln sum_{k available} eta^k / k!
      ln P(a_j) = -ln (number of candidates of size c_j left)

  over the rules j in order; earlier candidates are no longer left, and a size is available if a
  candidate of it is left.

* `density_log_likelihood`, weights ``n_l`` and volumes ``v_l`` that each part captures first::

      lnG(K alpha) - K lnG(alpha) - lnG(n + K alpha) + sum_l [lnG(n_l + alpha) - n_l ln v_l]

* `label_log_likelihood`, weights ``n_lc`` of the ``C`` classes::

      sum_l [lnG(C alpha) - C lnG(alpha) + sum_c lnG(n_lc + alpha) - lnG(n_l + C alpha)]

Both are computed from the excesses ``D`` and entropies ``E`` of `excess`, which stay small::

      sum_l [D(n_l, alpha) + n_l (ln(n_l / n) - ln v_l)] - D(n, K alpha)
      sum_l [sum_c D(n_lc, alpha) - D(n_l, C alpha) - E(n_l1, .., n_lC)]

Departures from the thesis: its last line (1023) drops ``1 / B(alpha, .., alpha)``, which depends on
``m`` and is kept here; its empty antecedent only ends a list, so sizes begin at 1; lists have at
most 62 rules, which has no effect for a Poisson prior with a readable mean; and a list with a part,
including the `else`, that captures no cell has density zero, because such a part cannot have a
density.

Bounds on the rounding of the log density of a list, by the sizes of its terms.

`excess` bounds the rounding of a part's numbers by `UNIT` times their sizes. Here these are summed
over the parts of a list of K = m + 1 parts. N is the total weight, C the number of classes.

* *Labels*, `label_sizes`: ``E + K (C S(N, a) + S(N, (C - 1) a) + S(N, C a) + C)``, with E the
  entropies of the parts. S grows with n; because the entropy is concave and homogeneous, E is at
  most that of all rows, which a search uses. It also bounds the change of the log likelihood by
  relative errors of sums of weights: ``n_c abs(psi(n + C a) - psi(n_c + a)) <= n_c ln(n / n_c) +
  n_c ln(1 + C a / n) + 1``, which over all classes of a part is at most its entropy plus S(n, C a)
  plus C.
* *Densities*, `density_sizes`: ``E + N (V + 1) + K (S(N, a) + S(N, a')) + S(N, K a) + K``, with E
  the entropy of the distinct rows' weights, which is at least that of the parts' weights, and V the
  largest absolute log of a volume between the smallest cell and the domain; ``a' = max(a, 1/2)`` is
  for a search's bounds. It also bounds the change of the log likelihood by relative errors of
  weights or volumes.
* *The prior*, `prior_sizes`: K times the largest terms of a rule and of the number of rules.

Weights have the relative error `share_of_sums`, volumes `share_of_volumes`: shares of cells are
sums, products and quotients of positive numbers. A condition takes part in at most one split of a
box, which sums at most L widths three times, in a product and a quotient, where L is the number of
levels of its column. The total is ``(k + p) (3 L + 8) UNIT`` for k conditions in a list, p columns,
and the largest L. The logs of the columns' volumes add ``(p + 2) UNIT`` times their sizes.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import betaincinv, gammaln

from bayescascade.base.arrays import Floats, Integers
from bayescascade.methods.lists.excess import OPERATIONS, entropies, excess_sizes, log_excess
from bayescascade.methods.lists.kernels.layout import MAX_RULES
from bayescascade.methods.lists.parameters import PriorParameters
from bayescascade.model.guard import UNIT, share_of_sums

if TYPE_CHECKING:
    from bayescascade.data.schema import Schema


@dataclass(frozen=True, slots=True)
class ListPrior:
    """Poisson priors on the number of rules and on their conditions, with means in (0, 10,000]."""

    # Truncated at 62, or at the number of candidates. Means near 62 and above favor the longest
    # possible lists.
    expected_rules: float = PriorParameters.expected_rules.default
    expected_size: float = PriorParameters.expected_size.default

    def __post_init__(self) -> None:
        for name, declared in PriorParameters.declared().items():
            object.__setattr__(self, name, declared.check(getattr(self, name)))  # plain floats

    def log_lengths(self, n_candidates: int) -> Floats:
        """Return the log probability of 0, 1, .. rules, (min(n_candidates, 62) + 1,) float64."""
        return _log_poisson(self.expected_rules, min(n_candidates, MAX_RULES))

    def log_sizes(self, max_size: int) -> Floats:
        """Return the log weight, unnormalized, of 0 (-inf), 1, .. conditions, (max_size + 1,)."""
        return _log_weights(self.expected_size, max_size)

    def log_prior(self, sizes: Sequence[int], n_of_size: Integers) -> float:
        """Return a list's log prior, without volumes, by rule sizes and numbers of candidates."""
        lengths = self.log_lengths(int(n_of_size.sum()))
        if len(sizes) >= lengths.size:
            return -np.inf
        weights = self.log_sizes(n_of_size.size - 1)
        left = n_of_size.copy()
        value = float(lengths[len(sizes)])
        log_norm = np.logaddexp.reduce(weights[left > 0])
        for size in sizes:
            value += weights[size] - log_norm - math.log(left[size])
            left[size] -= 1
            if left[size] == 0:
                log_norm = np.logaddexp.reduce(weights[left > 0], initial=-np.inf)
        return float(value)


@lru_cache
def _log_poisson(mean: float, most: int) -> Floats:
    """Return the log probability of 0, 1, .. most of a truncated Poisson; not to be changed."""
    numbers = np.arange(most + 1)
    terms = numbers * np.log(mean) - gammaln(numbers + 1)
    log_probabilities: Floats = terms - np.logaddexp.reduce(terms)
    return log_probabilities


@lru_cache
def _log_weights(mean: float, most: int) -> Floats:
    """Return the log weight of 0 (-inf), 1, .. most conditions; not to be changed."""
    sizes = np.arange(most + 1)
    weights: Floats = sizes * np.log(mean) - gammaln(sizes + 1)
    weights[0] = -np.inf
    return weights


def density_log_likelihood(counts: Floats, log_volumes: Floats, concentration: float) -> float:
    """Return a density list's log likelihood, given parts' weights and log volumes, (m + 1,)."""
    total = math.fsum(counts)
    some = counts > 0.0
    shares = counts[some] * (np.log(counts[some] / total) - log_volumes[some])
    excesses = log_excess(counts, concentration)
    return math.fsum([*excesses, *shares, -float(log_excess(total, counts.size * concentration))])


def label_log_likelihood(counts: Floats, concentration: float) -> float:
    """Return the log likelihood of a label list, nats; counts (m + 1, C) float64 >= 0."""
    excesses = log_excess(counts, concentration)
    of_parts = log_excess(counts.sum(axis=1), counts.shape[1] * concentration)
    return math.fsum([*excesses.ravel(), *-of_parts, *-entropies(counts)])


def part_probabilities(counts: Floats, concentration: float) -> Floats:
    """Return posterior-mean probabilities, in the shape of the counts.

    ``(n_l + a) / (n + K a)`` for each part, or ``(n_lc + a) / (n_l + C a)`` for each class in it.
    """
    smoothed = counts + concentration
    probabilities: Floats = smoothed / smoothed.sum(axis=-1, keepdims=True)
    return probabilities


def label_beta_parameters(counts: Floats, concentration: float) -> tuple[Floats, Floats]:
    """Return both parameters, (m + 1, C), of ``Beta(n_lc + a, n_l - n_lc + (C - 1) a)``."""
    of_class = counts + concentration
    return of_class, of_class.sum(axis=1, keepdims=True) - of_class


def label_intervals(counts: Floats, concentration: float, level: float = 0.95) -> Floats:
    """Return equal-tailed intervals, (m + 1, C, 2), by `label_beta_parameters`; level in (0, 1)."""
    of_class, of_others = label_beta_parameters(counts, concentration)
    tails = np.array([(1 - level) / 2, (1 + level) / 2])
    bounds: Floats = betaincinv(of_class[..., np.newaxis], of_others[..., np.newaxis], tails)
    return bounds


def label_rounding(counts: Floats, weights: Floats, concentration: float, of_prior: float) -> float:
    """Return a bound on the rounding of a label list's log density, nats, given counts (K, C)."""
    spread: float = entropies(counts).sum()
    sizes = label_sizes(counts.sum(axis=0), counts.shape[0], concentration, spread)
    n_added = OPERATIONS + counts.shape[1]
    return float((n_added * UNIT + share_of_sums(weights)) * (sizes + of_prior))


def density_rounding(
    n_conditions: int, n_parts: int, weights: Floats, schema: "Schema", concentration: float,
    of_prior: float,
) -> float:  # fmt: skip
    """Return a bound on the rounding of a density list, nats; see `label_rounding`."""
    sizes = density_sizes(weights, n_parts, concentration, schema)
    levels = int(schema.n_levels.max())
    logs = sum(abs(math.log(column.widths.sum())) for column in schema.columns)
    share = (n_conditions + schema.n_columns) * (3 * levels + 8) + (schema.n_columns + 2) * logs
    of_volumes = float(weights.sum()) * share * UNIT
    return (OPERATIONS * UNIT + share_of_sums(weights)) * (sizes + of_prior) + of_volumes


def label_sizes(
    counts: Floats, n_parts: int, concentration: float, spread: float | None = None
) -> float:
    """Return the sizes of the log likelihood of at most `n_parts` parts, given counts (C,).

    `spread` is the entropy of the parts; by default that of all rows, which is at least as large.
    """
    most = float(entropies(counts)) if spread is None else float(spread)
    total, n_classes = float(counts.sum()), counts.size
    alphas = concentration * np.array([1.0, max(1, n_classes - 1), n_classes])
    one, others, both = map(float, excess_sizes(total, alphas))
    return most + n_parts * (n_classes * (one + 1) + others + both)


def density_sizes(weights: Floats, n_parts: int, concentration: float, schema: "Schema") -> float:
    """Return the sizes of the log likelihood of at most `n_parts` parts, by rows' weights."""
    total = float(weights.sum())
    alphas = np.array([concentration, max(0.5, concentration), n_parts * concentration])
    one, other, all_parts = map(float, excess_sizes(total, alphas))
    largest = sum(math.log(column.widths.sum()) for column in schema.columns)
    smallest = sum(math.log(column.widths.min()) for column in schema.columns)
    of_volumes = total * (max(abs(largest), abs(smallest)) + 1)
    return float(entropies(weights)) + of_volumes + n_parts * (one + other + 1) + all_parts


def prior_sizes(prior: "ListPrior", n_of_size: Integers, n_parts: int) -> float:
    """Return the sizes of the terms of the log prior of lists of at most `n_parts` parts.

    For each rule: its weight and the summed weight of the sizes, at most twice; the candidates of a
    size, and their decrease; for the number of rules, ``ln lam`` and the logarithm of its
    factorial.
    """
    weights = float(np.abs(prior.log_sizes(n_of_size.size - 1)[1:]).max(initial=0.0))
    candidates = math.log(max(1, int(n_of_size.sum())))
    longest = float(prior.log_lengths(int(n_of_size.sum())).size)
    of_rule = 4 * (weights + 1) + 2 * candidates
    of_length = longest * (abs(math.log(prior.expected_rules)) + math.log(longest) + 1)
    return n_parts * of_rule + 2 * of_length
