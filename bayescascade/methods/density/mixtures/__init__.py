"""Mixtures: classes of rows, each with its own density, found by EM."""
