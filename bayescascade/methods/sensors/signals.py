"""The features of each sensor's columns for gates and predictors.

Columns have mean 0 and variance 1 in the training rows, and are clipped at +-4. "squared" adds (z^2
- 1) / sqrt(2), "fourier" sqrt(2) cos(u'z / sqrt(d) + t), u normal and t uniform, for the d columns
of one sensor (Rahimi and Recht, 2007). A sensor with a missing cell is dead: it sees zeros.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from bayescascade.base.arrays import Flags, Floats, Integers
from bayescascade.base.errors import ModelFileError, ParameterError
from bayescascade.base.saved_arrays import read_array
from bayescascade.base.validation import check_real
from bayescascade.data.cell_policy import Matrix
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.data.names import near_names

CUT = 4.0


@dataclass(frozen=True, slots=True, eq=False)
class Sensors:
    """Sensors and their columns."""

    names: tuple[str, ...]
    # tuple of (k,) int64: columns of each sensor, in order
    columns: tuple[Integers, ...]
    costs: Floats  # (n_sensors,) float64 >= 0

    @classmethod
    def of(cls, sensors: Any, costs: Any, encoder: MatrixEncoder) -> Self:
        """Return the given sensors; ParameterError if one has no columns, or a column is twice."""
        if sensors is None:
            places = {name: [j] for j, name in enumerate(encoder.names)}
        else:
            places = _places(sensors, encoder)
        names = tuple(places)
        return cls(
            names, tuple(np.array(p, np.int64) for p in places.values()), _costs(costs, names)
        )

    def __len__(self) -> int:
        return len(self.names)

    def to_record(self) -> dict[str, Any]:
        """Return plain JSON types."""
        columns = [places.tolist() for places in self.columns]
        return {"names": list(self.names), "columns": columns, "costs": self.costs.tolist()}

    @classmethod
    def from_record(cls, record: Mapping[str, Any], n_columns: int) -> Self:
        """Rebuild one from `to_record`; ModelFileError if the record is malformed."""
        names, costs = record["names"], read_array(record, "costs", (None,), least=0)
        columns = [np.array(one, np.int64) for one in record["columns"]]
        flat = [place for one in columns for place in one.tolist()]
        if (
            not isinstance(names, list)
            or not all(isinstance(name, str) for name in names)
            or not len(columns) == len(names) == len(set(names)) == costs.size > 0
            or not all(one.size for one in columns)
            or len(set(flat)) != len(flat)
            or not 0 <= min(flat) <= max(flat) < n_columns
        ):
            raise ModelFileError("saved sensors must have names, columns of their own and costs")
        return cls(tuple(names), tuple(columns), costs)


def _places(sensors: Any, encoder: MatrixEncoder) -> dict[str, list[int]]:
    if not isinstance(sensors, Mapping) or not sensors:
        raise ParameterError(
            f"sensors must be a mapping of names to lists of columns, got {sensors!r}"
        )
    place_of: dict[object, int] = {name: j for j, name in enumerate(encoder.columns)}
    if encoder.is_named:
        place_of |= {j: j for j in range(len(encoder.columns))}
    places: dict[str, list[int]] = {}
    owner: dict[int, str] = {}
    for name, members in sensors.items():
        if not isinstance(name, str):
            raise ParameterError(f"sensors must have names of text, got {name!r}")
        if isinstance(members, str) or not isinstance(members, Sequence | np.ndarray):
            raise ParameterError(f"sensors[{name!r}] must be a list of columns, got {members!r}")
        if len(members) == 0:
            raise ParameterError(f"sensors[{name!r}] must have at least one column, got none")
        places[name] = []
        for member in members:
            key = member.item() if isinstance(member, np.generic) else member
            if isinstance(key, bool) or key not in place_of:
                hint = near_names(str(key), encoder.names)
                raise ParameterError(f"sensors[{name!r}] must be of columns, got {key!r}{hint}")
            place = place_of[key]
            if place in owner:
                both = f"{owner[place]!r} and {name!r}"
                raise ParameterError(
                    f"sensors must have each column once, got {encoder.names[place]!r} in {both}"
                )
            owner[place] = name
            places[name].append(place)
        places[name].sort()
    return places


def _costs(costs: Any, names: tuple[str, ...]) -> Floats:
    if costs is None:
        return np.ones(len(names))
    if isinstance(costs, Mapping):
        for name in costs:
            if name not in names:
                hint = near_names(str(name), list(names))
                raise ParameterError(f"costs must be of sensors, got {name!r}{hint}")
        given = [costs.get(name, 1.0) for name in names]
    else:
        given = list(costs) if isinstance(costs, Sequence | np.ndarray) else []
        if isinstance(costs, str) or len(given) != len(names):
            raise ParameterError(
                f"costs must be a mapping of sensors or {len(names)} numbers, got {costs!r}"
            )
    checked = [
        check_real(f"costs[{n!r}]", one, minimum=0.0) for n, one in zip(names, given, strict=True)
    ]
    return np.array(checked, np.float64)


class Signals(NamedTuple):
    """Signals of sensors: features (n, p), the sensor of each; alive (n, n_sensors) bool."""

    features: Floats
    alive: Flags
    sensor_of: Integers  # (p,), ascending

    @property
    def starts(self) -> Integers:
        """Starts of the features of each sensor."""
        return np.searchsorted(self.sensor_of, np.arange(self.alive.shape[1]))

    def among(self, rows: Any) -> "Signals":
        """Return the signals of some rows."""
        return Signals(self.features[rows], self.alive[rows], self.sensor_of)


@dataclass(frozen=True, slots=True, eq=False)
class SignalMaker:
    """The conversion of columns of a matrix to features.

    columns: columns of the matrix for each sensor; means, scales (n_matrix_columns,); waves:
    frequencies (k, d) and phases (k,) of each sensor, if there are any.
    """

    kind: str
    columns: tuple[Integers, ...]
    means: Floats
    scales: Floats
    waves: tuple[tuple[Floats, Floats], ...] = ()

    @classmethod
    def of(
        cls, kind: str, n_fourier: int, sensors: Sensors, source: Integers, rows: Matrix, seed: Any
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
        """Return the signals for rows of the matrix."""
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
                for column, of_one in zip(one, frequencies.T, strict=True):  # row by row
                    angles += scaled[:, column, np.newaxis] * of_one
                part.append(np.sqrt(2) * np.cos(angles))
            parts.append(np.concatenate(part, axis=1) * alive[:, k, np.newaxis])
            widths.append(parts[-1].shape[1])
        sensor_of = np.repeat(np.arange(len(widths)), widths)
        return Signals(np.ascontiguousarray(np.concatenate(parts, axis=1)), alive, sensor_of)

    def to_record(self) -> dict[str, Any]:
        """Return plain JSON types, without the sensors, which have their own record."""
        waves = [[f.tolist(), t.tolist()] for f, t in self.waves]
        return {"means": self.means.tolist(), "scales": self.scales.tolist(), "waves": waves}

    @classmethod
    def from_record(
        cls, record: Mapping[str, Any], kind: str, sensors: Sensors, source: Integers
    ) -> Self:
        """Rebuild one from `to_record`; ModelFileError if the record is malformed."""
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
