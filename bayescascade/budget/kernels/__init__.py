"""Compiled budgeted forests (numba, nothing else).

`routing` walks trees in preorder and sends rows down; `programs` finds what a forest's splits ask
rows to pay for, `flow` and `duals` find which of them to keep; `growing` grows trees for a budget;
`cutting` runs chains of prunings, `tree_sweep` of trees, and `chains` has what they share;
`removal` and `weakest_links` prune by features and by complexity.
"""
