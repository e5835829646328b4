"""Compiled loops of forests: growing trees, sending rows down."""
