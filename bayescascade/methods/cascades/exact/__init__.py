"""Exact posteriors of cascades: one recursion over boxes sums over every tree there is.

A box is what splits leave of every column. The sum over all trees below a box is its worth as a
leaf, plus, for every split, what the split is worth times the sums of its branches' boxes; boxes
that several orders of splitting lead to are evaluated once. The sum over the whole table's trees
is the evidence; its maximum the most probable tree; walking down in proportion draws trees. Where a
split sends each level its own way, only boxes that hold two or more distinct rows need be kept.
"""

from bayescascade.methods.cascades.exact.cost import ExactCost, check_magnitudes
from bayescascade.methods.cascades.exact.posterior import (
    ExactPosterior,
    SplitProbabilities,
    StoppedPosterior,
    SummedPosterior,
    solve,
)
from bayescascade.methods.cascades.exact.redraws import Redraws
from bayescascade.methods.cascades.exact.tilted import (
    TiltedPosterior,
    certificate_of,
    solve_by_tilts,
    solve_or_tilt,
)

__all__ = [
    "ExactCost",
    "ExactPosterior",
    "Redraws",
    "SplitProbabilities",
    "StoppedPosterior",
    "SummedPosterior",
    "TiltedPosterior",
    "certificate_of",
    "check_magnitudes",
    "solve",
    "solve_by_tilts",
    "solve_or_tilt",
]
