"""What gates and predictors see of each sensor's columns.

Columns have mean 0 and variance 1 among the rows learned from, and are cut at +-4. "squared" adds
(z^2 - 1) / sqrt(2), "fourier" sqrt(2) cos(u'z / sqrt(d) + t), u normal and t uniform, of the d
columns of one sensor (Rahimi and Recht, 2007). A sensor with a missing cell is dead: it sees zeros.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.errors import ModelFileError
from bayescascade.base.saved_arrays import read_array
from bayescascade.data.cell_policy import Matrix
from bayescascade.methods.sensors.devices import Places, Sensors

Floats = NDArray[np.float64]

CUT = 4.0


class Signals(NamedTuple):
    """What sensors see of rows: features (n, p), of which column; alive (n, n_sensors) bool."""

    features: Floats
    alive: NDArray[np.bool_]
    sensor_of: Places  # (p,), ascending

    @property
    def starts(self) -> Places:
        """Where the features of each sensor begin."""
        return np.searchsorted(self.sensor_of, np.arange(self.alive.shape[1]))

    def among(self, rows: Any) -> "Signals":
        """Return those of some rows."""
        return Signals(self.features[rows], self.alive[rows], self.sensor_of)


@dataclass(frozen=True, slots=True, eq=False)
class SignalMaker:
    """How columns of a matrix become features.

    columns: those of the matrix that each sensor reads; means, scales (n_matrix_columns,);
    waves: frequencies (k, d) and phases (k,) of each sensor, if there are any.
    """

    kind: str
    columns: tuple[Places, ...]
    means: Floats
    scales: Floats
    waves: tuple[tuple[Floats, Floats], ...] = ()

    @classmethod
    def of(
        cls, kind: str, n_fourier: int, sensors: Sensors, source: Places, rows: Matrix, seed: Any
    ) -> Self:
        """Learn the scales from rows, and draw the waves."""
        columns = tuple(np.flatnonzero(np.isin(source, one)) for one in sensors.columns)
        known = ~np.isnan(rows)
        counts = np.maximum(known.sum(axis=0), 1)
        means = np.where(known, rows, 0.0).sum(axis=0) / counts
        spread = np.sqrt((np.where(known, rows - means, 0.0) ** 2).sum(axis=0) / counts)
        varies = spread > 1e-12 * (1 + np.abs(means))
        scales = np.where(varies, 1 / np.where(varies, spread, 1.0), 0.0)
        waves: tuple[tuple[Floats, Floats], ...] = ()
        if kind == "fourier":
            rng = np.random.default_rng(seed)
            waves = tuple(
                (rng.normal(size=(n_fourier, len(c))) / np.sqrt(len(c)),
                 rng.uniform(0, 2 * np.pi, n_fourier))
                for c in columns
            )  # fmt: skip
        return cls(kind, columns, means, scales, waves)

    def made(self, rows: Matrix) -> Signals:
        """Return what sensors see of rows of the matrix."""
        cells = np.asarray(rows, np.float64)
        missing = np.isnan(cells)
        scaled = np.clip((np.where(missing, 0.0, cells) - self.means) * self.scales, -CUT, CUT)
        alive = np.column_stack([~missing[:, one].any(axis=1) for one in self.columns])
        parts, widths = [], []
        for k, one in enumerate(self.columns):
            part = [scaled[:, one]]
            if self.kind == "squared":
                part.append((scaled[:, one] ** 2 - 1) / np.sqrt(2))
            elif self.kind == "fourier":
                frequencies, phases = self.waves[k]
                angles = np.repeat(phases[np.newaxis], len(cells), axis=0)
                for column, of_one in zip(one, frequencies.T, strict=True):  # a row as among many
                    angles += scaled[:, column, np.newaxis] * of_one
                part.append(np.sqrt(2) * np.cos(angles))
            parts.append(np.concatenate(part, axis=1) * alive[:, k, np.newaxis])
            widths.append(parts[-1].shape[1])
        sensor_of = np.repeat(np.arange(len(widths)), widths)
        return Signals(np.ascontiguousarray(np.concatenate(parts, axis=1)), alive, sensor_of)

    def to_record(self) -> dict[str, Any]:
        """Return plain JSON types; what sensors are is said elsewhere."""
        waves = [[f.tolist(), t.tolist()] for f, t in self.waves]
        return {"means": self.means.tolist(), "scales": self.scales.tolist(), "waves": waves}

    @classmethod
    def from_record(
        cls, record: Mapping[str, Any], kind: str, sensors: Sensors, source: Places
    ) -> Self:
        """Return what `to_record` returned; ModelFileError if it is something else."""
        columns = tuple(np.flatnonzero(np.isin(source, one)) for one in sensors.columns)
        means = read_array(record, "means", (source.size,))
        scales = read_array(record, "scales", (source.size,), least=0)
        told = record["waves"]
        if len(told) != (len(sensors) if kind == "fourier" else 0):
            raise ModelFileError("saved sensors must have waves if they are of Fourier's features")
        waves = []
        for (f, t), seen in zip(told, columns, strict=False):
            parts = {"frequencies": f, "phases": t}
            phases = read_array(parts, "phases", (None,))
            waves.append((read_array(parts, "frequencies", (phases.size, len(seen))), phases))
        return cls(kind, columns, means, scales, tuple(waves))
