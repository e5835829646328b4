"""Mixtures: classes of rows, each with a density of its own, found by EM."""
