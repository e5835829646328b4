"""Words that users type: names in Python, or options on the command line.

Messages name only words that their reader can type. A running command sets this module to words of
commands; otherwise messages are for users of Python.
"""

from collections.abc import Iterator
from contextlib import contextmanager

_is_command_line = False


def typed(python: str, command: str) -> str:
    """Return the words for something in Python, or those on the command line if a command runs."""
    return command if _is_command_line else python


@contextmanager
def words_of_commands() -> Iterator[None]:
    """Let messages name options of commands."""
    global _is_command_line
    before, _is_command_line = _is_command_line, True
    try:
        yield
    finally:
        _is_command_line = before


def typed_setting(name: str, word: str, owner: str = "") -> str:
    """Return a parameter, perhaps of a class that owns it, with a word as its value.

    >>> typed_setting("dates", "parts", "ReadAs")
    'ReadAs(dates="parts")'
    """
    given = f'{name}="{word}"'
    option = f"--{name.replace('_', '-')} {word}"
    return typed(f"{owner}({given})" if owner else given, option)
