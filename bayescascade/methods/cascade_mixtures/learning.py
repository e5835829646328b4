"""What `CascadeMixture` learns from a table, and how.

`mixtures` has what EM finds: `em` the formulas, `choosing` what rows held out decide, `density`
what is learned; `one_cascade` weighs a cascade beside it. The kind, smoothing and number of classes
are chosen first; then EM climbs from several starts on all rows, and what has the largest log
posterior density is kept: the best of these starts, not proved. A cascade is summed over exactly.
"""

from math import nan
from typing import NamedTuple

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from bayescascade.base.threads import single_threaded
from bayescascade.base.watch import OutOfTime
from bayescascade.methods.cascade_mixtures.one_cascade import ONE, weigh_cascade
from bayescascade.methods.cascades.auto_cascade import AutoCascade
from bayescascade.methods.mixtures.choosing import Candidate, Chooser, climb_all
from bayescascade.methods.mixtures.density import MixtureDensity
from bayescascade.methods.mixtures.em import Settings
from bayescascade.methods.mixtures.rows import Rows
from bayescascade.model.summary import FitSummary

_OF_CHOICE, _OF_CASCADE = 0.6, 0.5  # of the time that is left


class Found(NamedTuple):
    """What was weighed, the chosen first; what was learned; and the objective of its steps."""

    candidates: list[Candidate]
    density: MixtureDensity | AutoCascade
    summary: FitSummary
    objective: NDArray[np.float64]


def learn(
    chooser: Chooser, cascade: AutoCascade, kind: str, n_starts: int, seeds: list[SeedSequence]
) -> Found:
    """Return what is found; a cascade is weighed if it is asked for, or if all is to be chosen.

    `seeds` are those of EM's starts and of the cascade.
    """
    candidates, model = list[Candidate](), None
    if kind != ONE:
        with single_threaded(), chooser.watch.part(_OF_CHOICE):
            candidates = chooser.choose()
    is_open = min(map(len, chooser.grid)) > 1 and chooser.of_folds
    if kind == ONE or (is_open and not chooser.is_interrupted):
        model = _weigh_cascade(chooser, cascade, candidates, seeds[1])
    if model is None:
        return _climb(chooser, candidates, n_starts, cascade.time_limit, seeds[0])
    return Found(candidates, model, model.summary_, np.empty(0))


def _climb(
    chooser: Chooser,
    candidates: list[Candidate],
    n_starts: int,
    time_limit: float | None,
    seed: SeedSequence,
) -> Found:
    """Climb by EM to the mixture of the settings that were chosen."""
    table, watch, rows = chooser.table, chooser.watch, Rows.of(chooser.table)
    n_starts = 1 if chooser.is_interrupted else n_starts
    with single_threaded():
        (climbs,), is_interrupted = climb_all(
            [rows], candidates[0].settings, seed, n_starts, chooser.max_iter, chooser.tol,
            chooser.n_threads, watch,
        )  # fmt: skip
    best = max(climbs, key=lambda one: one.objective[-1])
    summary = FitSummary(
        table.source, table.n_rows, table.n_distinct, table.total_weight, table.notes, "em",
        len(climbs), 0, chooser.is_interrupted or is_interrupted, {}, {}, {},
        stopped_after=time_limit if watch.is_over() else None,
    )  # fmt: skip
    density = MixtureDensity.of(table.schema, rows, best.components)
    return Found(candidates, density, summary, np.array(best.objective))


def _weigh_cascade(
    chooser: Chooser, cascade: AutoCascade, candidates: list[Candidate], seed: SeedSequence
) -> AutoCascade | None:
    """Enter a cascade among candidates, and return it fitted if it is better or asked for."""
    watch, is_only = chooser.watch, not candidates
    try:
        with watch.part(_OF_CASCADE), watch.watching():
            found = weigh_cascade(cascade, chooser, seed)
    except KeyboardInterrupt as ended:
        if is_only:
            raise
        chooser.is_interrupted = not isinstance(ended, OutOfTime)
        return None
    if not is_only and found.choice.is_interrupted:
        chooser.is_interrupted = not found.choice.is_out_of_time
    weighed = Candidate(Settings(ONE, nan, 1), found.held_out)
    if is_only or found.gain > 0:
        candidates.insert(0, weighed)
        return cascade.fit_chosen(chooser.table, found.choice, watch, seed)
    if found.gain == found.gain:
        worse = [one.held_out >= weighed.held_out for one in candidates]
        candidates.insert(max(1, sum(worse)), weighed)
    return None
