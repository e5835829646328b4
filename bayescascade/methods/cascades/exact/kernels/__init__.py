"""Compiled parts of the exact recursion over boxes."""

from bayescascade.methods.cascades.exact.kernels.boxes import (
    count_boxes,
    count_rows,
    evaluate_boxes,
)
from bayescascade.methods.cascades.exact.kernels.choices import choose_splits, sum_columns
from bayescascade.methods.cascades.exact.kernels.layout import (
    UNION,
    IndexArrays,
    LatticeArrays,
    Scaled,
    TermArrays,
    Work,
    new_work,
)
from bayescascade.methods.cascades.exact.kernels.scaled import UNIT

__all__ = [
    "UNION",
    "UNIT",
    "IndexArrays",
    "LatticeArrays",
    "Scaled",
    "TermArrays",
    "Work",
    "choose_splits",
    "count_boxes",
    "count_rows",
    "evaluate_boxes",
    "new_work",
    "sum_columns",
]
