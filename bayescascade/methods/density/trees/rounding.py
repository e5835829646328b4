"""A proved bound on the rounding error of a tree's log density, by the sizes of its terms.

With u = `UNIT`, each log gamma function is off by `EVALUATED` u times its size, see `model.guard`,
and their sum, by `math.fsum`, by u times its size. If weights are not integers, a count may be off
by a share c, `share_of_sums`. This adds an error of ``c x abs(psi(x))`` for each ``lnG(x)``, and
``c n abs(ln v)``. A log volume is the sum of p logs, and of one more for each split on the path,
each of a ratio of sums of at most q widths. With V the largest size of a log volume, it is off by
``(p + d + 4) u V + d (q + 4) u`` at depth d. Inside an independent leaf, L terms are added in
order, which costs L u. Inside a dependent leaf, there are sums of p**2 log gammas, and determinants
of p columns, whose eliminations only add and multiply positive numbers.
"""

from math import log, log1p, log2
from typing import TYPE_CHECKING

import numpy as np

from bayescascade.base.arrays import Floats
from bayescascade.data.schema import Schema
from bayescascade.methods.density.trees.models import BranchModel, CascadeModel
from bayescascade.methods.density.trees.split_space import SplitSpace
from bayescascade.methods.density.trees.tree import LEAF, Tree
from bayescascade.model.guard import EVALUATED, UNIT, log_gamma_sizes, share_of_sums

if TYPE_CHECKING:
    from bayescascade.data.table import Table


def density_rounding(
    model: CascadeModel, table: "Table", tree: Tree, counts: Floats, splits: SplitSpace
) -> float:
    """Return a bound on the error of a tree's log density, nats; counts (n_nodes,)."""
    schema = table.schema
    alpha, of_counts = model.concentration, share_of_sums(table.weights)
    p, q, total = schema.n_columns, int(schema.n_levels.max()), float(counts[0])
    sizes = 0.0
    for group in model.dirichlet_groups(tree):
        whole = group.size * alpha
        sizes += float(log_gamma_sizes(whole) + log_gamma_sizes(counts[group].sum() + whole))
        sizes += float(log_gamma_sizes(counts[group] + alpha).sum())
        sizes += group.size * float(log_gamma_sizes(alpha))
    bound = (EVALUATED * UNIT + of_counts) * sizes
    largest = largest_log_volume(schema)
    if model.leaf == "uniform":
        of_volume = (p + tree.depth + 4) * UNIT * largest + tree.depth * (q + 4) * UNIT
        bound += total * (of_volume + (2 * UNIT + of_counts) * largest)
    else:
        bound += _inside_rounding(model, schema, total, tree.n_leaves, of_counts, largest)
    return bound + _prior_rounding(model, tree, p, splits)


def rounding_of_all(model: CascadeModel, table: "Table", depth: int, n_boxes: int) -> float:
    """Return a bound on the error of any tree's sum over n_boxes with rows, nats.

    The sum is over boxes, as a leaf and by splits of at most q branches. At each depth at most N
    boxes hold rows, the minimum of rows and boxes. With n their weight, and l the largest size of a
    log of an argument plus 1, their Dirichlet terms have sizes of at most ``l (2 n + 4 N q (alpha +
    1))``, and as leaves they have those of N leaves. The terms of boxes without rows cancel. The
    widths of m distinct rows are added pairwise: by eights in blocks of up to 128, then two by two,
    so each has at most 24 + log2(m) additions.
    """
    schema, weights = table.schema, table.weights
    n = min(table.n_distinct, n_boxes)
    total, q = float(weights.sum()), int(schema.n_levels.max())
    alpha, of_counts = model.concentration, share_of_sums(weights)
    each = max(abs(log(alpha)), log(1.0 + total + q * alpha)) + 1.0
    largest = largest_log_volume(schema)
    of_splits = (EVALUATED * UNIT + of_counts) * each * (2 * total + 4 * n * q * (alpha + 1))
    of_leaves = _inside_rounding(model, schema, total, max(n, 1), of_counts, largest)
    of_widths = (24 + log2(max(table.n_distinct, 1))) * UNIT * largest * total
    if model.is_generative:
        of_prior = _log_sizes(model, float(log(schema.n_columns)))
    else:
        of_prior = model.rate + q * abs(log(model.rate)) + float(log_gamma_sizes(q + 1.0))
    of_choices = (EVALUATED + q) * UNIT * (n + 1) * (q + 1) * of_prior
    return (depth + 1) * (of_splits + 2 * of_leaves + of_widths + of_choices)


def largest_log_volume(schema: Schema) -> float:
    """Return the largest size of the log volume of a box, nats."""
    widths = (column.widths for column in schema.columns)
    return float(sum(np.abs(np.log([each.min(), each.sum()])).max() for each in widths))


def _inside_rounding(
    model: CascadeModel,
    schema: Schema,
    total: float,
    n_leaves: int,
    of_counts: float,
    largest: float,
) -> float:
    """Return a bound on the error of the contributions inside all leaves, not uniform ones."""
    a, n_levels = model.leaf_concentration, schema.n_levels
    p, n_all = schema.n_columns, int(n_levels.sum())
    shares = np.array([a]) if model.leaf == "independent" else a / n_levels / n_levels.max()
    ends = np.array([shares.min(), a * (n_levels.max() + 1) + total + 1.0])
    each = float(np.abs(np.log(ends)).max()) + 1.0  # of a log gamma, over its argument plus 1
    n_terms = n_all if model.leaf == "independent" else n_all**2
    n_sums = p if model.leaf == "independent" else p**2
    # the arguments of each sum add up to the leaves' weight plus a for each term
    sizes = 2 * each * (n_sums * total + n_terms * (2 + 3 * a) * n_leaves) + largest * total
    n_operations = n_terms + (p**3 if model.leaf == "dependent" else 0)
    return float(((EVALUATED + n_operations) * UNIT + of_counts) * sizes)


def _log_sizes(model: CascadeModel, log_splits: float) -> float:
    """Return the largest log that a node adds by the generative prior, plus 2."""
    return abs(log(model.stop)) + abs(log1p(-model.stop)) + max(log_splits, 0.0) + 2.0


def _prior_rounding(model: CascadeModel, tree: Tree, p: int, splits: SplitSpace) -> float:
    """Return a bound on the error of the log prior of a tree over p columns."""
    if model.is_generative:  # with the log of a sum of p numbers of splits
        sizes = tree.n_nodes * _log_sizes(model, splits.log_most)
        return (EVALUATED + p + tree.n_nodes) * UNIT * sizes
    log_rate, sizes = abs(float(np.log(model.rate))), 0.0
    if isinstance(model, BranchModel):
        branches = np.bincount(tree.parent[1:], minlength=tree.n_nodes)[tree.feature != LEAF]
        sizes += float(log_gamma_sizes(branches + 1.0).sum()) + tree.n_nodes * model.rate
        sizes += float(branches.sum()) * log_rate + 3.0 * float(log_gamma_sizes(p + 1.0))
        sizes += float(np.abs(model.log_inclusion(p)).max())
    else:
        sizes += model.rate + tree.n_leaves * log_rate + float(log_gamma_sizes(tree.n_leaves + 1.0))
    return (EVALUATED + tree.n_nodes) * UNIT * sizes
