"""Densities to compare with: a density estimation tree, and a smoothed histogram.

`growing` and `pruning` are the tree's two halves, `det` its estimator; `histogram` is the other.
"""
