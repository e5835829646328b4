"""Attributes by their names of before."""

from typing import Any
from warnings import warn


def former(before: str, today: str) -> Any:  # Any: a property
    """Return an attribute that is today's by another name, with a FutureWarning."""

    def read(self: Any) -> Any:
        warn(f"{type(self).__name__}.{before} is now {today}", FutureWarning, stacklevel=2)
        return getattr(self, today)

    return property(read, doc=f"Today's `{today}`.")
