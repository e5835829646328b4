"""Prunings of forests within a budget: the exact program, and the posterior of prunings."""
