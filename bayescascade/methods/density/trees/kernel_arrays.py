"""Arrays of a table and a cascade model for kernels, and a store of work spaces.

To lay out a tree of thousands of nodes would take longer than the few steps of a block. So the work
spaces of blocks, each with its tree, are kept for the next block. A kept work space is equal to a
new layout to the last bit, because weights are integers and their sums are exact; see
`kernels.trees.refresh`.
"""

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import gammaln

from bayescascade.base.arrays import Flags, Floats
from bayescascade.data.schema import Schema
from bayescascade.methods.density.trees.kernels import layout
from bayescascade.methods.density.trees.kernels.layout import CascadeWorkspace
from bayescascade.methods.density.trees.models import CascadeModel
from bayescascade.methods.density.trees.parameters import LEAVES
from bayescascade.methods.density.trees.split_space import SplitSpace
from bayescascade.methods.density.trees.tree import Tree, level_starts
from bayescascade.model.compiled import whole_weights

if TYPE_CHECKING:
    from bayescascade.data.table import Table

_MOST_BYTES = 1 << 28


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
    branch_log_weights: Floats,
) -> layout.CascadeArrays:
    """Return a model's numbers and tables of their functions; weights of branches from 0 on."""
    nominal_levels = table.schema.n_levels[_nominal_columns(table.schema)]
    largest = max(2, int(nominal_levels.max(initial=2)))
    max_leaves, leaf_alpha = model.max_leaves, model.leaf_concentration
    independent, dependent = (model.leaf == leaf for leaf in LEAVES[1:])
    whole = whole_weights(table.weights)
    norms = np.full(branch_log_weights.shape, -np.inf)
    norms[2:] = np.logaddexp.accumulate(branch_log_weights[2:])
    return layout.CascadeArrays(
        kind=model.kind,
        rate=model.rate,
        alpha=float(model.concentration),
        max_leaves=np.iinfo(np.int64).max if max_leaves is None else max_leaves,
        by_levels=splits.partitions == "levels",
        max_branches=splits.max_branches or largest,
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
    )


def log_stirling_numbers(largest: int) -> Floats:
    """Return (largest + 1, largest + 1) log Stirling numbers of the second kind, -inf for 0."""
    table = np.full((largest + 1, largest + 1), -np.inf)
    table[0, 0] = 0.0
    for m in range(1, largest + 1):
        k = np.arange(1, m + 1)
        table[m, 1 : m + 1] = np.logaddexp(table[m - 1, k] + np.log(k), table[m - 1, k - 1])
    return table


def _nominal_columns(schema: Schema) -> Flags:
    return np.array([column.kind == "nominal" for column in schema.columns], np.bool_)


class WorkSpaces:
    """Work spaces by tree, up to some bytes, shared by threads; a copy is empty."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        # keys are ids of trees
        self._kept: OrderedDict[int, tuple[Tree, CascadeWorkspace]] = OrderedDict()
        self._n_bytes = 0  # of all work spaces; there may be thousands
        self._lock = Lock()

    def __reduce__(self) -> tuple[type, tuple[int]]:
        return WorkSpaces, (self._most_bytes,)

    def take(self, tree: Tree) -> CascadeWorkspace | None:
        """Remove and return the work space of this tree object; None if there is none."""
        with self._lock:
            return self._forget(id(tree))

    def keep(self, tree: Tree, work: CascadeWorkspace) -> None:
        """Keep a work space that holds a tree."""
        with self._lock:
            self._forget(id(tree))
            self._kept[id(tree)] = tree, work
            self._n_bytes += _n_bytes(work)
            while self._n_bytes > self._most_bytes:
                self._forget(next(iter(self._kept)))

    def clear(self) -> None:
        """Remove all work spaces."""
        with self._lock:
            self._kept.clear()
            self._n_bytes = 0

    def _forget(self, key: int) -> CascadeWorkspace | None:
        if key not in self._kept:
            return None
        _, work = self._kept.pop(key)
        self._n_bytes -= _n_bytes(work)
        return work


def _n_bytes(work: CascadeWorkspace) -> int:
    arrays = (*work[:-1], work.dependence.graph, work.dependence.logs, work.dependence.pairs)
    return sum(array.nbytes for array in arrays)
