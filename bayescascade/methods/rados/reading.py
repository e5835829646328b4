"""The conversion of rows and labels to edges y x, such that several parties can agree on it.

A label is -1 if it is the first of two sorted classes, +1 if the second. Columns are those of a
`MatrixEncoder`, each minus a center and divided by a unit; the last one may be an intercept, a
column of ones. Rados contain all of this, so others can add theirs, and the classifier reads new
rows in the same way.
"""

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import DataError, ModelFileError
from bayescascade.base.files import replaced_file
from bayescascade.base.store import Of, Saved, Within, restored, stored
from bayescascade.base.texts import shortened
from bayescascade.base.typed_words import typed
from bayescascade.data.cell_policy import CellPolicy
from bayescascade.data.given import GivenRows, check_width
from bayescascade.data.labels import (
    CLASSES,
    TrainingRows,
    check_labels,
    check_two_classes,
    label_codes,
)
from bayescascade.data.matrix import ENCODER, MatrixEncoder
from bayescascade.data.names import check_present
from bayescascade.data.units import Units
from bayescascade.methods.rados.protection import Promise
from bayescascade.methods.rados.signatures import Edges
from bayescascade.model.record import contradictions_refused

OWNER = "Rados"
"""The owner of rows in messages."""

_FORMAT, _VERSION = "bayescascade rados", 1


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """The meaning of columns, labels and units: cells x become (x - center) / units."""

    encoder: Annotated[MatrixEncoder, ENCODER, Saved("encoding")]
    classes: Annotated[NDArray[Any], CLASSES]  # (2,), sorted; the second is +1
    center: Annotated[Floats, Of("columns")]
    units: Annotated[Floats, Of("columns", above=0)]
    has_intercept: bool  # whether a column of ones follows

    def __post_init__(self) -> None:
        n_columns = len(self.encoder.column_texts)
        if len(self.center) != n_columns:
            raise ValueError(f"center and units must be of {n_columns} columns")
        if len(self.classes) != 2 or sorted(self.classes.tolist()) != self.classes.tolist():
            raise ValueError("rados must be of two classes, sorted")

    @property
    def columns(self) -> list[str]:
        """Names of the columns of edges and rados."""
        return [*self.encoder.column_texts, *(["(intercept)"] if self.has_intercept else [])]

    @property
    def n_columns(self) -> int:
        """Number of columns of edges and rados."""
        return len(self.center) + self.has_intercept

    def scaled(self, rows: Floats) -> Floats:
        """Return rows of the encoder's matrix as edges without the sign."""
        cells = Units(self.center, self.units).scaled(rows)
        if self.has_intercept:
            cells = np.concatenate([cells, np.ones((len(cells), 1))], axis=1)
        return cells

    def check_sums(self, sums: Floats) -> None:
        """Raise DataError with the column if one of (..., n_columns) sums overflowed."""
        is_fine = np.isfinite(sums).reshape(-1, self.n_columns).all(axis=0)
        if not is_fine.all():
            raise DataError(
                f'column "{self.columns[int(np.argmin(is_fine))]}" must have cells whose sums '
                "floats hold, got larger ones"
            )

    def check_agrees(self, other: "Reading") -> None:
        """Raise DataError if edges of both have different meanings, so they may not be added."""
        if stored(self) == stored(other):
            return
        if self.columns != other.columns:
            ours, theirs = (", ".join(one.columns[:8]) for one in (self, other))
            raise DataError(f"parts must have the same columns, got {ours} and {theirs}")
        raise DataError(
            "parts must have the same classes and units, as by like=, got different ones"
        )


@dataclass(frozen=True, slots=True, eq=False)
class RadoRows:
    """Rows of rados, and their reading."""

    reading: Reading
    matrix: Floats  # (n_rows, n_matrix_columns), neither centered nor scaled
    signs: Floats  # (n_rows,), the labels, -1 and 1

    def __len__(self) -> int:
        return len(self.signs)

    def edges(self) -> Edges:
        """Return a function that makes blocks of edges."""

        def block(first: int, end: int) -> Floats:
            return self.reading.scaled(self.matrix[first:end]) * self.signs[first:end, np.newaxis]

        return block


