"""A gate, a local classifier and a full model, as rows go through them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.errors import ModelFileError
from bayescascade.data.cell_policy import Matrix
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.methods.adaptive.full import FullModel, full_from_record
from bayescascade.methods.adaptive.objective import Numbers, State, class_chances

Bools = NDArray[np.bool_]

_ENDS = {"none": np.inf, "all": -np.inf}
"""Cuts at which the gate does not look at a row."""


class Scaling(NamedTuple):
    """Means (p,) of columns, and one over their deviations, 0 of constant ones."""

    means: Numbers
    scales: Numbers

    @classmethod
    def of(cls, rows: Matrix, weights: Numbers) -> Self:
        """Return that of rows (n, p); NaN is left out."""
        sizes = np.where(np.isnan(rows), 0.0, weights[:, np.newaxis])
        totals = np.maximum(sizes.sum(axis=0), np.finfo(np.float64).tiny)
        cells = np.nan_to_num(rows.astype(np.float64))
        means = (sizes * cells).sum(axis=0) / totals
        deviations = np.sqrt((sizes * (cells - means) ** 2).sum(axis=0) / totals)
        varies = deviations > 1e-12 * (1 + np.abs(means))
        return cls(means, np.where(varies, 1 / np.where(varies, deviations, 1.0), 0.0))

    def scaled(self, rows: Matrix) -> Numbers:
        """Return columns of mean 0 and variance 1, and one of 1; NaN counts as the mean."""
        cells = np.nan_to_num((rows.astype(np.float64) - self.means) * self.scales)
        return np.column_stack([cells, np.ones(len(rows))])


@dataclass(frozen=True, slots=True, eq=False)
class LinearScores:
    """Linear scores of rows.

    Attributes
    ----------
    coef_ : (c, p) float64
        In the units of the matrix's columns; 0 where a column is not read.
    intercept_ : (c,) float64
    """

    coef_: Numbers
    intercept_: Numbers

    @classmethod
    def of_scaled(cls, part: Numbers, scaling: Scaling) -> Self:
        """Return those of coefficients (p + 1, c) of scaled columns, the last row intercepts."""
        coef = (part[:-1] * scaling.scales[:, np.newaxis]).T
        return cls(coef, part[-1] - coef @ scaling.means)

    @property
    def columns(self) -> NDArray[np.int64]:
        """Columns of the matrix that are read."""
        return np.flatnonzero(self.coef_.any(axis=0))

    def of(self, rows: Matrix, means: Numbers) -> Numbers:
        """Return the scores (n, c), column after column, so that one row scores as among many."""
        scores = np.repeat(self.intercept_[np.newaxis], len(rows), axis=0)
        for column in self.columns:
            cells = rows[:, column].astype(np.float64)
            cells = np.where(np.isnan(cells), means[column], cells)
            scores += cells[:, np.newaxis] * self.coef_[:, column]
        return scores

    def to_record(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return {"coef": self.coef_.tolist(), "intercept": self.intercept_.tolist()}

    @classmethod
    def from_record(cls, record: Mapping[str, Any], n_outputs: int, n_columns: int) -> Self:
        """Return what `to_record` returned; ModelFileError if it is something else."""
        coef = np.array(record["coef"], np.float64)
        intercept = np.array(record["intercept"], np.float64)
        if (
            coef.shape != (n_outputs, n_columns)
            or intercept.shape != (n_outputs,)
            or not (np.isfinite(coef).all() and np.isfinite(intercept).all())
        ):
            raise ModelFileError("a saved gate and local model must be finite, of every column")
        return cls(coef, intercept)


@dataclass(frozen=True, slots=True, eq=False)
class Gated:
    """What rows go through: sent is where the gate's score is above the cut.

    means (p,) stand for NaN; source (p,) the feature of each column; shares (n_classes,) of the
    classes, before anything is known. At an infinite cut the gate reads nothing.
    """

    gate: LinearScores
    local: LinearScores
    full: FullModel
    cut: float
    means: Numbers
    source: NDArray[np.int64]
    shares: Numbers

    @classmethod
    def of(
        cls, state: State, scaling: Scaling, full: FullModel, source: NDArray[np.int64],
        shares: Numbers,
    ) -> Self:  # fmt: skip
        """Return what coefficients of scaled columns are in their units; nothing is sent."""
        gate, local = (
            LinearScores.of_scaled(part, scaling)
            for part in (state.gate[:, np.newaxis], state.local)
        )
        return cls(gate, local, full, np.inf, scaling.means, source, shares)

    def cut_at(self, cut: float) -> "Gated":
        """Return the same with another cut."""
        return replace(self, cut=cut)

    def nothing(self) -> "Gated":
        """Return what reads nothing: the shares of the classes."""
        n_outputs, n_columns = self.local.coef_.shape
        logs = np.log(np.maximum(self.shares, np.finfo(np.float64).tiny))
        starts = np.array([logs[1] - logs[0]]) if n_outputs == 1 else logs
        none = LinearScores(np.zeros((1, n_columns)), np.zeros(1))
        local = LinearScores(np.zeros((n_outputs, n_columns)), starts)
        return replace(self, gate=none, local=local, cut=np.inf)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.source[-1]) + 1

    def _of(self, scores: LinearScores) -> Bools:
        used = np.zeros(self.n_features, np.bool_)
        used[self.source[scores.columns]] = True
        return used

    @property
    def gate_features(self) -> Bools:
        """Features that the gate reads of every row, (n_features,)."""
        used: Bools = self._of(self.gate) & np.isfinite(self.cut)
        return used

    @property
    def kept_features(self) -> Bools:
        """Features that are read of a row that is kept, (n_features,)."""
        return self.gate_features | self._of(self.local)

    @property
    def reads_nothing(self) -> bool:
        """Whether all rows get the same answer."""
        return self.cut == np.inf and not self.local.coef_.any()

    def scores(self, rows: Matrix) -> Numbers:
        """Return the gate's scores, (n,)."""
        return self.gate.of(rows, self.means)[:, 0]

    def sent(self, rows: Matrix) -> Bools:
        """Return which rows go to the full model, (n,)."""
        if np.isinf(self.cut):
            return np.full(len(rows), self.cut < 0)
        sent: Bools = self.scores(rows) > self.cut
        return sent

    def local_chances(self, rows: Matrix) -> Numbers:
        """Return what the local model says, (n, n_classes)."""
        return class_chances(self.local.of(rows, self.means))

    def probabilities(self, rows: Matrix) -> Numbers:
        """Return the probability of each class, (n, n_classes)."""
        sent, chances = self.sent(rows), np.empty((len(rows), self.shares.size))
        chances[~sent] = self.local_chances(rows[~sent])
        if sent.any():
            chances[sent] = self.full.probabilities(rows[sent])
        return chances

    def used(self, rows: Matrix) -> Bools:
        """Return which features are read, (n, n_features)."""
        sent = self.sent(rows)
        used = np.repeat(self.kept_features[np.newaxis], len(rows), axis=0)
        if sent.any():
            used[sent] = self.full.used(rows[sent]) | self.gate_features
        return used

    def to_record(self) -> dict[str, Any]:
        """Return plain JSON types."""
        ends = {value: word for word, value in _ENDS.items()}
        return {
            "gate": self.gate.to_record(),
            "local": self.local.to_record(),
            "full": self.full.to_record(),
            "cut": ends.get(self.cut, self.cut),
            "means": self.means.tolist(),
            "shares": self.shares.tolist(),
        }

    @classmethod
    def from_record(
        cls, record: Mapping[str, Any], source: NDArray[np.int64], n_classes: int
    ) -> Self:
        """Return what `to_record` returned; ModelFileError if its parts do not fit together."""
        p, c = source.size, 1 if n_classes == 2 else n_classes
        means, shares = (np.array(record[name], np.float64) for name in ("means", "shares"))
        cut = record["cut"]
        cut = _ENDS[cut] if isinstance(cut, str) else float(cut)
        is_one = means.shape == (p,) and np.isfinite(means).all() and not np.isnan(cut)
        if not is_one or shares.shape != (n_classes,) or not ((shares >= 0) & (shares <= 1)).all():
            raise ModelFileError("a saved gate must have means of columns, and shares of classes")
        return cls(
            LinearScores.from_record(record["gate"], 1, p),
            LinearScores.from_record(record["local"], c, p),
            full_from_record(record["full"], source, n_classes),
            cut, means, source, shares,
        )  # fmt: skip


