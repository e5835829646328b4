"""Compiled rule lists (numba, nothing else): everything that a step or a score costs.

`layout` names the arrays, `bits` are sets of rows, on which candidates are extended; `volumes`
counts cells, `densities` are the log densities term by term, `proposals` and `sweep` the chain;
`branching`, `parts` and `stairs` are branch and bound.
"""
