"""Saved models as commands need them: in a role, or an error of one line."""

from typing import Any

import click

__all__ = ["in_role", "load_model"]


def load_model(path: str) -> Any:  # Any: whatever was saved
    """Load a model; raises ModelFileError as `bayescascade.load` does."""
    from bayescascade.model.record import load

    return load(path)


def in_role(role: Any, thing: Any, what: str, path: str, hint: str = "") -> Any:
    """Return what was loaded if it has a role of `bayescascade.model.roles`.

    Parameters
    ----------
    role : protocol
    thing : object
        A model, or what it learned.
    what : str
        A command or an option; the message begins with it.
    path : str
        The file of the model.
    hint : str
        What the message ends with.

    Raises
    ------
    click.ClickException
        If it has not.
    """
    if isinstance(thing, role):
        return thing
    from bayescascade.model.roles import role_words

    title = load_model(path).title
    raise click.ClickException(f"{what} needs {role_words(role)}, got {path}, a {title}{hint}")
