"""Compiled code: the choice of a node's features."""
