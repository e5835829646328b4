"""Starts of chains: random trees, grown without looking at the data, and a temperature.

In a hot chain the density matters less than the number of trees, and most trees are large. If
columns have many levels, hot trees have many times more leaves than there are rows. Each step then
takes longer, and cooling does not make up for the lost steps. A pilot chain tries temperatures from
the hottest down, and keeps the first one at which its tree has no more leaves than there are
distinct rows. Trees are not bounded: in tables with few rows and many cells the most probable trees
may have more leaves than rows.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.random import Generator

import samplers
from bayescascade.data.schema import Schema
from bayescascade.methods.density.trees.tree import Tree, root_box
from bayescascade.model.search import SCHEDULE

_START_LEAVES = 8  # a random start has fewer splits than this
_TEMPERATURES = (SCHEDULE.initial_temperature, 1.0, 0.5)
_PASSES = 10  # each has as many steps as there are distinct rows
_MOST_ROWS = 10_000  # for a pilot, which takes seconds; trees rarely have more leaves


def random_tree(
    rng: Generator,
    schema: Schema,
    is_nominal: Sequence[bool],
    partitions: str,
    log_prior: Callable[[Tree], float],
) -> Tree:
    """Return a random tree of up to seven splits, grown without looking at the data."""
    tree = Tree.root()
    for _ in range(int(rng.integers(_START_LEAVES))):
        grown = _with_random_split(rng, tree, schema, is_nominal, partitions)
        if log_prior(grown) > -np.inf:
            tree = grown
    return tree


def _with_random_split(
    rng: Generator, tree: Tree, schema: Schema, is_nominal: Sequence[bool], partitions: str
) -> Tree:
    """Return the tree with a random split of one leaf, in two if allowed, or unchanged."""
    codes_left = tree.codes(is_nominal, root_box(schema))
    open_columns = {
        leaf: [j for j, codes in enumerate(codes_left[leaf]) if len(codes) > 1]
        for leaf in tree.leaves.tolist()
    }
    growable = [leaf for leaf, columns in open_columns.items() if columns]
    if not growable:
        return tree
    leaf = growable[int(rng.integers(len(growable)))]
    column = open_columns[leaf][int(rng.integers(len(open_columns[leaf])))]
    codes = codes_left[leaf][column]
    if partitions == "levels":
        blocks = [(code,) for code in codes]
    else:
        order = rng.permutation(codes).tolist() if is_nominal[column] else list(codes)
        cut = int(rng.integers(1, len(codes)))
        blocks = [tuple(order[:cut]), tuple(order[cut:])]
    return tree.replaced(is_nominal, leaf, (column, [(block, None) for block in blocks]))


def cooling(
    start: Callable[[Generator], Tree],
    sweep: Callable[[Generator, Tree, int, float], tuple[Tree, object]],
    n_rows: int,
) -> samplers.GeometricSchedule:
    """Return the annealing schedule, by a pilot run of `start` and `sweep` with a fixed seed."""
    if not 0 < n_rows <= _MOST_ROWS:
        return SCHEDULE

    def outgrows(temperature: float) -> bool:
        rng = np.random.default_rng(0)
        tree, most = start(rng), 0
        for _ in range(_PASSES):
            tree, _ = sweep(rng, tree, n_rows, 1.0 / temperature)
            if tree.n_leaves > n_rows:
                return True
            if tree.n_leaves <= most < n_rows / 2:  # it grows no more
                return False
            most = max(most, tree.n_leaves)
        return False

    initial = next((t for t in _TEMPERATURES[:-1] if not outgrows(t)), _TEMPERATURES[-1])
    return samplers.GeometricSchedule(initial, SCHEDULE.final_temperature)
