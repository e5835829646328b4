"""Adapt-Lin: gate and local model are linear, of columns of mean 0 and variance 1."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bayescascade.costs.items import CostItems
from bayescascade.costs.norms import CostNorms
from bayescascade.methods.adaptive.alternating import GroupNorm, alternated
from bayescascade.methods.adaptive.linear_scores import LinearScores, Scaling
from bayescascade.methods.adaptive.objective import Numbers, Problem
from bayescascade.methods.adaptive.posterior import AdaptivePosterior
from bayescascade.methods.adaptive.selecting import SHARES, Choosing, Fit

_TRADEOFFS = tuple(np.geomspace(0.3, 1e-4, 10).tolist())  # of a feature of mean cost, nats a row


@dataclass(frozen=True, slots=True, eq=False)
class LinearLearner:
    """What tries linear gates and local models.

    problem: of all rows, scaled; items: what the matrix's columns cost; `selection`, `start`,
    `tradeoff` and full_share as parameters of the estimator.
    """

    problem: Problem
    scaling: Scaling
    items: CostItems
    selection: str
    start: str
    tradeoff: float | None
    full_share: float | None

    def tried(self, learns: NDArray[np.bool_]) -> Iterator[Fit]:
        """Yield fits to some of the rows, (n,) bool."""
        problem = self.problem.part(learns)
        shares = SHARES if self.full_share is None else (float(self.full_share),)
        choosing = Choosing(self.items, self.start)
        if self.selection == "search":
            yield from choosing.searched(problem, shares)
            return
        mean = float(self.items.costs.mean()) if self.items.n_items else 1.0
        tradeoffs: Sequence[float] = [one / mean for one in _TRADEOFFS]
        if self.tradeoff is not None:
            tradeoffs = [float(self.tradeoff)]
        yield from choosing.grouped(problem, shares, tradeoffs)

    def candidates(self, fits: Sequence[Fit]) -> list[Fit]:
        """Return the fits that other rows judge.

        With a tradeoff, sets are searched for that of least J + tradeoff times cost, of each limit.
        """
        if self.tradeoff is None or self.selection != "search":
            return list(fits)
        price, shares = self.tradeoff, dict.fromkeys(fit.full_share for fit in fits)
        return [
            min(
                (fit for fit in fits if fit.full_share == share),
                key=lambda fit: fit.objective + price * fit.cost,
            )
            for share in shares
        ]

    def refitted(self, fit: Fit) -> Fit:
        """Return a fit of all rows, from where it was."""
        penalty = None
        if self.selection == "group_lasso":
            places = np.arange(self.items.n_columns)
            penalty = GroupNorm(CostNorms.of(self.items, places, n_free=1), fit.tradeoff)
        limited = replace(self.problem, full_share=fit.full_share)
        state, value = alternated(limited, fit.state, fit.columns, penalty)
        return replace(fit, state=state, objective=value)

    def scores(self, fit: Fit) -> tuple[LinearScores, LinearScores]:
        """Return gate and local model of a fit, in the columns' units."""
        gate, local = fit.state
        return (
            LinearScores.of_scaled(gate[:, np.newaxis], self.scaling),
            LinearScores.of_scaled(local, self.scaling),
        )

    def posterior(self, fit: Fit | None, temperature: float) -> AdaptivePosterior:
        """Return the posterior over gates and local models of a fit's set, or of no columns."""
        one, share = self.problem, 1.0 if fit is None else fit.full_share
        return AdaptivePosterior(
            one.rows[:, self._columns(fit)][:, :-1], one.labels, one.full_losses, one.n_classes,
            full_share=share, weights=one.weights, ridge=one.ridge, temperature=temperature,
            distance=one.distance,
        )  # fmt: skip

    def state(self, fit: Fit | None, posterior: AdaptivePosterior) -> Numbers:
        """Return a fit as a state of its posterior."""
        columns = self._columns(fit)
        if fit is None:
            return np.zeros(1 + self.problem.n_outputs)
        return posterior.joined(fit.state.gate[columns], fit.state.local[columns])

    def _columns(self, fit: Fit | None) -> NDArray[np.bool_]:
        """Return the columns that have coefficients, the last is of the intercepts."""
        if fit is not None:
            return fit.columns
        columns = np.zeros(self.problem.rows.shape[1], np.bool_)
        columns[-1] = True
        return columns
