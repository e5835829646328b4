"""Compiled cascades (numba, nothing else): everything that a step or a score costs.

`layout` names the arrays; `densities` is the arithmetic, `dependence` that of dependent leaves;
`proposals` draws splits, `trees` keeps a tree in the work space, `moves`, `regrouping` and `sweep`
are the chain, and `sweep` also scores rows.
"""
