"""Docstrings of estimators: types, ranges and defaults of parameters, from their declarations."""

import inspect
import re
from collections.abc import Mapping
from textwrap import indent, wrap
from typing import Any

from bayescascade.base.parameters import Parameter, Parameters

_TITLE = "Parameters\n----------\n"
_ENTRY = re.compile(r"^(?P<names>\w+(?:, \w+)*)(?: : .*)?$")
_WIDTH = 92


def described(docstring: str, declares: type[Parameters]) -> str:
    """Return a class's docstring with the declarations in its section of parameters.

    An entry of the docstring keeps its text and gets its type, range and default. Declared
    parameters without an entry follow, with their declared help.
    """
    head, title, rest = inspect.cleandoc(docstring).partition(_TITLE)
    if not title:
        return docstring
    section, *after = rest.split("\n\n", 1)
    declared = declares.declared()
    lines, named = [], set[str]()
    for line in section.split("\n"):
        match = _ENTRY.match(line)
        names = match["names"].split(", ") if match else []
        named.update(names)
        is_one = len(names) == 1 and names[0] in declared
        lines.append(_entry(declared[names[0]], line) if is_one else line)
    for name, parameter in declared.items():
        if name not in named:
            lines += [_entry(parameter), indent("\n".join(_words(parameter, declared)), "    ")]
    return "\n\n".join([head + title + "\n".join(lines), *after])


def _entry(parameter: Parameter[Any], written: str = "") -> str:
    typed = parameter.type_text or written.partition(" : ")[2] or "object"
    default = parameter.default
    text = f'"{default}"' if isinstance(default, str) else repr(default)
    return f"{parameter.name} : {typed}, default {text}"


def _words(parameter: Parameter[Any], declared: Mapping[str, Parameter[Any]]) -> list[str]:
    """Return the declared help of a parameter, as lines."""
    of_options = {each.option: f"`{name}`" for name, each in declared.items()}
    about = re.sub(r"--[a-z-]+", lambda m: of_options.get(m[0], m[0]), parameter.about)
    none = f" None: {parameter.none}." if parameter.none else ""
    more = f" {parameter.more}" if parameter.more else ""
    return wrap(f"{about}.{none}{more}", _WIDTH, break_long_words=False, break_on_hyphens=False)
