"""Climbing with a few rows at a time, if there are too many rows for every step.

A step follows the gradient for some rows, drawn without replacement in every epoch. Their log
likelihood is scaled up to that of all rows. Steps are those of Adam (Kingma and Ba 2015): each
number changes by about the same decreasing share of the spread of rows within classes. The result
is the mean of the last half of the states, because single ones still jump.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import samplers
from bayescascade.base.arrays import Floats
from bayescascade.base.watch import Watch, check_time
from bayescascade.data.units import Units
from bayescascade.methods.compress.learned import Compressed, State
from bayescascade.methods.compress.posterior import PrototypePosterior

_STEP = 0.05  # the first one, in `lengths` of the posterior
_LEAST_BATCHES = 10  # for an epoch: fewer steps would not get far
_DECAY, _SQUARES_DECAY, _TINY = 0.9, 0.999, 1e-12


def around(
    learned: Compressed, n_rows: Floats, rows: Floats, labels: NDArray[Any], **how: Any
) -> PrototypePosterior:
    """Return the posterior of further rows, with a prior around learned prototypes.

    A prototype of class c has the precision of a mean of ``n_rows[c]`` rows, (n_classes,). If the
    metric is so small that prototypes are far from the rows and all of them vote, the precision is
    lower, and steps are longer. The metric is fixed. rows (n_rows, n_columns) in the units of
    `learned`.
    """
    nearness = min(1.0, 2.0 * float(np.sum(learned.factor**2)) / len(learned.factor))
    sureness = nearness**2 * np.sqrt(n_rows)[learned.labels, np.newaxis]
    is_linear = learned.factor.ndim == 2
    posterior = PrototypePosterior(
        rows,
        labels,
        np.bincount(learned.labels),
        fixed_metric=learned.factor.ravel() if is_linear else np.log(learned.factor),
        around=(learned.points, np.ones_like(learned.points) / sureness),
        metric="linear" if is_linear else "diagonal",
        rank=len(learned.factor) if is_linear else None,
        prior_scale=1.0,
        **how,
    )
    posterior.lengths /= nearness
    return posterior


def refined(
    learned: Compressed,
    units: Units,
    n_rows: Floats,
    rows: Floats,
    labels: NDArray[Any],
    rng: np.random.Generator,
    batches: Mapping[str, Any],
    **how: Any,
) -> Compressed:
    """Return prototypes updated with more rows, in the units of the rows; see `around` for `how`.

    They represent ``n_rows`` rows of each class, (n_classes,), so far.
    """
    sureness = n_rows / np.bincount(learned.labels)
    posterior = around(learned.scaled(units), sureness, units.scaled(rows), labels, **how)
    state, _ = climb_by_minibatches(posterior, posterior.center, rng, **batches)
    points = units.unscaled(posterior.layout.points(state))
    return Compressed(points, learned.labels, learned.factor)


def climb_each(
    posterior: PrototypePosterior,
    states: Sequence[State],
    rng: np.random.Generator,
    watch: Watch,
    share: float,
    **how: Any,
) -> tuple[list[State], bool, bool]:
    """Return a better state for each start, and whether Ctrl-C or the time limit ended climbs.

    Each takes up to a `share` of the remaining time; see `climb_by_minibatches` for `how`.
    """
    found = list(states)
    for place, state in enumerate(states):
        with watch.part(share), watch.watching():
            found[place], is_ended = climb_by_minibatches(posterior, state, rng, **how)
            is_late = is_ended and watch.is_up
        if is_ended:
            return found, not is_late, is_late
    return found, False, False


def climb_by_minibatches(
    posterior: PrototypePosterior,
    state: State,
    rng: np.random.Generator,
    *,
    batch_size: int,
    n_epochs: int,
    progress: Callable[[samplers.Progress], object] | None = None,
) -> tuple[State, bool]:
    """Return a more probable state, and whether the climb ended early.

    Ctrl-C and the current watch end it. A step takes `batch_size` >= 1 rows, or fewer if there are
    few; each of the `n_epochs` >= 1 epochs uses every row once, and then calls `progress`.
    """
    rows = posterior.rows
    n_rows, n_counted = len(rows.rows), rows.total
    n_batches = max(n_rows // batch_size, min(_LEAST_BATCHES, n_rows))
    n_steps = n_epochs * n_batches
    current, mean, squares = state.copy(), np.zeros_like(state), np.zeros_like(state)
    total, n_summed, done = np.zeros_like(state), 0, 0
    best = -np.inf
    try:
        for epoch in range(n_epochs):
            found = 0.0
            for chosen in np.array_split(rng.permutation(n_rows), n_batches):
                check_time()
                chosen.sort()  # rows are sorted by class, and stay so
                batch = rows.part(chosen)
                log_density, slope = posterior.density_of(batch, n_counted / batch.total, current)
                done += 1
                slope *= posterior.lengths
                mean += (1.0 - _DECAY) * (slope - mean)
                squares += (1.0 - _SQUARES_DECAY) * (slope**2 - squares)
                direction = mean / (1.0 - _DECAY**done)
                size = np.sqrt(squares / (1.0 - _SQUARES_DECAY**done)) + _TINY
                length = _STEP * (1.0 - (done - 1) / n_steps)
                current += length * posterior.lengths * direction / size
                found += log_density / n_batches
                if 2 * done > n_steps:
                    total += current
                    n_summed += 1
            best = max(best, found)
            if progress is not None:
                progress(samplers.Progress("ascent", epoch + 1, n_epochs, best, found, 1.0, {}))
    except KeyboardInterrupt:
        return (current if n_summed == 0 else total / n_summed), True
    return total / n_summed, False
