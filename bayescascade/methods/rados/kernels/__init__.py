"""Compiled sums over random subsets of rows."""
