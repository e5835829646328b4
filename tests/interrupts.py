"""Ctrl-C in a chosen call, for tests of what it leaves."""

from collections.abc import Callable
from typing import Any


def interrupted(
    at: int, function: Callable[..., Any] = lambda *_: None, *, after: bool = False
) -> Any:
    """Return a function that is Ctrl-C in its call number `at`, from 1, and else calls the other.

    With `after`, Ctrl-C comes once the other has been called. Its `n_calls` and `at` may be set.
    """

    def call(*given: Any, **named: Any) -> Any:
        call.n_calls += 1
        is_due = call.n_calls == call.at
        if is_due and not after:
            raise KeyboardInterrupt
        result = function(*given, **named)
        if is_due:
            raise KeyboardInterrupt
        return result

    call.n_calls, call.at = 0, at
    return call
