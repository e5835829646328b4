"""The common part of the cascades' posteriors: a model and a table, for the samplers.

It applies the formulas to the data: it has statistics of a tree's nodes, and the compiled sweep
that samplers call by `advance`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from scipy.special import gammaln

import samplers
from bayescascade.base.arrays import Floats
from bayescascade.base.jit import sparing
from bayescascade.base.validation import check_choice, check_integer
from bayescascade.methods.density.trees.chain_starts import cooling, random_tree
from bayescascade.methods.density.trees.density import LearnedDensityTree
from bayescascade.methods.density.trees.kernel_arrays import (
    WorkSpaces,
    arrays_of_model,
    arrays_of_table,
)
from bayescascade.methods.density.trees.kernels import layout
from bayescascade.methods.density.trees.kernels.sweep import count_levels, sweep
from bayescascade.methods.density.trees.kernels.trees import export, load
from bayescascade.methods.density.trees.models import (
    BranchModel,
    CascadeModel,
    LeafModel,
    independent_log_inside,
)
from bayescascade.methods.density.trees.parameters import PARTITIONS
from bayescascade.methods.density.trees.rounding import density_rounding
from bayescascade.methods.density.trees.split_space import SplitSpace
from bayescascade.methods.density.trees.tree import Tree, block_codes, root_box
from bayescascade.model.compiled import CompiledPosterior
from bayescascade.model.draws import TraceLegend
from bayescascade.model.search import SCHEDULE
from samplers.types import StepCounts

if TYPE_CHECKING:
    from bayescascade.data.table import Table

MOVE_WEIGHTS = dict(zip(layout.MOVES, (0.32, 0.32, 0.1, 0.08, 0.08, 0.1), strict=True))
"""Weights of the moves; those of grow and prune, which are inverse to each other, are equal.

