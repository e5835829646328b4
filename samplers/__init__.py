"""Search and sampling over states of any kind: annealing, Metropolis-Hastings, replica exchange.

A *target* has a log density; a *move* proposes another state. From these, `anneal` finds the most
probable state, and `metropolis` and `tempering` draw states in proportion to their density.
`langevin` draws vectors, by the gradient of their log density instead of moves. `samplers.types`
has the whole contract.

A result depends on the seed and the settings. It does not depend on the number of workers, on
interruptions, or on resuming from a checkpoint.

Examples
--------
A walk over the integers 0 to 9, whose probabilities are proportional to 2^state:

>>> import math
>>> import samplers
>>> class Ramp:
...     def log_density(self, state):
...         return state * math.log(2.0) if 0 <= state <= 9 else -math.inf
>>> class Walk:
...     def propose(self, rng, state):
...         return samplers.Proposal(state + rng.choice([-1, 1]), log_q_ratio=0.0)
>>> run = samplers.metropolis(
...     Ramp(), n_steps=4000, moves={"walk": Walk()}, initial_states=[0, 3, 6, 9], seed=1
... )
>>> int(run.best_state), len(run.draws), run.traces["log_density"].shape
(9, 4, (4, 1000))
>>> samplers.anneal(Ramp(), n_steps=500, moves={"walk": Walk()}, initial_states=[0] * 4, seed=1)
... # doctest: +ELLIPSIS
Run(method='anneal', best_state=..., best_log_density=6.23..., seconds={...}, interrupted=False)
"""

from samplers.annealing import GeometricSchedule, anneal
from samplers.checkpoint import Checkpoint, CheckpointSection
from samplers.langevin import langevin
from samplers.metropolis import init, metropolis, step
from samplers.parameters import CheckpointError, SamplerError, SamplerValueError
from samplers.run import Progress, Run
from samplers.tempering import tempering
from samplers.types import ChainState, FiniteMove, Move, Proposal, StepCounts, StepInfo, Target

__all__ = [
    "ChainState",
    "Checkpoint",
    "CheckpointError",
    "CheckpointSection",
    "FiniteMove",
    "GeometricSchedule",
    "Move",
    "Progress",
    "Proposal",
    "Run",
    "SamplerError",
    "SamplerValueError",
    "StepCounts",
    "StepInfo",
    "Target",
    "anneal",
    "init",
    "langevin",
    "metropolis",
    "step",
    "tempering",
]
