"""Compiled budgeted forests (numba, nothing else).

`routing` walks trees in preorder and sends rows down.
"""
