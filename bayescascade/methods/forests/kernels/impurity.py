"""Impurities of a set of examples, from the weights of its classes.

The formulas are those of `methods.forests.impurities`, which also says why they are admissible.
"""

from typing import NamedTuple

import numpy as np

from bayescascade.base.jit import inner_kernel, kernel
from bayescascade.methods.forests.kernels.growing_layout import Array

__all__ = ["POLYNOMIAL", "POWERS", "THRESHOLD_PAIRS", "ImpurityArrays", "impurities", "impurity"]

THRESHOLD_PAIRS, POWERS, POLYNOMIAL = range(3)


class ImpurityArrays(NamedTuple):
    """An impurity as kernels read it.

    kind: one of the three; alpha >= 0 of threshold-Pairs, else 0; order >= 2 of Powers;
    coefficients (n_terms,) float64 >= 0 and exponents (n_terms, n_classes) int64 >= 0 of
    polynomials.
    """

    kind: int
    alpha: float
    order: int
    coefficients: Array
    exponents: Array


@kernel
def impurities(arrays: ImpurityArrays, counts: Array, out: Array) -> None:
    """Write the impurity of each row of counts (n, n_classes) float64 >= 0 to out (n,) float64."""
    for i in range(counts.shape[0]):
        out[i] = impurity(arrays, counts[i])


@inner_kernel
def impurity(arrays, counts):
    """Impurity of a set whose classes weigh counts (n_classes,) float64 >= 0."""
    if arrays.kind == THRESHOLD_PAIRS:
        return pairs(counts, arrays.alpha)
    if arrays.kind == POWERS:
        return _powers(counts, arrays.order)
    return _polynomial(counts, arrays.coefficients, arrays.exponents)


@inner_kernel
def pairs(counts, alpha):
    """``sum_{i < j} [[n_i - alpha]_+ [n_j - alpha]_+ - alpha^2]_+``."""
    total = 0.0
    if alpha == 0.0:
        before = 0.0
        for count in counts:
            total += before * count
            before += count
        return total
    for i in range(counts.shape[0]):
        first = counts[i] - alpha
        if first > 0.0:
            for j in range(i):
                second = counts[j] - alpha
                if second > 0.0:
                    total += max(first * second - alpha * alpha, 0.0)
    return total


@inner_kernel
def _powers(counts, order):
    """``(sum_i n_i)^order - sum_i n_i^order``."""
    total, separate = 0.0, 0.0
    for count in counts:
        total += count
        separate += _power(count, order)
    return max(_power(total, order) - separate, 0.0)  # rounding might leave it below zero


@inner_kernel
def _polynomial(counts, coefficients, exponents):
    """``sum_m coefficient_m prod_i n_i^exponent_mi``."""
    total = 0.0
    for term in range(coefficients.shape[0]):
        product = coefficients[term]
        for i in range(counts.shape[0]):
            product *= _power(counts[i], exponents[term, i])
        total += product
    return total


@inner_kernel
def _power(base, exponent):
    """``base^exponent`` for whole exponents >= 0; exact as long as whole numbers are."""
    product = np.float64(1.0)
    for _ in range(exponent):
        product *= base
    return product
