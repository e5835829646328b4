"""Prunings of forests to a budget: the exact program, baselines, and the posterior of prunings."""
