"""Rademacher observations: linear classifiers that learn from sums of examples."""
