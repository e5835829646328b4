"""Every exception the package raises on purpose, under one base class.

A message names the parameter or column, the rule it broke, and the value found.
"""

__all__ = ["BayesCascadeError", "DataError", "ModelFileError", "ParameterError"]


class BayesCascadeError(Exception):
    """Base class of all errors raised by bayescascade."""


class ParameterError(BayesCascadeError, ValueError):
    """A parameter is out of its range or of the wrong type."""


class DataError(BayesCascadeError, ValueError):
    """The data break a rule: an unknown level, a missing cell, an unusable column."""


class ModelFileError(BayesCascadeError, ValueError):
    """A saved model cannot be read: truncated, edited, of another format."""
