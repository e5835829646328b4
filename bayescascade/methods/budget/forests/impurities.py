"""Admissible impurities, which measure how mixed the classes of a set of examples are.

Nan, *Learning to predict under a budget* (2018), section 3.4.1. With ``n_i`` the weight of the
examples of class i in the set,

* threshold-Pairs (3.10): ``sum_{i < j} [[n_i - alpha]_+ [n_j - alpha]_+ - alpha^2]_+``; at ``alpha
  = 0`` the number of pairs of examples of different classes. The sum is over unordered pairs; a sum
  over ordered pairs is twice that, which changes no tree;
* Powers (3.13): ``(sum_i n_i)^l - sum_i n_i^l`` for whole ``l >= 2``;
* polynomials (3.12): ``sum_m gamma_m prod_i n_i^{p_mi}`` with ``gamma_m >= 0`` and whole
  ``p_mi >= 0``, at least two of which are positive in each term.

All are nonnegative, zero on sets of one class, monotone (a subset is no more impure) and
supermodular (an example adds no less to a larger set): the maximum acquisition cost of a greedy
tree with these impurities is within a factor ``O(log n)`` of the optimum. Gini index and entropy
are not monotone and have no such bound.

*Departure.* Weights need not be whole. Nonnegative increasing functions with increasing increments
keep these properties under sums, products, and composition with an increasing convex function. All
three formulas are built from the ``n_i`` in this way, so the properties also hold for weighted
examples.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import ParameterError
from bayescascade.base.validation import check_choice, check_integer, check_real
from bayescascade.methods.budget.forests.kernels.growing_cuts import (
    POLYNOMIAL,
    POWERS,
    THRESHOLD_PAIRS,
    ImpurityArrays,
    impurities,
)

IMPURITIES = ("threshold_pairs", "powers")


@dataclass(frozen=True, slots=True)
class PolynomialImpurity:
    """Sum of products of powers of class weights, each of at least two classes.

    Parameters
    ----------
    coefficients : sequence of n_terms floats >= 0
        The factor of each term. At least one is positive.
    exponents : sequence of n_terms sequences of n_classes ints >= 0
        The power of each class weight in each term, in the order of the sorted labels. At least two
        powers of each term are positive.

    Raises
    ------
    ParameterError
        If a coefficient or an exponent is out of its range.

    Examples
    --------
    Pairs of rows of the classes 0 and 1 count once; pairs with a row of class 2 count ten times:

    >>> impurity = PolynomialImpurity([1, 10, 10], [[1, 1, 0], [1, 0, 1], [0, 1, 1]])
    """

    coefficients: Sequence[float]
    exponents: Sequence[Sequence[int]]

    def __post_init__(self) -> None:
        if len(self.coefficients) != len(self.exponents) or not len(self.coefficients):
            raise ParameterError(
                "exponents must have one row for each of the coefficients, at least one, got "
                f"{len(self.exponents)} rows for {len(self.coefficients)} coefficients"
            )
        for m, (coefficient, powers) in enumerate(
            zip(self.coefficients, self.exponents, strict=True)
        ):
            check_real(f"coefficients[{m}]", coefficient, minimum=0.0)
            whole = [check_integer(f"exponents[{m}][{i}]", p, 0) for i, p in enumerate(powers)]
            if sum(power > 0 for power in whole) < 2:
                raise ParameterError(
                    f"exponents[{m}] must be positive for at least two classes, got {whole}"
                )
            if len(whole) != len(self.exponents[0]):
                raise ParameterError(
                    f"exponents[{m}] must have {len(self.exponents[0])} entries as the first row, "
                    f"got {len(whole)}"
                )
        if not any(coefficient > 0 for coefficient in self.coefficients):
            raise ParameterError("coefficients must not be all zero, got only zeros")


Impurity = str | PolynomialImpurity
"""Either one of the names in `IMPURITIES`, or a polynomial."""


def impurity_arrays(
    impurity: Impurity, *, alpha: float = 0.0, order: int = 2, n_classes: int
) -> ImpurityArrays:
    """Return an impurity as arrays for kernels.

    alpha >= 0: the weight of a class that threshold-Pairs ignores; order from 2 to 30: that of
    Powers. Raises ParameterError if a parameter is out of its range, or the polynomial is for
    another number of classes.
    """
    alpha = check_real("alpha", alpha, minimum=0.0)
    order = check_integer("order", order, 2, 30)
    if isinstance(impurity, PolynomialImpurity):
        n_exponents = len(impurity.exponents[0])
        if n_exponents != n_classes:
            raise ParameterError(
                f"impurity must have one exponent for each of the {n_classes} classes, "
                f"got {n_exponents}"
            )
        coefficients = np.array(impurity.coefficients, np.float64)
        exponents = np.array(impurity.exponents, np.int64)
        return ImpurityArrays(POLYNOMIAL, 0.0, order, coefficients, exponents)
    if not isinstance(impurity, str):
        raise ParameterError(
            f"impurity must be one of {', '.join(map(repr, IMPURITIES))} or a PolynomialImpurity, "
            f"got {impurity!r}"
        )
    check_choice("impurity", impurity, IMPURITIES)
    no_terms = np.zeros(0), np.zeros((0, n_classes), np.int64)
    if impurity == "powers":
        return ImpurityArrays(POWERS, 0.0, order, *no_terms)
    return ImpurityArrays(THRESHOLD_PAIRS, alpha, order, *no_terms)


def impurity_values(arrays: ImpurityArrays, counts: ArrayLike) -> Floats:
    """Return impurities, (n,) >= 0, infinite on overflow, of counts (n, n_classes)."""
    checked = np.ascontiguousarray(counts, np.float64)
    values = np.empty(len(checked))
    with np.errstate(over="ignore"):  # overflows are infinite
        impurities(arrays, checked, values)
    return values
