"""Reading saved models back: which class a file is of, and the format all of them share."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bayescascade.errors import ModelFileError
from bayescascade.files import read_json

__all__ = ["FORMAT", "VERSION", "load"]

FORMAT = "bayescascade model"
VERSION = 1


def load(path: str | Path) -> Any:  # Any: each family has its own estimators
    """Read a model that was saved with its `save`.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    estimator
        Fitted, of the class that was saved; it holds no data, so `posterior_` and `run_` are not
        there.

    Raises
    ------
    ModelFileError
        If the file cannot be read, is cut short, of another format, or contradicts itself. Nothing
        in the file is ever executed.
    """
    record = read_json(path, FORMAT, VERSION)
    name = record.get("model")
    readers = _readers()
    if not isinstance(name, str) or name not in readers:
        raise ModelFileError(f"{path}: model must be one of {', '.join(readers)}, got {name!r}")
    try:
        return readers[name](record)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from None


def _readers() -> dict[str, Callable[[Mapping[str, Any]], Any]]:
    from bayescascade.cascades.estimators import BranchCascade, LeafCascade

    return {cls.model_name: cls.from_record for cls in (LeafCascade, BranchCascade)}
