"""Rademacher observations: linear classifiers learned from sums of examples in place of them."""
