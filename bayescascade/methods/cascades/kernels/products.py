"""Sums of products of positive numbers of any size, ``mantissa * 2**power``.

Numbers that are zero have the power ZERO, far below any other.
"""

from math import frexp

from bayescascade.base.jit import kernel
from bayescascade.methods.cascades.kernels.layout import Array

ZERO = -(1 << 60)


@kernel
def add_products(
    left: Array,
    left_power: Array,
    right: Array,
    right_power: Array,
    halves: Array,
    out: Array,
    out_power: Array,
) -> None:
    """Add the products of entries i of the left and j of the right to entries i + j + 1.

    Entries are by numbers of leaves from one on, so these add up.

    left, right and out are mantissas (n,) float64, each with its powers (n,) int64; halves (D,)
    float64: ``2**-d`` for d = 0 .. D - 1; smaller terms are dropped.
    """
    for k in range(1, out.shape[0]):
        first, end = max(0, k - right.shape[0]), min(left.shape[0], k)
        top = out_power[k]
        for i in range(first, end):
            top = max(top, left_power[i] + right_power[k - 1 - i])
        if top <= ZERO // 2:
            continue
        total = 0.0
        if top - out_power[k] < halves.shape[0]:
            total = out[k] * halves[top - out_power[k]]
        for i in range(first, end):
            lower = top - left_power[i] - right_power[k - 1 - i]
            if lower < halves.shape[0]:
                total += left[i] * right[k - 1 - i] * halves[lower]
        out[k], more = frexp(total)
        out_power[k] = top + more
