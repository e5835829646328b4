"""Notices before work that takes more than ten seconds."""

from collections.abc import Iterable, Iterator
from time import process_time
from typing import TypeVar

from bayescascade.base.errors import warn_user

MOST_SILENT = 10.0
"""Maximum seconds of work without a notice."""

T = TypeVar("T")


def notice(what: str, seconds: float) -> bool:
    """Warn of work that takes long, given its measured seconds; return whether it does."""
    if seconds <= MOST_SILENT:
        return False
    warn_user(UserWarning(f"{what} takes about {seconds:,.0f} s"))
    return True


def noticed(parts: Iterable[T], n_parts: int, what: str) -> Iterator[T]:
    """Yield parts of work; warn once if the remaining parts take long, by the time of the last."""
    is_noticed, began = False, process_time()
    for n_done, part in enumerate(parts, 1):
        yield part
        ended = process_time()
        if n_done > 1 and not is_noticed:
            is_noticed = notice(what, (ended - began) * (n_parts - n_done))
        began = ended
