"""Chains with a time limit: they take as many steps as fit, so that they cool down and draw."""

from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import Any, TypeVar

import numpy as np

import samplers
from bayescascade.base.watch import Watch

S = TypeVar("S")

# of the pilot that measures the pace: blocks, share of the steps, and maximum steps
_FEW_BLOCKS, _PART, _MOST_STEPS = 20, 50, 2_000
_SHARE, _MOST_SECONDS = 0.1, 5.0  # of the time for the pilot, and maximum seconds
_MARGIN = 0.8  # share of the time left that is planned
_LEAST_BLOCKS, _STEPS_OF_BLOCK = 100, 200  # the start of a block takes as long as some steps


def run_in_time(
    engine: Callable[..., samplers.Run[S]],
    posterior: samplers.Target[S],
    watch: Watch,
    *,
    n_steps: int,
    n_blocks: int,
    blocks: str,
    seed: np.random.SeedSequence,
    progress: Callable[[samplers.Progress], object] | None,
    checkpoint: samplers.CheckpointSection | None,
    **how: Any,
) -> samplers.Run[S]:
    """Run an engine for as many steps as fit the time left, by the pace of a few steps.

    If these end before a block, one chain is run. If chains could not start again in the time
    left, these steps are the run. A run with a
    checkpoint plans all steps, because it can be resumed. `blocks` is the engine's name for
    `n_blocks`, and `how` has its other parameters.
    """
    n_fitting, n_fitting_blocks = n_steps, n_blocks
    starts = how.get("initial_states")
    if starts is not None:
        how["n_chains"] = len(starts)  # one, if the time was short before
    if watch.left < inf and checkpoint is None:
        done = [0]
        n_few, before = min(max(1, n_steps // _PART), _MOST_STEPS), watch.left
        pilot = engine(
            posterior,
            n_steps=n_few,
            seed=np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, _PART)),
            progress=lambda report: done.append(report.done),
            time_limit=min(_SHARE * watch.left, _MOST_SECONDS),
            **{blocks: min(n_blocks, _FEW_BLOCKS)},
            **{name: value for name, value in how.items() if name not in ("n_rounds", "enough")},
        )
        if pilot.interrupted:
            return pilot
        of_starts = before - watch.left - sum(pilot.seconds.values())
        if watch.is_over(of_starts):
            return replace(pilot, timed_out=True)
        n_fitting = n_few
        if done[-1] == 0:  # not one block of all chains, so one chain has to do
            how |= {"n_chains": 1, "initial_states": None if starts is None else starts[:1]}
        else:
            n_a_second = done[-1] / sum(pilot.seconds.values())
            n_fitting = max(1, min(n_steps, int(_MARGIN * watch.left * n_a_second)))
        if n_fitting < n_steps:
            n_fitting_blocks = min(n_blocks, max(_LEAST_BLOCKS, n_fitting // _STEPS_OF_BLOCK))
    run = engine(
        posterior,
        n_steps=n_fitting,
        seed=seed,
        progress=progress,
        checkpoint=checkpoint,
        time_limit=watch.left,
        **{blocks: n_fitting_blocks},
        **how,
    )
    return replace(run, timed_out=run.timed_out or n_fitting < n_steps)
