"""Slow, obvious twins of the budgeted forests. Nothing here imports the packages under test.

A tree is nested: a leaf is ``{"counts": [...]}``, a split also has ``column``, ``threshold``,
``missing_left``, ``left`` and ``right``. A row is a list of floats that float32 holds exactly.
"""

import math


def nested_trees(forest):
    """Return the trees of a forest of flat arrays, read node by node off its fields."""

    def nested(node):
        tree = {"counts": [float(count) for count in forest.counts[node]]}
        if forest.feature[node] >= 0:
            tree |= {
                "column": int(forest.feature[node]),
                "threshold": float(forest.threshold[node]),
                "missing_left": bool(forest.missing_left[node]),
                "left": nested(node + 1),
                "right": nested(int(forest.right[node])),
            }
        return tree

    return [nested(int(root)) for root in forest.tree_starts[:-1]]


def child(tree, value):
    """Return the child of a split that a value goes to."""
    is_left = tree["missing_left"] if math.isnan(value) else value <= tree["threshold"]
    return tree["left" if is_left else "right"]


def path(tree, row):
    """Return the nodes from the root to the leaf that a row comes to."""
    nodes = [tree]
    while "column" in nodes[-1]:
        nodes.append(child(nodes[-1], row[nodes[-1]["column"]]))
    return nodes


def columns_used(trees, row):
    """Return the columns that a row's ways through all trees read."""
    return {node["column"] for tree in trees for node in path(tree, row)[:-1]}


def predict_proba(trees, row):
    """Return the mean over the trees of the shares of the classes at the leaves."""
    shares = []
    for tree in trees:
        counts = path(tree, row)[-1]["counts"]
        shares.append([count / math.fsum(counts) for count in counts])
    return [math.fsum(column) / len(trees) for column in zip(*shares, strict=True)]


def pruned(tree, is_kept):
    """Return a tree without the splits that a predicate of nodes refuses, nor those below them."""
    if "column" not in tree or not is_kept(tree):
        return {"counts": tree["counts"]}
    children = {side: pruned(tree[side], is_kept) for side in ("left", "right")}
    return {**tree, **children}


def row_cost(costs, groups, default, acquired):
    """Return what acquiring some columns, one after the other, costs a row."""
    total, seen, drawn = 0.0, set(), set()
    for column in acquired:
        if column in seen:
            continue
        seen.add(column)
        of_column = [group for group, members in groups.items() if column in members]
        total += costs.get(column, 0.0 if of_column else default)
        for group in of_column:
            if group not in drawn:
                drawn.add(group)
                total += costs.get(group, default)
    return total
