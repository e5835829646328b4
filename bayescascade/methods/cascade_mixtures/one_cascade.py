"""One cascade as the whole mixture, and how it scores beside mixtures that EM found.

The one class is a cascade to any depth, averaged over all its trees. Its leaves, splits and prior
have the largest evidence of all that `AutoCascade` can sum over. Then rows held out compare it with
mixtures, in as many of the folds as a limit of operations allows. Mixtures are chosen by the scores
of these rows, and the best of many scores is too good. So each fold compares the cascade with the
mixture that is the best in the other folds, where there are others.

Several classes that are cascades each are not weighed: the branches of a cascade's first splits can
be classes of their own, so mixtures of more classes have these densities already. What they lack is
the average over trees. A prototype, of depth 1 or 2 above independent leaves, gained 0.008 nats a
row on one of eight tables, and nothing beyond two standard errors on others: see docs/mixtures.md.
"""

from math import nan
from typing import NamedTuple

import numpy as np

from bayescascade.methods.cascades.auto_cascade import AutoCascade
from bayescascade.methods.cascades.choosing import Choice, Chooser
from bayescascade.methods.cascades.held_out import HeldOut
from bayescascade.methods.mixtures.choosing import Chooser as MixtureChooser

ONE = "cascade"
"""The kind of a mixture that is one cascade."""

_MOST_SCORING = 3e10  # nanoseconds of one core, to score rows held out


class WeighedCascade(NamedTuple):
    """What suits a table, and its scores on held-out rows; NaN if there are none or it is slow."""

    choice: Choice
    held_out: float = nan  # mean log density of rows held out, nats
    gain: float = nan  # of that over mixtures, nats


def weigh_cascade(
    model: AutoCascade, mixtures: MixtureChooser, seed: np.random.SeedSequence
) -> WeighedCascade:
    """Return the cascade of the largest evidence, scored where mixtures were."""
    number, memory = int(seed.generate_state(1)[0]), model.memory_limit * 1e9
    choice = Chooser(
        mixtures.table, model.effort, memory, model.n_jobs, number,
        model._search().report, is_by_evidence=True,
    ).choose()  # fmt: skip
    if choice.is_interrupted or not mixtures.of_folds:
        return WeighedCascade(choice)
    best, (learned, held) = choice.candidates[0], mixtures.dealt[0]
    of_fold = 1e9 * best.expected_seconds + best.row_nanoseconds(learned) * held.n_distinct
    n_folds = min(len(mixtures.dealt), int(_MOST_SCORING / of_fold))
    if n_folds == 0:
        return WeighedCascade(choice)
    held_out = HeldOut(mixtures.dealt[:n_folds], number, model.n_jobs, memory)
    scored = held_out.scored(best, 0)  # of dependent leaves, also with the best temper
    if len(scored) > 1 and scored[1].held_out > scored[0].held_out:
        choice = choice._replace(candidates=(scored[1], scored[0], *choice.candidates[1:]))
        best = scored[1]
    weights = np.concatenate([held.weights for _, held in held_out.folds])
    score = float(weights @ held_out.rows[best.key] / weights.sum())
    of_folds = np.array(list(mixtures.of_folds.values()))
    others = of_folds.sum(axis=1, keepdims=True) - of_folds if of_folds.shape[1] > 1 else of_folds
    beside = of_folds[others.argmax(axis=0), np.arange(of_folds.shape[1])]
    return WeighedCascade(choice, score, score - beside[:n_folds].sum() / weights.sum())
