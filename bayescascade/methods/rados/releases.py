"""Random sums of edges, and those with a privacy guarantee for single rows; see `Promise`.

**A feature** (DP-Feat, section 5.1 of the paper): signatures agree with its signs only by chance;
see `protection`.

**Gaussian noise** (section 5.2 of the paper). Cells are clipped to declared bounds and scaled to
[-1, 1], so with D columns, including the intercept, replacing a row moves its edge by at most 2
sqrt(D). The paper adds noise for that to each of the m D cells of edges, and then any number of
rados may be made. Alternatively noise is added to the n rados. If the subsets of rows are drawn
first, independently of the rows, and row i is in u_i of them, replacing it moves all rados together
by at most 2 sqrt(D max_i u_i). These are n D values instead of m D, with less noise if there are
fewer rados than rows. Edges are rounded to multiples of 2**-20, so sums of up to 2**32 of them are
exact.
"""

from typing import Any

import numpy as np

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import warn_user
from bayescascade.base.watch import Watch
from bayescascade.methods.rados.protection import Promise, check_budget, cut_of, draw_agreements
from bayescascade.methods.rados.reading import RadoRows
from bayescascade.methods.rados.signatures import (
    Edges,
    draw_by,
    draw_subsets,
    groups,
    subset_sums,
    uses,
)
from bayescascade.model.search import Seed, seed_sequence
from bayescascade.privacy.accounting import Cost, PrivacyLedger
from bayescascade.privacy.mechanisms import NoiseSource, gaussian, noise_source

_BLOCK_ROWS = 1 << 13
_FINE = 2.0**20  # steps of an edge in [-1, 1]
_MANY_VALUES = 100_000  # of exact noise


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
    """Return sums of edges over random subsets; adds the numbers of uses of rows to `counts`.

    A watch may end it after some of them. Private releases have no watch: the number of sums is
    released, too, and the number made in a given time depends slightly on cells (tiny floats are
    slow to add).
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


def release_feature(
    rows: RadoRows,
    place: int,
    n_rados: int,
    epsilon: float,
    delta: float,
    truncation: float,
    rng: np.random.Generator | None,
) -> tuple[Floats, Promise]:
    """Return sums, (n_rados, n_columns), that hide the feature `place`; see `signatures`."""
    n_rows, cut = len(rows), cut_of(len(rows), truncation)
    draw, sizes, rounding = draw_by(rng), None, 0.0
    if cut:
        sizes, rounding = draw_agreements(draw, n_rows, cut, n_rados)
    reached = check_budget(n_rows, cut, epsilon, delta, n_rados, rounding)
    reading = rows.reading
    _check_sums(rows)
    edges = rows.signs * (rows.matrix[:, place] - reading.center[place]) / reading.units[place]
    flipped = np.packbits(edges < 0.0, bitorder="little")[:, np.newaxis]
    parts = []
    for group in groups(n_rows, n_rados):
        wanted = None if sizes is None else sizes[group]
        bits = draw_subsets(draw, n_rows, group.stop - group.start, wanted)
        parts.append(subset_sums(bits ^ flipped, rows.edges(), n_rows, reading.n_columns))
    how = "" if not cut else f"signatures of {cut:,} to {n_rows - cut:,} agreements"
    name = reading.columns[place]
    promise = Promise("feature", float(epsilon), reached, name, how, rng is None)
    return np.concatenate(parts), promise


def _check_sums(rows: RadoRows) -> None:
    """Raise DataError if a sum of some rows might overflow; does not depend on signs."""
    edges, sizes = rows.edges(), np.zeros(rows.reading.n_columns)
    with np.errstate(over="ignore"):
        for first in range(0, len(rows), _BLOCK_ROWS):
            sizes += np.abs(edges(first, first + _BLOCK_ROWS)).sum(axis=0)
    rows.reading.check_sums(sizes)


def release_rows(
    rows: RadoRows,
    n_rados: int,
    support: int | None,
    epsilon: float,
    delta: float,
    *,
    on_edges: bool,
    noise: str,
    ledger: PrivacyLedger | None,
    random_state: Seed,
) -> tuple[Floats, Promise]:
    """Return sums, (n_rados, n_columns), that hide each row by noise on edges or on sums."""
    n_rows, n_columns = len(rows), rows.reading.n_columns
    subsets, drawing = seed_sequence(random_state).spawn(2)
    rng = np.random.default_rng(subsets)
    source = noise_source(noise, np.random.default_rng(drawing))
    announce((n_rows if on_edges else n_rados) * n_columns, source)
    if ledger is not None:
        ledger.spend(Cost(epsilon, delta), "Rademacher observations")
    within, moved = clipped(rows), 2.0 * np.sqrt(n_columns)
    if on_edges:
        each = within(0, n_rows)
        released = gaussian(each.ravel(), moved, epsilon, delta, source)
        noisy = released.values.reshape(each.shape)
        values = random_sums(lambda a, b: noisy[a:b], n_columns, n_rows, n_rados, support, rng)
    else:
        counts = np.zeros(n_rows, np.int64)
        sums = random_sums(within, n_columns, n_rows, n_rados, support, rng, counts)
        moved *= np.sqrt(max(1, int(counts.max())))
        released = gaussian(sums.ravel(), moved, epsilon, delta, source)
        values = released.values.reshape(sums.shape)
    what = "edge" if on_edges else "rado"
    how = f"Gaussian noise of scale {released.scale:.3g} on each {what}"
    promise = Promise("rows", float(epsilon), float(delta), "", how, released.is_private)
    return values, promise


def clipped(rows: RadoRows) -> Edges:
    """Return a function that makes edges within [-1, 1], in multiples of 2**-20."""
    edges = rows.edges()

    def block(first: int, end: int) -> Floats:
        return np.rint(np.clip(edges(first, end), -1.0, 1.0) * _FINE) / _FINE

    return block


def announce(n_values: int, source: NoiseSource) -> None:
    """Warn that noise will take long if it is drawn exactly for many values."""
    if n_values > _MANY_VALUES and source.is_private:
        text = f"exact noise is drawn for {n_values:,} values, one by one, which takes long"
        warn_user(UserWarning(text))
