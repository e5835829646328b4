"""What came of rounds that the gate played."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayescascade.base.errors import DataError


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

    asked: NDArray[np.bool_]
    predictions: NDArray[Any]
    ask_probabilities: NDArray[np.float64]
    cost: float
    is_interrupted: bool = False

    def losses(self, y: ArrayLike) -> NDArray[np.float64]:
        """Return the loss of each round, given all labels: the cost where it asked, 1 for an error.

        y : (n_rounds,) array of labels. Raises DataError if it has another length.
        """
        labels = np.asarray(y)[: len(self.asked)] if self.is_interrupted else np.asarray(y)
        if labels.shape != self.asked.shape:
            raise DataError(f"y must have {len(self.asked)} labels, got shape {labels.shape}")
        wrong = (labels != self.predictions).astype(np.float64)
        return np.where(self.asked, self.cost, wrong)
