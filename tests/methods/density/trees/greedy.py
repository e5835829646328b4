"""Slow, obvious twins of the density estimation tree. Nothing here imports the packages under test.

Trees and problems are those of `tests.reference`.
"""

from itertools import product

from tests import reference


def part_of_volume(box, problem):
    """Return a box's part of the volume of the domain."""
    part = 1.0
    for codes, widths in zip(box, problem["widths"], strict=True):
        part *= sum(widths[c] for c in codes) / sum(widths)
    return part


def node_error(box, problem):
    """Ram and Gray's R(t), the volume of the domain being 1."""
    weight = reference.weight_in(box, problem["rows"], problem["weights"])
    return -((weight / sum(problem["weights"])) ** 2) / part_of_volume(box, problem)


def tree_error(tree, problem):
    return sum(node_error(b, problem) for b in reference.leaves_of(tree, problem["n_levels"]))


def two_ways(codes, is_nominal):
    """Yield every way to share out codes into two blocks; of ordered ones the first cut first."""
    if is_nominal:
        yield from (sorted(way) for way in reference.partitions(codes) if len(way) == 2)
    else:
        yield from ((codes[:cut], codes[cut:]) for cut in range(1, len(codes)))


def grown(problem, min_leaf_size, max_leaf_size, box=None):
    """Return the greedy tree: at every node the split that lessens the error most."""
    box = box or tuple(tuple(range(q)) for q in problem["n_levels"])
    if weight(box, problem) <= max_leaf_size:
        return None
    best_error, best = node_error(box, problem), None
    for j, codes in enumerate(box):
        for blocks in two_ways(codes, problem["nominal"][j]) if len(codes) > 1 else ():
            sides = [(*box[:j], block, *box[j + 1 :]) for block in blocks]
            error = sum(node_error(side, problem) for side in sides)
            is_allowed = all(weight(side, problem) >= min_leaf_size for side in sides)
            if is_allowed and error < best_error - 1e-9 * abs(best_error):  # not of equal ones
                best_error, best = error, (j, blocks, sides)
    if best is None:
        return None
    j, blocks, sides = best
    children = [grown(problem, min_leaf_size, max_leaf_size, side) for side in sides]
    return j, list(zip(blocks, children, strict=True))


def weight(box, problem):
    return reference.weight_in(box, problem["rows"], problem["weights"])


def pruned_trees(tree):
    """Return every tree that pruning can make of a tree."""
    if tree is None:
        return [None]
    column, branches = tree
    below = product(*(pruned_trees(child) for _, child in branches))
    blocks = [codes for codes, _ in branches]
    return [None, *((column, list(zip(blocks, chosen, strict=True))) for chosen in below)]
