"""Trees of classes as expressions of standard SQL."""

from collections.abc import Sequence

from bayescascade.data.matrix import MatrixEncoder
from bayescascade.data.sql import sql_case, sql_cell, sql_column, sql_condition, sql_is_up_to
from bayescascade.methods.forests.forest import Forest


def forest_sql(forest: Forest, encoder: MatrixEncoder, values: Sequence[str]) -> str:
    """Return the value at the leaf that a row comes to, in SQL; of several trees, their mean.

    `encoder` is of the forest's columns; where its policy refuses unknown levels, they make NULL.
    `values` are SQL expressions of every node of the forest, of numbers if there are several trees.
    """
    told, *others = (_tree_sql(forest, t, encoder, values) for t in range(forest.n_trees))
    if others:
        told = ["(", *told]
        for first, *rest in others:
            told += [f"+ {first}", *rest]
        told.append(f") / {forest.n_trees}")
    known = _known_levels_sql(encoder)
    return "\n".join(sql_case([(known, told)]) if known else told)


def _tree_sql(
    forest: Forest, tree: int, encoder: MatrixEncoder, values: Sequence[str]
) -> list[str]:
    """Return which of the values is at the leaf of a tree that a row comes to, as lines."""
    told = [[value] for value in values]
    start, end = (int(node) for node in forest.tree_starts[tree : tree + 2])
    for node in range(end - 1, start - 1, -1):  # children stand behind their parents
        if forest.feature[node] >= 0:
            goes_left = _goes_left(forest, node, encoder)
            told[node] = sql_case([(goes_left, told[node + 1])], told[forest.right[node]])
    return told[start]


def _known_levels_sql(encoder: MatrixEncoder) -> str:
    """Return the condition that no level is an error; empty where none can be."""
    if encoder.policy.unknown != "error":
        return ""
    conditions = [
        f"({sql_condition(levels, range(levels.n_levels))} OR {sql_column(levels)} IS NULL)"
        for levels in encoder.levels
        if levels is not None
    ]
    return " AND ".join(conditions)


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
        return condition  # which is not so of what is missing, or unknown
    if levels is None:
        return f"({condition} OR {name} IS NULL)"
    known = sql_condition(levels, range(levels.n_levels))
    return f"({condition} OR {name} IS NULL OR NOT {known})"