class GatedWalk:
    """A row on its way, see `costs.acquisition`: to the gate, and on where that sends it."""

    def __init__(self, model: Gated, encoder: MatrixEncoder) -> None:
        self._model, self._encoder = model, encoder
        self._cells = np.zeros((1, encoder.source.size))
        self._known = np.zeros(model.n_features, np.bool_)
        self._full = model.full.walk(encoder)

    @property
    def _sent(self) -> bool | None:
        """Whether the row goes to the full model; None if that is not known yet."""
        if (self._model.gate_features & ~self._known).any():
            return None
        return bool(self._model.sent(self._cells)[0])

    @property
    def waiting(self) -> dict[int, int]:
        """The features that are asked for next."""
        sent = self._sent
        if sent:
            return dict(self._full.waiting)
        asked = self._model.gate_features if sent is None else self._model.kept_features
        return dict.fromkeys(np.flatnonzero(asked & ~self._known).tolist(), 1)

    @property
    def probabilities(self) -> Numbers:
        """What is said by what is known: shares of the classes until a model has what it needs."""
        sent = self._sent
        if sent:
            return self._model.shares if self._full.waiting else self._full.probabilities
        if sent is None or self.waiting:
            return self._model.shares
        chances: Numbers = self._model.local_chances(self._cells)[0]
        return chances

    def learn(self, column: int, value: object) -> None:
        """Take the value of a feature."""
        self._cells[0, self._encoder.source == column] = self._encoder.read_cell(column, value)
        self._known[column] = True
        self._full.learn(column, value)
