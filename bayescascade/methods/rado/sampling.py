"""The parts of making rados: random sums, signs, declared bounds, and how long noise will take."""

import time
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from bayescascade.base.errors import DataError, ParameterError
from bayescascade.base.validation import check_real
from bayescascade.data.sources import as_frame
from bayescascade.methods.rado.reading import Rows
from bayescascade.methods.rado.signatures import (
    Edges,
    Floats,
    draw_by,
    draw_subsets,
    groups,
    subset_sums,
    uses,
)
from bayescascade.privacy.noise import NoiseSource

__all__ = ["Bounds", "announce", "clipped", "random_sums", "with_bounds", "with_signs"]

Bounds = tuple[float, float] | Mapping[str, tuple[float, float]]

_FINE = 2.0**20  # steps of an edge in [-1, 1]
_MOST_SILENT = 10.0  # seconds


def random_sums(
    edges: Edges,
    n_columns: int,
    n_rows: int,
    n_rados: int,
    support: int | None,
    rng: np.random.Generator,
    counts: Any = None,
) -> Floats:
    """Return sums of edges over random subsets; adds to `counts` how many each row is in."""
    parts, draw = [], draw_by(rng)
    for group in groups(n_rows, n_rados):
        n = group.stop - group.start
        sizes = None if support is None else np.full(n, support, np.int64)
        bits = draw_subsets(draw, n_rows, n, sizes)
        parts.append(subset_sums(bits, edges, n_rows, n_columns))
        if counts is not None:
            counts += uses(bits, n_rows)
    return np.concatenate(parts)


def with_signs(rows: Rows, feature: str | int, *, is_given: bool) -> tuple[Rows, int]:
    """Return rows whose protected feature is -1 or 1, and the place of its column.

    If units are given, they must be such already: those of others, with whom rows are shared.
    """
    encoder, reading = rows.reading.encoder, rows.reading
    names = encoder.columns
    if feature not in names or isinstance(feature, bool):
        raise ParameterError(
            f"feature must be one of {', '.join(map(repr, names[:20]))}, got {feature!r}"
        )
    places = np.flatnonzero(encoder.source == names.index(feature))
    first = places[0]
    values = set(np.unique(rows.matrix[:, first])[:3].tolist())
    known = [(float(reading.center[first]), float(reading.units[first]))]
    for center, unit in known if is_given else ((0.5, 0.5), (0.0, 1.0)):
        if len(places) == 1 and values <= {center - unit, center + unit}:
            break
    else:
        raise DataError(
            f"feature must be boolean, of two values such as 0 and 1, and so by like= if that is "
            f"given, got {feature!r}, which is not"
        )
    place = int(first)
    centers, units = reading.center.copy(), reading.units.copy()
    centers[place], units[place] = center, unit
    return rows.with_units(centers, units), place


def with_bounds(rows: Rows, X: Any, bounds: Bounds | None) -> Rows:
    """Return rows in units of which declared bounds are -1 and 1."""
    encoder = rows.reading.encoder
    lows, highs = (np.empty(len(rows.reading.center)) for _ in range(2))
    for place, (column, levels) in enumerate(zip(encoder.names, encoder.levels, strict=True)):
        if levels is None:
            given = bounds.get(column) if isinstance(bounds, Mapping) else bounds
            low, high = _checked_bounds(column, given)
        else:
            kind = getattr(as_frame(X), "dtypes", {}).get(column)
            if not isinstance(kind, pd.CategoricalDtype):
                raise DataError(
                    f'column "{column}" must be a Categorical, whose levels are declared and not '
                    "learned from the rows that are to be protected"
                )
            low, high = 0.0, max(1.0, levels.n_levels - 1.0) if levels.kind == "ordinal" else 1.0
        lows[encoder.source == place], highs[encoder.source == place] = low, high
    return rows.with_units((lows + highs) / 2.0, (highs - lows) / 2.0)


def _checked_bounds(column: str, given: Any) -> tuple[float, float]:
    try:
        low, high = (check_real("edge_bounds", bound) for bound in given)
        if 0.0 < high - low < np.inf:
            return low, high
    except (TypeError, ValueError):
        pass
    raise ParameterError(
        f'edge_bounds must be (low, high), low < high, for column "{column}", got {given!r}'
    )


def clipped(rows: Rows) -> Edges:
    """Return what makes edges within [-1, 1], in multiples of 2**-20."""
    edges = rows.edges()

    def block(first: int, end: int) -> Floats:
        rounded: Floats = np.rint(np.clip(edges(first, end), -1.0, 1.0) * _FINE) / _FINE
        return rounded

    return block


def announce(n_values: int, source: NoiseSource) -> None:
    """Warn of noise that takes long, by how long a little of it takes."""
    if n_values > 50_000 and source.is_private:
        began = time.perf_counter()
        source.gaussian(_FINE, 256)
        seconds = (time.perf_counter() - began) * n_values / 256
        if seconds > _MOST_SILENT:
            told = f"exact noise for {n_values:,} values takes about {seconds:,.0f} s"
            warnings.warn(told, UserWarning, stacklevel=3)
