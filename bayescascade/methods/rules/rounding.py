"""How far off rounding may put the log density of a list: the sizes of all that it adds up.

`excess` bounds the rounding of a part's numbers by `UNIT` times their sizes. Here these are summed
over the parts of a list of K = m + 1 parts. N is the total weight, C the number of classes.

* *Labels*, `label_sizes`: ``E + K (C S(N, a) + S(N, (C - 1) a) + S(N, C a) + C)``, with E the
  entropies of the parts. S grows with n; as the entropy is concave and homogeneous, E is at most
  that of all rows, which a search takes for it. It bounds as well by how much the log likelihood
  moves if sums of weights are off by a share of themselves: ``n_c abs(psi(n + C a) - psi(n_c + a))
  <= n_c ln(n / n_c) + n_c ln(1 + C a / n) + 1``, which over all classes of a part is at most its
  entropy, S(n, C a) and C.
* *Densities*, `density_sizes`: ``E + N (V + 1) + K (S(N, a) + S(N, a')) + S(N, K a) + K``, with E
  the entropy of the distinct rows' weights, which is no less than that of the parts', and V the
  most that the log of a volume between the smallest cell and the domain can be, by its size; ``a' =
  max(a, 1/2)`` is for a search's bounds. It bounds as well by how much the log likelihood moves if
  weights or volumes are off by a share.
* *The prior*, `prior_sizes`: K times the largest terms of a rule and of the number of rules.

Weights are off by `share_of_sums`, volumes by `share_of_volumes`: shares of cells are made by sums,
products and quotients of positive numbers. A condition takes part in one split of a box at most,
which adds up at most L widths three times, in a product and a quotient, where L is the number of
levels of its column: in all a share of ``(k + p) (3 L + 8) UNIT`` for k conditions in a list, p
columns, and the largest L. The logs of the columns' volumes add ``(p + 2) UNIT`` times their sizes.
"""

from math import log
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bayescascade.methods.rules.excess import OPERATIONS, entropies, excess_sizes
from bayescascade.model.guard import UNIT, share_of_sums

if TYPE_CHECKING:
    from bayescascade.data.schema import Schema
    from bayescascade.methods.rules.models import ListPrior

Floats = NDArray[np.float64]


def label_rounding(counts: Floats, weights: Floats, concentration: float, of_prior: float) -> float:
    """Return the rounding of the log density of a list with labels, nats.

    counts (K, C): of its parts; weights: of all rows; of_prior: its `prior_sizes`.
    """
    spread: float = entropies(counts).sum()
    sizes = label_sizes(counts.sum(axis=0), counts.shape[0], concentration, spread)
    n_added = OPERATIONS + counts.shape[1]
    return float((n_added * UNIT + share_of_sums(weights)) * (sizes + of_prior))


def density_rounding(
    n_conditions: int, n_parts: int, weights: Floats, schema: "Schema", concentration: float,
    of_prior: float,
) -> float:  # fmt: skip
    """Return the rounding of a density list, nats; see `label_rounding`."""
    sizes = density_sizes(weights, n_parts, concentration, schema)
    levels = int(schema.n_levels.max())
    logs = sum(abs(log(column.widths.sum())) for column in schema.columns)
    share = (n_conditions + schema.n_columns) * (3 * levels + 8) + (schema.n_columns + 2) * logs
    of_volumes = float(weights.sum()) * share * UNIT
    return (OPERATIONS * UNIT + share_of_sums(weights)) * (sizes + of_prior) + of_volumes


def label_sizes(
    counts: Floats, n_parts: int, concentration: float, spread: float | None = None
) -> float:
    """Return the sizes of the log likelihood of at most `n_parts` parts; counts (C,) of all rows.

    `spread` is the entropy of the parts, or by default that of all rows, which is no less.
    """
    most = float(entropies(counts)) if spread is None else float(spread)
    total, n_classes = float(counts.sum()), counts.size
    alphas = concentration * np.array([1.0, max(1, n_classes - 1), n_classes])
    one, others, both = map(float, excess_sizes(total, alphas))
    return most + n_parts * (n_classes * (one + 1) + others + both)


def density_sizes(weights: Floats, n_parts: int, concentration: float, schema: "Schema") -> float:
    """Return the sizes of the log likelihood of `n_parts` parts at most; weights of the rows."""
    total = float(weights.sum())
    alphas = np.array([concentration, max(0.5, concentration), n_parts * concentration])
    one, other, all_parts = map(float, excess_sizes(total, alphas))
    largest = sum(log(column.widths.sum()) for column in schema.columns)
    smallest = sum(log(column.widths.min()) for column in schema.columns)
    of_volumes = total * (max(abs(largest), abs(smallest)) + 1)
    return float(entropies(weights)) + of_volumes + n_parts * (one + other + 1) + all_parts


def prior_sizes(prior: "ListPrior", n_of_size: NDArray[np.int64], n_parts: int) -> float:
    """Return the sizes of the terms of the log prior of lists of at most `n_parts` parts.

    For each rule: its weight and the sizes' summed weight, at most twice; candidates of a size, and
    what they lessen by; for the number of rules, ``ln lam`` and the logarithm of its factorial.
    """
    weights = float(np.abs(prior.log_sizes(n_of_size.size - 1)[1:]).max(initial=0.0))
    candidates = log(max(1, int(n_of_size.sum())))
    longest = float(prior.log_lengths(int(n_of_size.sum())).size)
    of_rule = 4 * (weights + 1) + 2 * candidates
    of_length = longest * (abs(log(prior.expected_rules)) + log(longest) + 1)
    return n_parts * of_rule + 2 * of_length
