"""Rows and the rules of a list: the first rule that each satisfies, and random rows without one.

Rules are arrays: conditions (k, 3) int64, the column, low and high of a condition on codes [low,
high), and starts (m + 1,) int64: those of rule l are starts[l] .. starts[l + 1] - 1.
"""

import numpy as np

from bayescascade.base.jit import inner_kernel, kernel
from bayescascade.methods.rules.kernels.layout import COLUMN, HIGH, LOW, Array


@inner_kernel
def _first_part(codes, row, conditions, starts):
    """Return the index of the first rule that a row satisfies; the number of rules if none."""
    for part in range(starts.shape[0] - 1):
        k, end = starts[part], starts[part + 1]
        while (
            k < end
            and conditions[k, LOW] <= codes[conditions[k, COLUMN], row] < conditions[k, HIGH]
        ):
            k += 1
        if k == end:
            return part
    return starts.shape[0] - 1


@kernel
def first_parts(codes: Array, conditions: Array, starts: Array, out: Array) -> None:
    """Write the result of `_first_part` for each row.

    codes (p, n) int32, C-contiguous: -1, or any other code outside all conditions, satisfies none;
    out (n,) int64.
    """
    for row in range(codes.shape[1]):
        out[row] = _first_part(codes, row, conditions, starts)


@inner_kernel
def _draw(rng, sums, offsets, column):
    """Return a random code of a column, by its width."""
    start, end = offsets[column], offsets[column + 1]
    at = rng.random() * sums[end - 1]
    return min(np.searchsorted(sums[start:end], at, side="right"), end - start - 1)


@kernel
def draw_rows(
    rng: np.random.Generator,
    sums: Array,
    offsets: Array,
    is_tested: Array,
    conditions: Array,
    starts: Array,
    n_tries: int,
    codes: Array,
) -> int:
    """Write random rows of a box that satisfy no rule, and return how many.

    sums (L,) float64: of the widths of a column's codes in the box, up to each code; offsets (p +
    1,) int64: where columns begin there; is_tested (p,) bool: columns of the rules; codes (p, n)
    int32. Only the first rows are written if `n_tries` do not give all.
    """
    n_drawn, n_rules = 0, starts.shape[0] - 1
    while n_drawn < codes.shape[1] and n_tries > 0:
        n_tries -= 1
        for column in range(codes.shape[0]):
            if is_tested[column]:
                codes[column, n_drawn] = _draw(rng, sums, offsets, column)
        if _first_part(codes, n_drawn, conditions, starts) == n_rules:
            for column in range(codes.shape[0]):
                if not is_tested[column]:
                    codes[column, n_drawn] = _draw(rng, sums, offsets, column)
            n_drawn += 1
    return n_drawn
