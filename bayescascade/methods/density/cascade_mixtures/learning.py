"""The fit of `CascadeMixture`.

The package `mixtures` has the parts of EM: `em` the formulas, `choosing` the choice by held-out
rows, `density` the result. The kind, smoothing and number of classes are chosen first. Then EM
climbs from several starts on all rows, and the result with the largest log posterior density is
kept; it is not proved to be the maximum. A cascade is summed over exactly.

One cascade may be the whole mixture, with any depth, averaged over all its trees. Its leaves,
splits and prior have the largest evidence of all candidates that `AutoCascade` can sum over. Then
held-out rows compare it with mixtures, in as many folds as a limit of operations allows. Mixtures
are chosen by the scores of these rows, and the best of many scores is biased upward. So each fold
compares the cascade with the mixture that is the best in the other folds, if there are others.

Trees of hidden states and continuous mixtures are fitted only if they are the given kind.

Mixtures of several cascades are not candidates. The branches of a cascade's first splits can be
classes themselves, so mixtures of more classes include these densities, except for the average over
trees. A prototype, of depth 1 or 2 above independent leaves, gained 0.008 nats a row on one of
eight tables, and nothing beyond two standard errors on others: see docs/mixtures.md.
"""

from collections.abc import Mapping
from math import isnan, nan
from typing import Any, NamedTuple

import numpy as np
from numpy.random import SeedSequence

from bayescascade.base.arrays import Floats
from bayescascade.base.threads import single_threaded
from bayescascade.base.watch import OutOfTime
from bayescascade.methods.density.auto.auto_cascade import AutoCascade
from bayescascade.methods.density.auto.choosing import CascadeChoice, Chooser as CascadeChooser
from bayescascade.methods.density.auto.held_out import HeldOutSplits
from bayescascade.methods.density.continuous import learning as continuous
from bayescascade.methods.density.hidden_trees import learning as hidden
from bayescascade.methods.density.mixtures.choosing import MixtureChooser, Scored, climb_all
from bayescascade.methods.density.mixtures.classes import RowClasses
from bayescascade.methods.density.mixtures.density import MixtureDensity
from bayescascade.methods.density.mixtures.em import EMSettings, Indicators
from bayescascade.model.summary import FitSummary
from bayescascade.report.page import Numbers, Page, Pieces, PrintedTable

_OF_CHOICE, _OF_CASCADE = 0.6, 0.5  # shares of the remaining time

ONE = "cascade"
"""The kind of a mixture that consists of one cascade."""

_MOST_SCORING = 3e10  # operations to score held-out rows

_MOST_SHOWN = 6  # candidates
_FAIR = (
    "classes were chosen on these rows; if chosen on other folds, they are worse than the cascade"
)


MERGED: Mapping[str, Any] = {"hidden": hidden, "continuous": continuous}
"""How kinds of many classes are learned, of which those that are alike are shown as one."""


class FoundMixture(NamedTuple):
    """The candidates, the chosen one first; the fitted density; and the objective of its steps."""

    candidates: list[Scored]
    density: RowClasses | AutoCascade
    summary: FitSummary
    objective: Floats


def learn(
    chooser: MixtureChooser,
    cascade: AutoCascade,
    kind: str,
    n_starts: int,
    seeds: list[SeedSequence],
) -> FoundMixture:
    """Return the fit; a cascade is a candidate if it is the given kind or all settings are "auto".

    `seeds` are for EM's starts and for the cascade.
    """
    candidates, model = list[Scored](), None
    if kind in MERGED:
        return _merged(chooser, kind, cascade.time_limit, seeds[0])
    if kind != ONE:
        with single_threaded(), chooser.watch.part(_OF_CHOICE):
            candidates = chooser.choose()
    is_open = min(map(len, chooser.grid)) > 1 and chooser.of_folds
    if kind == ONE or (is_open and not chooser.is_interrupted):
        model = _weigh_cascade(chooser, cascade, candidates, seeds[1])
    if model is None:
        return _climb(chooser, candidates, n_starts, cascade.time_limit, seeds[0])
    return FoundMixture(candidates, model, model.summary_, np.empty(0))


def _climb(
    chooser: MixtureChooser,
    candidates: list[Scored],
    n_starts: int,
    time_limit: float | None,
    seed: SeedSequence,
) -> FoundMixture:
    """Climb by EM to the mixture with the chosen settings."""
    table, watch, rows = chooser.table, chooser.watch, Indicators.of(chooser.table)
    n_starts = 1 if chooser.is_interrupted else n_starts
    with single_threaded():
        (climbs,), is_interrupted = climb_all(
            [rows], candidates[0].settings, seed, n_starts, chooser.max_iter, chooser.tol,
            chooser.n_threads, watch,
        )  # fmt: skip
    best = max(climbs, key=lambda one: one.objective[-1])
    chooser.is_interrupted |= is_interrupted
    summary = _summary(chooser, len(climbs), time_limit)
    density = MixtureDensity.of(table.schema, rows, best.components)
    return FoundMixture(candidates, density, summary, np.array(best.objective))


