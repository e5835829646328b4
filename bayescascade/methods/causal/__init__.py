"""Additive noise models: which of two variables is the cause, and what of it may be published."""
