"""Compiled kernels of rule lists (only numba): all expensive parts of steps and scores.

`layout` names the arrays; `bits` has sets of rows and extends candidates on them; `volumes` counts
cells and scores rows; `sweep` has the chain; `parts` has branch and bound, on `bits`.
"""
