"""The slow twin of boosted trees: a dictionary for a node, sums over its rows, every cut tried."""

from typing import Any

import numpy as np

Node = dict[str, Any]


def grown(codes, n_bins, gradients, curvatures, growth, incurred, costs, prices):
    """Return the root of a tree; what is paid in prices changes.

    growth: depth, ridge, least, rate; incurred: the items of each column; prices: a dict of once,
    per_row, bought (m,), paid (n, m) and sizes (n,).
    """
    depth, ridge, least, rate = growth

    def worth(rows):
        h = curvatures[rows].sum()
        return gradients[rows].sum() ** 2 / (h + ridge) if h > 0 else 0.0

    def price(rows, column):
        total = 0.0
        for item in incurred[column]:
            total += prices["once"] * costs[item] * (not prices["bought"][item])
            unpaid = rows & ~prices["paid"][:, item]
            total += prices["per_row"] * costs[item] * prices["sizes"][unpaid].sum()
        return total

    def cuts(rows):
        for j in range(codes.shape[1]):
            is_missing = codes[:, j] == n_bins[j]
            sides = (False, True) if (rows & is_missing).any() else (False,)
            for missing_left in sides:
                last = n_bins[j] if len(sides) == 2 and not missing_left else n_bins[j] - 1
                for cut in range(last):
                    left = (codes[:, j] <= cut) | (is_missing & missing_left)
                    yield j, cut, missing_left, rows & left, rows & ~left

    root = {"rows": np.ones(len(codes), bool)}
    level = [root]
    for _ in range(depth):
        below = []
        for node in level:
            best, chosen = 0.0, None
            for j, cut, missing_left, left, right in cuts(node["rows"]):
                if min(curvatures[left].sum(), curvatures[right].sum()) < least:
                    continue
                gain = 0.5 * (worth(left) + worth(right) - worth(node["rows"]))
                gain -= price(node["rows"], j)
                if gain > best + 1e-12:
                    best, chosen = gain, (j, cut, missing_left, left, right)
            if chosen is None:
                continue
            j, cut, missing_left, left, right = chosen
            for item in incurred[j]:
                prices["bought"][item] = True
                prices["paid"][node["rows"], item] = True
            node |= {"column": j, "cut": cut, "missing_left": missing_left}
            node |= {"children": [{"rows": left}, {"rows": right}]}
            below += node["children"]
        level = below

    def value(node):
        for child in node.get("children", ()):
            value(child)
        h = curvatures[node["rows"]].sum()
        node["value"] = rate * gradients[node["rows"]].sum() / (h + ridge) if h > 0 else 0.0

    value(root)
    return root


def scores(root, n_rows):
    """Return what the leaves add to each row."""
    added, waiting = np.zeros(n_rows), [root]
    while waiting:
        node = waiting.pop()
        waiting += node.get("children", [])
        if "children" not in node:
            added[node["rows"]] = node["value"]
    return added