`graft` is for annealing. In eight runs of 100,000 steps each, with and without it, the mean final
log density was higher with it in 12 of 13 cases (both models and partitions; housebreak, car,
tic_tac_toe, german) by 8 to 310 nats, in the same time, and lower within the error in one (breast
cancer, by 120 +- 212). Chains that mix do so without it, too.
"""

MOST_PROPOSED = 64  # branches of a proposed split; `regroup` can give more

MANY_ROWS = 20_000  # distinct rows; beyond, moves of subtrees are tried less often

_TREE_TYPES = (np.int32, np.int32, np.uint64)  # types of a tree's arrays

OF_REDRAWS = 4.0
"""How many times as much work a step is if chains redraw subtrees."""

_ROOM = 2  # times the necessary nodes, so that a growing tree needs no new layout


class Redraws(Protocol):
    """Steps between the compiled ones; implemented by `exact.redraws`."""

    name: str
    share: float
    largest: int
    most_polished: int

    def advance(
        self, rng: np.random.Generator, state: Tree, n_steps: int, inverse_temperature: float
    ) -> tuple[Tree, StepCounts[Tree]]:
        """Do the same as `CascadePosterior.advance`."""

    def polished(self, tree: Tree) -> Tree:
        """Do the same as `CascadePosterior.polished`."""


class CascadePosterior(CompiledPosterior[Tree]):
    """The posterior of a model, given a table.

    Parameters
    ----------
    table : Table
        Distinct rows and their weights.
    model : LeafModel or BranchModel
        Prior and likelihood.
    max_branches : int >= 2 or None
        Maximum number of branches per split. None: the number of levels.
    move_weights : mapping of str to float, optional
        Selection weights of the moves by name. Those of grow and prune must be equal. By default
        MOVE_WEIGHTS, with smaller weights of subtree moves for tables with many rows.
    partitions : {"subsets", "levels"}
        "subsets": a split divides the remaining levels of a column into any groups (of adjacent
        levels if they have an order). "levels": each level has its own branch, and `max_branches`
        has no effect.
    max_depth : int >= 0 or None
        Maximum depth of trees with the generative prior and partitions "levels". None: any depth.
        No effect with other priors.

    Attributes
    ----------
    redraws : Redraws or None
        Redraws of whole subtrees, as some of the compiled steps. None unless set.
    """

    moves_compiled = layout.MOVES
    state_name = "tree"
    redraws: Redraws | None = None

    def __init__(
        self,
        table: "Table",
        model: CascadeModel,
        max_branches: int | None = None,
        move_weights: Mapping[str, float] | None = None,
        *,
        partitions: str = "subsets",
        max_depth: int | None = None,
    ) -> None:
        check_choice("partitions", partitions, PARTITIONS)
        self.partitions = partitions
        if max_branches is not None:
            check_integer("max_branches", max_branches, minimum=2)
            max_branches = None if partitions == "levels" else int(max_branches)
        self.table, self.schema, self.model = table, table.schema, model
        most = max(2, int(table.schema.n_levels.max()))
        self.max_branches = most if max_branches is None else min(max_branches, most)
        most_proposed = most if partitions == "levels" else MOST_PROPOSED
        self.max_proposed = min(self.max_branches, most_proposed)
        self._weights = dict(MOVE_WEIGHTS if move_weights is None else move_weights)
        if move_weights is None:  # at 200,000 rows, they cost as much as hundreds of others
            share = min(1.0, (MANY_ROWS / max(table.n_distinct, 1)) ** 0.5)
            of_subtrees = MOVE_WEIGHTS.keys() - {"grow", "prune"}
            self._weights |= {name: share * MOVE_WEIGHTS[name] for name in of_subtrees}
        if self.max_branches == 2 or partitions == "levels":  # there are no branches to group
            self._weights.pop("regroup", None)
        self.is_nominal = tuple(column.kind == "nominal" for column in table.schema.columns)
        self.splits = SplitSpace(table.schema, partitions, self.max_branches, max_depth)
        self._work_spaces = WorkSpaces()
        self._last_splits: tuple[Tree | None, Floats] = (None, np.empty(0))
        self._last_prior: tuple[Tree | None, float] = (None, np.nan)

    # -- the contract ------------------------------------------------------------------------------

    def log_prior(self, state: Tree | LearnedDensityTree) -> float:
        """Return the log prior of a tree, nats, unnormalized."""
        tree, (known, value) = _structure(state), self._last_prior
        if tree is not known:  # often computed twice: for the density, and by `describe`
            log_splits = self._log_splits(tree) if self.model.is_generative else None
            value = self.model.log_prior(tree, len(self.is_nominal), log_splits)
            self._last_prior = tree, value
        return value

    def log_likelihood(self, state: Tree | LearnedDensityTree) -> float:
        """Return the log likelihood of a tree, nats, with leaf probabilities integrated out."""
        tree = _structure(state)
        with sparing(self._n_cells_of(tree)):
            work = self._load(tree, tree.n_nodes)
        reals = np.ascontiguousarray(work.reals.T)
        counts, log_volumes = reals[layout.COUNT], reals[layout.LOG_VOLUME]
        inside = -counts * log_volumes
        if self.model.leaf == "independent":
            boxes, levels = tree.boxes(root_box(self.schema)), self._count_levels(work, tree)
            a = self.model.leaf_concentration
            inside = independent_log_inside(self.schema, boxes, levels, a)
        elif self.model.leaf == "dependent":  # from the kernels' contributions of leaves
            inside = reals[layout.VALUE]
            if isinstance(self.model, LeafModel):
                a = self.model.concentration
                inside -= gammaln(counts + a) - gammaln(a)
            if self.model.is_generative:
                inside -= self.model.log_stops(tree, self._log_splits(tree))
            elif isinstance(self.model, BranchModel):
                inside += self.model.rate
        return self.model.log_likelihood(tree, counts, inside)

    def _log_splits(self, tree: Tree) -> Floats:
        known, logs = self._last_splits
        if tree is not known:  # prior and likelihood need them
            logs = self.splits.log_splits(tree)
            self._last_splits = tree, logs
        return logs

    def rounding(self, state: Tree) -> float:
        """Return a bound on the rounding error of the log density of a tree, nats."""
        counts, _ = self.node_statistics(state)
        return density_rounding(self.model, self.table, state, counts, self.splits)

    def initial_state(self, rng: np.random.Generator) -> Tree:
        """Return a random tree of up to seven splits, grown without looking at the data."""
        return random_tree(rng, self.schema, self.is_nominal, self.partitions, self.log_prior)

    def move_weights(self) -> Mapping[str, float]:
        """Return the selection weight of each move."""
        own = {} if self.redraws is None else {self.redraws.name: self.redraws.share}
        return {name: weight for name, weight in {**self._weights, **own}.items() if weight > 0}

    def describe(self, state: Tree) -> Mapping[str, float]:
        """Return leaves, depth, used columns, first split column (-1: none), and log prior."""
        return {
            "n_leaves": float(state.n_leaves),
            "depth": float(state.depth),
            "n_features": float(state.features_used.shape[0]),
            "first_feature": float(state.feature[0]),
            "log_prior": self.log_prior(state),
        }

    def advance(
        self, rng: np.random.Generator, state: Tree, n_steps: int, inverse_temperature: float
    ) -> tuple[Tree, StepCounts[Tree]]:
        """Run compiled steps on ``exp(inverse_temperature * log_density)``.

        Each step tries a move drawn by `move_weights`. Its work is proportional to the number of
        distinct rows of the changed node. If there are `redraws`, some steps redraw subtrees.
        """
        if self.redraws is not None:
            return self.redraws.advance(rng, state, n_steps, inverse_temperature)
        return self.sweep(rng, state, n_steps, inverse_temperature)

    def operations(self, n_leaves: float) -> float:
        """Return the operations of a step, a nanosecond each, about."""
        del n_leaves  # unknown before chains begin; most work is per step, not per node
        each = operations_of_step(self.table, self.model.leaf)
        return each if self.redraws is None else OF_REDRAWS * each

    def polished(self, state: Tree) -> Tree:
        """Return a more probable tree, if `redraws` find one, otherwise this tree."""
        return state if self.redraws is None else self.redraws.polished(state)

    def sweep(
        self, rng: np.random.Generator, state: Tree, n_steps: int, inverse_temperature: float
    ) -> tuple[Tree, StepCounts[Tree]]:
        """Run the compiled steps of `advance`."""
        counts = self.new_counts()
        summary = np.empty(3)
        best, best_log_density = state, -np.inf
        done = 0
        is_kept = self.model_arrays.log_gamma.size > 0  # weights are integers
        while done < n_steps:  # repeats only if the tree outgrew the work space
            capacity = 3 * state.n_nodes + 4 * self.max_proposed + 128
            work = self._work_spaces.take(state)
            if work is None or work.nodes.shape[0] < capacity:
                work = self._load(state, _ROOM * capacity if is_kept else capacity)
            flat = layout.FlatTree(*(np.empty(capacity, kind) for kind in _TREE_TYPES))
            done += sweep(
                rng, self.arrays, self.model_arrays, work, capacity, n_steps - done,
                float(inverse_temperature), self.move_cdf, counts[0], counts[1], summary, flat,
            )  # fmt: skip
            if summary[1] > best_log_density:
                best, best_log_density = _tree_of(flat, int(summary[2])), float(summary[1])
            state = _tree_of(flat, export(work, flat))
            if is_kept:
                self._work_spaces.keep(state, work)
        return state, self.step_counts(counts, summary[0], best, best_log_density)

    def release(self) -> None:
        """Release the workspaces of chains."""
        self._work_spaces.clear()

    def encode_state(self, state: Tree) -> object:
        """Return a tree as JSON-ready lists."""
        return state.to_flat()

    def _read_state(self, encoded: Any) -> Tree:
        return Tree.from_flat(encoded)

    def _problem(self, state: Tree) -> str | None:
        problem = next(state.problems(self.schema), None)
        if problem is None and self.partitions == "levels":
            columns = state.feature[state.parent[1:]].tolist()
            for column, block in zip(columns, state.block[1:].tolist(), strict=True):
                if len(block_codes(self.is_nominal[column], block)) > 1:
                    problem = "every branch must hold a single level"
        if problem is None and self.log_prior(state) == -np.inf:
            problem = f"it must have at most {self.model.max_leaves} leaves"
            if self.model.max_leaves is None:
                problem = f"it must have a depth of at most {self.splits.max_depth}"
        return problem

    def _identity(self) -> tuple[list[Any], tuple[()]]:
        own = () if self.redraws is None else (self.redraws.name, self.redraws.largest)
        return [self.parameters(), self.table.fingerprint(), *own], ()

    def parameters(self) -> dict[str, float | int | str | None]:
        """Return the model's parameters by name."""
        record = {**asdict(self.model), "max_branches": self.max_branches}  # type: ignore[call-overload]
        if self.splits.n_kept and self.model.is_generative:
            record["max_depth"] = self.splits.max_depth
        return {**record, "partitions": self.partitions}

    def legend(self) -> TraceLegend:
        """Return the legend of the traces."""
        names = self.schema.names
        return TraceLegend(
            size="n_leaves",
            columns=names,
            columns_of=_columns_of,
            labels={"first_feature": names.__getitem__},
            words={"first_feature": "first split"},
        )

    # -- what both samplers and estimators read ----------------------------------------------------

    def node_statistics(self, state: Tree) -> tuple[Floats, Floats]:
        """Return weight and log volume (nats) of every node, each (n_nodes,) float64."""
        with sparing(self._n_cells_of(state)):
            work = self._load(state, state.n_nodes)
        return work.reals[:, layout.COUNT].copy(), work.reals[:, layout.LOG_VOLUME].copy()

    def level_counts(self, state: Tree) -> tuple[Floats, Floats]:
        """Return the weight of every node, (n_nodes,), and of every level among its rows.

        Weights of levels are (n_nodes, L): those of all columns, in their order.
        """
        with sparing(self._n_cells_of(state)):
            work = self._load(state, state.n_nodes)
        return work.reals[:, layout.COUNT].copy(), self._count_levels(work, state)

    def _count_levels(self, work: layout.CascadeWorkspace, state: Tree) -> Floats:
        with sparing(self._n_cells_of(state)):
            count_levels(self.arrays, work, state.n_nodes)
        return work.histogram[: state.n_nodes]

    def _n_cells_of(self, state: Tree) -> int:
        """Return a bound on the number of cells, or pairs, that counting a tree takes."""
        p = self.table.schema.n_columns
        n_counted = {"uniform": 1, "independent": p, "dependent": p * p}[self.model.leaf]
        return self.table.n_distinct * n_counted * state.n_nodes

    def _load(self, state: Tree, capacity: int) -> layout.CascadeWorkspace:
        arrays, model = self.arrays, self.model_arrays
        work = layout.new_workspace(arrays, model, capacity)
        load(arrays, model, work, state.feature, state.parent, state.block)
        return work

    def canonical(self, state: Tree) -> Tree:
        """Return the canonical tree among those with the same leaves and density."""
        return state

    @cached_property
    def schedule(self) -> samplers.GeometricSchedule:
        """The annealing schedule, without a pilot run for dependent leaves."""
        if self.model.leaf == "dependent":
            return SCHEDULE
        return cooling(self.initial_state, self.sweep, self.table.n_distinct)

    @cached_property
    def arrays(self) -> layout.TableArrays:
        """The table, as arrays for the kernels."""
        return arrays_of_table(self.table)

    @cached_property
    def model_arrays(self) -> layout.CascadeArrays:
        """The model, as arrays for the kernels."""
        return arrays_of_model(self.model, self.splits, self.table, self.branch_log_weights)

    @cached_property
    def branch_log_weights(self) -> Floats:
        """Unnormalized log weights of proposing 0 .. max_proposed branches; used from 2 on."""
        b = np.arange(self.max_proposed + 1)
        return self.model.branch_log_weights(b.astype(np.float64))


def _tree_of(flat: layout.FlatTree, n_nodes: int) -> Tree:
    return Tree(*(array[:n_nodes].copy() for array in flat))


def _columns_of(tree: Tree) -> Sequence[int]:
    columns: list[int] = tree.features_used.tolist()
    return columns


def _structure(state: Tree | LearnedDensityTree) -> Tree:
    return state.tree if isinstance(state, LearnedDensityTree) else state


def operations_of_step(table: "Table", leaf: str) -> float:
    """Return the operations of a chain's step over these leaves, without redraws of subtrees."""
    n, p = table.n_distinct, table.schema.n_columns
    if leaf == "dependent":
        return n * p**2 / 2 + p**3
    return 2.5e4 + 1e3 * p + n * (0.8 if leaf == "uniform" else 0.8 + 0.3 * p)
