"""Classifiers within a budget of features."""
