"""The average of a cascade and densities with hidden classes, by held-out rows.

The chosen cascade is stacked with mixtures of classes, the best of each kind, with trees of hidden
states, and with a continuous mixture: held-out rows of up to five folds choose the weights of the
average that predicts; see `model.stacking`. The settings of each are chosen within the training
rows of the first fold, by a search of seconds; `CascadeMixture` searches further. A density whose
weight is below 0.05 in the first fold is not learned from the others.

The cascade predicts alone unless the average gains 0.01 nats a row. No density scores rows better
than their own shares do: for n rows, w_i of them in cell i, ``sum_i w_i ln p_i <= sum_i w_i ln(w_i
/ n)``. In tables of few cells this bound often excludes the gain, and no other density is fitted.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.special import logsumexp

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import ModelFileError
from bayescascade.base.threads import n_threads_of, single_threaded
from bayescascade.base.watch import check_time, watch_in_use
from bayescascade.data.schema import Schema
from bayescascade.data.table import Table
from bayescascade.methods.density.continuous import learning as continuous
from bayescascade.methods.density.continuous.density import ContinuousDensity
from bayescascade.methods.density.hidden_trees import learning as hidden
from bayescascade.methods.density.hidden_trees.density import HiddenDensity
from bayescascade.methods.density.mixtures.choosing import NUMBERS, MixtureChooser, climb_all
from bayescascade.methods.density.mixtures.classes import RowClasses
from bayescascade.methods.density.mixtures.density import MixtureDensity
from bayescascade.methods.density.mixtures.em import KINDS, EMSettings, Indicators, log_cells
from bayescascade.model.stacking import stacking_weights

_LEAST_GAIN, _LEAST_WEIGHT = 0.01, 0.05  # nats a row; in the first fold
_SMOOTHINGS = (1.0, 4.0, 16.0)
_N_STARTS, _MAX_ITER, _TOL = 2, 50, 3e-4
# operations to choose settings and to learn, about 3e10 per second
_OF_MIXTURES = 1e11
_LEARNED: Mapping[str, tuple[Any, float]] = {
    "hidden": (hidden, 1.2e12),
    "continuous": (continuous, 1.5e12),
}


Fitted: TypeAlias = tuple[RowClasses, KeyboardInterrupt | None]
"""A density, and what ended its learning early."""

_FILED: dict[str, Callable[[Mapping[str, Any], Schema], RowClasses]] = {
    **dict.fromkeys(KINDS, MixtureDensity.from_record),
    "hidden": HiddenDensity.from_record,
    "continuous": ContinuousDensity.from_record,
}


def member_of(kind: str, record: Mapping[str, Any], schema: Schema) -> RowClasses:
    """Rebuild a density of an average; ModelFileError if its record is inconsistent."""
    if kind not in _FILED:
        raise ModelFileError(f"densities of an average must be {', '.join(_FILED)}, got {kind!r}")
    return _FILED[kind](record, schema)


class Average(NamedTuple):
    """Densities by their kind, and the weights of the "cascade" and of each of them."""

    members: Mapping[str, RowClasses]
    weights: Mapping[str, float]


ALONE = Average({}, {"cascade": 1.0})
"""The cascade alone."""


def stacked(
    table: Table, folds: Sequence[tuple[Table, Table]], alone: Floats, seed: int, n_jobs: int | None
) -> Average:
    """Return other densities of a table, and the weights of these and of a cascade; see the module.

    Each fold is (learned, held out), and settings are chosen within the first; alone (n_held,)
    float64: the cascade's log densities of the held-out rows, in the folds' order.
    """
    learned, held = zip(*folds, strict=True)
    weights = np.concatenate([member.weights for member in held])
    most = sum(map(_most_log_density, held))
    if most - float(weights @ alone) <= _LEAST_GAIN * weights.sum():
        return ALONE
    scores, n_first = {"cascade": alone}, held[0].n_distinct

    def score(kind: str, densities: Sequence[RowClasses], rows: Sequence[Table]) -> None:
        known = [scores[kind]] if kind in scores else []
        for density, counted in zip(densities, rows, strict=True):
            known.append(density.score_codes(counted.codes.astype(np.int32)))
        scores[kind] = np.concatenate(known)

    with single_threaded():
        learners = _learners(learned[0], seed, n_jobs)
        for kind, learn in learners.items():
            score(kind, learn(learned[:1]), held[:1])
        first = np.array([own[:n_first] for own in scores.values()])
        shares = dict(zip(scores, stacking_weights(first, weights[:n_first]), strict=True))
        for kind, learn in learners.items():
            if shares[kind] < _LEAST_WEIGHT:
                del scores[kind]
            elif folds[1:]:
                score(kind, learn(learned[1:]), held[1:])
        of_all = np.array([*scores.values()])
        shares = dict(zip(scores, stacking_weights(of_all, weights).tolist(), strict=True))
        averaged = logsumexp(of_all, axis=0, b=np.array([*shares.values()])[:, np.newaxis])
        if weights @ (averaged - alone) <= _LEAST_GAIN * weights.sum():
            return ALONE
        kept = {kind: w for kind, w in shares.items() if kind == "cascade" or w > 0.0}
        return Average(
            {kind: learners[kind]([table])[0] for kind in kept if kind in learners}, kept
        )


Learn = Callable[[Sequence[Table]], Sequence[RowClasses]]


def _learners(table: Table, seed: int, n_jobs: int | None) -> dict[str, Learn]:
    """Return for each kind what learns it from tables, by settings that are chosen on this one."""
    n_threads, watch = n_threads_of(n_jobs), watch_in_use()
    chosen_by, found_by = np.random.SeedSequence(seed).spawn(2)
    grid, steps = (KINDS, _SMOOTHINGS, NUMBERS), (_MAX_ITER, _TOL, n_threads, watch)

    def mixture(settings: EMSettings) -> Learn:
        def learn(tables: Sequence[Table]) -> list[MixtureDensity]:
            rows = [Indicators.of(table) for table in tables]
            found, is_interrupted = climb_all(rows, settings, found_by, _N_STARTS, *steps)
            if is_interrupted:
                raise KeyboardInterrupt
            check_time()
            best = (
                max(climbs, key=lambda climb: climb.objective[-1]).components for climbs in found
            )
            return [MixtureDensity.of(table.schema, *row) for row in zip(rows, best, strict=True)]

        return learn

    chooser = MixtureChooser(table, grid, chosen_by, *steps, lambda _: None, _OF_MIXTURES)
    best = {scored.settings.kind: scored.settings for scored in reversed(chooser.choose())}
    if chooser.is_interrupted:
        raise KeyboardInterrupt
    check_time()
    learners = {kind: mixture(settings) for kind, settings in best.items()}
    for kind, (learning, most) in _LEARNED.items():
        if not learning.is_worth(table):
            continue
        tried = learning.choose(table, seed, most, is_whole=True)
        if tried:
            learners[kind] = _by_best(learning.fitted, tried[0][1], seed)
    return learners


def _by_best(fitted: Callable[..., Fitted], settings: object, seed: int) -> Learn:
    """Return what learns by the best settings."""

    def learn(table: Table) -> RowClasses:
        density, ended = fitted(table, settings, seed)
        if ended is not None:
            raise ended
        return density

    return lambda tables: [learn(one) for one in tables]


def _most_log_density(table: Table) -> float:
    """Return the largest possible sum of the log densities of a table's rows; see the module."""
    weights = table.weights
    return float(weights @ (np.log(weights / weights.sum()) - log_cells(table)))
