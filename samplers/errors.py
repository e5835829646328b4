"""Every exception the package raises on purpose, under one base class.

A message names the parameter, the rule it broke, and the value found.
"""

__all__ = ["CheckpointError", "SamplerError", "SamplerValueError"]


class SamplerError(Exception):
    """Base class; raised itself when a target or a move breaks its contract."""


class SamplerValueError(SamplerError, ValueError):
    """A parameter is out of its range or of the wrong type."""


class CheckpointError(SamplerError):
    """A checkpoint cannot be written, cannot be read, or belongs to another run."""
