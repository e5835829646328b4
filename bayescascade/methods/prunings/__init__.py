"""Prunings of forests to a budget: the exact program, and the posterior of prunings."""
