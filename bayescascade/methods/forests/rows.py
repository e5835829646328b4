"""Rows with labels as forests take them: a matrix, and what its columns cost."""

from typing import Any, NamedTuple

import numpy as np

from bayescascade.costs.feature_costs import Costs, FeatureCosts
from bayescascade.data.cell_policy import CellPolicy
from bayescascade.data.given import GivenRows
from bayescascade.data.labels import TrainingRows
from bayescascade.data.matrix import MatrixEncoder

CELLS = CellPolicy(missing="nan", dtype=np.float32, keeps_ranges=True)
"""What forests take for a cell."""


class ReadRows(NamedTuple):
    """How columns are encoded, what they cost, and the rows."""

    encoder: MatrixEncoder
    costs: FeatureCosts
    training: TrainingRows


def read_rows(
    X: Any,
    y: Any,
    costs: Costs,
    owner: str,
    unknown: str = "error",
    *,
    sample_weight: Any = None,
    X_val: Any = None,
    y_val: Any = None,
) -> ReadRows:
    """Learn columns and costs, and read rows; for errors see `TrainingRows.read`."""
    given = GivenRows.labeled(X, y, sample_weight)
    validation = GivenRows.validating(X_val, y_val)
    encoder = MatrixEncoder.learn(given, CELLS).treating(unknown)
    found = FeatureCosts.of(costs, encoder.columns)
    return ReadRows(encoder, found, TrainingRows.read(encoder, given, validation, owner=owner))
