"""Compiled rule lists (numba, nothing else): everything that a step or a score costs.

`layout` names the arrays, `bits` are sets of rows, on which candidates are extended; `volumes`
counts cells and scores rows, `sweep` is the chain; `parts` is branch and bound, on `bits`.
"""
