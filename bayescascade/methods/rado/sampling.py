"""The parts of making rados: random sums, clipped edges, and how long noise will take."""

import time
import warnings
from typing import Any

import numpy as np

from bayescascade.base.watch import Watch
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
    watch: Watch | None = None,
) -> Floats:
    """Return sums of edges over random subsets; adds to `counts` how many each row is in.

    A watch ends it after some of them. Private releases have none: the number of sums is released,
    too, and what the clock allows depends on cells, if little (tiny floats are slow to add).
    """
    parts, draw = [], draw_by(rng)
    for group in groups(n_rows, n_rados):
        n = group.stop - group.start
        sizes = None if support is None else np.full(n, support, np.int64)
        bits = draw_subsets(draw, n_rows, n, sizes)
        parts.append(subset_sums(bits, edges, n_rows, n_columns))
        if counts is not None:
            counts += uses(bits, n_rows)
        if watch is not None and watch.is_over():
            break
    return np.concatenate(parts)


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
