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
    """The best tree of a posterior, of which the sum over all trees is not known.

    Parameters
    ----------
    posterior : CascadePosterior
    cost : ExactCost
        What a pass takes.
    tree : Tree
        The most probable one.
    log_density : float
        Its log density: no tree has more that is summed over.
    max_leaves : int or None
        Most leaves of those trees, where others were still to be bounded; None if they are all.
    rounding : float >= 0
        Nats by which rounding may hide that another tree is more probable.
    """

    posterior: "CascadePosterior"
    cost: ExactCost
    tree: Tree
    log_density: float
    max_leaves: int | None
    rounding: float

    is_interrupted: ClassVar[bool] = True
    gap: ClassVar[float] = 0.0
    error: ClassVar[float] = math.inf
    log_normalizer: ClassVar[float] = math.nan
    log_evidence: ClassVar[float] = math.nan


class SummationStopped(KeyboardInterrupt):
    """Ctrl-C, once the best tree was known.

    Parameters
    ----------
    found : StoppedPosterior
    """

    def __init__(self, found: StoppedPosterior) -> None:
        super().__init__()
        self.found = found
