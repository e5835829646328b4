"""Random trees, grown without looking at the data: where chains start."""

from collections.abc import Callable, Sequence

import numpy as np

from bayescascade.data.schema import Schema
from bayescascade.methods.cascades.tree import Tree, root_box

_START_LEAVES = 8  # a random start has fewer splits than this


def random_tree(
    rng: np.random.Generator,
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
    rng: np.random.Generator,
    tree: Tree,
    schema: Schema,
    is_nominal: Sequence[bool],
    partitions: str,
) -> Tree:
    """Return the tree with one leaf split at random, in two if it may be, or unchanged."""
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
