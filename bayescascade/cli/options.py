"""Types of options: numbers in a range, lists of columns, declared kinds."""

import csv
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, cast

import click

if TYPE_CHECKING:
    from bayescascade.data.levels import Level

Number = TypeVar("Number")
Command = TypeVar("Command", bound=Callable[..., Any])
Option: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]


class CheckedNumber(click.ParamType, Generic[Number]):  # type: ignore[type-arg] # before click 8.4
    """A number that passes a check of `base.validation`, or one of the words `others`."""

    def __init__(self, *others: str | None, **limits: float | None) -> None:
        self.limits: dict[str, Any] = limits
        self.others = others

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Number:
        """Return the number."""
        from bayescascade.base.errors import ParameterError

        if value in self.others:
            return cast("Number", value)
        try:
            return self._checked(param.opts[0] if param is not None else "the value", value)
        except ParameterError as error:
            raise click.UsageError(str(error), ctx) from None

    def _checked(self, name: str, value: Any) -> Number:
        raise NotImplementedError


class IntegerType(CheckedNumber[int | str]):
    """An integer, at least `minimum` and not `excluded` if given, or the word `other`."""

    name = "integer"

    def __init__(
        self, minimum: int | None = None, other: str | None = None, excluded: int | None = None
    ) -> None:
        super().__init__(other, minimum=minimum)
        self.excluded = excluded

    def _checked(self, name: str, value: Any) -> int | str:
        from bayescascade.base.errors import ParameterError
        from bayescascade.base.validation import check_integer

        number = check_integer(name, parsed(int, value), **self.limits)
        if number == self.excluded:
            raise ParameterError(
                f"{name} must be an integer other than {self.excluded}, got {number}"
            )
        return number


JOBS = IntegerType(excluded=0)
"""Number of parallel jobs, in the convention of joblib."""


class RealType(CheckedNumber[float | str]):
    """A finite number, at least `minimum`, strictly between `above` and `below`."""

    name = "number"

    def _checked(self, name: str, value: Any) -> float | str:
        from bayescascade.base.validation import check_real

        return check_real(name, parsed(float, value), **self.limits)


class Bounds(click.ParamType):  # type: ignore[type-arg] # before click 8.4
    """LOW,HIGH, two numbers; if `named`, NAME=LOW,HIGH for a column, without NAME for all others.

    The callee checks their order.
    """

    name = "low,high"

    def __init__(self, *, named: bool = False) -> None:
        self.named = named

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:  # a pair of floats; if `named`, the column's name, perhaps "", and the pair
        """Return both numbers, or the name and both."""
        name, sign, ends = value.rpartition("=") if self.named else ("", "", value)
        name = name_and_rest(f"{name}=", "=")[0]  # the name may be in quotes
        try:
            low, high = (float(end) for end in split_commas(ends))
            if sign and not name:
                raise ValueError
        except ValueError:
            option = param.opts[0] if param is not None else "bounds"
            form = "LOW,HIGH or NAME=LOW,HIGH" if self.named else "LOW,HIGH"
            raise click.UsageError(f"{option} must be {form}, got {value!r}", ctx) from None
        return (name, (low, high)) if self.named else (low, high)


class TwoLevelsType(click.ParamType):  # type: ignore[type-arg] # before click 8.4
    """ONE,OTHER: two texts, two numbers or two truth values, as cells of a file are read."""

    name = "one,other"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> "list[Level]":
        """Return both levels."""
        from bayescascade.data.cell_texts import MISSING_TEXTS
        from bayescascade.data.levels import parse_texts

        texts = split_commas(value)
        if len(texts) != 2 or not set(texts).isdisjoint(MISSING_TEXTS):
            option = param.opts[0] if param is not None else "levels"
            raise click.UsageError(
                f"{option} must be two texts, numbers or truth values, such as no,yes, and none "
                f"that stands for a missing cell, got {value!r}",
                ctx,
            )
        return parse_texts(texts)


_QUOTED = re.compile(r'"((?:[^"]|"")*)"')


def name_and_rest(text: str, sign: str) -> tuple[str, str, str]:
    """Return a column's name, the sign after it and the rest, as `str.partition` does.

    A name with signs or commas may be in quotes. A quoted name without a sign is the whole text.

    >>> name_and_rest('"a:b":c', ":")
    ('a:b', ':', 'c')
    """
    quoted = _QUOTED.match(text)
    if quoted is None:
        return text.partition(sign)
    rest = text[quoted.end() :]
    if not rest.startswith(sign):
        return (text, "", "")
    return quoted[1].replace('""', '"'), sign, rest[len(sign) :]


def split_commas(text: str) -> list[str]:
    """Return the texts between commas; as in CSV, a text in quotes may have commas.

    >>> split_commas('a,"b, c"')
    ['a', 'b, c']
    """
    return next(csv.reader([text]), None) or [""]


