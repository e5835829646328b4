"""Libraries that only some uses of the package need, installed with its extras."""

from importlib.util import find_spec

from bayescascade.base.errors import MissingExtraError


def check_plots() -> None:
    """Raise MissingExtraError if nothing can be drawn, without importing what would draw it."""
    _check("matplotlib", "plots", "pictures")


def check_traces() -> None:
    """Raise MissingExtraError if traces cannot have ArviZ's form and files."""
    for library in ("arviz", "h5py", "h5netcdf"):
        _check(library, "traces", "traces for ArviZ")


def _check(library: str, extra: str, what: str) -> None:
    if find_spec(library) is None:
        raise MissingExtraError(
            f"{what} need {library}, which is not installed: pip install 'bayescascade[{extra}]'"
        )
