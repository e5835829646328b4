"""Whether a mixture of classes says more of a table than its best cascade, by held-out rows.

Kind, smoothing and number of classes are chosen within the rows that are learned from, by a search
that takes seconds; `CascadeMixture` looks further. A difference counts that is large for a reader
and beyond what chance explains: above 0.05 nats a row, and twice its standard error.

No density scores rows better than their own shares do: where n of them are w_i times in cell i,
``sum_i w_i ln p_i <= sum_i w_i ln(w_i / n)``. In tables of few cells that is often no such gain,
and nothing needs to be fitted.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.threads import n_threads_of, single_threaded
from bayescascade.base.typed_words import typed
from bayescascade.base.watch import check_time, watch_in_use
from bayescascade.data.table import Table
from bayescascade.methods.mixtures.choosing import NUMBERS, Chooser, climb_all
from bayescascade.methods.mixtures.density import MixtureDensity
from bayescascade.methods.mixtures.em import KINDS, Rows, log_cells

_LEAST_GAIN, _ERRORS = 0.05, 2.0
_SMOOTHINGS = (1.0, 4.0, 16.0)
_N_STARTS, _MAX_ITER, _TOL = 2, 50, 3e-4
_MOST_STEPS = 1e11  # of choosing: some seconds

Floats = NDArray[np.float64]


class MixtureBeside(NamedTuple):
    """How a mixture scores beside a cascade on held-out rows."""

    n_components: int
    gain: float  # nats a row over the cascade
    error: float  # standard error of the gain

    @property
    def words(self) -> str:
        """A sentence, if the mixture is better; else nothing."""
        if not (self.gain > _LEAST_GAIN and self.gain > _ERRORS * self.error):
            return ""
        return (
            f"a mixture of {self.n_components} classes scores {self.gain:.2f} (+- {self.error:.2f})"
            f" nats a row better on held-out rows: {typed('CascadeMixture', '--model mixture')}"
        )

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "MixtureBeside":
        """Read what ``_asdict()`` wrote."""
        gain, error = float(record["gain"]), float(record["error"])
        return cls(int(record["n_components"]), gain, error)


def weigh_mixture(
    folds: Sequence[tuple[Table, Table]], of_cascade: Floats, seed: int, n_jobs: int | None
) -> MixtureBeside | None:
    """Return how a mixture scores beside a cascade; None if none can score better by enough.

    Each fold is (learned, held out), and settings are chosen within the first; of_cascade (n_held,)
    float64: log densities of the held-out rows, in the folds' order.
    """
    weights = np.concatenate([held.weights for _, held in folds])
    most = sum(_most_log_density(held) for _, held in folds)
    if most - float(weights @ of_cascade) <= _LEAST_GAIN * weights.sum():
        return None
    n_threads, watch = n_threads_of(n_jobs), watch_in_use()
    chosen_by, found_by = np.random.SeedSequence(seed).spawn(2)
    grid, steps = (KINDS, _SMOOTHINGS, NUMBERS), (_MAX_ITER, _TOL, n_threads, watch)
    with single_threaded():
        chooser = Chooser(folds[0][0], grid, chosen_by, *steps, lambda _: None, _MOST_STEPS)
        settings = chooser.choose()[0].settings
        if chooser.is_interrupted:
            raise KeyboardInterrupt
        check_time()
        learned = [Rows.of(learned) for learned, _ in folds]
        found, is_interrupted = climb_all(learned, settings, found_by, _N_STARTS, *steps)
    if is_interrupted:
        raise KeyboardInterrupt
    check_time()
    scores = []
    for rows, climbs, (_, held) in zip(learned, found, folds, strict=True):
        best = max(climbs, key=lambda one: one.objective[-1])
        mixture = MixtureDensity.of(held.schema, rows, best.components)
        scores.append(mixture.score_codes(held.codes.astype(np.int32)))
    gains = np.concatenate(scores) - of_cascade
    gain = float(weights @ gains / weights.sum())
    error = float(np.sqrt(weights @ (gains - gain) ** 2) / weights.sum())
    return MixtureBeside(settings.n_components, gain, error)


def _most_log_density(table: Table) -> float:
    """Return what the log densities of a table's rows add up to, at most; see the module."""
    weights = table.weights
    return float(weights @ (np.log(weights / weights.sum()) - log_cells(table)))
