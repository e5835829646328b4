r"""A proved bound on the rounding of the log density of purchases; `posterior` has the formulas.

The sums of squares A of a leaf's m columns and B of its c targets, as computed, are given numbers.
Let u = `UNIT`, s^2 the largest diagonal entry of A, and lambda its least eigenvalue. The squared
lengths t_j^2 of the targets have the sum 1.

**Elimination.** The kernels eliminate the columns of a set in some order, and read only the rows of
eliminated columns, so each computed result is the exact elimination of one symmetric matrix near
[A B]. An entry between columns i and j is changed at most m times, each time by f b with an error
of at most 2 u abs(f b) for the quotient f and the product, and u times the new entry for the
difference. In a positive definite matrix, the sum of all abs(f b) and each new entry are at most
s^2 (Higham 2002, theorem 10.3). So an entry is off by at most (m + 2) u s^2, or (m + 2) u s t_j for
targets; e s^2 with e = 2 (m + 3) u includes terms of higher order. A - E, and so the matrix of any
subset, has eigenvalues of at least k = lambda - m e s^2.

**Explained share.** z = b' A^-1 b is the maximum of 2 b' x - x' A x, which x = A^-1 b attains, with
abs(x)^2 <= z / k. At this x, the same maximum of the perturbed matrix is lower by at most
2 abs(db) abs(x) + m e s^2 abs(x)^2, and vice versa. With abs(db) <= sqrt(m) e s t_j and
z <= t_j^2, the sum over targets is at most e (2 s sqrt(m / k) + s^2 m / k) <= 3 e s^2 m / k,
because s^2 m / k >= 1. The additions of the squares are off by (m (c + 1) + 4) u in total.

**Density.** The derivative of the log marginal by z is contrasts / 2 times (w - 1) w / (1 + w (1 -
z)), which is largest for all features, since z grows with the set. The other operations on a leaf
are fewer than 16 for the marginal, and one for each item; adding up the leaves is one for each.

Higham, N. J. (2002). Accuracy and Stability of Numerical Algorithms. 2nd edition.
"""

import numpy as np

from bayescascade.methods.budget.classifier_trees.kernels.buying import Leaves
from bayescascade.methods.budget.classifier_trees.kernels.choosing import SINGULAR
from bayescascade.model.guard import UNIT

_OPERATIONS = 16.0  # on a leaf, besides those on its columns, items and the other leaves
_OF_EIGENVALUE = 10.0  # units of rounding, times the matrix's size squared


def rounding_of_leaf(model: Leaves, leaf: int, explained: float) -> float:
    """Return a bound on the rounding of a leaf's log density, nats, for any set of features.

    `explained` is the computed share of variance of all features together. The bound is infinite if
    columns are too dependent for one.
    """
    weight, contrasts = float(model.weights[leaf]), float(model.contrasts[leaf])
    share = rounding_of_share(model, leaf)
    freedom = max(weight - 1.0, 0.0)
    unexplained = max(1.0 - explained - 2.0 * share, 0.0)
    slope = freedom * weight / (1.0 + weight * unexplained)
    n_columns = int(model.starts[-1])
    size = 0.5 * contrasts * (2.0 * freedom + n_columns) * float(np.log1p(weight))
    size += float(model.price[leaf] * model.prices.costs.sum())
    n_operations = _OPERATIONS + model.prices.costs.size + model.weights.size
    return 0.5 * contrasts * slope * share + n_operations * UNIT * size


def rounding_of_share(model: Leaves, leaf: int) -> float:
    """Return a bound on the rounding of the share that any set of features explains at a leaf."""
    squares, n_columns = model.squares[leaf], int(model.starts[-1])
    varies = np.flatnonzero(squares.diagonal()[:n_columns] > 0)
    m, c = varies.size, len(squares) - n_columns
    own = squares[np.ix_(varies, varies)]
    of_sums = (m * (c + 1.0) + 4.0) * UNIT
    if m == 0:
        return of_sums
    largest = float(own.diagonal().max())
    of_entry = 2.0 * (m + 3.0) * UNIT * largest
    least = float(np.linalg.eigvalsh(own)[0])
    least -= m * of_entry + _OF_EIGENVALUE * m * m * UNIT * largest
    # above `SINGULAR`, no column is left out by the kernels
    return 3.0 * m * of_entry / least + of_sums if least > SINGULAR else np.inf
