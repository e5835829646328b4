"""Adapt-Lin: scores of gate and local model are linear in columns of mean 0 and variance 1."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple, Self

import numpy as np

from bayescascade.base.arrays import Flags, Floats, Integers
from bayescascade.base.store import Of, Saved, stored
from bayescascade.costs.acquisition import WholeWalk
from bayescascade.costs.items import CostItems, CostNorms
from bayescascade.data.cell_policy import Matrix
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.methods.budget.gated.alternating import GroupNorm, alternated
from bayescascade.methods.budget.gated.objective import GateProblem
from bayescascade.methods.budget.gated.posterior import AdaptivePosterior
from bayescascade.methods.budget.gated.selecting import SHARES, Choosing, Fit

_TRADEOFFS = tuple(np.geomspace(0.3, 1e-4, 10).tolist())  # for a feature of mean cost, nats per row


class ColumnScaling(NamedTuple):
    """Means (p,) of columns, and inverses of their deviations, 0 for constant columns."""

    means: Floats
    scales: Floats

    @classmethod
    def of(cls, rows: Matrix, weights: Floats) -> Self:
        """Return the scaling of rows (n, p), without NaN."""
        sizes = np.where(np.isnan(rows), 0.0, weights[:, np.newaxis])
        totals = np.maximum(sizes.sum(axis=0), np.finfo(np.float64).tiny)
        cells = np.nan_to_num(rows.astype(np.float64))
        means = (sizes * cells).sum(axis=0) / totals
        deviations = np.sqrt((sizes * (cells - means) ** 2).sum(axis=0) / totals)
        varies = deviations > 1e-12 * (1 + np.abs(means))
        return cls(means, np.where(varies, 1 / np.where(varies, deviations, 1.0), 0.0))

    def scaled(self, rows: Matrix) -> Floats:
        """Return columns of mean 0 and variance 1, and a column of ones; NaN counts as the mean."""
        cells = np.nan_to_num((rows.astype(np.float64) - self.means) * self.scales)
        return np.column_stack([cells, np.ones(len(rows))])


@dataclass(frozen=True, slots=True, eq=False)
class LinearScores:
    """Linear scores of rows.

    Attributes
    ----------
    coef_ : (c, p) float64
        Coefficients in the units of the columns of the matrix; 0 if a column is not read.
    intercept_ : (c,) float64
    """

    coef_: Annotated[Floats, Of("scores", "columns"), Saved("coef")]
    intercept_: Annotated[Floats, Of("scores"), Saved("intercept")]

    to_record = stored

    @classmethod
    def of_scaled(cls, part: Floats, scaling: ColumnScaling) -> Self:
        """Return scores from coefficients (p + 1, c) of scaled columns, intercepts last."""
        coef = (part[:-1] * scaling.scales[:, np.newaxis]).T
        return cls(coef, part[-1] - coef @ scaling.means)

    @classmethod
    def constant(cls, starts: Floats, n_columns: int) -> Self:
        """Return constant scores (c,)."""
        return cls(np.zeros((len(starts), n_columns)), starts)

    @property
    def columns(self) -> Integers:
        """Columns of the matrix that are read."""
        return np.flatnonzero(self.coef_.any(axis=0))

    def of(self, rows: Matrix, means: Floats) -> Floats:
        """Return the scores (n, c), summed by column, so scores do not depend on other rows."""
        scores = np.repeat(self.intercept_[np.newaxis], len(rows), axis=0)
        for column in self.columns:
            cells = rows[:, column].astype(np.float64)
            cells = np.where(np.isnan(cells), means[column], cells)
            scores += cells[:, np.newaxis] * self.coef_[:, column]
        return scores

    @property
    def is_constant(self) -> bool:
        """Whether no column is read."""
        return not self.coef_.any()

    def read(self, rows: Matrix) -> Flags:
        """Return the columns read for each row, (n, p)."""
        read = np.zeros((len(rows), self.coef_.shape[1]), np.bool_)
        read[:, self.columns] = True
        return read

    def walk(self, means: Floats, encoder: MatrixEncoder) -> "LinearWalk":
        """Return a row without known columns."""
        return LinearWalk(self, means, encoder)


class LinearWalk(WholeWalk):
    """A row on its way to linear scores, which need all features with coefficients."""

    def __init__(self, scores: LinearScores, means: Floats, encoder: MatrixEncoder) -> None:
        super().__init__(encoder.source[scores.columns].tolist(), encoder)
        self._scores, self._means = scores, means

    @property
    def scores(self) -> Floats:
        """The scores (c,), once no feature is missing."""
        found: Floats = self._scores.of(self.cells, self._means)[0]
        return found


@dataclass(frozen=True, slots=True, eq=False)
class LinearLearner:
    """Fits linear gates and local models.

    problem: with all rows, scaled; items: costs of the matrix's columns; `selection`, `start`,
    `tradeoff` and full_share: as in the estimator.
    """

    problem: GateProblem
    scaling: ColumnScaling
    items: CostItems
    selection: str
    start: str
    tradeoff: float | None
    full_share: float | None

    def tried(self, learns: Flags) -> Iterator[Fit]:
        """Yield fits to some of the rows, (n,) bool."""
        problem = self.problem.part(learns)
        shares = SHARES if self.full_share is None else (float(self.full_share),)
        choosing = Choosing(self.items, self.start)
        if self.selection == "search":
            yield from choosing.searched(problem, shares)
            return
        mean = float(self.items.costs.mean()) if self.items.n_items else 1.0
        tradeoffs: Sequence[float] = [tradeoff / mean for tradeoff in _TRADEOFFS]
        if self.tradeoff is not None:
            tradeoffs = [float(self.tradeoff)]
        yield from choosing.grouped(problem, shares, tradeoffs)

    def candidates(self, fits: Sequence[Fit]) -> list[Fit]:
        """Return the fits to be judged on other rows.

        With a tradeoff and a search of sets, these are the fits of least J + tradeoff times cost,
        one for each limit.
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
        """Return the fit continued on all rows."""
        penalty = None
        if self.selection == "group_lasso":
            places = np.arange(self.items.n_columns)
            penalty = GroupNorm(CostNorms.of(self.items, places, n_free=1), fit.tradeoff)
        limited = replace(self.problem, full_share=fit.full_share)
        state, value = alternated(limited, fit.state, fit.columns, penalty)
        return replace(fit, state=state, objective=value)

    def scores(self, fit: Fit) -> tuple[LinearScores, LinearScores]:
        """Return gate and local model of a fit, in the units of the columns."""
        gate, local = fit.state
        return (
            LinearScores.of_scaled(gate[:, np.newaxis], self.scaling),
            LinearScores.of_scaled(local, self.scaling),
        )

    def posterior(self, fit: Fit | None, temperature: float) -> AdaptivePosterior:
        """Return the posterior over gates and local models with a fit's columns, or with none."""
        problem, share = self.problem, 1.0 if fit is None else fit.full_share
        return AdaptivePosterior(
            problem.rows[:, self._columns(fit)][:, :-1], problem.labels, problem.full_losses,
            problem.n_classes,
            full_share=share, weights=problem.weights, ridge=problem.ridge, temperature=temperature,
            distance=problem.distance,
        )  # fmt: skip

    def state(self, fit: Fit | None, posterior: AdaptivePosterior) -> Floats:
        """Return a fit as a state of its posterior."""
        columns = self._columns(fit)
        if fit is None:
            return np.zeros(1 + self.problem.n_outputs)
        return posterior.joined(fit.state.gate[columns], fit.state.local[columns])

    def _columns(self, fit: Fit | None) -> Flags:
        """Return the columns with coefficients; the last one is for the intercepts."""
        if fit is not None:
            return fit.columns
        columns = np.zeros(self.problem.rows.shape[1], np.bool_)
        columns[-1] = True
        return columns
