"""Compiled cascades (only numba): the expensive part of all steps and scores.

`layout` names the arrays. `densities` has the formulas, and `dependence` those of dependent leaves.
`proposals` draws splits, `trees` keeps a tree in the work space, and `moves`, `regrouping` and
`sweep` are the chain. `sweep` also scores rows.
"""
