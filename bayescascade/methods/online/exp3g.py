"""EXP3.G: exponential weights of actions, some of which reveal the losses of others.

In a round with weights q and a feedback graph, action i is played with probability p(i), and
reveals the losses of its successors in the graph. Let P(i) be the probability that the loss of i is
seen, which is the sum of p over the actions that reveal it. Then

    p = (1 - gamma) q + gamma u,    estimated loss(i) = loss(i) 1[seen] / P(i),
    q(i) <- q(i) exp(-eta estimated loss(i)) / sum

with u uniform over the actions that explore (Nan 2018, algorithm 6, after Alon and others 2015).
Estimated losses are unbiased if every P(i) is positive.
"""

import numpy as np
from numpy.typing import ArrayLike

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import DataError, ParameterError
from bayescascade.base.validation import check_integer, check_probability, check_real

_ROUNDING = 1e-9  # tolerance for the sum of probabilities


class Exp3G:
    """Exponential weights for actions with any feedback graph, at fixed rates.

    Parameters
    ----------
    n_actions : int >= 1
    eta : float > 0
        Learning rate: how much a unit of estimated loss lowers a log weight.
    gamma : float in [0, 1]
        Exploration rate: probability that is divided among the exploring actions.

    Attributes
    ----------
    estimated_losses : (n_actions,) float64
        Sums of the estimated losses of all rounds.

    Notes
    -----
    Nan (2018), algorithm 6. `OnlineGate` is a compiled version for the case of one revealing
    action.

    Examples
    --------
    >>> import numpy as np
    >>> from bayescascade import Exp3G
    >>> game = Exp3G(2, eta=0.5, gamma=0.1)
    >>> p = game.probabilities([True, False])
    >>> game.learn([0.2, 1.0], [[True, True], [False, False]], p)  # the first was played, shows all
    >>> p.round(2).tolist(), game.weights.round(2).tolist()
    ([0.55, 0.45], [0.67, 0.33])
    """

    def __init__(self, n_actions: int, *, eta: float, gamma: float) -> None:
        self.n_actions = check_integer("n_actions", n_actions, minimum=1)
        self.eta = check_real("eta", eta, above=0.0)
        self.gamma = check_probability("gamma", gamma)
        self.estimated_losses = np.zeros(self.n_actions)

    @property
    def weights(self) -> Floats:
        """The weights q of the actions, (n_actions,); their sum is 1."""
        log_weights = -self.eta * self.estimated_losses
        found = np.exp(log_weights - log_weights.max())
        weights: Floats = found / found.sum()
        return weights

    def probabilities(self, explorers: ArrayLike) -> Floats:
        """Return the probability that each action is played, (n_actions,).

        explorers : (n_actions,) array of bool, the exploring actions; at least one.
        """
        explores = np.asarray(explorers)
        if explores.dtype != bool or explores.shape != (self.n_actions,) or not explores.any():
            raise ParameterError(
                f"explorers must be {self.n_actions} truth values, at least one of them true, "
                f"got {explorers!r}"
            )
        played: Floats = (1.0 - self.gamma) * self.weights
        played[explores] += self.gamma / explores.sum()
        return played

    def learn(self, losses: ArrayLike, graph: ArrayLike, probabilities: ArrayLike) -> None:
        """Learn from the observed losses.

        Parameters
        ----------
        losses : (n_actions,) array of float
            NaN for a loss that was not observed.
        graph : (n_actions, n_actions) array of bool
            ``graph[j, i]`` says whether playing j reveals the loss of i.
        probabilities : (n_actions,) array of float >= 0 that sum to 1
            Probabilities by which the action was drawn.

        Raises
        ------
        DataError
            If losses are infinite, shapes do not fit, or the loss of an action is not revealed by
            any action of positive probability.
        """
        lost, shows = np.asarray(losses, np.float64), np.asarray(graph)
        played = np.asarray(probabilities, np.float64)
        k = self.n_actions
        if lost.shape != (k,) or np.isinf(lost).any():
            raise DataError(f"losses must be {k} finite numbers or NaN, got {losses!r}")
        if shows.shape != (k, k) or shows.dtype != bool:
            raise DataError(f"graph must be {k} x {k} truth values, got shape {shows.shape}")
        if played.shape != (k,) or not abs(played.sum() - 1) < _ROUNDING or played.min() < 0:
            raise DataError(f"probabilities must be {k} numbers >= 0 that sum to 1")
        seen = played @ shows
        if not (seen > 0).all():
            raise DataError(
                "every action must be observable by an action that may be played, got none for "
                f"action {int(np.argmin(seen > 0))}"
            )
        self.estimated_losses += np.where(np.isnan(lost), 0.0, lost / seen)
