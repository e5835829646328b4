"""The rows of a saved file, which nearest neighbors need; reading trusts nothing."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.errors import ModelFileError
from bayescascade.base.saved_arrays import read_array
from bayescascade.costs.items import CostItems
from bayescascade.methods.margin_neighbors.margins import Additive, Standardized
from bayescascade.methods.margin_neighbors.rule import Neighborhoods

_OWN = ("rows", "weights", "parts")


def rows_record(around: Neighborhoods) -> dict[str, Any]:
    """Return plain JSON types."""
    told = {name: getattr(around, name).tolist() for name in (*_OWN, "labels")}
    standard = {name: each.tolist() for name, each in around.standard._asdict().items()}
    return {**told, **standard, "classifier": around.full.to_record()}


def rows_from_record(
    record: Mapping[str, Any],
    source: NDArray[np.int64],
    n_classes: int,
    items: CostItems,
    is_rest_near: bool,
    has_ties: bool,
) -> Neighborhoods:
    """Return what `rows_record` returned; ModelFileError if its parts do not fit together."""
    labels = read_array(record, "labels", (None,), np.int64)
    n, p, d, c = len(labels), source.size, items.n_columns, 1 if n_classes == 2 else n_classes
    shapes = {
        "rows": (n, p), "weights": (n,), "center": (p,), "scale": (p,), "parts": (n, d, c)
    }  # fmt: skip
    numbers = {name: read_array(record, name, shape) for name, shape in shapes.items()}
    if (
        not (numbers["weights"] > 0).all()
        or not (numbers["scale"] > 0).all()
        or not np.array_equal(np.unique(labels), np.arange(n_classes))
    ):
        raise ModelFileError("a saved model's rows must be of every class, and weigh some")
    return Neighborhoods(
        standard=Standardized(numbers.pop("center"), numbers.pop("scale")),
        labels=labels,
        source=source,
        full=Additive.from_record(record["classifier"], p, c),
        n_classes=n_classes,
        items=items,
        is_rest_near=is_rest_near,
        has_ties=has_ties,
        **numbers,
    )
