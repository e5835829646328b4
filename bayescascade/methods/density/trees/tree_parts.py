"""Properties of the nodes of a density tree: gains, conditions, levels, SQL and a picture.

Inside an independent leaf, levels stand out if their probability is far from their share of its
box. By width, a set of levels has the share ``u`` of its column's remaining levels; in the leaf it
has the probability ``q``. The information of this is ``q ln(q / u) + (1 - q) ln((1 - q) / (1 -
u))`` nats.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import rel_entr

from bayescascade.base.arrays import Codes, Floats, Integers
from bayescascade.data.column import Column
from bayescascade.data.schema import Conditions, Schema
from bayescascade.data.sql import sql_case, sql_condition, sql_literal
from bayescascade.methods.density.trees.tree import Tree, block_codes
from bayescascade.report.axes import ratio_color
from bayescascade.report.box_tree import BoxTree
from bayescascade.report.layout import wrap
from bayescascade.report.numbers import probability_text

_LEAST_NATS = 0.1  # for each row
_LEAST_TOTAL = 3.0  # nats for a leaf's rows: 20 times as likely as by width
_MOST_LEVELS = 3  # of a nominal column in one set
_MOST_RATIO = 0.5  # largest ratio of a rare level

_LABEL_WIDTH = 28  # characters in a line of a box
_MOST_STANDOUTS = 2  # standouts of an independent leaf


def branch_gains(
    tree: Tree,
    counts: Floats,
    probabilities: Floats,
    log_volumes: Floats,
    level_probabilities: Floats | None,
    starts: Integers,
) -> Floats:
    """Return what each node gains as a branch of its parent, (n_nodes,) float64 >= 0 nats.

    With ``n`` rows at a node, a branch with the share ``q`` of its probability and ``u`` of its
    volume gains ``n (q ln(q / u) - q + u)`` over a uniform node. If leaves are independent inside,
    the node would be, too, with the mixture of the leaves' levels. Then a branch gains ``n q``
    times the divergence of its levels from the node's, for all columns except that of the split.
    Counts, probabilities and log volumes are those of nodes, the others as in `LearnedDensityTree`.
    """
    gains, nodes = np.zeros(tree.n_nodes), np.arange(1, tree.n_nodes)
    parents = tree.parent[nodes]
    weights, above = counts[parents], probabilities[parents]
    q = np.divide(probabilities[nodes], above, out=np.zeros(nodes.size), where=above > 0)
    if level_probabilities is None:
        u = np.exp(log_volumes[nodes] - log_volumes[parents])
        gains[nodes] = weights * (rel_entr(q, u) - q + u)
        return gains.clip(min=0.0)
    totals = probabilities[:, np.newaxis]
    levels = tree.summed(level_probabilities * totals[tree.leaves])
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
    """Return the nested tree below a node under conditions, and its leaves in order."""
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
    """Return the share of each leaf that satisfies conditions, and the levels' probabilities."""
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
            # if all remaining levels have probability 0, any distribution is valid
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


class LeafStandout(NamedTuple):
    """Levels of a column that stand out inside a leaf."""

    column: int
    codes: tuple[int, ...]  # ascending
    probability: float  # of these levels together, inside the leaf

    def words(self, schema: Schema) -> str:
        """Return it in words, such as "wind is yes 0.93"."""
        condition = schema.columns[self.column].condition_words(self.codes)
        return f"{condition} {probability_text(self.probability)}"


def standouts(density: Any, leaf: int) -> list[LeafStandout]:
    """Return the sets of levels that most rows of a leaf have, the most informative first.

    For each column, it is the set with the largest ``q - u``, contiguous if ordered, otherwise of
    at most three levels. Its information must be at least 0.1 nats, and 3 nats for all rows of the
    leaf, because a few rows may be alike by chance.
    """
    if density.level_probabilities is None:
        return []
    least = _LEAST_TOTAL / density.counts[leaf] if density.counts[leaf] > 0 else np.inf
    found = []
    for column, codes in enumerate(density.boxes[leaf]):
        shares, by_width = density.level_shares(leaf, column), density.width_shares(leaf, column)
        excess = shares - by_width
        if density.is_nominal[column]:
            order = np.argsort(-excess, kind="stable")[:_MOST_LEVELS]
            chosen = np.sort(order[excess[order] > 0])
        else:
            chosen = _largest_run(excess)
        q, u = min(1.0, float(shares[chosen].sum())), min(1.0, float(by_width[chosen].sum()))
        worth = float(rel_entr(q, u) + rel_entr(1 - q, 1 - u))
        if q >= 0.5 and q > u and worth >= max(_LEAST_NATS, least):
            found.append((worth, LeafStandout(column, tuple(codes[i] for i in chosen), q)))
    found.sort(key=lambda item: -item[0])
    return [standout for _, standout in found]


def rarities(density: Any, leaf: int, codes: Codes) -> list[LeafStandout]:
    """Return the levels of a coded row with ``q`` of at most half of ``u``, the rarest first."""
    found = []
    for column, (code, left) in enumerate(zip(codes.tolist(), density.boxes[leaf], strict=True)):
        if code < 0:
            continue
        share = float(density.level_shares(leaf, column)[left.index(code)])
        ratio = share / float(density.width_shares(leaf, column)[left.index(code)])
        if ratio <= _MOST_RATIO:
            found.append((ratio, LeafStandout(column, (code,), share)))
    found.sort(key=lambda item: item[0])
    return [standout for _, standout in found]


def _largest_run(excess: Floats) -> NDArray[np.intp]:
    """Return the positions of the run of numbers with the largest sum."""
    before = np.concatenate([[0.0], np.cumsum(excess)])
    gains = before[1:] - np.minimum.accumulate(before)[:-1]
    last = int(np.argmax(gains))
    first = int(np.argmin(before[: last + 1]))
    return np.arange(first, last + 1)


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
        with np.errstate(divide="ignore"):  # for a level without rows
            logs = np.log(density.level_shares(leaf, j)) - np.log(column.widths[list(left)])
        first, *others = sql_case(
            (sql_condition(column, [code]), [sql_literal(log)])
            for code, log in zip(left, logs.tolist(), strict=True)
        )
        lines += [f"+ {first}", *others]
    return lines


def tree_picture(density: Any) -> BoxTree:
    """Return the boxes of a tree, leaves colored by their density."""
    fills = [_fill(density, node) for node in range(density.tree.n_nodes)]
    return BoxTree(_box_texts(density), fills, density.tree.parent)


def _box_texts(density: Any) -> list[list[str]]:
    """Return the lines in every node's box."""
    rows, shares, _, _, ratios = (column.texts for column in density.number_columns())
    noun = "expected rows" if density.conditions else "rows"
    boxes = []
    for node in range(density.tree.n_nodes):
        lines = [
            *wrap(density.branch_words(node), _LABEL_WIDTH),
            f"{rows[node]} {noun}, {shares[node]}",
        ]
        if density.tree.feature[node] < 0:
            lines.append(f"{ratios[node]} x uniform")
            for standout in density.standouts(node)[:_MOST_STANDOUTS]:
                lines += wrap(f"mostly {standout.words(density.schema)}", _LABEL_WIDTH)
        boxes.append(lines)
    if density.conditions:
        boxes[0] = [*wrap(density.given_text, _LABEL_WIDTH), *boxes[0]]
    return boxes


def _fill(density: Any, node: int) -> str:
    """Return a leaf's color, as in "#4389cd"; empty for inner nodes."""
    if density.tree.feature[node] >= 0:
        return ""
    return ratio_color(float(density.log_densities[node] + density.log_volumes[0]))
