"""Options on how tables are read, in one decorator for all commands with a table."""

import re
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bayescascade.cli.options import (
    IntegerType,
    RealType,
    listed,
    name_and_rest,
    parse_kinds,
    split_commas,
)

if TYPE_CHECKING:
    from bayescascade.data.levels import Level

Result = TypeVar("Result")

_NAMED = {"labels": "target", "weights": "weights"}
"""Parameters of `ReadAs` that are separate options of commands."""

_FILE_OPTIONS = (
    click.option(
        "--sep", metavar="CHAR", help='Delimiter of text files, or "tab". Default: detected.'
    ),
    click.option(
        "--encoding",
        metavar="NAME",
        help="Encoding of text files, such as cp1252. Default: detected.",
    ),
    click.option(
        "--decimal",
        type=click.Choice([".", ","]),
        help="Decimal separator in text files. Default: detected.",
    ),
    click.option(
        "--thousands",
        metavar="CHAR",
        help='Character between thousands in text files, or "space". Default: detected.',
    ),
    click.option(
        "--skip",
        type=IntegerType(0),
        metavar="N",
        help="Leave out this number of lines before the header, such as titles.",
    ),
    click.option(
        "--comment", metavar="TEXT", help='Leave out lines that begin with this text, such as "#".'
    ),
    click.option(
        "--no-strip",
        is_flag=True,
        help="Keep blanks at the ends of cells, which are left out by default.",
    ),
    click.option(
        "--keep-na",
        multiple=True,
        metavar="NAME,...",
        help='Columns in which texts such as "NA" or "None" are levels, and only empty cells are '
        "missing.",
    ),
    click.option(
        "--na",
        multiple=True,
        metavar="[NAME:]VALUE,...",
        help="Values that stand for missing cells, in all columns or in one: -9,-8 or income:-9.",
    ),
)
_LEARNED_OPTIONS = (
    click.option(
        "--rare",
        multiple=True,
        metavar="[NAME:]SHARE",
        help="Group levels of text that are rarer than this share of the rows, such as 0.01, as "
        '"other levels"; with NAME also levels that are numbers. Levels that are '
        "not in DATA then belong to this group.",
    ),
    click.option(
        "--dates",
        type=click.Choice(["error", "parts"]),
        help="Columns of dates become year, month, weekday and hour (parts), or are an error "
        "(error). By default, commands that learn densities leave them out with a note, and they "
        "are an error in other commands. If only some cells of a text column are dates, its texts "
        "are levels.",
    ),
)
_MAY_BE_ELSEWHERE = re.compile(r"[*?\[:]|^-$")  # a pattern, an address, or standard input
_LABELS_OPTION = click.option(
    "--missing-labels",
    type=click.Choice(["error", "drop"]),
    help="Rows without a label are an error (the default), or are left out.",
)


def with_reading(
    *, learns: bool, labels: bool = False
) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Return a decorator that gives a command on DATA the options of reading tables.

    The command gets a `ReadAs` instead of a path if one of them is given. `learns` means that the
    command learns a model, which decides how later rows are read; `labels` that rows have labels.
    """
    chosen = [*_FILE_OPTIONS, *(_LEARNED_OPTIONS if learns else ())]
    chosen += [_LABELS_OPTION] if labels else []

    def decorate(command: Callable[..., Result]) -> Callable[..., Result]:
        @wraps(command)
        def run(*arguments: Any, data: Any, **options: Any) -> Result:
            for path in [data] if isinstance(data, str) else data:
                if not _MAY_BE_ELSEWHERE.search(path) and not Path(path).exists():
                    raise click.ClickException(f"no such file: {path}")  # before slow imports
            how = {
                "sep": _character(options.pop("sep")),
                "encoding": options.pop("encoding"),
                "decimal": options.pop("decimal"),
                "thousands": _character(options.pop("thousands")),
                "skip": options.pop("skip"),
                "comment": options.pop("comment"),
                "strip": False if options.pop("no_strip") else None,
                "keep_na": listed(options.pop("keep_na")),
                "na": _codes(options.pop("na")),
                "rare": _shares(options.pop("rare", ())),
                "dates": options.pop("dates", None),
                "missing_labels": options.pop("missing_labels", None),
            }
            given = {name: value for name, value in how.items() if value is not None}
            if given:
                from bayescascade.data.read_as import ReadAs

                given |= {name: options.get(o) for name, o in _NAMED.items() if options.get(o)}
                ordinal = parse_kinds("--ordinal", options.get("ordinal", ())) or {}
                given["whole"] = [*(listed(options.get("drop", ())) or ()), *ordinal]
                is_one = isinstance(data, str)
                data = ReadAs(data, **given) if is_one else [ReadAs(path, **given) for path in data]
            return command(*arguments, data=data, **options)

        for option in reversed(chosen):
            option(run)
        return run

    return decorate


def _character(text: str | None) -> str | None:
    return {"tab": "\t", "\\t": "\t", "space": " "}.get(text or "", text)


def _codes(texts: Sequence[str]) -> "dict[str | None, list[Level]] | None":
    """Return values by column, or None for all other columns, from texts such as "income:-9,-8"."""
    from bayescascade.data.levels import parse_texts

    found: dict[str | None, list[Level]] = {}
    for text in texts:
        name, colon, values = name_and_rest(text, ":")
        listed = found.setdefault(name if colon else None, [])
        listed += (parse_texts([one])[0] for one in split_commas(values if colon else text))
    return found or None


def _shares(texts: Sequence[str]) -> float | dict[str, float] | None:
    found: dict[str, float] = {}
    for text in texts:
        name, colon, share = name_and_rest(text, ":")
        number = RealType(above=0.0, below=1.0)._checked("--rare", share if colon else text)
        found[name if colon else ""] = float(number)
    if "" in found and len(found) > 1:
        raise click.UsageError("--rare must be for all columns or for named ones, got both")
    return found.get("", found) or None
