"""Options of commands from the parameters that estimators declare."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeAlias

import click

from bayescascade.base.parameters import (
    Choice,
    Flag,
    Integer,
    Interval,
    Jobs,
    Other,
    Parameter,
    Parameters,
    Real,
    TwoLevels,
)
from bayescascade.cli import options as types
from bayescascade.cli.options import Option
from bayescascade.model.listed import Listed
from bayescascade.model.parameters import MemoryParameters, SearchParameters

Models: TypeAlias = Mapping[str, type[Parameters]]
"""The declarations of each model of a command."""


def options_of(models: Models, *, of_runs: bool) -> tuple[Option, ...]:
    """Return an option for each parameter of some models: run parameters, or model parameters.

    The first model that has a parameter defines its option; the help has each model's default.
    """
    of_run = {**SearchParameters.declared(), **MemoryParameters.declared()}
    names = dict.fromkeys(name for model in models.values() for name in model.declared())
    chosen = [name for name in (of_run if of_runs else names) if (name in of_run) == of_runs]
    return tuple(option_of(name, models) for name in chosen if name in names)


def option_of(name: str, models: Models) -> Option:
    """Return the option of one parameter."""
    having = {m: each.declared()[name] for m, each in models.items() if name in each.declared()}
    first = next(iter(having.values()))
    suffix = _defaults(having, len(models))
    text = f"{first.about}. [{suffix}]" if suffix else f"{first.about}."
    if isinstance(first, Flag):
        return click.option(first.option, name, is_flag=True, help=text)
    return click.option(
        first.option, name, type=_type(having.values()), metavar=first.metavar, help=text
    )


def words_of(listed: Iterable[Listed]) -> str:
    """Return the name and purpose of each estimator, such as "forest: grow a forest; ..."."""
    return "; ".join(f"{each.name}: {each.about}" for each in listed)


def check_chosen(models: Models, chosen: str, options: dict[str, Any], by: str) -> None:
    """Remove options that the chosen model does not have; click.UsageError if one is given.

    `by` is the option that chooses the model.
    """
    for name in dict.fromkeys(name for model in models.values() for name in model.declared()):
        if name in models[chosen].declared() or options.pop(name, None) in (None, False):
            continue
        having = [model for model, has in models.items() if name in has.declared()]
        option = option_name(models, name)
        raise click.UsageError(f"{option} needs {by} {' or '.join(having)}, got {chosen}")


def option_name(models: Models, parameter: str) -> str:
    """Return the name of a parameter's option."""
    declared = (model.declared() for model in models.values())
    return next(has[parameter].option for has in declared if parameter in has)


def _type(declared: Collection[Parameter[Any]]) -> click.ParamType | None:  # type: ignore[type-arg]
    """Return the type of an option, with the words of all models."""
    first = next(iter(declared))
    if isinstance(first, Jobs):
        return types.JOBS
    if isinstance(first, Interval):
        return types.Bounds()
    if isinstance(first, TwoLevels):
        return types.TwoLevelsType()
    if isinstance(first, Choice):
        words = dict.fromkeys(word for each in declared for word in each.words)
        return click.Choice(list(words))
    return None if isinstance(first, Other) else _Number(first)


class _Number(types.CheckedNumber[Any]):
    """A number within its limits, or one of the other words, or the word for None."""

    def __init__(self, declared: Parameter[Any]) -> None:
        super().__init__(*declared.words, declared.none)
        self.declared = declared
        self.name = declared.kind

    def _checked(self, name: str, value: Any) -> Any:
        number = int if isinstance(self.declared, Integer) else float
        return self.declared.check(types.parsed(number, value), name)


def _defaults(having: Mapping[str, Parameter[Any]], n_models: int) -> str:
    """Return models and defaults, such as "2", "leaf, branch" or "leaf, branch: 2; rules: 1"."""
    groups: dict[str, list[str]] = {}
    for model, declared in having.items():
        groups.setdefault(declared.words_of(declared.in_commands), []).append(model)
    if len(having) == n_models and len(groups) == 1:
        return next(iter(groups))
    by_models = {", ".join(models): words for words, models in groups.items()}
    return "; ".join(
        f"{models}: {words}" if words else models for models, words in by_models.items()
    )


def parameters_of(options: Mapping[str, Any], declared: type[Parameters]) -> dict[str, Any]:
    """Return the options that an estimator declares, with the defaults of commands."""
    found: dict[str, Any] = {}
    for name, parameter in declared.declared().items():
        value = options.get(name)
        if value is None or (value is False and isinstance(parameter, Flag)):
            if parameter.differs_in_commands:
                found[name] = parameter.in_commands
        elif value == parameter.none and isinstance(parameter, Integer | Real):
            found[name] = None
        else:
            found[name] = value
    return found
