"""Results of the rounds of the gate."""

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
class GateDecision:
    """The decision of the gate about one row, for `OnlineGate.learn`.

    Parameters
    ----------
    round : int
        Number of the round, from 0.
    asks : bool
    prediction : label or None
        The prediction; None if the gate asks.
    ask_probability : float
        Probability of asking.
    """

    round: int
    asks: bool
    prediction: Any
    ask_probability: float


@dataclass(frozen=True, slots=True, eq=False)
class Played:
    """The rounds in order.

    Parameters
    ----------
    asked : (n_rounds,) array of bool
    predictions : (n_rounds,) array
        Predictions, or the labels that were asked for.
    ask_probabilities : (n_rounds,) float64
    cost : float
        Cost of a label.
    is_interrupted : bool
        Whether Ctrl-C ended the rounds before the last row.
    """

    asked: Flags
    predictions: NDArray[Any]
    ask_probabilities: Floats
    cost: float
    is_interrupted: bool = False

    def losses(self, y: ArrayLike) -> Floats:
        """Return the loss of each round, given all labels: the cost of a label, or 1 for an error.

        y : (n_rounds,) array of labels. Raises DataError if it has another length.
        """
        labels = np.asarray(y)[: len(self.asked)] if self.is_interrupted else np.asarray(y)
        if labels.shape != self.asked.shape:
            raise DataError(f"y must have {len(self.asked)} labels, got shape {labels.shape}")
        wrong = (labels != self.predictions).astype(np.float64)
        return np.where(self.asked, self.cost, wrong)


def gate_page(gate: Any, pool: Pool, n_learned: int) -> Page:
    """Return how often a gate asked, its bound, and the experts with the largest weights."""
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
