"""Compiled rule lists (numba, nothing else): everything that a step or a score costs.

`layout` names the arrays, `bits` are sets of rows, `volumes` counts cells, `densities` are the log
densities term by term, `mining` extends candidates, `proposals` and `sweep` are the chain;
`branching`, `parts` and `stairs` are branch and bound.
"""
