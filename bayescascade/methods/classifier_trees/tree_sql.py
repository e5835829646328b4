"""What a tree of classifiers says of a row, as standard SQL."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from bayescascade.data.matrix import MatrixEncoder
from bayescascade.data.matrix_sides import readable_sql, value_sql
from bayescascade.data.sql import sql_case, sql_literal
from bayescascade.methods.classifier_trees.basis import Basis
from bayescascade.methods.classifier_trees.tree import ClassifierTree, Linear

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]

Score: TypeAlias = Callable[..., str]


def tree_sql(
    tree: ClassifierTree,
    encoder: MatrixEncoder,
    means: Numbers | None,
    classes: Sequence[str],
    number: int | None,
) -> str:
    """Return the probability of a class by its number, or the most probable of `classes`.

    means (n_matrix_columns,): what unknown cells become, None if they are errors, which make NULL.
    """
    texts = [value_sql(encoder, column, means) for column in range(encoder.source.size)]

    def score(linear: Linear, weights: Numbers, constant: float = 0.0) -> str:
        """Return a combination of the outputs and a constant."""
        intercept = float(weights @ linear.intercepts) + constant
        columns = linear.columns
        return _score(weights @ linear.coefficients, intercept, columns, tree.basis, texts)

    told: dict[int, list[str]] = {}
    for place in reversed(range(len(tree.nodes))):
        node = tree.nodes[place]
        if node.is_leaf:
            told[place] = [_answer(node.leaf, score, classes, number)]
        else:
            is_above = f"{score(node.gate, np.ones(1))} > {sql_literal(node.threshold)}"
            above, below = (told.pop(child) for child in node.children)
            told[place] = sql_case([(is_above, above)], below)
    known = readable_sql(encoder)
    return "\n".join(sql_case([(known, told[0])]) if known else told[0])


def _score(
    coefficients: Numbers, intercept: float, chosen: Places, basis: Basis, texts: Sequence[str]
) -> str:
    """Return a linear score; the steps of a column are one CASE, of sums up to each."""
    terms = [sql_literal(intercept)]
    columns, cuts = basis.column[chosen], basis.cut[chosen]
    for column in np.unique(columns).tolist():
        here, text = columns == column, texts[column]
        slope = float(coefficients[here & np.isnan(cuts)].sum())
        if slope:
            terms.append(f"{sql_literal(slope)} * {text}")
        steps, heights = cuts[here & ~np.isnan(cuts)], coefficients[here & ~np.isnan(cuts)]
        if heights.any():
            order = np.argsort(steps)
            sums = np.cumsum(heights[order])[::-1].tolist()
            cases = zip(steps[order][::-1].tolist(), sums, strict=True)
            whens = [f"WHEN {text} > {sql_literal(c)} THEN {sql_literal(h)}" for c, h in cases]
            terms.append(f"CASE {' '.join(whens)} ELSE 0e0 END")
    return f"({' + '.join(terms)})"


def _answer(leaf: Linear, score: Score, classes: Sequence[str], number: int | None) -> str:
    """Return what a leaf answers: a class, or the probability of one."""
    n = len(classes)
    others = [place for place in range(n) if place != number]
    if leaf.kind == "softmax":
        signs = np.eye(n)[:, n - leaf.intercepts.size :]  # of two classes the second has a score
        if number is not None:
            powers = [f"EXP{score(leaf, signs[other] - signs[number])}" for other in others]
            return f"1e0 / (1e0 + {' + '.join(powers)})"
        ahead = [
            [f"{score(leaf, signs[place] - signs[other])} >= 0e0" for other in range(place + 1, n)]
            for place in range(n)
        ]
    else:
        signs, constants = np.eye(n), np.zeros(n)
        if leaf.intercepts.size < n:
            signs, constants = np.array([[-1.0], [1.0]]), np.array([1.0, 0.0])
        pairs = zip(signs, constants.tolist(), strict=True)
        shares = [_clipped(score(leaf, *pair)) for pair in pairs]
        if number is not None:
            return f"{shares[number]} / ({' + '.join(shares)})"
        ahead = [[f"{shares[k]} >= {other}" for other in shares[k + 1 :]] for k in range(n)]
    whens = [
        f"WHEN {' AND '.join(conditions)} THEN {name}"  # what was before is less than one of these
        for conditions, name in zip(ahead[:-1], classes[:-1], strict=True)
    ]
    return f"CASE {' '.join(whens)} ELSE {classes[-1]} END"


def _clipped(share: str) -> str:
    """Return an output as `Linear.probabilities` clips it."""
    return f"CASE WHEN {share} < 1e-6 THEN 1e-6 WHEN {share} > 1e0 THEN 1e0 ELSE {share} END"
