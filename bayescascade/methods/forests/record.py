"""Saved budgeted classifiers: JSON with the forest, what features cost, and how cells are read.

The file holds no rows, and of the forest that was pruned only what is left. Reading it runs nothing
and trusts nothing: every array is checked for its range and shape, and the cost measured must
follow from the shares of the rows that pay.
"""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.errors import ModelFileError
from bayescascade.base.files import write_json
from bayescascade.costs.items import FeatureCosts
from bayescascade.data.labels import classes_record, read_classes
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.methods.forests.base import CELLS
from bayescascade.methods.forests.forest import Forest
from bayescascade.methods.forests.impurities import PolynomialImpurity
from bayescascade.model.record import FORMAT, NOT_SAVED, VERSION, contradictions_refused

if TYPE_CHECKING:
    from bayescascade.methods.forests.base import BudgetedClassifier

__all__ = ["model_from_record", "model_record", "save_model"]

_NOT_SAVED = (*NOT_SAVED, "costs", "forest")  # costs are a field of their own

_TOLERANCE = 1e-9  # between the stored cost and what the shares give

B = TypeVar("B", bound="BudgetedClassifier")


def save_model(model: "BudgetedClassifier", path: str | Path) -> None:
    """Write a fitted model; see `BudgetedClassifier.save`."""
    write_json(path, model_record(model))


def model_record(model: "BudgetedClassifier") -> dict[str, Any]:
    """Return a fitted model as plain JSON types, at full precision."""
    parameters = model.get_params(deep=False)
    return {
        "format": FORMAT,
        "version": VERSION,
        "model": model.model_name,
        "parameters": {
            name: asdict(value) if isinstance(value, PolynomialImpurity) else value
            for name, value in parameters.items()
            if name not in _NOT_SAVED
        },
        "encoding": model._encoder.to_dict(),
        "costs": model.costs_.to_dict(),
        "classes": classes_record(model.classes_),
        "validation_cost": model.validation_cost_,
        "feature_shares": model.feature_shares_.tolist(),
        "item_shares": model.item_shares_.tolist(),
        **model._own_record(),
        "forest": model.forest_.to_dict(),
    }


def model_from_record(cls: type[B], record: Mapping[str, Any]) -> B:
    """Return the fitted model that a record describes.

    Raises
    ------
    ModelFileError
        If anything in the record is missing, of a wrong type, or contradicts the rest.
    """
    with contradictions_refused():
        costs = FeatureCosts.from_dict(record["costs"])
        model = cls(**_parameters(cls, record), costs=costs)
        encoder = MatrixEncoder.from_dict(record["encoding"], CELLS)
        items = costs.resolve(encoder.columns)
        model._set_columns(encoder, costs, items)
        model.classes_ = read_classes(record["classes"])
        model.feature_shares_ = _shares(record, "feature_shares", len(encoder.columns))
        model.item_shares_ = _shares(record, "item_shares", items.n_items)
        model.validation_cost_ = _cost(record, float(model.item_shares_ @ items.costs))
        model._read_own(record)
        model.forest_ = Forest.from_dict(record["forest"], len(encoder.source), len(model.classes_))
        return model


def _parameters(cls: "type[BudgetedClassifier]", record: Mapping[str, Any]) -> dict[str, Any]:
    parameters = record["parameters"]
    expected = set(cls._get_param_names()) - set(_NOT_SAVED)
    if not isinstance(parameters, dict) or set(parameters) != expected:
        raise ModelFileError(f"a saved model's parameters must be {', '.join(sorted(expected))}")
    return cls._read_parameters(parameters)


def _shares(record: Mapping[str, Any], name: str, count: int) -> NDArray[np.float64]:
    shares = record[name]
    if (
        not isinstance(shares, list)
        or len(shares) != count
        or not all(type(share) in (int, float) and 0 <= share <= 1 for share in shares)
    ):
        raise ModelFileError(f"a saved model's {name} must be {count} numbers from 0 to 1")
    return np.array(shares, np.float64)


def _cost(record: Mapping[str, Any], expected: float) -> float:
    cost = record["validation_cost"]
    if type(cost) not in (int, float) or not abs(cost - expected) <= _TOLERANCE * (1 + expected):
        raise ModelFileError(
            f"a saved model's validation cost must follow from its shares, {expected!r}, "
            f"got {cost!r}"
        )
    return float(cost)
