"""Slow, obvious twins of the compiled code. Nothing here imports the packages under test.

A tree is ``None`` (a leaf) or ``(column, ((codes, tree), ...))`` with branches by lowest code. A
problem is given by `n_levels`, `nominal` (per column), `widths` (per column, per level), by
`max_branches` and `partitions`, and by `rows` (tuples of codes) with `weights`.
"""

import math
from itertools import combinations, product


def partitions(items):
    """Yield every partition of a tuple into nonempty blocks, as sorted tuples of tuples."""
    if len(items) == 1:
        yield (items,)
        return
    first, rest = items[0], items[1:]
    for k in range(len(rest) + 1):
        for mates in combinations(rest, k):
            block = (first, *mates)
            left = tuple(x for x in rest if x not in mates)
            if left:
                for others in partitions(left):
                    yield (block, *others)
            else:
                yield (block,)


def runs(items):
    """Yield every way to cut a tuple into consecutive nonempty runs."""
    for cuts in product((False, True), repeat=len(items) - 1):
        blocks, current = [], [items[0]]
        for cut, item in zip(cuts, items[1:], strict=True):
            if cut:
                blocks.append(tuple(current))
                current = []
            current.append(item)
        yield (*blocks, tuple(current))


def all_trees(n_levels, nominal, max_branches, splits="subsets"):
    """Return every tree over the whole domain; "levels": every level left goes its own way."""
    levels = splits == "levels"

    def below(box):
        trees = [None]
        for j, codes in enumerate(box):
            if len(codes) < 2:
                continue
            ways = partitions(codes) if nominal[j] else runs(codes)
            for blocks in ways:
                each_alone = len(blocks) == len(codes)
                if each_alone if levels else 2 <= len(blocks) <= max_branches:
                    children = [below((*box[:j], block, *box[j + 1 :])) for block in blocks]
                    for chosen in product(*children):
                        trees.append((j, tuple(zip(sorted(blocks), chosen, strict=True))))
        return trees

    return below(tuple(tuple(range(q)) for q in n_levels))


def leaves_of(tree, n_levels):
    """Return the box (codes of every column) of every leaf."""

    def walk(node, box):
        if node is None:
            return [box]
        column, branches = node
        found = []
        for codes, child in branches:
            found += walk(child, (*box[:column], tuple(codes), *box[column + 1 :]))
        return found

    return walk(tree, tuple(tuple(range(q)) for q in n_levels))


def weight_in(box, rows, weights):
    return sum(
        w
        for row, w in zip(rows, weights, strict=True)
        if all(c in b for c, b in zip(row, box, strict=True))
    )


def log_volume(box, widths):
    return sum(math.log(sum(widths[j][c] for c in codes)) for j, codes in enumerate(box))


def log_inside(box, problem, leaf, leaf_concentration):
    """Return what a leaf's rows contribute besides the leaf's own weight, term by term."""
    rows, weights, widths = problem["rows"], problem["weights"], problem["widths"]
    count = weight_in(box, rows, weights)
    if leaf == "uniform":
        return -count * log_volume(box, widths)
    if leaf == "dependent":
        from tests.methods.density.trees.slow_dependence import log_evidence

        return log_evidence(box, problem, leaf_concentration)
    a, value = leaf_concentration, 0
    for j, codes in enumerate(box):
        value += math.lgamma(a * len(codes)) - math.lgamma(count + a * len(codes))
        for code in codes:
            level_count = weight_in((*box[:j], (code,), *box[j + 1 :]), rows, weights)
            value += math.lgamma(level_count + a) - math.lgamma(a)
            value -= level_count * math.log(widths[j][code])
    return value


def log_process(tree, problem, stop, max_depth=math.inf):
    """Return the generative log prior of a tree, node by node."""
    n_levels, nominal = problem["n_levels"], problem["nominal"]
    splits, max_branches = problem["partitions"], problem["max_branches"]

    def n_splits(box, depth):
        number = 0
        for j, codes in enumerate(box):
            if len(codes) < 2 or depth == max_depth:
                continue
            ways = partitions(codes) if nominal[j] else runs(codes)
            for blocks in ways:
                if splits == "levels":
                    number += len(blocks) == len(codes)
                else:
                    number += 2 <= len(blocks) <= max_branches
        return number

    def walk(node, box, depth):
        number = n_splits(box, depth)
        if node is None:
            return math.log(stop) if number else 0
        if number == 0:
            return -math.inf
        column, branches = node
        value = math.log(1 - stop) - math.log(number)
        for codes, child in branches:
            value += walk(child, (*box[:column], tuple(codes), *box[column + 1 :]), depth + 1)
        return value

    return walk(tree, tuple(tuple(range(q)) for q in n_levels), 0)


def leaf_log_density(
    tree,
    problem,
    expected_leaves,
    concentration,
    max_leaves=math.inf,
    leaf="uniform",
    leaf_concentration=1.0,
    prior="poisson",
    stop=0.5,
):
    """Model I, term by term; with prior "generative" `log_process` takes the Poisson's place."""
    boxes = leaves_of(tree, problem["n_levels"])
    k, n, alpha = len(boxes), sum(problem["weights"]), concentration
    if k > max_leaves:
        return -math.inf
    if prior == "generative":
        value = log_process(tree, problem, stop)
    else:
        value = -expected_leaves + k * math.log(expected_leaves) - math.lgamma(k + 1)
    value += math.lgamma(k * alpha) - math.lgamma(n + k * alpha)
    for box in boxes:
        count = weight_in(box, problem["rows"], problem["weights"])
        value += math.lgamma(count + alpha) - math.lgamma(alpha)
        value += log_inside(box, problem, leaf, leaf_concentration)
    return value


def branch_log_density(
    tree,
    problem,
    expected_branches,
    concentration,
    feature_inclusion=None,
    leaf="uniform",
    leaf_concentration=1.0,
    prior="poisson",
    stop=0.5,
):
    """Model II, term by term; `prior` as of model I."""
    used, alpha = set(), concentration

    def walk(node, box):
        count = weight_in(box, problem["rows"], problem["weights"])
        if node is None:
            inside = log_inside(box, problem, leaf, leaf_concentration)
            return inside - expected_branches if prior == "poisson" else inside
        column, branches = node
        used.add(column)
        b = len(branches)
        value = 0
        if prior == "poisson":
            value = b * math.log(expected_branches) - math.log(math.factorial(b))
            value -= expected_branches
        value += math.lgamma(b * alpha) - b * math.lgamma(alpha) - math.lgamma(b * alpha + count)
        for codes, child in branches:
            inner = (*box[:column], tuple(codes), *box[column + 1 :])
            value += math.lgamma(alpha + weight_in(inner, problem["rows"], problem["weights"]))
            value += walk(child, inner)
        return value

    value = walk(tree, tuple(tuple(range(q)) for q in problem["n_levels"]))
    if prior == "generative":
        value += log_process(tree, problem, stop)
    if feature_inclusion is not None:
        p, d = len(problem["n_levels"]), len(used)
        value += math.log(math.comb(p, d)) + d * math.log(feature_inclusion)
        value += (p - d) * math.log(1 - feature_inclusion)
    return value
