"""Probabilistic models that a person can read, with a Bayesian posterior."""
