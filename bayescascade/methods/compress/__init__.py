"""Stochastic neighbor compression: a few learned prototypes represent many rows."""
