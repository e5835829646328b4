"""Compiled rounds of the gate."""
