"""Compiled parts of the exact recursion over boxes."""

from bayescascade.cascades.exact.kernels.boxes import (
    count_boxes,
    count_rows,
    evaluate_boxes,
    split_sums,
)
from bayescascade.cascades.exact.kernels.layout import (
    UNION,
    IndexArrays,
    LatticeArrays,
    Scaled,
    TermArrays,
    Work,
    new_work,
)
from bayescascade.cascades.exact.kernels.scaled import UNIT

__all__ = [
    "UNION",
    "UNIT",
    "IndexArrays",
    "LatticeArrays",
    "Scaled",
    "TermArrays",
    "Work",
    "count_boxes",
    "count_rows",
    "evaluate_boxes",
    "new_work",
    "split_sums",
]
