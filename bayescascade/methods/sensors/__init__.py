"""Sensors that stay silent unless their own readings say that they are needed."""
