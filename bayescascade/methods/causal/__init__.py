"""Additive noise models: which of two variables is the cause, and private publication of it."""