def _merged(
    chooser: MixtureChooser, kind: str, time_limit: float | None, seed: SeedSequence
) -> FoundMixture:
    """Learn a tree of hidden states or a continuous mixture; the best by then if time is up."""
    table, watch, number = chooser.table, chooser.watch, int(seed.generate_state(1)[0])
    learning, most = MERGED[kind], chooser.most_steps
    _, *grid = chooser.grid
    a, n = (own[0] if len(own) == 1 else None for own in grid)
    tried = list[tuple[float, Any]]()
    try:
        with watch.part(_OF_CHOICE), watch.watching():
            tried = learning.choose(table, number, most, n, a)
    except KeyboardInterrupt as ended:
        chooser.is_interrupted = not isinstance(ended, OutOfTime)
    chooser.report(_OF_CHOICE)
    tried = tried or [(nan, learning.usual(table, most, n, a))]
    settings = tried[0][1].at_start if chooser.is_interrupted else tried[0][1]
    with watch.watching():
        density, stop = learning.fitted(table, settings, number)
    chooser.is_interrupted |= stop is not None and not isinstance(stop, OutOfTime)
    candidates = [Scored(one.as_classes, score) for score, one in tried]
    summary = _summary(chooser, 1, time_limit)
    return FoundMixture(candidates, density.with_classes(), summary, np.empty(0))


def _summary(chooser: MixtureChooser, n_starts: int, time_limit: float | None) -> FitSummary:
    table = chooser.table
    return FitSummary(
        table.source, table.n_rows, table.n_distinct, table.total_weight, table.notes, "em",
        n_starts, 0, chooser.is_interrupted, {}, {}, {},
        stopped_after=time_limit if chooser.watch.is_over() else None,
    )  # fmt: skip


def _weigh_cascade(
    chooser: MixtureChooser, cascade: AutoCascade, candidates: list[Scored], seed: SeedSequence
) -> AutoCascade | None:
    """Add a cascade to the candidates, and return it fitted if it is better or required."""
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
    weighed = Scored(EMSettings(ONE, nan, 1), found.held_out)
    if is_only or found.gain > 0:
        candidates.insert(0, weighed)
        return cascade.fit_chosen(chooser.table, found.choice, watch, seed)
    if found.gain == found.gain:
        worse = [one.held_out >= weighed.held_out for one in candidates]
        candidates.insert(max(1, sum(worse)), weighed)
    return None


class WeighedCascade(NamedTuple):
    """A cascade, and its scores on held-out rows; NaN if there are none or it is slow."""

    choice: CascadeChoice
    held_out: float = nan  # mean log density of held-out rows, nats
    gain: float = nan  # gain of this over mixtures, nats


def weigh_cascade(
    model: AutoCascade, mixtures: MixtureChooser, seed: np.random.SeedSequence
) -> WeighedCascade:
    """Return the cascade of the largest evidence, scored on the same rows as mixtures."""
    number, memory = int(seed.generate_state(1)[0]), model.memory_limit * 1e9
    choice = CascadeChooser(
        mixtures.table, model.effort, memory, model.n_jobs, number,
        model._search().report, is_by_evidence=True,
    ).choose()  # fmt: skip
    if choice.is_interrupted or not mixtures.of_folds:
        return WeighedCascade(choice)
    best, (learned, held) = choice.candidates[0], mixtures.split[0]
    of_fold = best.operations + best.row_operations(learned) * held.n_distinct
    n_folds = min(len(mixtures.split), int(_MOST_SCORING / of_fold))
    if n_folds == 0:
        return WeighedCascade(choice)
    held_out = HeldOutSplits(mixtures.split[:n_folds], number, model.n_jobs, memory)
    scored = held_out.scored(best, 0)  # for dependent leaves, also with the best temper
    if len(scored) > 1 and scored[1].held_out > scored[0].held_out:
        choice = choice._replace(candidates=(scored[1], scored[0], *choice.candidates[1:]))
        best = scored[1]
    weights = np.concatenate([held.weights for _, held in held_out.folds])
    score = float(weights @ held_out.rows[best.key] / weights.sum())
    of_folds = np.array(list(mixtures.of_folds.values()))
    others = of_folds.sum(axis=1, keepdims=True) - of_folds if of_folds.shape[1] > 1 else of_folds
    beside = of_folds[others.argmax(axis=0), np.arange(of_folds.shape[1])]
    return WeighedCascade(choice, score, score - beside[:n_folds].sum() / weights.sum())


def page_of(candidates: list[Scored]) -> Page:
    """Return the best candidates; empty if there was no choice."""
    if isnan(candidates[0].held_out):
        return ()
    rows = candidates[:_MOST_SHOWN]
    text = f"chosen from {len(candidates):,} candidates on held-out rows; the best ones:"
    settings = [one.settings for one in rows]
    columns = [
        Numbers(
            {"hidden": "states", "continuous": "points"}.get(settings[0].kind, "classes"),
            [str(one.n_components) for one in settings],
        ),
        Numbers(
            "smoothing", ["" if isnan(one.smoothing) else f"{one.smoothing:g}" for one in settings]
        ),
        Numbers("held out", [f"{one.held_out:,.4f}" for one in rows]),
    ]
    table = PrintedTable([one.kind for one in settings], columns)
    is_behind = candidates[0].held_out < max(one.held_out for one in rows)
    fair = (Pieces([_FAIR]),) if is_behind else ()
    return (Pieces([text]), table, *fair)