def parse_kinds(option: str, texts: Sequence[str]) -> "dict[str, list[Level] | None] | None":
    """Return levels by column from texts such as "age:child,adult" or "size,weight".

    Levels that are all numbers are numbers, as in the data. None stands for levels taken from the
    data; without texts, the result is None.
    """
    if not texts:
        return None
    from bayescascade.data.levels import parse_texts

    declared: dict[str, list[Level] | None] = {}
    for text in texts:
        name, colon, levels = name_and_rest(text, ":")
        for column in [name] if colon else split_commas(text):
            if column in declared:
                raise click.UsageError(f'{option} must name column "{column}" once, got {text!r}')
            declared[column] = parse_texts(split_commas(levels)) if colon else None
    return declared


def parse_continuous(texts: Sequence[str]) -> dict[str, int | list[float]] | None:
    """Return bins or edges by column from texts such as "income:10" or "income:0,10,50"."""
    declared: dict[str, int | list[float]] = {}
    for text in texts:
        name, _, spec = name_and_rest(text, ":")
        try:
            parsed = [float(edge) for edge in spec.split(",")] if "," in spec else int(spec)
        except ValueError:
            raise click.UsageError(
                "--continuous must be NAME:BINS or NAME:EDGE,EDGE,..., as in income:10 or "
                f"income:0,10,50, got {text!r}"
            ) from None
        if name in declared:
            raise click.UsageError(f'--continuous must name column "{name}" once, got {text!r}')
        declared[name] = parsed
    return declared or None


def parse_given(texts: Sequence[str], continuous: Sequence[str]) -> dict[str, Any]:
    """Return conditions by column from texts such as "sex=male", "class=1st,2nd" or "income=0,10".

    Nothing after the sign means a missing cell; two numbers for a column in `continuous` are an
    interval.
    """
    conditions: dict[str, Any] = {}
    for text in texts:
        name, sign, values = name_and_rest(text, "=")
        if not sign:
            raise click.UsageError(
                f"--given must be NAME=LEVEL or NAME=LEVEL,LEVEL,..., got {text!r}"
            )
        if name in conditions:
            raise click.UsageError(f'--given must name column "{name}" once, got {text!r}')
        listed = [value or None for value in split_commas(values)]
        if name in continuous and len(listed) > 1:
            conditions[name] = [parsed(float, value) for value in listed]
        else:
            conditions[name] = listed if len(listed) > 1 else listed[0]
    return conditions


def parsed(parse: type[int] | type[float], value: Any) -> Any:
    """Return a text as a number, or as it is if it is none."""
    try:
        return parse(value)
    except (TypeError, ValueError):
        return value


def listed(texts: Sequence[str]) -> list[str] | None:
    """Return the names in texts such as "age,sex"; None if there are none."""
    return [name for text in texts for name in split_commas(text)] or None


def with_options(*options: Option) -> Callable[[Command], Command]:
    """Return a decorator that gives a command these options, in this order."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            option(command)
        return command

    return decorate


CHOICE_OPTIONS: tuple[Option, ...] = (
    click.option(
        "--columns",
        multiple=True,
        metavar="NAME,...",
        help="Columns to use; all others are left out.",
    ),
    click.option("--drop", multiple=True, metavar="NAME,...", help="Columns to leave out."),
)
"""Which columns to use."""

COLUMN_OPTIONS: tuple[Option, ...] = (
    *CHOICE_OPTIONS,
    click.option(
        "--weights", metavar="NAME", help="Column of weights: the number of rows that each row "
        "counts as."
    ),
    click.option(
        "--nominal",
        multiple=True,
        metavar="NAME[:LEVEL,...]",
        help="Column whose levels have no order.",
    ),
    click.option(
        "--ordinal",
        multiple=True,
        metavar="NAME[:LEVEL,...]",
        help="Column whose levels have an order; list text levels in that order: age:child,adult.",
    ),
    click.option(
        "--continuous",
        multiple=True,
        metavar="NAME:BINS|EDGE,...",
        help="Column of numbers, cut into this many bins (income:10) or at these edges "
        "(income:0,10,50). Numbers that are not declared: 2 to 10 bins, by the number of rows.",
    ),
    click.option(
        "--missing",
        type=click.Choice(["level", "error"]),
        help="Empty cells are a separate level (the default), or an error.",
    ),
)  # fmt: skip
"""Which columns to use, and how to read them."""

FULL_OPTION: Option = click.option(
    "--full", is_flag=True, help="Print a large tree or list in full, not folded."
)
"""Whether long trees, lists and columns are printed in full."""

BUDGETS_OPTION: Option = click.option(
    "--budgets",
    metavar="COST,...",
    required=True,
    help="Limits on the mean cost of a row; one classifier is learned for each.",
)

TARGET_OPTION: Option = click.option(
    "--target", metavar="NAME", required=True, help="Column of the labels."
)

SAVE_OPTION: Option = click.option(
    "--out", metavar="FILE.json", help="Save the model, for predict and score."
)

JSON_OPTION: Option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON at full precision."
)

OUTPUT_OPTIONS: tuple[Option, ...] = (
    click.option("--trace", metavar="FILE.nc", help="Write the posterior's draws for ArviZ."),
    click.option("--out", metavar="FILE.json", help="Save the model."),
    FULL_OPTION,
    click.option(
        "--quiet", is_flag=True, help="Print no progress and no result, except the JSON of --json."
    ),
)
"""Where the result goes."""
