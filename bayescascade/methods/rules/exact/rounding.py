"""How far off rounding may put what a search adds up, and what is proved in spite of it.

Let r be a bound on the rounding of every log density, of a list or of a bound on lists, that the
search adds up, and p that of the posterior's own log density of the list returned.

* A list replaces the best one only if it seems better by more than 2 r, so that lists of the same
  density, whichever way they are added up, are not taken for better ones one after the other.
* What is left out has a bound that seems no more than 2 r above the best one's value: no list in it
  has a log density above that value by more than 3 r.
* A prefix that leaves the same points as another one goes on alike, and is not followed if its
  value seems no more than 2 r / K above the other's. Both go on by adding the same numbers, and
  rounding is monotone: in the search's own numbers a list loses no more by it. It is longer each
  time that this happens to a list, so all times together cost 2 r. To compare these numbers with
  the bound above takes r twice more: 7 r.
* The best list's value is off by r, and the posterior's log density of it by p: `proved` = 8 r + p
  is by how much a list may be more probable than the one returned, once the search has ended.

*The bound r.* A value or bound adds up the terms of up to K = M + 1 parts and of the prior, whose
sizes `methods.rules.rounding` bounds; saturated values are at most E, or ``E + N V``, in all, and a
path over the stairs costs at most what it costs to end at once. Each is off by `OPERATIONS` `UNIT`
of its size; adding up, C classes and four numbers for each of K parts, and G groups, takes ``C + 4
K + G`` further ones. Sums of weights, taken over P points in G groups of equal composition, are off
by ``(P + G + 4) UNIT``, and so are volumes. Where all weights are whole, and that share of their
sum is below 1/4, sums are rounded to the whole numbers that they are, and the share is 0.
"""

from dataclasses import dataclass

import numpy as np

from bayescascade.methods.rules.exact.points import Points
from bayescascade.methods.rules.excess import OPERATIONS
from bayescascade.methods.rules.kernels.layout import MAX_RULES
from bayescascade.methods.rules.posterior import DensityListPosterior, RuleListPosterior
from bayescascade.methods.rules.rounding import density_sizes, label_sizes, prior_sizes
from bayescascade.model.guard import UNIT


@dataclass(frozen=True, slots=True)
class SearchRounding:
    """The rounding of a search's own numbers."""

    bound: float  # > 0, nats: on the rounding of a value, or of a bound, of lists
    is_whole: bool  # whether sums of weights can be rounded to whole numbers
    n_parts: int = MAX_RULES + 1  # most parts of a list

    @classmethod
    def of(cls, posterior: RuleListPosterior, points: Points, n_parts: int) -> "SearchRounding":
        """Return the rounding for lists of at most `n_parts` parts."""
        weights, alpha = posterior.table.weights, posterior.concentration
        n_groups, n_features = points.features.shape
        n_points = int(points.arrays.row_weights.size)
        share = (n_points + n_groups + 4) * UNIT
        has_whole = bool(np.all(weights == np.rint(weights)))
        is_whole = has_whole and float(weights.sum()) * share < 0.25
        of_sums = 0.0 if is_whole else share
        if isinstance(posterior, DensityListPosterior):
            n_classes = 1
            sizes = density_sizes(weights, n_parts, alpha, posterior.schema)
            is_counted = all(np.all(column.widths == 1.0) for column in posterior.schema.columns)
            of_sums = max(of_sums, 0.0 if is_counted else share + posterior.schema.n_columns * UNIT)
        else:
            n_classes = n_features - 4
            sizes = label_sizes(posterior.class_weights, n_parts, alpha)
        n_added = OPERATIONS + n_classes + 4 * n_parts + n_groups
        of_prior = prior_sizes(posterior.prior, posterior.antecedents.n_of_size, n_parts)
        bound = (n_added * UNIT + of_sums) * (sizes + of_prior)
        return cls(float(bound), is_whole, n_parts)

    @property
    def enough(self) -> float:
        """By how much a list must seem better to be taken for better, nats."""
        return 2.0 * self.bound

    @property
    def alike(self) -> float:
        """By how much a prefix must seem better than one that goes on alike, nats."""
        return self.enough / self.n_parts

    def proved(self, of_posterior: float) -> float:
        """Return by how much a list may be better though the search ended, nats.

        `of_posterior` is the rounding of the log density of the list returned.
        """
        return 8.0 * self.bound + of_posterior