def read_rows(
    X: Any,
    y: Any,
    *,
    standardize: bool,
    intercept: bool,
    like: Reading | None,
    missing: str = "error",
) -> RadoRows:
    """Read rows and labels; `standardize` centers and scales columns.

    `like` replaces columns, classes, units, intercept and `missing` (see `CellPolicy`).
    """
    given = GivenRows.labeled(X, y)
    if like is not None:
        checked = check_labels(given.labels, "y", OWNER)
        matrix = np.asarray(like.encoder.transform(given, OWNER), np.float64)
        codes = label_codes(checked, like.classes, "y")
        if len(codes) != len(matrix):
            raise DataError(f"y must have a label per row of X, {len(matrix)}, got {len(codes)}")
        return RadoRows(like, matrix, np.where(codes, 1.0, -1.0))
    encoder = MatrixEncoder.learn(given, CellPolicy(missing))
    training = TrainingRows.read(encoder, given, owner=OWNER)
    check_two_classes(training.classes)
    matrix = np.asarray(training.rows, np.float64)
    n_columns = matrix.shape[1]
    center, units = np.zeros(n_columns), np.ones(n_columns)
    if standardize:
        center, units = Units.of(matrix)
    reading = Reading(encoder, training.classes, center, units, intercept)
    return RadoRows(reading, matrix, np.where(training.labels, 1.0, -1.0))


def by_column(rows: GivenRows, like: Reading | None) -> tuple[pd.DataFrame, list[Any]]:
    """Return rows as a DataFrame with the columns of `like`, and their names for an encoder.

    So each column is read separately: in an array, one cell may determine the type of all.
    """
    if like is None:
        frame = rows.frame()
        own = rows.cells.columns if rows.is_named else range(frame.shape[1])
        frame = frame.set_axis(own, axis=1)
        is_named = all(isinstance(name, str) for name in frame.columns)
        return frame, list(frame.columns) if is_named else list(range(frame.shape[1]))
    encoder = like.encoder
    frame = rows.frame(encoder.names, OWNER)
    if encoder.is_named and rows.is_named:
        check_present(encoder.names, list(frame.columns))
        frame = frame[encoder.names]
    check_width(frame.shape[1], len(encoder.columns), OWNER)
    return frame.set_axis(list(encoder.columns), axis=1), list(encoder.columns)


Content: TypeAlias = tuple[Floats, int, int | None, Reading, Promise | None]
"""Values, number of rows, support, reading and promise, as in `Rados`."""


def write_arrays(path: str | Path, values: Floats, about: Mapping[str, Any]) -> None:
    """Write sums and plain data about them to a file."""
    text = json.dumps({"format": _FORMAT, "version": _VERSION, **about}, allow_nan=False)
    with replaced_file(path) as temporary, temporary.open("wb") as file:
        np.savez(file, values=values, about=np.array(text))


def read_rados(path: str | Path) -> Content:
    """Read a file of `Rados.save`; raises ModelFileError as `Rados.load`."""
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


class _FileFacts(NamedTuple):
    """Facts on rados in a file, beside their values."""

    n_rows: Annotated[int, Within(1)]
    support: Annotated[int, Within(1)] | None
    reading: Reading
    promise: Promise | None


def _read(path: Path) -> Content:
    values, about = _read_arrays(path)
    if (about["format"], about["version"]) != (_FORMAT, _VERSION):
        raise ModelFileError(f"format must be {_FORMAT}, version {_VERSION}")
    n_rows, support, reading, promise = restored(_FileFacts, about, {})
    if support is not None and support > n_rows:
        raise ModelFileError(f"support must be <= {n_rows}, the number of rows, got {support}")
    if values.dtype != np.float64 or values.ndim != 2 or not len(values):
        raise ModelFileError("values of rados must be a matrix of float64")
    if values.shape[1] != reading.n_columns or not np.isfinite(values).all():
        raise ModelFileError(f"values of rados must be finite, {reading.n_columns} each")
    if promise is not None and promise.feature and promise.feature not in reading.columns:
        raise ModelFileError("a promise's feature must be one of the columns")
    return np.ascontiguousarray(values), n_rows, support, reading, promise


def _read_arrays(path: Path) -> tuple[Any, Any]:  # Any: the file may contain anything
    content = path.read_bytes()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if any(file.compress_type != zipfile.ZIP_STORED for file in archive.infolist()):
            raise ModelFileError("rados must be stored without compression")
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        if set(arrays.files) != {"values", "about"}:
            raise ModelFileError("rados must have the arrays values and about")
        values, about = arrays["values"], arrays["about"]
    if about.dtype.kind != "U" or about.ndim:
        raise ModelFileError("about must be text")
    return values, json.loads(str(about))
