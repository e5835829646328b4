"""Slow, obvious twins of the pruning program, its optimum and its predictions.

A tree is a list of class counts (a leaf) or ``(column, threshold, left, right)``; a row goes left
where ``row[column] <= threshold``. Nodes are numbered in preorder. `column_items` says for each
column the cost items that reading it incurs, and `costs` what each costs. Nothing here imports the
package under test.
"""

from itertools import product


class Node:
    """A node of a tree, with what (IP) says about it."""

    def __init__(self, tree, depth=0):
        self.depth = depth
        self.column = None
        self.children = []
        if isinstance(tree, list):
            self.counts = tree
        else:
            self.column, self.threshold, left, right = tree
            self.children = [Node(left, depth + 1), Node(right, depth + 1)]
            pairs = zip(*(child.counts for child in self.children), strict=True)
            self.counts = [sum(pair) for pair in pairs]

    def nodes(self):
        """Return all nodes of the subtree in preorder."""
        return [self] + [node for child in self.children for node in child.nodes()]

    def path(self, row):
        """Return the nodes that a row passes, down to a leaf."""
        if not self.children:
            return [self]
        return [self, *self.children[int(row[self.column] > self.threshold)].path(row)]

    def prunings(self):
        """Return every set of nodes that may be the leaves of the pruned tree."""
        whole = [frozenset([self])]
        if not self.children:
            return whole
        left, right = (child.prunings() for child in self.children)
        return whole + [a | b for a, b in product(left, right)]


def objective(roots, leaves, tradeoff, rows, weights, column_items, costs, split_cost=0.0):
    """Return the value of (IP), term by term, where `leaves` are the nodes with z = 1."""
    z = {node: int(node in leaves) for root in roots for node in root.nodes()}
    error = 0.0
    for root in roots:
        n = sum(root.counts)
        for node in root.nodes():
            error += z[node] * (sum(node.counts) - max(node.counts)) / (n * len(roots))
    acquisition = computation = 0.0
    for row, weight in zip(rows, weights, strict=True):
        w = {}
        for root in roots:
            path = root.path(row)
            assert sum(z[node] for node in path) == 1
            computation += weight * sum(node.depth * z[node] for node in path)
            for item in range(len(costs)):
                asking = [
                    n for n in path if n.column is not None and item in column_items[n.column]
                ]
                if asking:
                    before = path[: path.index(asking[0]) + 1]
                    used = 1 - sum(z[node] for node in before)
                    w[item] = max(w.get(item, 0), used)
        acquisition += weight * sum(costs[item] * used for item, used in w.items())
    return error + tradeoff * (acquisition + split_cost * computation) / sum(weights)


def all_prunings(roots):
    """Yield the leaves of every pruning of a forest."""
    for leaves in product(*(root.prunings() for root in roots)):
        yield frozenset().union(*leaves)


def kept_splits(roots, leaves):
    """Return for each split, in preorder, whether it is one of the pruned forest."""
    kept = []

    def walk(node, alive):
        alive = alive and node not in leaves
        if node.children:
            kept.append(alive)
        for child in node.children:
            walk(child, alive)

    for root in roots:
        walk(root, True)
    return kept


def random_tree(rng, depth, n_columns, n_classes, stop=0.25):
    """Return a random tree over columns in [0, 1] whose leaves have random whole counts."""
    if depth == 0 or rng.random() < stop:
        return [int(count) for count in rng.integers(1, 9, n_classes)]
    children = [random_tree(rng, depth - 1, n_columns, n_classes, stop) for _ in range(2)]
    return (int(rng.integers(n_columns)), float(rng.random()), *children)
