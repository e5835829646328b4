"""Compiled cascades (numba, nothing else): everything that a step or a score costs.

`layout` names the arrays; `levels` and `densities` are the arithmetic; `proposals` draws splits,
`nodes` and `subtrees` keep a tree in the work space, `moves`, `grafting`, `regrouping` and `sweep`
are the chain, and `statistics` scores rows. Entry points are `load`, `sweep`, `export` and those
of `statistics`; everything else is part of them.
"""

from bayescascade.methods.cascades.kernels.layout import (
    BRANCH_MODEL,
    COUNT,
    EPS,
    LEAF_MODEL,
    LOG_VOLUME,
    MOVES,
    FlatTree,
    ModelArrays,
    TableArrays,
    Work,
    new_flat_tree,
    new_work,
)
from bayescascade.methods.cascades.kernels.statistics import (
    count_levels,
    score_rows,
    split_log_probability,
)
from bayescascade.methods.cascades.kernels.subtrees import export, load
from bayescascade.methods.cascades.kernels.sweep import sweep

__all__ = [
    "BRANCH_MODEL",
    "COUNT",
    "EPS",
    "LEAF_MODEL",
    "LOG_VOLUME",
    "MOVES",
    "FlatTree",
    "ModelArrays",
    "TableArrays",
    "Work",
    "count_levels",
    "export",
    "load",
    "new_flat_tree",
    "new_work",
    "score_rows",
    "split_log_probability",
    "sweep",
]
