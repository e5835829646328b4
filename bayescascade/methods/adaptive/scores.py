"""What a gate and a local model are: scores of rows, which read some columns of each."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bayescascade.data.cell_policy import Matrix
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.methods.adaptive.boosted_scores import BoostedScores
from bayescascade.methods.adaptive.linear_scores import LinearScores
from bayescascade.methods.adaptive.objective import Numbers


class ScoresWalk(Protocol):
    """A row on its way to its scores."""

    @property
    def waiting(self) -> Mapping[int, int]:
        """The features that are asked for next, with how many of its parts ask."""

    @property
    def scores(self) -> Numbers:
        """What they come to, once nothing is waited for, (c,)."""

    def learn(self, column: int, value: object) -> None:
        """Take the value of a feature."""


class Scores(Protocol):
    """Scores of rows (n, p) of a matrix."""

    @property
    def is_constant(self) -> bool:
        """Whether they read nothing."""

    def of(self, rows: Matrix, means: Numbers) -> Numbers:
        """Return the scores (n, c); means (p,) may stand for NaN."""

    def read(self, rows: Matrix) -> NDArray[np.bool_]:
        """Return which columns are read of each row, (n, p)."""

    def walk(self, means: Numbers, encoder: MatrixEncoder) -> ScoresWalk:
        """Return a row of which nothing is known."""

    def to_record(self) -> dict[str, Any]:
        """Return plain JSON types."""


def scores_from_record(record: Mapping[str, Any], n_outputs: int, n_columns: int) -> Scores:
    """Return what `to_record` returned; ModelFileError if it is something else."""
    if "trees" in record:
        return BoostedScores.from_record(record, n_outputs, n_columns)
    return LinearScores.from_record(record, n_outputs, n_columns)
