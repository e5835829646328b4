"""A gate, a local classifier and a full model, and the ways of rows through them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np

from bayescascade.base.arrays import Flags, Floats, Integers
from bayescascade.base.errors import ModelFileError
from bayescascade.base.saved_arrays import read_array
from bayescascade.base.store import restored
from bayescascade.data.cell_policy import Matrix
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.methods.budget.gated.full import (
    ClassShares,
    FullModel,
    features_of,
    full_from_record,
)
from bayescascade.methods.budget.gated.growing import BoostedScores
from bayescascade.methods.budget.gated.linear import LinearScores
from bayescascade.methods.budget.gated.objective import class_chances

_ENDS = {"none": np.inf, "all": -np.inf}
"""Cuts at which the gate reads nothing."""


Scores: TypeAlias = LinearScores | BoostedScores
"""A gate or a local model: scores of rows, which read some columns."""


@dataclass(frozen=True, slots=True, eq=False)
class Gated:
    """A gate with its models; rows with a gate score above the cut are sent.

    means (p,) stand for NaN; source (p,) the feature of each column; shares (n_classes,) of the
    classes, before anything is known. At an infinite cut the gate reads nothing.
    """

    gate: Scores
    local: Scores
    full: FullModel
    cut: float
    means: Floats
    source: Integers
    shares: Floats

    @classmethod
    def of(cls, full: FullModel, means: Floats, source: Integers, shares: Floats) -> Self:
        """Return one that reads nothing, and sends no row to the full model."""
        logs = np.log(np.maximum(shares, np.finfo(np.float64).tiny))
        starts = np.array([logs[1] - logs[0]]) if len(logs) == 2 else logs
        none, local = (LinearScores.constant(at, source.size) for at in (np.zeros(1), starts))
        return cls(none, local, full, np.inf, means, source, shares)

    def nothing(self) -> "Gated":
        """Return one that reads nothing, and predicts the shares of the classes."""
        return Gated.of(self.full, self.means, self.source, self.shares)

    def gate_used(self, rows: Matrix) -> Flags:
        """Return which features the gate reads, (n, n_features)."""
        if np.isinf(self.cut):
            return np.zeros((len(rows), int(self.source[-1]) + 1), np.bool_)
        return features_of(self.gate.read(rows), self.source)

    def kept_used(self, rows: Matrix) -> Flags:
        """Return the features read for rows that are kept, (n, n_features)."""
        return self.gate_used(rows) | features_of(self.local.read(rows), self.source)

    @property
    def reads_nothing(self) -> bool:
        """Whether all rows get the same answer."""
        return self.cut == np.inf and self.local.is_constant

    def scores(self, rows: Matrix) -> Floats:
        """Return the gate's scores, (n,)."""
        return self.gate.of(rows, self.means)[:, 0]

    def sent(self, rows: Matrix) -> Flags:
        """Return which rows go to the full model, (n,)."""
        if np.isinf(self.cut):
            return np.full(len(rows), self.cut < 0)
        return self.scores(rows) > self.cut

    def local_chances(self, rows: Matrix) -> Floats:
        """Return the probabilities of the local model, (n, n_classes)."""
        return class_chances(self.local.of(rows, self.means))

    def probabilities(self, rows: Matrix) -> Floats:
        """Return the probability of each class, (n, n_classes)."""
        sent, chances = self.sent(rows), np.empty((len(rows), self.shares.size))
        chances[~sent] = self.local_chances(rows[~sent])
        if sent.any():
            chances[sent] = self.full.probabilities(rows[sent])
        return chances

    def used(self, rows: Matrix) -> Flags:
        """Return which features are read, (n, n_features)."""
        sent = self.sent(rows)
        used = self.kept_used(rows)
        if sent.any():
            used[sent] = self.full.used(rows[sent]) | self.gate_used(rows[sent])
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
    def from_record(cls, record: Mapping[str, Any], source: Integers, n_classes: int) -> Self:
        """Rebuild one from `to_record`; ModelFileError if its parts do not fit together."""
        p, c = source.size, 1 if n_classes == 2 else n_classes
        means = read_array(record, "means", (p,))
        shares = read_array(record, "shares", (n_classes,), least=0, most=1)
        cut = record["cut"]
        cut = _ENDS[cut] if isinstance(cut, str) else float(cut)
        if np.isnan(cut):
            raise ModelFileError("a saved gate's cut must be a number")
        full: FullModel = ClassShares(shares, int(source[-1]) + 1)
        if "nobody" not in record["full"]:
            full = full_from_record(record["full"], source, n_classes)
        return cls(
            _scores_from_record(record["gate"], 1, p),
            _scores_from_record(record["local"], c, p),
            full,
            cut, means, source, shares,
        )  # fmt: skip


def _scores_from_record(record: Mapping[str, Any], n_outputs: int, n_columns: int) -> Scores:
    """Rebuild scores from `to_record`; ModelFileError if the record is malformed."""
    if "trees" in record:
        return BoostedScores.from_record(record, n_outputs, n_columns)
    scores: LinearScores = restored(
        LinearScores, record, {"scores": n_outputs, "columns": n_columns}
    )
    return scores


class GatedWalk:
    """A row on its way through the gate to one of the models; see `costs.acquisition`."""

    def __init__(self, model: Gated, encoder: MatrixEncoder) -> None:
        self._model = model
        self._gate = model.gate.walk(model.means, encoder)
        self._local = model.local.walk(model.means, encoder)
        self._full = model.full.walk(encoder)

    @property
    def _sent(self) -> bool | None:
        """Whether the row goes to the full model; None if that is not known yet."""
        if np.isinf(self._model.cut):
            return bool(self._model.cut < 0)
        return None if self._gate.waiting else bool(self._gate.scores[0] > self._model.cut)

    @property
    def waiting(self) -> dict[int, int]:
        """The features to acquire next."""
        sent = self._sent
        walk = self._gate if sent is None else self._full if sent else self._local
        return dict(walk.waiting)

    @property
    def probabilities(self) -> Floats:
        """The probabilities so far: shares of the classes until a model has all its features."""
        sent = self._sent
        if sent is None or self.waiting:
            return self._model.shares
        if sent:
            return self._full.probabilities
        chances: Floats = class_chances(self._local.scores[np.newaxis])[0]
        return chances

    def learn(self, column: int, value: object) -> None:
        """Set the value of a feature."""
        for each in (self._gate, self._local, self._full):
            each.learn(column, value)
