"""Compiled code: growing boosted trees, and sums of logistic losses."""
