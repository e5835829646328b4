"""The log density of a tree as standard SQL."""

from typing import Any

import numpy as np

from bayescascade.data.sql import sql_case, sql_condition, sql_literal


def tree_sql(density: Any, node: int = 0) -> list[str]:
    """Return the log density of rows below a node, as lines of SQL."""
    children = density.tree.children(node)
    if not children and density.level_probabilities is None:
        return [sql_literal(float(density.log_densities[node]))]
    if not children:
        return _independent_sql(density, node)
    column = density.schema.columns[density.tree.feature[node]]
    return sql_case(
        (sql_condition(column, density.branch_codes(child)), tree_sql(density, child))
        for child in children
    )


def _independent_sql(density: Any, leaf: int) -> list[str]:
    """Return the log density inside an independent leaf: a term for each column."""
    lines = [sql_literal(float(np.log(density.probabilities[leaf])))]
    for j, (column, left) in enumerate(
        zip(density.schema.columns, density.boxes[leaf], strict=True)
    ):
        with np.errstate(divide="ignore"):  # of a level that no row has
            logs = np.log(density.level_shares(leaf, j)) - np.log(column.widths[list(left)])
        first, *others = sql_case(
            (sql_condition(column, [code]), [sql_literal(log)])
            for code, log in zip(left, logs.tolist(), strict=True)
        )
        lines += [f"+ {first}", *others]
    return lines
