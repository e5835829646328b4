"""Exact posteriors of cascades: one recursion over boxes sums over all trees.

A box consists of the levels that splits leave in each column. The sum over all trees below a box is
its value as a leaf plus, for each split, the factor of the split times the sums of its branches'
boxes. A box that several orders of splits lead to is evaluated once. The sum over all trees of the
whole table is the evidence, the maximum is the most probable tree, and choices in proportion, from
the root down, draw trees. If each level has its own branch, only boxes with two or more distinct
rows are kept.
"""

from bayescascade.methods.density.trees.exact.cost import ExactCost, check_magnitudes
from bayescascade.methods.density.trees.exact.posterior import (
    ExactPosterior,
    SplitProbabilities,
    StoppedPosterior,
    SummedPosterior,
    solve,
)
from bayescascade.methods.density.trees.exact.redraws import SubtreeRedraws
from bayescascade.methods.density.trees.exact.tilted import (
    TiltedPosterior,
    certificate_of,
    solve_by_tilts,
    solve_or_tilt,
)

__all__ = [
    "ExactCost",
    "ExactPosterior",
    "SplitProbabilities",
    "StoppedPosterior",
    "SubtreeRedraws",
    "SummedPosterior",
    "TiltedPosterior",
    "certificate_of",
    "check_magnitudes",
    "solve",
    "solve_by_tilts",
    "solve_or_tilt",
]
