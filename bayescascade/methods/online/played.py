"""What came of rounds that the gate played."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayescascade.base.arrays import Flags, Floats
from bayescascade.base.errors import DataError
from bayescascade.methods.online.experts import Pool
from bayescascade.report.page import BLANK, Heading, Numbers, Page, Pieces, PrintedTable, count_of

_SHOWN = 8  # experts


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """What the gate does about one row; `OnlineGate.learn` takes it back.

    Parameters
    ----------
    round : int
        Its number, from 0.
    asks : bool
    prediction : label or None
        The answer; None if it asks.
    ask_probability : float
        How probable it was that it asks.
    """

    round: int
    asks: bool
    prediction: Any
    ask_probability: float


@dataclass(frozen=True, slots=True, eq=False)
class Played:
    """Rounds in their order.

    Parameters
    ----------
    asked : (n_rounds,) array of bool
    predictions : (n_rounds,) array
        What was answered; the label where it was asked for.
    ask_probabilities : (n_rounds,) float64
    cost : float
        Of asking.
    is_interrupted : bool
        Whether Ctrl-C ended it before the last row.
    """

    asked: Flags
    predictions: NDArray[Any]
    ask_probabilities: Floats
    cost: float
    is_interrupted: bool = False

    def losses(self, y: ArrayLike) -> Floats:
        """Return the loss of each round, given all labels: the cost where it asked, 1 for an error.

        y : (n_rounds,) array of labels. Raises DataError if it has another length.
        """
        labels = np.asarray(y)[: len(self.asked)] if self.is_interrupted else np.asarray(y)
        if labels.shape != self.asked.shape:
            raise DataError(f"y must have {len(self.asked)} labels, got shape {labels.shape}")
        wrong = (labels != self.predictions).astype(np.float64)
        return np.where(self.asked, self.cost, wrong)


def gate_page(gate: Any, pool: Pool, n_learned: int) -> Page:
    """Return how often a gate asked, what is proved of it, and the experts that weigh most."""
    names, weights, n = pool.names, gate.probabilities_, max(gate.n_rounds_, 1)
    heading = [f"online gate   {len(names):,} experts   asking costs {gate.cost:g}",
               f"{gate.n_rounds_:,} rounds", f"asked in {gate.n_asked_ / n:.1%}"]  # fmt: skip
    bound = gate.regret_bound(n)
    proved = "no bound on the regret is proved"
    if bound is not None:
        proved = f"expected regret at most {bound / n:.3f} a round"
    learned = [f"models learned from {n_learned:,} labels"] if n_learned else []
    order, losses = np.argsort(-weights, kind="stable")[:_SHOWN], gate.estimated_losses_ / n
    columns = [
        Numbers("weight", [f"{weights[i]:.3f}" for i in order]),
        Numbers("loss a round", [f"{losses[i]:.3f}" for i in order]),
    ]
    table = PrintedTable([names[i] for i in order], columns, header="expert")
    page: Page = (Heading(heading), Pieces([f"rates {gate.rates}", proved, *learned]), BLANK, table)
    if n_more := len(weights) - len(order):
        page += (Pieces([f"and {count_of(n_more, 'expert')} of smaller weight"]),)
    return (*page, BLANK, Pieces([pool.legend], "dim")) if pool.legend else page
