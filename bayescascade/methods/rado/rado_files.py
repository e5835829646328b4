"""Files of rados: NumPy's npz format, with facts about them as JSON. Nothing is executed."""

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from bayescascade.base.errors import ModelFileError
from bayescascade.base.files import replaced_file
from bayescascade.base.texts import shortened
from bayescascade.base.typed_words import typed
from bayescascade.base.validation import check_integer
from bayescascade.methods.rado.protection import Promise
from bayescascade.methods.rado.reading import Reading
from bayescascade.methods.rado.signatures import Floats
from bayescascade.model.record import contradictions_refused

_FORMAT, _VERSION = "bayescascade rados", 1


Content: TypeAlias = tuple[Floats, int, int | None, Reading, Promise | None]
"""Values, number of rows, support, reading and promise, as `Rados` has them."""


def write_arrays(path: str | Path, values: Floats, about: Mapping[str, Any]) -> None:
    """Write sums, and plain data about them, to a file."""
    text = json.dumps({"format": _FORMAT, "version": _VERSION, **about}, allow_nan=False)
    with replaced_file(path) as temporary, temporary.open("wb") as file:
        np.savez(file, values=values, about=np.array(text))


def read_rados(path: str | Path) -> Content:
    """Read what `Rados.save` wrote; raises ModelFileError as `Rados.load`."""
    try:
        with contradictions_refused():
            return _read(Path(path))
    except FileNotFoundError:
        raise ModelFileError(f"no such file: {path}") from None
    except zipfile.BadZipFile:
        made = typed("Rados.save", "rados make")
        raise ModelFileError(
            f"{path} is not a file of rados, or is damaged: {made} writes such files (.npz)"
        ) from None
    except (OSError, EOFError, MemoryError) as error:
        reason = shortened(str(error))
        raise ModelFileError(f"{path}: cannot be read as rados: {reason}") from None
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {shortened(str(error))}") from None


def _read(path: Path) -> Content:
    values, about = _read_arrays(path)
    if (about["format"], about["version"]) != (_FORMAT, _VERSION):
        raise ModelFileError(f"format must be {_FORMAT}, version {_VERSION}")
    reading = Reading.from_record(about["reading"])
    n_rows = check_integer("n_rows", about["n_rows"], 1)
    support = about["support"]
    if support is not None:
        check_integer("support", support, 1, n_rows)
    if values.dtype != np.float64 or values.ndim != 2 or not len(values):
        raise ModelFileError("values of rados must be a matrix of float64")
    if values.shape[1] != reading.n_columns or not np.isfinite(values).all():
        raise ModelFileError(f"values of rados must be finite, {reading.n_columns} each")
    promise = about["promise"]
    if promise is not None:
        promise = Promise.from_record(promise)
        if promise.feature and promise.feature not in reading.columns:
            raise ModelFileError("a promise's feature must be one of the columns")
    return np.ascontiguousarray(values), n_rows, support, reading, promise


def _read_arrays(path: Path) -> tuple[Any, Any]:  # Any: whatever the file holds
    content = path.read_bytes()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if any(one.compress_type != zipfile.ZIP_STORED for one in archive.infolist()):
            raise ModelFileError("rados must be stored without compression")
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        if set(arrays.files) != {"values", "about"}:
            raise ModelFileError("rados must have the arrays values and about")
        values, told = arrays["values"], arrays["about"]
    if told.dtype.kind != "U" or told.ndim:
        raise ModelFileError("about must be text")
    return values, json.loads(str(told))
