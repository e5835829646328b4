"""Pictures of forests: one of its trees, or what its features cost."""

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from bayescascade.data.levels import quoted
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.data.number_words import split_at
from bayescascade.methods.forests.forest import Forest
from bayescascade.report.axes import class_color
from bayescascade.report.bars import Bar
from bayescascade.report.box_tree import BoxTree
from bayescascade.report.layout import wrap
from bayescascade.report.numbers import cost_texts, count_texts, probability_text, share_text

_LABEL_WIDTH = 28  # characters of a box's line


def class_tree_boxes(
    forest: Forest,
    tree: int,
    encoder: MatrixEncoder,
    class_texts: Sequence[str],
    imagined: float = 0.0,
) -> BoxTree:
    """Return one of a forest's trees as boxes; leaves have the color of their commonest class.

    imagined >= 0: rows of each class that every node's counts have beyond those that were seen.
    """
    nodes = slice(*forest.tree_starts[tree : tree + 2].tolist())
    parents = forest.parents[nodes] - forest.tree_starts[tree]
    one = forest.part(nodes)
    rows = count_texts((one.counts - imagined).sum(axis=1).tolist())
    texts, fills = [], []
    for node, (parent, shares) in enumerate(zip(parents.tolist(), one.probabilities, strict=True)):
        words = "everyone"
        if node > 0:
            words = split_words(
                encoder, int(one.feature[parent]), float(one.threshold[parent]), node == parent + 1
            )
        best, chance = int(shares.argmax()), 1 / shares.size
        texts.append(
            [
                *wrap(words, _LABEL_WIDTH),
                f"{rows[node]} rows",
                *wrap(f"{class_texts[best]} {probability_text(shares[best])}", _LABEL_WIDTH),
            ]
        )
        strength = 0.1 + 0.5 * (shares[best] - chance) / (1 - chance)
        fills.append("" if one.feature[node] >= 0 else class_color(best, strength))
    return BoxTree(texts, fills, np.maximum(parents, -1))


def path_words(forest: Forest, leaf: int, encoder: MatrixEncoder) -> str:
    """Return the splits on the way to a leaf in words, the first one first."""
    told: list[str] = []
    parents, node = forest.parents.tolist(), leaf
    while (parent := parents[node]) >= 0:
        column, threshold = int(forest.feature[parent]), float(forest.threshold[parent])
        told.insert(0, split_words(encoder, column, threshold, node == parent + 1))
        node = parent
    return " and ".join(told) or "any row"


def split_words(encoder: MatrixEncoder, column: int, threshold: float, is_left: bool) -> str:
    """Return one side of a split of a matrix column in words, such as "age is at most 30".

    If the threshold is above all numbers, the other side is that of missing cells.
    """
    place = int(encoder.source[column])
    name, levels = quoted(encoder.names[place]), encoder.levels[place]
    if threshold >= np.finfo(np.float32).max:
        return f"{name} is {'not ' * is_left}missing"
    codes: Collection[int] | None = encoder.codes_up_to(column, threshold)
    number = encoder.numbers[place] if encoder.numbers else None
    if number is not None:
        levels, codes = split_at(number, threshold) or (None, None)
    if levels is None or codes is None:
        return f"{name} is {'at most' if is_left else 'above'} {threshold:.6g}"
    if not is_left:
        codes = [code for code in range(levels.n_levels) if code not in codes]
    return levels.condition_words(codes, is_open=True)


def cost_bars(acquired: Iterable[tuple[str, float, float]]) -> list[Bar]:
    """Return a bar for each name, cost and share of the rows: what is spent on it."""
    listed = list(acquired)
    if not listed:
        return [Bar("nothing is acquired", (0.0,))]
    costs = cost_texts([cost for _, cost, _ in listed])
    return [
        Bar(f"{name} ({text})", (cost * share,), f"{share_text(share)} of the rows")
        for text, (name, cost, share) in zip(costs, listed, strict=True)
    ]
