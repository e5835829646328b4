"""Continuous mixtures: trees of columns whose log odds are functions of a few hidden numbers."""
