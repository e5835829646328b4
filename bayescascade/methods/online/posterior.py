"""The Gibbs posterior over the experts of a gate."""

import numpy as np
from numpy.typing import NDArray

from bayescascade.model.posterior import GibbsPosterior
from samplers.types import Proposal


def posterior_of(losses: NDArray[np.float64], eta: float) -> GibbsPosterior[int]:
    """Return the posterior of expert numbers by estimated losses, at the temperature 1 / eta."""
    n_experts = len(losses)
    return GibbsPosterior(
        objective=lambda expert: float(losses[expert]),
        start=lambda rng: int(rng.integers(n_experts)),
        proposals={"expert": _OtherExpert(n_experts)},
        temperature=1.0 / eta,
        summary=lambda expert: {"expert": expert},
    )


class _OtherExpert:
    """Propose any other expert, all equally probable."""

    def __init__(self, n_experts: int) -> None:
        self._n_experts = n_experts

    def propose(self, rng: np.random.Generator, state: int) -> Proposal[int]:
        other = int(rng.integers(max(self._n_experts - 1, 1)))
        return Proposal((other + (other >= state)) % self._n_experts, log_q_ratio=0.0)
