"""Saved cascades: JSON with everything a model needs to be printed, scored and drawn from.

The file holds no rows. Reading it runs nothing and trusts nothing: the schema, every tree and every
count are checked for consistency, and the log posterior is computed anew from the counts.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayescascade.cascades.density import DensityTree
from bayescascade.cascades.tree import Tree
from bayescascade.errors import BayesCascadeError, ModelFileError
from bayescascade.files import write_json
from bayescascade.schema import Schema
from bayescascade.summary import FitSummary
from bayescascade.validation import check_integer

if TYPE_CHECKING:
    from bayescascade.cascades.base import Cascade

__all__ = ["NOT_SAVED", "cascade_from_record", "save_cascade", "saved_parameters"]

NOT_SAVED = ("checkpoint", "resume", "progress", "n_jobs", "random_state")
"""Parameters of running a fit, not of the model."""

_TOLERANCE = 1e-6  # between the stored log posterior, or total weight, and what the counts give
_MAX_TIMES = 1 << 53


def save_cascade(model: "Cascade", path: str | Path) -> None:
    """Write a fitted cascade; see `Cascade.save`."""
    from bayescascade.models import FORMAT, VERSION

    parameters = model.get_params()
    for name in NOT_SAVED:
        parameters.pop(name)
    record = {
        "format": FORMAT,
        "version": VERSION,
        "model": model.model_name,
        "parameters": parameters,
        "schema": model.schema_.to_dict(),
        "log_posterior": model.log_posterior_,
        "tree": _tree_record(model._structure, model._counts),
        "summary": model.summary_.to_dict(),
        "draws": [
            {**_tree_record(tree, counts), "times": times} for tree, counts, times in model._draws
        ],
    }
    write_json(path, record)


def cascade_from_record(model: "Cascade", record: Mapping[str, Any]) -> "Cascade":
    """Return `model`, made with the record's parameters, fitted as the record says.

    Raises
    ------
    ModelFileError
        If anything in the record is missing, of a wrong type, or contradicts the rest.
    """
    try:
        return _restored(model, record)
    except ModelFileError:
        raise
    except KeyError as error:
        raise ModelFileError(f"a saved model must have the field {error}") from None
    except (
        BayesCascadeError,
        TypeError,
        ValueError,
        AttributeError,
        ArithmeticError,
        LookupError,
        RecursionError,
    ) as error:
        raise ModelFileError(f"a saved model's fields must fit together: {error}") from None


def _restored(model: "Cascade", record: Mapping[str, Any]) -> "Cascade":
    model.check_parameters()
    if model.max_branches is not None:
        check_integer("max_branches", model.max_branches, minimum=2)
    schema = Schema.from_dict(record["schema"])
    tree, counts = _read_tree(record["tree"], schema)
    draws = [_read_draw(draw, schema, counts[0]) for draw in record["draws"]]
    log_posterior = float(record["log_posterior"])
    summary = FitSummary.from_dict(record["summary"])
    density = DensityTree(schema, tree, counts, np.ones(tree.n_nodes), {})
    with np.errstate(over="ignore", invalid="ignore"):  # of absurd counts: NaN, which is unequal
        computed = model._model().log_prior(tree, schema.n_columns)
        computed += model._model().log_likelihood(tree, counts, density.log_volumes)
    if not abs(computed - log_posterior) <= _TOLERANCE * (1 + abs(computed)):
        raise ModelFileError(
            f"a saved model's log posterior must follow from its counts, {computed!r}, "
            f"got {log_posterior!r}"
        )
    model._restore(schema, tree, counts, draws, log_posterior, summary)
    return model


def saved_parameters(cls: "type[Cascade]", record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record's parameters, checked to be those of the class.

    Raises
    ------
    ModelFileError
        If one is missing or unknown.
    """
    parameters = record.get("parameters")
    expected = set(cls._get_param_names()) - set(NOT_SAVED)
    if not isinstance(parameters, dict) or set(parameters) != expected:
        raise ModelFileError(f"a saved model's parameters must be {', '.join(sorted(expected))}")
    return parameters


def _tree_record(tree: Tree, counts: NDArray[np.float64]) -> dict[str, Any]:
    """Return a tree and the weights of its leaves, from which those above follow."""
    return {**tree.to_flat(), "leaf_counts": counts[tree.leaves].tolist()}


def _read_draw(
    record: Mapping[str, Any], schema: Schema, total: float
) -> tuple[Tree, NDArray[np.float64], int]:
    times = record["times"]
    if type(times) is not int or not 1 <= times <= _MAX_TIMES:
        raise ModelFileError(f"a draw's times must be an integer >= 1, got {times!r}")
    tree, counts = _read_tree(record, schema)
    if not abs(counts[0] - total) <= _TOLERANCE * total:
        raise ModelFileError(f"a draw's counts must sum up to {total!r}, got {counts[0]!r}")
    return tree, counts, times


def _read_tree(record: Mapping[str, Any], schema: Schema) -> tuple[Tree, NDArray[np.float64]]:
    tree = Tree.from_flat(record)
    is_nominal = [column.kind == "nominal" for column in schema.columns]
    problem = next(tree.problems(is_nominal, schema.n_levels.tolist()), None)
    if problem is not None:
        raise ModelFileError(f"a saved tree must be a valid one: {problem}")
    leaf_counts = np.array(record["leaf_counts"], np.float64)
    leaves = tree.leaves
    if leaf_counts.shape != leaves.shape:
        raise ModelFileError(
            f"a saved tree with {leaves.size} leaves must have as many counts, "
            f"got {leaf_counts.size}"
        )
    is_count = np.isfinite(leaf_counts) & (leaf_counts >= 0)
    if not is_count.all() or not 0 < math.fsum(leaf_counts) < math.inf:
        raise ModelFileError("a saved tree's counts must be finite, >= 0 and not all 0")
    counts = np.zeros(tree.n_nodes)
    counts[leaves] = leaf_counts
    for node in range(tree.n_nodes - 1, 0, -1):
        counts[tree.parent[node]] += counts[node]
    return tree, counts
