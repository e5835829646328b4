"""Compiled loops of forests: growing trees, and routing rows."""
