"""Cascades: density trees with a Bayesian posterior.

`tree` is the state, `models` the formulas, `posterior` joins them with a table; `kernels` are the
chain; `density` is a tree as users see it, and `estimators` has the classes that users call.
Dependent leaves are in `dependence`; `shallow_trees` sums over all trees with such leaves.
"""
