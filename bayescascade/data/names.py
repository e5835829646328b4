"""Checks of names of columns, and names in messages."""

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from bayescascade.base.errors import DataError

_MOST_LISTED = 8  # names in a message
_SIGNS = re.compile(r'[,:="]')
_OF_SHELLS = re.compile(r"[\s'\"$`\\!*?\[\](){}<>|&;#~]")


def check_distinct_names(names: Sequence[str]) -> None:
    """Raise DataError if a column name occurs twice, naming it."""
    repeated = [f'"{name}"' for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise DataError(
            f"column names must be different, got {listed_names(repeated)} more than once"
        )


def check_known(option: str, chosen: Iterable[object], names: Sequence[str]) -> None:
    """Raise DataError if an option names a column that is not among the names."""
    for name in chosen:
        if name not in names:
            meant = near_names(str(name), names)
            raise DataError(
                f'{option} names the unknown column "{name}"{meant}; columns: {listed_names(names)}'
            )


def check_present(needed: Sequence[str], names: Sequence[str]) -> None:
    """Raise DataError if a needed column is not among the names."""
    for name in needed:
        if name not in names:
            raise DataError(f'column "{name}" is missing; columns: {listed_names(names)}')


def near_names(name: str, names: Sequence[str]) -> str:
    """Return the nearest names for a message, if any are near."""
    by_lower = {each.lower(): each for each in names}
    found = [by_lower[each] for each in get_close_matches(name.lower(), by_lower)]
    near = [
        f'"{each}", in options {typed_names(each)}' if _SIGNS.search(each) else f'"{each}"'
        for each in found
    ]
    return f" (did you mean {' or '.join(near)}?)" if near else ""


def listed_names(names: Sequence[str]) -> str:
    """Return names for a message: the first eight, and the number of the others."""
    n_more = len(names) - _MOST_LISTED
    if n_more <= 1:  # to say "1 more" takes no less room than the name
        return ", ".join(names)
    return f"{', '.join(names[:_MOST_LISTED])} and {n_more:,} more"


def typed_names(*names: str) -> str:
    """Return names of columns as a user types them in a shell, such as '"income, yearly"',age."""
    doubled = ['"' + name.replace('"', '""') + '"' for name in names]
    texts = [d if _SIGNS.search(n) else n for n, d in zip(names, doubled, strict=True)]
    text = ",".join(texts)
    return shlex.quote(text) if _OF_SHELLS.search(text) else text
