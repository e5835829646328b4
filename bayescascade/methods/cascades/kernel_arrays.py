"""A table and a model of cascades as the arrays that kernels read."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from bayescascade.data.schema import Schema
from bayescascade.methods.cascades.kernels import layout
from bayescascade.methods.cascades.models import CascadeModel
from bayescascade.methods.cascades.parameters import LEAVES
from bayescascade.methods.cascades.split_space import SplitSpace
from bayescascade.methods.cascades.tree import level_starts
from bayescascade.model.compiled import whole_weights

if TYPE_CHECKING:
    from bayescascade.data.table import Table


def arrays_of_table(table: "Table") -> layout.TableArrays:
    """Return distinct rows, their weights, and the columns' levels."""
    schema = table.schema
    return layout.TableArrays(
        codes=table.codes,
        row_codes=table.codes.T.copy(order="C"),
        weights=table.weights,
        nominal=_nominal_columns(schema),
        n_levels=np.asarray(schema.n_levels, np.int64),
        offsets=level_starts(schema),
        widths=np.concatenate([column.widths for column in schema.columns]),
    )


def arrays_of_model(
    model: CascadeModel,
    splits: SplitSpace,
    table: "Table",
    branch_log_weights: NDArray[np.float64],
    *,
    by_levels: bool,
    max_branches: int,
    log_n_trees: NDArray[np.float64] | None,
) -> layout.ModelArrays:
    """Return a model's numbers, and tables of functions of them; weights of branches from 0 on."""
    nominal_levels = table.schema.n_levels[_nominal_columns(table.schema)]
    largest = max(2, int(nominal_levels.max(initial=2)))
    max_leaves, leaf_alpha = model.max_leaves, model.leaf_concentration
    independent, dependent = (model.leaf == leaf for leaf in LEAVES[1:])
    whole = whole_weights(table.weights)
    norms = np.full(branch_log_weights.shape, -np.inf)
    norms[2:] = np.logaddexp.accumulate(branch_log_weights[2:])
    return layout.ModelArrays(
        kind=model.kind,
        rate=model.rate,
        alpha=float(model.concentration),
        max_leaves=np.iinfo(np.int64).max if max_leaves is None else max_leaves,
        by_levels=by_levels,
        max_branches=max_branches,
        max_proposed=branch_log_weights.size - 1,
        branch_log_weights=branch_log_weights,
        branch_log_norms=norms,
        inclusion=model.log_inclusion(table.schema.n_columns),
        log_stirling=log_stirling_numbers(largest),
        log_gamma=gammaln(whole + model.concentration),
        log_integers=np.log(np.maximum(np.arange(largest + 1), 1)),
        independent=independent,
        leaf_alpha=float(leaf_alpha),
        leaf_log_gamma=gammaln(whole[: None if independent else 0] + leaf_alpha),
        dependent=dependent,
        is_generative=model.is_generative,
        log_stop=float(np.log(model.stop)),
        log_go=float(np.log1p(-model.stop)),
        log_ways=splits.log_ways if model.is_generative else np.zeros((1, 1)),
        n_kept=splits.n_kept,
        log_n_trees=np.zeros(1) if log_n_trees is None else log_n_trees,
    )


def log_stirling_numbers(largest: int) -> NDArray[np.float64]:
    """Return the (largest + 1, largest + 1) log Stirling numbers of the second kind, -inf for 0."""
    table = np.full((largest + 1, largest + 1), -np.inf)
    table[0, 0] = 0.0
    for m in range(1, largest + 1):
        k = np.arange(1, m + 1)
        table[m, 1 : m + 1] = np.logaddexp(table[m - 1, k] + np.log(k), table[m - 1, k - 1])
    return table


def _nominal_columns(schema: Schema) -> NDArray[np.bool_]:
    return np.array([column.kind == "nominal" for column in schema.columns], np.bool_)
