"""Optional libraries, installed with the package's extras."""

from importlib.util import find_spec

from bayescascade.base.errors import MissingExtraError


def check_plots() -> None:
    """Raise MissingExtraError if matplotlib is missing, without importing it."""
    _check("matplotlib", "plots", "pictures")


def check_traces() -> None:
    """Raise MissingExtraError if a library for traces in ArviZ's format is missing."""
    for library in ("arviz", "h5py", "h5netcdf"):
        _check(library, "traces", "traces for ArviZ")


def _check(library: str, extra: str, what: str) -> None:
    if find_spec(library) is None:
        raise MissingExtraError(
            f"{what} need {library}, which is not installed: pip install 'bayescascade[{extra}]'"
        )
