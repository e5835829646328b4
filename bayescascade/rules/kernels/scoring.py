"""Which part of a list each row is in."""

from bayescascade._jit import kernel
from bayescascade.rules.kernels.layout import COLUMN, HIGH, LOW, Array

__all__ = ["first_parts"]


@kernel
def first_parts(codes: Array, conditions: Array, starts: Array, out: Array) -> None:
    """Write the number of the first rule that each row satisfies, the number of rules if none.

    codes (p, n) int32, C-contiguous: -1, or any other code that no condition names, satisfies no
    condition; conditions (k, 3) int64: column, low, high of a condition on codes [low, high);
    starts (m + 1,) int64: those of rule l are starts[l] .. starts[l + 1] - 1; out (n,) int64.
    """
    n_rules = starts.shape[0] - 1
    for row in range(codes.shape[1]):
        part = 0
        while part < n_rules:
            k = starts[part]
            end = starts[part + 1]
            while (
                k < end
                and conditions[k, LOW] <= codes[conditions[k, COLUMN], row] < conditions[k, HIGH]
            ):
                k += 1
            if k == end:
                break
            part += 1
        out[row] = part
