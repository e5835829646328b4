"""Tables without the columns that no density can use, which are left out and named."""

from collections.abc import Callable
from typing import Any

from bayescascade.base.errors import DataError, UndeclaredError
from bayescascade.data.inference import reason_words
from bayescascade.data.table import Table


def without_unusable(
    read: Callable[..., Table], tell: Callable[[str], None], **declared: Any
) -> Table:
    """Return what `read` reads, without columns that would have to be declared.

    `read` takes declarations by keyword, as `Table.from_frame` does; `tell` takes a sentence that
    names the columns left out, if any. Columns that are named in `declared` are not left out.
    Raises DataError or ParameterError as `read` does, also if no column would be left.
    """
    try:
        return read(**declared)
    except UndeclaredError as error:
        named = {name for name in declared.get("columns") or () if isinstance(name, str)}
        if named & error.reasons.keys():
            raise
        dropped = [*(declared.get("drop") or ()), *error.reasons]
        try:
            table = read(**{**declared, "drop": dropped})
        except DataError:
            raise error from None
        columns = "column" if len(error.reasons) == 1 else "columns"
        tell(f"left out: {columns} {reason_words(error.reasons)}")
        return table
