"""Every exception the package raises on purpose, under one base class.

A message names the parameter or column, the rule it broke, and the value found.
"""

__all__ = [
    "BayesCascadeError",
    "DataError",
    "ModelFileError",
    "ParameterError",
    "TooLargeError",
]


class BayesCascadeError(Exception):
    """Base class of all errors raised by bayescascade."""


class ParameterError(BayesCascadeError, ValueError):
    """A parameter is out of its range or of the wrong type."""


class TooLargeError(ParameterError):
    """An exact computation would take more memory or work than it may.

    Parameters
    ----------
    message : str
        What it would take, what is allowed, and what would fit.
    needed : str
        What it would take, such as "4,782,969 boxes, 77 MB".
    """

    def __init__(self, message: str, needed: str) -> None:
        super().__init__(message, needed)
        self.needed = needed

    def __str__(self) -> str:
        return str(self.args[0])


class DataError(BayesCascadeError, ValueError):
    """The data break a rule: an unknown level, a missing cell, an unusable column."""


class ModelFileError(BayesCascadeError, ValueError):
    """A saved model cannot be read: truncated, edited, of another format."""
