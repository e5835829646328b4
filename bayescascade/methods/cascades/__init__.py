"""Cascades: density trees with a Bayesian posterior.

`tree` is the state, `models` the formulas, `posterior` joins them with a table; `kernels` are the
chain; `density` is what a user sees of a tree, and `estimators` what a user calls. Dependent leaves
are in `dependence`, and all trees over them, exactly, in `shallow_trees`.
"""
