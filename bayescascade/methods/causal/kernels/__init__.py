"""Compiled code of the additive noise models."""
