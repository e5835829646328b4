"""Ascent to a local maximum of a posterior over vectors, by SciPy's optimizers.

An optimizer is called again in each round, without a memory of earlier rounds. So a resumed climb
takes the same path as an uninterrupted one. The result is the best of several starts; it is not a
proof.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from time import perf_counter
from typing import Any

import numpy as np
from scipy import optimize

import samplers
from bayescascade.base.arrays import Floats
from bayescascade.base.threads import single_threaded
from bayescascade.base.watch import OutOfTime, check_time

Vector = Floats

OPTIMIZERS = {"lbfgs": "L-BFGS-B", "cg": "CG"}
"""SciPy's names."""

_ROUND = 50  # iterations


def ascend(
    posterior: Any,  # Any: with log_density_and_gradient and describe
    starts: Sequence[Vector],
    *,
    max_iter: int,
    optimizer: str = "lbfgs",
    progress: Callable[[samplers.Progress], object] | None = None,
    section: samplers.CheckpointSection | None = None,
    also: Mapping[str, Any] | None = None,
) -> samplers.Run[Vector]:
    """Climb from each start, and return the ends as a run without draws.

    starts (d,) float64 each; max_iter >= 0 for each; optimizer "lbfgs" or "cg". Ctrl-C, or the time
    limit, ends the run with the best points so far. The section keeps the ends so far;
    CheckpointError if it is damaged, or of another posterior or settings, among them `also`.
    """
    began = perf_counter()
    fingerprint = posterior.fingerprint() if hasattr(posterior, "fingerprint") else ""
    begun = sha256(b"".join(np.asarray(start, np.float64).tobytes() for start in starts))
    settings = {
        "fingerprint": fingerprint,
        "starts": begun.hexdigest(),
        "optimizer": optimizer,
        "max_iter": max_iter,
        **(also or {}),
    }
    climbs = [_Climb(posterior, start, max_iter, optimizer) for start in starts]
    _restore(climbs, section, settings)
    interrupted = timed_out = False
    try:
        for climb in climbs:
            while not climb.is_done:
                climb.advance()
                if section is not None:
                    ends = [climb.end() for climb in climbs]
                    section.write(json.dumps({**settings, "ends": ends}), is_finished=False)
                if progress is not None:
                    progress(_report(climbs, max_iter))
    except OutOfTime:
        timed_out = True
    except KeyboardInterrupt:
        interrupted = True
    # a climb that did not begin in time needs no density, if another has one
    is_early = (timed_out or interrupted) and any(climb.log_density > -np.inf for climb in climbs)
    for climb in () if is_early else climbs:
        climb.settle()
    best = max(climbs, key=lambda climb: climb.log_density)
    none = np.empty((len(climbs), 0))
    names = ("log_density", "acceptance_rate", *posterior.describe(best.state))
    return samplers.Run(
        method="ascent",
        best_state=best.state,
        best_log_density=best.log_density,
        traces=dict.fromkeys(names, none),
        draws=((),) * len(climbs),
        final_states=tuple(climb.state for climb in climbs),
        proposed={},
        accepted={},
        seconds={"ascent": perf_counter() - began},
        interrupted=interrupted,
        extras={"n_iterations": [climb.n_done for climb in climbs]},
        timed_out=timed_out,
    )


class _Climb:
    """The climb from one start."""

    def __init__(self, posterior: Any, start: Vector, max_iter: int, optimizer: str) -> None:
        self._posterior, self._max_iter, self._optimizer = posterior, max_iter, optimizer
        self.state = np.array(start, np.float64)
        self.log_density = -np.inf
        self.n_done = 0
        self.has_converged = False

    @property
    def is_done(self) -> bool:
        return self.has_converged or self.n_done >= self._max_iter

    def advance(self) -> None:
        """Take a round of iterations."""
        n_steps = min(_ROUND, self._max_iter - self.n_done)
        with single_threaded():  # the optimizer's own products are small
            found = optimize.minimize(
                self._loss,
                self.state,
                jac=True,
                method=OPTIMIZERS[self._optimizer],
                options={"maxiter": n_steps},
            )
        self.has_converged = found.nit < n_steps
        self.n_done += found.nit

    def _loss(self, state: Vector) -> tuple[float, Vector]:
        check_time()
        log_density, gradient = self._posterior.log_density_and_gradient(state)
        if log_density > self.log_density:  # kept at once: Ctrl-C may come at any time
            self.state, self.log_density = state.copy(), float(log_density)
        return -log_density, -gradient

    def settle(self) -> None:
        """Compute the density at the start if no round has run."""
        if self.log_density == -np.inf:
            self.log_density = float(self._posterior.log_density_and_gradient(self.state)[0])

    def end(self) -> list[Any]:
        return [self.state.tolist(), self.log_density, self.n_done, self.has_converged]

    def go_on_from(self, end: Sequence[Any]) -> None:
        state, log_density, n_done, has_converged = end
        given = np.array(state, np.float64)
        if given.shape != self.state.shape or not np.isfinite(given).all():
            raise ValueError("a state of another posterior")
        self.state, self.n_done = given, int(n_done)
        self.log_density = float(log_density)
        self.has_converged = bool(has_converged)


def _restore(
    climbs: list[_Climb], section: samplers.CheckpointSection | None, settings: dict[str, Any]
) -> None:
    stored: Any = None if section is None else section.stored()
    if section is None or stored is None:
        return
    try:
        is_ours = {name: stored[name] for name in settings} == settings
        if is_ours:
            for climb, end in zip(climbs, stored["ends"], strict=True):
                climb.go_on_from(end)
    except (KeyError, TypeError, ValueError) as error:
        raise section.checkpoint.error(f"is damaged: {error!r}") from error
    if not is_ours:
        raise section.checkpoint.error("is of another model, other data or settings")


def _report(climbs: Sequence[_Climb], max_iter: int) -> samplers.Progress:
    # those that have begun; none has a density if the first ends where it starts
    climbed = [climb.log_density for climb in climbs if climb.n_done] or [np.nan]
    n_done = sum(max_iter if climb.is_done else climb.n_done for climb in climbs)
    return samplers.Progress(
        phase="ascent",
        done=n_done // len(climbs),
        total=max_iter,
        best_log_density=max(climbed),
        log_density=sum(climbed) / len(climbed),
        acceptance_rate=1.0,
        described={},
    )
