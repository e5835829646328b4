"""A tree with the weights of its nodes, and credible intervals of the density.

`CountedTree` is the stored form of a draw, also in files, without the data.

Given a tree, the posterior of its probabilities is known: with leaf counts ``n_l``, the leaves of
Model I follow one Dirichlet of parameters ``n_l + alpha``; in Model II the branches of every node
do, with ``n_c + alpha``; and in an independent leaf the remaining levels of each column, with
``n_jc + leaf_concentration``. Probabilities are drawn from these, for each tree in proportion to
its share of the draws. An interval's ends are quantiles of the resulting densities of a row.

The `N_DRAWS` draws use a fixed seed, so a row gets the same interval in each call, with any other
rows. The posterior probability below an end of the interval that should be ``q`` has a Monte Carlo
standard error of ``sqrt(q (1 - q) / N_DRAWS)``: 0.0025 for the ends of a 95 % interval.

A split of ``n`` rows and volume ``v`` into branches of ``n_c`` and ``v_c`` gains, if leaves are
uniform, in nats of log likelihood ::

    sum over branches of n_c ln((n_c / n) / (v_c / v)),

which is never negative. For other leaves, the log marginal likelihoods of the rows inside replace
``-n_c ln v_c`` and ``-n ln v``. Then the gain may be negative, if the leaves hardly differ.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import xlogy

from bayescascade.base.arrays import Codes, Floats
from bayescascade.base.errors import ModelFileError
from bayescascade.base.saved_arrays import read_array
from bayescascade.base.store import As
from bayescascade.base.validation import check_probability
from bayescascade.data.schema import Schema
from bayescascade.methods.density.trees.checked_trees import (
    Inside,
    check_leaves,
    lower_of_pairs,
    pairs_of_lower,
)
from bayescascade.methods.density.trees.density import LearnedDensityTree
from bayescascade.methods.density.trees.dependence import DependentLeaf
from bayescascade.methods.density.trees.dependent_tree import DependentTree
from bayescascade.methods.density.trees.models import (
    CascadeModel,
    empirical_probabilities,
    independent_log_inside,
    independent_probabilities,
)
from bayescascade.methods.density.trees.tree import (
    Tree,
    leaf_boxes,
    level_starts,
    levels_left,
    root_box,
)
from bayescascade.model.importances import importance_shares
from bayescascade.model.packing import Unpacked, narrow, pack

N_DRAWS = 4000

_SEED = 2018
_MOST_DENSITIES = 1 << 24  # kept at once, 128 MB


@dataclass(frozen=True, eq=False)
class CountedTree:
    """A tree and the weight of the rows at each of its nodes.

    counts (n_nodes,) float64. Independent leaves, left to right, have level_counts (n_leaves, L)
    float64: the weight of every level, column after column. Dependent leaves have pair_counts
    (n_leaves, L, L) float64: the weight of every pair of levels, with that of single levels on the
    diagonal. Uniform leaves need neither.
    """

    tree: Tree
    counts: Floats
    level_counts: Floats | None = None
    pair_counts: Floats | None = None

    @property
    def total(self) -> float:
        """Weight of all rows."""
        return float(self.counts[0])

    def to_record(self) -> dict[str, Any]:
        """Return the tree and the weights of its leaves; those of inner nodes follow."""
        record = {**self.tree.to_flat(), "leaf_counts": self.counts[self.tree.leaves].tolist()}
        if self.level_counts is not None:
            record["level_counts"] = self.level_counts.tolist()
        if self.pair_counts is not None:
            record["pair_counts"] = pack(narrow(lower_of_pairs(self.pair_counts).reshape(-1)))
        return record

    @classmethod
    def from_record(
        cls, record: Mapping[str, Any], schema: Schema, leaf: str = "uniform"
    ) -> "CountedTree":
        """Rebuild from a result of `to_record`, with the counts of levels that `leaf` needs."""
        tree = Tree.from_flat(record)
        problem = next(tree.problems(schema), None)
        if problem is not None:
            raise ModelFileError(f"a saved tree must be a valid one: {problem}")
        leaf_counts = read_array(record, "leaf_counts", (tree.n_leaves,), least=0)
        if not 0 < math.fsum(leaf_counts) < math.inf:
            raise ModelFileError("a saved tree's counts must be finite, >= 0 and not all 0")
        counts = tree.summed(leaf_counts)
        inside = {}
        for what, kind, read in (
            ("level", "independent", _read_level_counts), ("pair", "dependent", _read_pair_counts)
        ):  # fmt: skip
            if (f"{what}_counts" in record) != (leaf == kind):
                raise ModelFileError(
                    f"a saved tree must have counts of {what}s exactly if its leaves are {kind}"
                )
            if leaf == kind:
                counted = record[f"{what}_counts"]
                inside[f"{what}_counts"] = read(counted, tree, counts, schema)
        return cls(tree, counts, **inside)


COUNTED = As(CountedTree.to_record, CountedTree.from_record, "schema")
"""How a tree with uniform leaves is saved."""


def _read_level_counts(data: Any, tree: Tree, counts: Floats, schema: Schema) -> Floats:
    """Return the counts of levels in a tree's leaves, checked."""
    shape = (tree.n_leaves, int(schema.n_levels.sum()))
    level_counts = read_array({"level_counts": data}, "level_counts", shape, least=0)
    inside = Inside.of(schema, level_counts, is_pairs=False)
    check_leaves(schema, leaf_boxes(schema, tree), counts[tree.leaves], inside)
    return level_counts


