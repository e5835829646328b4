"""Rows with labels as forests take them: a matrix, and what its columns cost."""

from typing import Any, NamedTuple

import numpy as np

from bayescascade.costs.items import Costs, FeatureCosts
from bayescascade.data.cell_policy import CellPolicy
from bayescascade.data.file_frames import with_labels
from bayescascade.data.labels import TrainingRows
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.data.sources import as_frame

CELLS = CellPolicy(missing="nan", dtype=np.float32, keeps_ranges=True)
"""What forests take for a cell."""


class ReadRows(NamedTuple):
    """How columns are encoded, what they cost, and the rows."""

    encoder: MatrixEncoder
    costs: FeatureCosts
    training: TrainingRows


def read_rows(
    X: Any, y: Any, costs: Costs, owner: str, unknown: str = "error", **more: Any
) -> ReadRows:
    """Learn columns and costs, and read rows; see `TrainingRows.read` for `more` and errors."""
    X, y, more["sample_weight"] = with_labels(X, y, more.get("sample_weight"))
    if more.get("X_val") is not None and isinstance(more.get("y_val"), str):
        more["X_val"], more["y_val"], _ = with_labels(more["X_val"], more["y_val"])
    X = as_frame(X)  # once: some tables can be read only once
    encoder = MatrixEncoder.learn(X, CELLS).treating(unknown)
    found = FeatureCosts.of(costs, encoder.columns)
    return ReadRows(encoder, found, TrainingRows.read(encoder, X, y, owner=owner, **more))
