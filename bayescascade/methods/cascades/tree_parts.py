"""What the nodes of a density tree gain, what conditions leave of it, and codes as plain data."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import rel_entr

from bayescascade.data.column import Column
from bayescascade.data.conditions import Conditions
from bayescascade.methods.cascades.tree import Tree, block_codes

Floats = NDArray[np.float64]


def branch_gains(
    tree: Tree,
    counts: Floats,
    probabilities: Floats,
    log_volumes: Floats,
    level_probabilities: Floats | None,
    starts: NDArray[np.int64],
) -> Floats:
    """Return what each node gains as a branch of its parent, (n_nodes,) float64 >= 0 nats.

    With ``n`` rows at a node, a branch of the share ``q`` of its probability and ``u`` of its
    volume gains ``n (q ln(q / u) - q + u)`` over leaving the node uniform. Where leaves are
    independent inside, so would the node be, its levels mixed from the leaves; then a branch gains
    ``n q`` times the divergence of its levels from the node's, added over all columns but that of
    the split. Counts, probabilities and log volumes are those of nodes, the others as in
    `LearnedDensityTree`.
    """
    gains, nodes = np.zeros(tree.n_nodes), np.arange(1, tree.n_nodes)
    parents = tree.parent[nodes]
    weights, above = counts[parents], probabilities[parents]
    q = np.divide(probabilities[nodes], above, out=np.zeros(nodes.size), where=above > 0)
    if level_probabilities is None:
        u = np.exp(log_volumes[nodes] - log_volumes[parents])
        gains[nodes] = weights * (rel_entr(q, u) - q + u)
        return gains.clip(min=0.0)
    levels = np.zeros((tree.n_nodes, level_probabilities.shape[1]))
    levels[tree.leaves] = level_probabilities
    levels[tree.leaves] *= probabilities[tree.leaves, np.newaxis]
    for node in range(tree.n_nodes - 1, 0, -1):
        levels[tree.parent[node]] += levels[node]
    totals = probabilities[:, np.newaxis]
    levels = np.divide(levels, totals, out=np.zeros_like(levels), where=totals > 0)
    for place, weight in enumerate((weights * q).tolist()):
        node, parent = place + 1, parents[place]
        start, end = starts[tree.feature[parent] :][:2]
        apart = rel_entr(levels[node], levels[parent])
        gains[node] = weight * (apart.sum() - apart[start:end].sum())
    return gains.clip(min=0.0)


def tree_given(
    tree: Tree, is_nominal: Sequence[bool], conditions: Conditions, node: int = 0
) -> tuple[Any, list[int]]:
    """Return the nested tree that conditions leave below a node, and its leaves in order."""
    children = tree.children(node)
    if not children:
        return None, [node]
    column = int(tree.feature[node])
    branches = []
    for child in children:
        codes = block_codes(is_nominal[column], int(tree.block[child]))
        codes = tuple(code for code in codes if code in conditions.get(column, codes))
        if codes:
            branches.append((codes, *tree_given(tree, is_nominal, conditions, child)))
    if len(branches) == 1:
        return branches[0][1:]
    branches.sort(key=lambda branch: branch[0])
    leaves = [leaf for *_, below in branches for leaf in below]
    return (column, [(codes, nested) for codes, nested, _ in branches]), leaves


def levels_given(
    density: Any, known: Conditions, leaves: Sequence[int]
) -> tuple[Floats, dict[str, Any]]:
    """Return the share of each leaf that conditions leave, and what that changes inside."""
    shares = np.ones(len(leaves))
    inside = density.level_probabilities
    if inside is not None:
        inside = inside[density.leaf_rows[leaves]]
    for j, allowed in known.items():
        widths = density.schema.columns[j].widths
        for row, leaf in enumerate(leaves):
            left = [code for code in density.boxes[leaf][j] if code in allowed]
            if inside is None:
                shares[row] *= widths[left].sum() / density.box_widths[leaf, j]
                continue
            start = density.level_starts[j]
            levels = inside[row, start : start + widths.size]
            chosen = levels[left]
            levels[:] = 0.0
            total = chosen.sum()
            # of levels of probability 0 alone the leaf has none, and any spread is right
            levels[left] = chosen / total if total > 0 else widths[left] / widths[left].sum()
            shares[row] *= total
    return shares, {"level_probabilities": inside}


def codes_dict(column: Column, codes: list[int]) -> dict[str, Any]:
    """Return codes of a column, ascending, as plain data; see `LearnedDensityTree.node_dict`."""
    missing = column.has_missing_level and codes[-1] == column.n_levels - 1
    if column.kind != "continuous":
        levels = [column.levels[code] for code in codes[: len(codes) - missing]]
        return {"levels": [*levels, None] if missing else levels}
    bins = codes[: len(codes) - missing]
    interval = [column.edges[bins[0]], column.edges[bins[-1] + 1]] if bins else None
    return {"interval": interval, "missing": True} if missing else {"interval": interval}