def _read_pair_counts(data: Any, tree: Tree, counts: Floats, schema: Schema) -> Floats:
    """Return the counts of pairs of levels in a tree's leaves, checked."""
    n_levels = int(schema.n_levels.sum())
    shape = (tree.n_leaves, n_levels * (n_levels + 1) // 2)
    unpacked = Unpacked({"counts of pairs": data}).numbers("counts of pairs", math.prod(shape))
    lower = unpacked.reshape(shape).astype(np.float64)
    inside = Inside.of(schema, lower, is_pairs=True)
    check_leaves(schema, leaf_boxes(schema, tree), counts[tree.leaves], inside)
    return pairs_of_lower(lower, n_levels)


def readable_tree(
    schema: Schema,
    counted: CountedTree,
    model: CascadeModel,
    is_empirical: bool,
    made: dict[Any, Any] | None = None,
) -> LearnedDensityTree:
    """Return a tree with probabilities, or shares of rows; equal leaves share objects by `made`."""
    tree, counts = counted.tree, counted.counts
    if is_empirical:
        probabilities, a = empirical_probabilities(tree, counts), 0.0
    else:
        probabilities, a = model.probabilities(tree, counts), model.leaf_concentration
    if counted.pair_counts is not None:
        pairs, made = counted.pair_counts, {} if made is None else made
        return DependentTree.of(schema, tree, counts, probabilities, pairs, a, made)
    levels = None
    if counted.level_counts is not None:
        boxes = leaf_boxes(schema, tree)
        levels = independent_probabilities(schema, boxes, counted.level_counts, a)
    return LearnedDensityTree(schema, tree, counts, probabilities, level_probabilities=levels)


def log_inside_leaves(
    schema: Schema, counted: CountedTree, readable: LearnedDensityTree, model: CascadeModel
) -> Floats:
    """Return the log likelihood, nats, of the rows' positions inside their leaves, (n_nodes,)."""
    if not isinstance(readable, DependentTree):
        return _log_inside(schema, counted, readable.log_volumes, model.leaf_concentration)
    log_inside = np.zeros(counted.tree.n_nodes)  # for inner nodes it would take long
    log_inside[counted.tree.leaves] = [leaf.log_evidence for leaf in readable.inside]
    return log_inside


def density_intervals(
    schema: Schema,
    model: CascadeModel,
    trees: Sequence[CountedTree],
    shares: Floats,
    codes: Codes,
    level: float,
) -> Floats:
    """Return equal-tailed credible intervals of the density at each row, (n_rows, 2) float64.

    level in (0, 1); shares (n_trees,) float64 > 0: posterior probabilities of the trees, of sum 1;
    codes (p, n_rows) int32, -1 where missing, which is integrated out.
    """
    level = check_probability("level", level, strict=True)
    ends = ((1 - level) / 2, (1 + level) / 2)
    seen, position = np.unique(codes, axis=1, return_inverse=True)
    intervals = np.empty((seen.shape[1], 2))
    most = _MOST_DENSITIES // N_DRAWS
    for start in range(0, seen.shape[1], most):
        rows = np.ascontiguousarray(seen[:, start : start + most])
        densities = np.empty((N_DRAWS, rows.shape[1]))
        for draw, scores in enumerate(_drawn_scores(schema, model, trees, shares, rows)):
            np.exp(scores, out=densities[draw])
        intervals[start : start + most] = np.quantile(densities, ends, axis=0).T
    return intervals[position.reshape(-1)]


def _drawn_scores(
    schema: Schema, model: CascadeModel, trees: Sequence[CountedTree], shares: Floats, codes: Codes
) -> Iterator[Floats]:
    """Yield the rows' log densities under each of N_DRAWS draws of probabilities."""
    rng = np.random.default_rng(_SEED)
    last = np.rint(N_DRAWS * np.cumsum(shares)).astype(np.int64)
    for counted, times in zip(trees, np.diff(last, prepend=0).tolist(), strict=True):
        if not times:
            continue
        tree, counts, parameters = counted.tree, counted.counts, None
        if counted.level_counts is not None:  # Dirichlet parameters; 0 for excluded levels
            left = levels_left(schema, leaf_boxes(schema, tree))
            parameters = np.where(left, counted.level_counts + model.leaf_concentration, 0.0)
        boxes = LearnedDensityTree(schema, tree, counts, np.ones(tree.n_nodes))
        log_probabilities = _draw_log_probabilities(rng, model, tree, counts, times)
        for drawn in log_probabilities:
            log_levels = None if parameters is None else _draw_log_levels(rng, schema, parameters)
            yield boxes.score_codes_given(codes, drawn, log_levels)


def _draw_log_probabilities(
    rng: np.random.Generator, model: CascadeModel, tree: Tree, counts: Floats, n: int
) -> Floats:
    """Draw log probabilities of a tree's leaves, (n, n_nodes) float64, from their posterior."""
    drawn = np.zeros((n, tree.n_nodes))
    for nodes in model.dirichlet_groups(tree):
        log_gammas = _draw_log_gammas(rng, counts[nodes] + model.concentration, n)
        log_shares = log_gammas - np.logaddexp.reduce(log_gammas, axis=1, keepdims=True)
        drawn[:, nodes] = drawn[:, tree.parent[nodes]] + log_shares
    return drawn


def _draw_log_levels(rng: np.random.Generator, schema: Schema, parameters: Floats) -> Floats:
    """Draw log probabilities of the levels inside independent leaves, (n_leaves, L) float64."""
    drawn = np.full(parameters.shape, -np.inf)
    is_left = parameters > 0
    drawn[is_left] = _draw_log_gammas(rng, parameters[is_left], 1)[0]
    totals = np.logaddexp.reduceat(drawn, level_starts(schema)[:-1], axis=1)
    drawn -= np.repeat(totals, schema.n_levels, axis=1)
    return drawn


def _draw_log_gammas(rng: np.random.Generator, shapes: Floats, n: int) -> Floats:
    """Draw logarithms of gamma variates, (n, n_shapes) float64; small variates would underflow."""
    size = (n, shapes.shape[0])
    drawn: Floats = np.log(rng.standard_gamma(shapes + 1, size))
    drawn -= rng.standard_exponential(size) / shapes
    return drawn


def split_shares(
    schema: Schema, counted: CountedTree, log_volumes: Floats, leaf_concentration: float
) -> Floats:
    """Return each column's share of the gain of all splits, (p,) float64; 0 without splits."""
    tree, counts = counted.tree, counted.counts
    inside = _log_inside(schema, counted, log_volumes, leaf_concentration)
    worth = xlogy(counts, counts) + inside
    gains = -worth
    np.add.at(gains, tree.parent[1:], worth[1:])
    splits = np.flatnonzero(tree.feature >= 0)
    return importance_shares(schema.n_columns, tree.feature[splits], gains[splits])


def _log_inside(
    schema: Schema, counted: CountedTree, log_volumes: Floats, concentration: float
) -> Floats:
    """Return the log likelihood of each node's rows inside it, if it were a leaf."""
    boxes = counted.tree.boxes(root_box(schema))
    if counted.pair_counts is not None:
        pairs = zip(boxes, counted.tree.summed(counted.pair_counts), strict=True)
        leaves = (DependentLeaf(schema, *own, concentration) for own in pairs)
        return np.array([leaf.log_evidence for leaf in leaves])
    if counted.level_counts is not None:
        levels = counted.tree.summed(counted.level_counts)
        return independent_log_inside(schema, boxes, levels, concentration)
    return -counted.counts * log_volumes
