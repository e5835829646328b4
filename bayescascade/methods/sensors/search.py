"""What `fit` of gated sensors tries: who learns, who judges, and all candidates in the time."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.threads import single_threaded
from bayescascade.base.watch import OutOfTime, Watch
from bayescascade.data.splitting import split_by_class
from bayescascade.methods.sensors.models import Bools, Weights
from bayescascade.methods.sensors.training import Lesson, opened
from bayescascade.methods.sensors.trial import Ways
from bayescascade.methods.sensors.trying import Candidate, Trying, best_ridge

_HELD_OUT = 0.25  # of the rows, where none are given to choose by


class Roles(NamedTuple):
    """Lessons of the rows that learn and of those that judge."""

    learned: Lesson
    judging: Lesson
    learns: Bools  # (n_rows,)

    @classmethod
    def of(
        cls, lesson: Lesson, groups: NDArray[Any], judging: Lesson | None, rng: np.random.Generator
    ) -> "Roles":
        """Hold out rows of a lesson, by their groups, where no others judge."""
        everybody = np.ones(len(lesson.targets), np.bool_)
        if judging is not None:
            return cls(lesson, judging, everybody)
        learns = split_by_class(groups, [1 - _HELD_OUT, _HELD_OUT], rng) == 0
        if learns.all() or len(np.unique(groups[learns])) < 2:
            return cls(lesson, lesson, everybody)
        learned = lesson.among(learns)._replace(ridge=lesson.ridge)
        return cls(learned, lesson.among(~learns), learns)


class Tried(NamedTuple):
    """Candidates, one at least, and the ridge that they were trained with."""

    candidates: list[Candidate]
    ridge: float
    is_interrupted: bool


def tried(
    roles: Roles,
    ridge: float | None,
    ways_of: Callable[[Lesson, np.random.Generator], Ways],
    budgets: Sequence[float | None],
    watch: Watch,
    rng: np.random.Generator,
) -> Tried:
    """Return what can be tried until time is up; on Ctrl-C what had been, if there was any."""
    learned = roles.learned
    candidates: list[Candidate] = []
    trying = Trying(learned, roles.judging, "step", lambda *_: opened(learned, rng))
    is_interrupted = False
    try:
        with watch.watching(), single_threaded():
            if ridge is None:
                learned = learned._replace(ridge=best_ridge(learned, roles.judging))
                trying = trying._replace(lesson=learned)
            candidates.extend(trying.static())
            ways = ways_of(learned, rng)
            trying = trying._replace(train=ways.train, activation=ways.activation)
            for kind, weights in ways.beside if budgets == [None] else ():
                soft = trying._replace(activation="sigmoid")
                candidates.append(soft.judged(kind, weights, math.nan, math.nan))
            start = ways.train(learned, ways.thrifts[0], opened(learned, rng))
            for portion in trying.along(ways.thrifts, start, budgets):
                candidates += portion
    except OutOfTime:
        pass  # what has been tried is kept
    except KeyboardInterrupt:
        if not candidates:
            raise
        is_interrupted = True
    if not candidates:  # there was no time for any
        sizes = learned.signals.sensor_of.size, learned.costs.size, learned.targets.shape[1]
        candidates = [trying.judged("always", Weights.zeros(*sizes), math.nan, math.nan)]
    return Tried(candidates, learned.ridge, is_interrupted)
