"""Draws in the format of the installed version of ArviZ.

ArviZ itself is imported only to make an ``InferenceData`` (ArviZ 0.x) or ``DataTree`` (1.x), or to
read one from a file.
"""

import gc
import sys
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.errors import DataError
from bayescascade.base.extras import check_traces
from bayescascade.base.files import is_damaged

_MOST_EXACT = 2.0**53  # of whole numbers as floats


def import_arviz() -> Any:
    """Import ArviZ without its FutureWarning; MissingExtraError without it or its writer."""
    check_traces()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning, module="arviz")
        import arviz
    return arviz


@contextmanager
def read_arviz(path: str | Path) -> Iterator[Any]:
    """Open a netCDF file as ArviZ does, for a block that reads it.

    DataError if the file, or the block, meets damage that it cannot read. The file is closed then:
    otherwise h5netcdf would close it during garbage collection, fail again, and Python would print
    that error too.
    """
    arviz = import_arviz()
    if is_damaged(path):  # HDF5 may never return from such a file
        raise DataError(f"{path} is damaged: its checksum is of another content")
    failed = False
    with _quiet("h5netcdf"):
        try:
            with closing(arviz.from_netcdf(str(path))) as data:
                yield data
        except (DataError, MemoryError):
            raise
        except Exception as error:  # libraries raise errors of any type for damaged files
            failed = True
            traceback.clear_frames(error.__traceback__)
        if failed:  # with large models in memory, it would take longer than reading the file
            gc.collect()
    if failed:
        raise DataError(
            f"{path} is not a trace file, or is cut short: not netCDF; if it is a model, use "
            "bayescascade show"
        )


@contextmanager
def _quiet(library: str) -> Iterator[None]:
    """Do not print errors that a library raises during garbage collection."""
    usual = sys.unraisablehook

    def hook(unraisable: Any) -> None:
        if not str(getattr(unraisable.object, "__module__", "")).startswith(library):
            usual(unraisable)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = usual


def plottable(draws: NDArray[Any]) -> NDArray[Any]:
    """Return draws in the type for ArviZ's plots: int64 for integers that vary, otherwise float64.

    For integers ArviZ draws bars and ranks ties in random order; it takes ties of floats as a sign
    that chains differ. It cannot rank integers that never vary.
    """
    floats = draws.astype(np.float64)
    varies = floats.size > 0 and bool(np.ptp(floats) > 0)
    is_whole = varies and bool((np.abs(floats) < _MOST_EXACT).all() and (floats % 1 == 0).all())
    return floats.astype(np.int64) if is_whole else floats


def to_arviz(
    posterior: Mapping[str, NDArray[Any]],
    sample_stats: Mapping[str, NDArray[Any]],
    coords: Mapping[str, Sequence[str]],
    dims: Mapping[str, list[str]],
    attributes: Mapping[str, Any],
) -> Any:
    """Build the inference data of this version of ArviZ, without time stamps.

    posterior, sample_stats: arrays (n_chains, n_draws, ...) by name; dims: the further dimensions
    of an array, by its name; coords: the labels along each further dimension.
    """
    arviz = import_arviz()
    groups = {"posterior": dict(posterior), "sample_stats": dict(sample_stats)}
    common = {"coords": dict(coords), "dims": dict(dims)}
    with warnings.catch_warnings():
        # an interrupted run may have fewer draws than chains
        warnings.filterwarnings("ignore", "More chains", UserWarning)
        warnings.filterwarnings("ignore", "Found chain dimension to be longer", UserWarning)  # 1.x
        if arviz.__version__.startswith("0."):
            data = arviz.from_dict(**groups, **common)
            parts = [data[name] for name in data.groups()]
        else:
            data = arviz.from_dict(groups, **common)
            parts = [data, *data.children.values()]
    for part in parts:
        part.attrs.clear()  # creation times, so that equal runs give equal files
    data.attrs.update(attributes)
    return data
