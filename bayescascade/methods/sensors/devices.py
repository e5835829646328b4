"""Sensors: which columns each has, and the cost of sending once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.errors import ModelFileError, ParameterError
from bayescascade.base.saved_arrays import read_array
from bayescascade.base.validation import check_real
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.data.names import near_names

Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Sensors:
    """Sensors and their columns."""

    names: tuple[str, ...]
    # tuple of (k,) int64: columns of the rows that each one reads, in order
    columns: tuple[Places, ...]
    costs: NDArray[np.float64]  # (n_sensors,) float64 >= 0

    @classmethod
    def of(cls, sensors: Any, costs: Any, encoder: MatrixEncoder) -> Self:
        """Return what a user gave; ParameterError if it is of no columns, or a column is twice."""
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
        """Return what `to_record` returned; ModelFileError if it is something else."""
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


def _costs(costs: Any, names: tuple[str, ...]) -> NDArray[np.float64]:
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
