"""Former names of attributes."""

from typing import Any
from warnings import warn


def former(before: str, today: str) -> Any:  # Any: a property
    """Return a property with a former name, which warns and reads today's attribute."""

    def read(self: Any) -> Any:
        warn(f"{type(self).__name__}.{before} is now {today}", FutureWarning, stacklevel=2)
        return getattr(self, today)

    return property(read, doc=f"Today's `{today}`.")
