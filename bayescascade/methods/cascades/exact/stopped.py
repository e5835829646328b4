"""What an exact search has found when Ctrl-C ends it between the best tree and the sum."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from bayescascade.methods.cascades.exact.cost import ExactCost
from bayescascade.methods.cascades.tree import Tree

if TYPE_CHECKING:
    from bayescascade.methods.cascades.posterior import CascadePosterior


@dataclass(frozen=True, slots=True, eq=False)
class StoppedPosterior:
    """The best tree of a posterior whose sum over all trees is not known."""

    posterior: "CascadePosterior"
    cost: ExactCost  # of a pass
    tree: Tree  # the most probable one
    log_density: float  # no tree that is summed over has more
    max_leaves: int | None  # most leaves of those trees; None if they are all
    rounding: float  # >= 0: nats by which rounding may hide that another tree is more probable

    is_interrupted: ClassVar[bool] = True
    gap: ClassVar[float] = 0.0
    error: ClassVar[float] = math.inf
    log_normalizer: ClassVar[float] = math.nan
    log_evidence: ClassVar[float] = math.nan


class SummationStopped(KeyboardInterrupt):
    """Ctrl-C, once the best tree was known."""

    def __init__(self, found: StoppedPosterior) -> None:
        super().__init__()
        self.found = found
