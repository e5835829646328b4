"""Gaussian kernel matrices of numbers on a line, in few columns, and their usual bandwidth."""

import numpy as np

from bayescascade.base.arrays import Floats
from bayescascade.base.jit import inner_kernel, kernel


@kernel
def factor_kernel(
    numbers: Floats, bandwidth: float, least: float, factor: Floats, left: Floats
) -> int:
    """Fill `factor`, (r, n), so that ``factor.T @ factor`` is the kernel; return the rows filled.

    Cholesky's factor, which takes next the number that is described worst, until each entry of the
    diagonal is met within `least`. numbers (n,); `left` (n,) is room for what is left of it.
    """
    n = len(numbers)
    for j in range(n):
        left[j] = 1.0
    for k in range(len(factor)):
        worst = 0
        for j in range(n):
            if left[j] > left[worst]:
                worst = j
        if left[worst] <= least:
            return k
        row, root = factor[k], np.sqrt(left[worst])
        for j in range(n):
            apart = (numbers[j] - numbers[worst]) / bandwidth
            row[j] = np.exp(-0.5 * apart * apart)
        for i in range(k):
            weight, other = factor[i, worst], factor[i]
            for j in range(n):
                row[j] -= weight * other[j]
        for j in range(n):
            row[j] /= root
            left[j] -= row[j] * row[j]
        left[worst] = 0.0
    return len(factor)


@inner_kernel
def pairs_within(numbers: Floats, distance: float) -> int:
    """Return how many pairs of sorted numbers, (n,), are at most `distance` apart."""
    found, low = 0, 0
    for high in range(len(numbers)):
        while numbers[high] - numbers[low] > distance:
            low += 1
        found += high - low
    return found


@kernel
def median_distance(numbers: Floats) -> float:
    """Return the median distance of pairs of sorted numbers that differ, up to rounding.

    0.0 if all are equal. numbers (n,) sorted.
    """
    n = len(numbers)
    equal = pairs_within(numbers, 0.0)
    apart = n * (n - 1) // 2 - equal
    low, high = 0.0, float(numbers[n - 1] - numbers[0])
    if apart == 0:
        return 0.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        if 2 * (pairs_within(numbers, middle) - equal) < apart:
            low = middle
        else:
            high = middle
    return high
