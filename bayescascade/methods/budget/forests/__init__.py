"""Forests over numeric matrices, grown within a budget for the costs of their features."""
