"""Output about a budgeted forest: its size, trees as boxes, paths in words, and SQL."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.errors import ParameterError
from bayescascade.data.labels import class_number
from bayescascade.data.levels import level_text, plain_level, quoted
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.data.matrix_sides import readable_sql
from bayescascade.data.number_words import split_at
from bayescascade.data.sql import (
    sql_case,
    sql_cell,
    sql_column,
    sql_condition,
    sql_is_up_to,
    sql_literal,
)
from bayescascade.methods.budget.forests.forest import Forest
from bayescascade.report.axes import class_color
from bayescascade.report.box_tree import BoxTree
from bayescascade.report.layout import wrap
from bayescascade.report.numbers import count_texts, probability_text
from bayescascade.report.page import count_of

_LABEL_WIDTH = 28  # characters per line of a box


def size_pieces(forest: Forest) -> list[str]:
    """Return the size of a forest."""
    return [
        count_of(forest.n_trees, "tree"),
        count_of(forest.n_splits, "split"),
        f"mean depth {_mean_depth(forest):.1f}",
        f"{forest.n_classes} classes",
    ]


def label_sql(forest: Forest, encoder: MatrixEncoder, classes: NDArray[Any], label: object) -> str:
    """Return the result of `BudgetedClassifier.to_sql`."""
    if label is None:
        if forest.n_trees > 1:
            raise ParameterError(
                f"label must be a class where several trees vote, here {forest.n_trees}, got None"
            )
        best = classes[forest.probabilities.argmax(axis=1)].tolist()
        values = [sql_literal(plain_level("label", one)) for one in best]
    else:
        number = class_number(classes, label)
        values = [sql_literal(p) for p in forest.probabilities[:, number].tolist()]
    return forest_sql(forest, encoder, values)


def _mean_depth(forest: Forest) -> float:
    """Return the mean number of splits on a training row's path through a tree."""
    is_leaf = ~forest.is_split
    weights = forest.counts[is_leaf].sum(axis=1)
    return float(np.average(forest.n_above()[is_leaf], weights=weights))


def forest_sql(forest: Forest, encoder: MatrixEncoder, values: Sequence[str]) -> str:
    """Return SQL for the value at a row's leaf; for several trees, their mean.

    `values` are SQL expressions for all nodes; refused unknown levels give NULL.
    """
    lines, *others = (_tree_sql(forest, t, encoder, values) for t in range(forest.n_trees))
    if others:
        lines = ["(", *lines]
        for first, *rest in others:
            lines += [f"+ {first}", *rest]
        lines.append(f") / {forest.n_trees}")
    known = readable_sql(encoder)
    return "\n".join(sql_case([(known, lines)]) if known else lines)


def _tree_sql(
    forest: Forest, tree: int, encoder: MatrixEncoder, values: Sequence[str]
) -> list[str]:
    """Return lines of SQL that select the value at a row's leaf in a tree."""
    lines = [[value] for value in values]
    start, end = (int(node) for node in forest.tree_starts[tree : tree + 2])
    for node in range(end - 1, start - 1, -1):  # children follow their parents
        if forest.feature[node] >= 0:
            goes_left = _goes_left(forest, node, encoder)
            lines[node] = sql_case([(goes_left, lines[node + 1])], lines[forest.right[node]])
    return lines[start]


def _goes_left(forest: Forest, node: int, encoder: MatrixEncoder) -> str:
    column, threshold = int(forest.feature[node]), float(forest.threshold[node])
    place = int(encoder.source[column])
    levels = encoder.levels[place]
    if levels is None:
        name = sql_cell(encoder.names[place], encoder.codes_of(place), is_text=False)
    else:
        name = sql_column(levels)
    codes = encoder.codes_up_to(column, threshold)
    if levels is None or codes is None:
        condition = sql_is_up_to(name, threshold)
    else:
        condition = sql_condition(levels, codes)
    if not forest.missing_left[node]:
        return condition  # false for missing or unknown cells
    if levels is None:
        return f"({condition} OR {name} IS NULL)"
    known = sql_condition(levels, range(levels.n_levels))
    return f"({condition} OR {name} IS NULL OR NOT {known})"


def class_tree_boxes(
    forest: Forest, tree: int, encoder: MatrixEncoder, classes: NDArray[Any], imagined: float = 0.0
) -> BoxTree:
    """Return a tree as boxes, leaves in the color of their class, without `imagined` rows."""
    nodes = slice(*forest.tree_starts[tree : tree + 2].tolist())
    parents = forest.parents[nodes] - forest.tree_starts[tree]
    one = forest.part(nodes)
    class_texts = [level_text(label) for label in classes.tolist()]
    rows = count_texts((one.counts - imagined).sum(axis=1).tolist())
    texts, fills = [], []
    for node, (parent, shares) in enumerate(zip(parents.tolist(), one.probabilities, strict=True)):
        words = "everyone"
        if node > 0:
            words = split_words(
                encoder, int(one.feature[parent]), float(one.threshold[parent]), node == parent + 1
            )
        best, chance = int(shares.argmax()), 1 / shares.size
        class_lines = wrap(f"{class_texts[best]} {probability_text(shares[best])}", _LABEL_WIDTH)
        texts.append([*wrap(words, _LABEL_WIDTH), f"{rows[node]} rows", *class_lines])
        strength = 0.1 + 0.5 * (shares[best] - chance) / (1 - chance)
        fills.append("" if one.feature[node] >= 0 else class_color(best, strength))
    return BoxTree(texts, fills, np.maximum(parents, -1))


def path_words(forest: Forest, leaf: int, encoder: MatrixEncoder) -> str:
    """Return the splits on the path to a leaf in words, from the root."""
    words: list[str] = []
    parents, node = forest.parents.tolist(), leaf
    while (parent := parents[node]) >= 0:
        column, threshold = int(forest.feature[parent]), float(forest.threshold[parent])
        words.insert(0, split_words(encoder, column, threshold, node == parent + 1))
        node = parent
    return " and ".join(words) or "any row"


def split_words(encoder: MatrixEncoder, column: int, threshold: float, is_left: bool) -> str:
    """Return a side of a split, such as "age is at most 30"; "missing" above the largest number."""
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
