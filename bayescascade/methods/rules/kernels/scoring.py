"""Which part of a list each row is in, and the density of rows with missing cells."""

from math import exp, log

import numpy as np

from bayescascade.base.jit import kernel
from bayescascade.methods.rules.kernels.layout import (
    COLUMN,
    HIGH,
    LOW,
    Array,
    CandidateArrays,
    VolumeSpace,
)
from bayescascade.methods.rules.kernels.volumes import first_log_volumes

__all__ = ["first_parts", "score_open_rows"]


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


@kernel
def score_open_rows(
    candidates: CandidateArrays,
    rules: Array,
    space: VolumeSpace,
    widths: Array,
    columns: Array,
    codes: Array,
    log_densities: Array,
    log_shares: Array,
    out: Array,
) -> None:
    """Write the log density of rows in the columns that rules look at, missing cells included.

    A part's cells that agree with a row have the volume that they would have if each cell seen was
    all of its column, and of width one. candidates: the rules, whose widths are overwritten; rules
    (m,) int64: 0 .. m - 1; widths (L,) float64: of all columns' codes, 0 where evidence excludes
    them; columns (k,) int64 and codes (k, n) int32: the columns that rules look at and their cells,
    -1 if missing; log_densities (m + 1,) float64; log_shares (m + 1,) float64: scratch; out (n,)
    float64. Cells outside the evidence are taken for seen.
    """
    for row in range(codes.shape[1]):
        log_domain = 0.0
        for k in range(columns.shape[0]):
            start = candidates.offsets[columns[k]]
            end = candidates.offsets[columns[k] + 1]
            seen = codes[k, row]
            total = 0.0
            for i in range(start, end):
                candidates.widths[i] = widths[i] if seen < 0 else 0.0
                total += candidates.widths[i]
            if seen >= 0:
                candidates.widths[start + seen] = 1.0
            else:
                log_domain += log(total)
        first_log_volumes(candidates, rules, space, log_shares)
        best = -np.inf
        for part in range(log_shares.shape[0]):
            log_shares[part] += log_densities[part]
            best = max(best, log_shares[part])
        total = 0.0
        if best > -np.inf:
            for part in range(log_shares.shape[0]):
                total += exp(log_shares[part] - best)
        out[row] = log_domain + best + log(total) if best > -np.inf else -np.inf
