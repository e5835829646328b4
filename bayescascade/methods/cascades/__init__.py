"""Cascades: density trees with a Bayesian posterior.

`tree` is the state, `models` the formulas, `posterior` joins them with a table; `kernels` are the
chain; `density` is what a user sees of a tree, and `estimators` what a user calls. Dependent leaves
are in `dependence`, `dependent_density` and, for all trees at once, `dependent_trees`.
"""
