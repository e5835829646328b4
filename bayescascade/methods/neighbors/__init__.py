"""Stochastic neighbor compression: few learned prototypes in place of many rows."""
