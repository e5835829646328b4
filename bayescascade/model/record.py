"""Saved models: JSON with everything to print and use an estimator without its data.

The file has no rows, except for models that predict by rows; their pages say so. Reading it
executes nothing and trusts nothing: its class checks every field for consistency.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from bayescascade.base.errors import BayesCascadeError, ModelFileError
from bayescascade.base.files import read_json
from bayescascade.base.texts import shortened

FORMAT = "bayescascade model"
VERSION = 1

NOT_SAVED = (
    "checkpoint", "resume", "progress", "n_jobs", "random_state", "time_limit",
    "until",
)  # fmt: skip
"""Parameters of the run, not of the model."""


def load(path: str | Path) -> Any:  # Any: each family has its own estimators
    """Read a model that was saved with its `save`.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    estimator
        A fitted estimator of the saved class. It contains no data, so it has no `posterior_` and no
        `run_`.

    Raises
    ------
    ModelFileError
        If the file cannot be read, is truncated, has another format, or contradicts itself. Nothing
        in the file is ever executed.
    """
    record = read_json(path, FORMAT, VERSION)
    found = model_class(record.get("model"))
    if found is None:
        raise ModelFileError(
            f"{path}: model must be a kind that can be saved, "
            f"got {shortened(repr(record.get('model')))}"
        )
    try:
        return found.from_record(record)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {shortened(str(error))}") from None


def model_class(name: object) -> Any:  # Any: a subclass of `ReadableModel`, or None
    """Return the estimator of a name in files; None if there is none."""
    package = import_module("bayescascade")  # its table of names is the registry
    found = getattr(package, name) if isinstance(name, str) and name in package.__all__ else None
    return found if getattr(found, "model_name", None) == name else None


@contextmanager
def contradictions_refused() -> Iterator[None]:
    """Raise ModelFileError for any exception from an inconsistent record."""
    try:
        yield
    except ModelFileError:
        raise
    except KeyError as error:
        raise ModelFileError(f"a saved model must have the field {error}") from None
    except (
        BayesCascadeError,
        TypeError,
        ValueError,
        AttributeError,
        ArithmeticError,
        LookupError,
        RecursionError,
    ) as error:
        raise ModelFileError(f"a saved model's fields must fit together: {error}") from None
