"""The features of each sensor's columns for gates and predictors.

Columns have mean 0 and variance 1 in the training rows, and are clipped at +-4. "squared" adds (z^2
- 1) / sqrt(2), "fourier" sqrt(2) cos(u'z / sqrt(d) + t), u normal and t uniform, for the d columns
of one sensor (Rahimi and Recht, 2007). A sensor with a missing cell is dead: it sees zeros.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, Self

import numpy as np

from bayescascade.base.arrays import Flags, Floats, Integers
from bayescascade.base.errors import ParameterError
from bayescascade.base.store import Of
from bayescascade.base.validation import check_real
from bayescascade.data.cell_policy import Matrix
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.data.names import near_names

CUT = 4.0
_BLOCK = 2**22  # cells of the features that are in memory at a time, to predict


@dataclass(frozen=True, slots=True, eq=False)
class Sensors:
    """Sensors, the features that each reads, in order, and the cost of each."""

    names: tuple[str, ...]
    columns: tuple[Annotated[Integers, Of(None, kind=np.int64, below="features")], ...]
    costs: Annotated[Floats, Of("K", least=0)]

    def __post_init__(self) -> None:
        flat = np.concatenate([[], *self.columns]).tolist()
        is_whole = len(self.columns) == len(set(self.names)) == len(self.names) == self.costs.size
        if not flat or not is_whole or not all(column.size for column in self.columns):
            raise ValueError("sensors must have names, columns and costs")
        if len(set(flat)) != len(flat):
            raise ValueError(f"sensors must have each column once, got {self.columns}")

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

    def in_matrix(self, source: Any) -> list[Integers]:
        """Return each sensor's columns of the matrix; `source` has the feature of each column."""
        return [np.flatnonzero(np.isin(source, column)) for column in self.columns]


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
        check_real(f"costs[{n!r}]", name, minimum=0.0) for n, name in zip(names, given, strict=True)
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
class SensorScaling:
    """Means and scales of the columns of the matrix, and each sensor's waves, if there are any."""

    means: Annotated[Floats, Of("columns")]
    scales: Annotated[Floats, Of("columns", least=0)]
    # frequencies (k, d) and phases (k,) of each sensor
    waves: tuple[tuple[Annotated[Floats, Of("k", None)], Annotated[Floats, Of("k")]], ...]

    @classmethod
    def of(cls, rows: Matrix, columns: Sequence[Integers], n_waves: int, seed: Any) -> Self:
        """Learn the scales from rows, and draw the waves of each sensor's columns."""
        known = ~np.isnan(rows)
        counts = np.maximum(known.sum(axis=0), 1)
        means = np.where(known, rows, 0.0).sum(axis=0) / counts
        spread = np.sqrt((np.where(known, rows - means, 0.0) ** 2).sum(axis=0) / counts)
        varies = spread > 1e-12 * (1 + np.abs(means))
        scales = np.where(varies, 1 / np.where(varies, spread, 1.0), 0.0)
        rng = np.random.default_rng(seed)
        waves = [
            (rng.normal(size=(n_waves, len(c))) / np.sqrt(len(c)),
             rng.uniform(0, 2 * np.pi, n_waves))
            for c in columns
        ]  # fmt: skip
        return cls(means, scales, tuple(waves if n_waves else ()))

    def blocks(self, rows: Matrix, kind: str, columns: Sequence[Integers]) -> Iterator[Signals]:
        """Yield `signals` of some rows at a time, so memory does not grow with all rows."""
        size = max(1, _BLOCK // self.signals(rows[:1], kind, columns).sensor_of.size)
        for first in range(0, max(len(rows), 1), size):
            yield self.signals(rows[first : first + size], kind, columns)

    def signals(self, rows: Matrix, kind: str, columns: Sequence[Integers]) -> Signals:
        """Return the signals for rows of the matrix, given each sensor's columns."""
        cells = np.asarray(rows, np.float64)
        missing = np.isnan(cells)
        scaled = np.clip((np.where(missing, 0.0, cells) - self.means) * self.scales, -CUT, CUT)
        alive = np.column_stack([~missing[:, column].any(axis=1) for column in columns])
        parts = []
        for k, places in enumerate(columns):
            part = [scaled[:, places]]
            if kind == "squared":
                part.append((scaled[:, places] ** 2 - 1) / np.sqrt(2))
            elif kind == "fourier":
                frequencies, phases = self.waves[k]
                angles = np.repeat(phases[np.newaxis], len(cells), axis=0)
                for column, of_one in zip(places, frequencies.T, strict=True):  # row by row
                    angles += scaled[:, column, np.newaxis] * of_one
                part.append(np.sqrt(2) * np.cos(angles))
            parts.append(np.concatenate(part, axis=1) * alive[:, k, np.newaxis])
        sensor_of = np.repeat(np.arange(len(parts)), [part.shape[1] for part in parts])
        return Signals(np.ascontiguousarray(np.concatenate(parts, axis=1)), alive, sensor_of)
