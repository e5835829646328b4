"""Costs of features: items and groups, limits, step by step acquisition, and cost curves."""
