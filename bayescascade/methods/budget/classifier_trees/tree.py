"""A tree of linear classifiers: purchases and gates of its nodes, and predictors of leaves."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, TypeAlias

import numpy as np
from scipy.special import softmax

from bayescascade.base.arrays import Flags, Floats, Integers
from bayescascade.base.store import GIVEN, Of, Saved, Words
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.data.matrix_sides import readable_sql, value_sql
from bayescascade.data.sql import sql_case, sql_literal
from bayescascade.methods.budget.classifier_trees.basis import Basis

Score: TypeAlias = Callable[..., str]


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """Linear predictor: c outputs of p columns of a basis, in the units of the columns.

    columns (p,); coefficients (c, p); intercepts (c,); link: "softmax" of the outputs, without the
    first class if c is one less than the classes; "shares", outputs clipped at 0.
    """

    columns: Annotated[Integers, Of(None, kind=np.int64, below="basis")]
    coefficients: Annotated[Floats, Of(None, None)]
    intercepts: Annotated[Floats, Of(None)]
    link: Annotated[str, Words("softmax", "shares"), Saved("kind")] = "softmax"

    def __post_init__(self) -> None:
        if self.coefficients.shape != (self.intercepts.size, self.columns.size):
            raise ValueError("coefficients must be of each output and column")

    def outputs(self, basis: Basis, rows: Floats) -> Floats:
        """Return the outputs, (n, c), of rows of the matrix."""
        made = basis.of_rows(rows, self.columns)
        return made @ self.coefficients.T + self.intercepts

    def probabilities(self, basis: Basis, rows: Floats) -> Floats:
        """Return the probability of each class, (n, n_classes), of rows of the matrix."""
        outputs = self.outputs(basis, rows)
        if self.link == "softmax":
            if outputs.shape[1] == 1:
                outputs = np.column_stack([np.zeros(len(outputs)), outputs])
            chances: Floats = softmax(outputs, axis=1)
            return chances
        if outputs.shape[1] == 1:
            outputs = np.column_stack([1 - outputs, outputs])
        outputs = outputs.clip(1e-6, 1.0)
        shares: Floats = outputs / outputs.sum(axis=1, keepdims=True)
        return shares


@dataclass(frozen=True, slots=True, eq=False)
class ClassifierNode:
    """A node: its purchase, its gate, and its predictor as a leaf."""

    # (k,) int64: features in the order of buying, without those of nodes above
    bought: Annotated[Integers, Of("bought", kind=np.int64, below="features")]
    # (k,) float64: contribution of each to the share of variance explained at the node; if
    # features are bought together, norms of their coefficients for columns of variance 1
    gains: Annotated[Floats, Of("bought")]
    # explained, bound: that share with all features on the path, and a bound for all sets
    # within the node's budget
    explained: float
    bound: float
    is_exact: bool  # whether it is proved by comparing all sets
    weight: float  # weight of the training rows that reach it
    gate: Linear  # the score to compare with the threshold; one output
    threshold: float  # rows with a score above it go to the first child
    children: tuple[int, int]  # the nodes above and below the threshold; (-1, -1) for a leaf
    leaf: Linear  # its predictor as a leaf

    @property
    def is_leaf(self) -> bool:
        """Whether it has no children."""
        return self.children[0] < 0

    @property
    def coefficients(self) -> Floats:
        """Coefficients of the gate, (p,), in the units of the columns."""
        coefficients: Floats = self.gate.coefficients[0]
        return coefficients

    @property
    def intercept(self) -> float:
        """Intercept of the gate."""
        return float(self.gate.intercepts[0])


@dataclass(frozen=True, slots=True, eq=False)
class ClassifierTree:
    """A tree of linear classifiers over the columns of a basis."""

    basis: Basis
    nodes: tuple[ClassifierNode, ...]  # breadth first: nodes[0] is the root
    n_features: Annotated[int, GIVEN]
    n_classes: Annotated[int, GIVEN]

    @property
    def has(self) -> Flags:
        """Which features are bought on the path to each node, including itself, (n_nodes, d)."""
        own = np.zeros((len(self.nodes), self.n_features), np.bool_)
        for place, node in enumerate(self.nodes):
            own[place, node.bought] = True
        return self.handed_down(own)

    def handed_down(self, own: Flags) -> Flags:
        """Return what each node or a node above it has, (n_nodes, d)."""
        has = own.copy()
        for place, node in enumerate(self.nodes):
            if not node.is_leaf:
                has[list(node.children)] |= has[place]
        return has

    def apply(self, rows: Floats) -> Integers:
        """Return the leaf of each row of the matrix, (n,) int64."""
        at = np.zeros(len(rows), np.int64)
        for place, there in self.visited(rows):
            at[there] = place
        return at

    def visited(self, rows: Floats) -> Iterator[tuple[int, Integers]]:
        """Yield each node with the rows that reach it, (n_there,) int64, parents first."""
        waiting = {0: np.arange(len(rows))}
        for place, node in enumerate(self.nodes):
            there = waiting.pop(place)
            yield place, there
            if not node.is_leaf:
                scores = node.gate.outputs(self.basis, rows[there])[:, 0]
                is_above = scores > node.threshold
                waiting[node.children[0]] = there[is_above]
                waiting[node.children[1]] = there[~is_above]

    def predict_proba(self, rows: Floats) -> Floats:
        """Return the probability of each class, (n, n_classes), of rows of the matrix."""
        answers = np.empty((len(rows), self.n_classes))
        for place, there in self.visited(rows):
            node = self.nodes[place]
            if node.is_leaf and there.size:
                answers[there] = node.leaf.probabilities(self.basis, rows[there])
        return answers

    def cut_at(self, leaves: Sequence[int]) -> "ClassifierTree":
        """Return the tree pruned at the nodes `leaves`."""
        cut = [
            replace(n, children=(-1, -1)) if i in leaves else n for i, n in enumerate(self.nodes)
        ]
        kept = [0]
        for place in kept:  # grows as it goes
            kept += [child for child in cut[place].children if child >= 0]
        number = {old: new for new, old in enumerate(kept)} | {-1: -1}
        nodes = []
        for old in kept:
            above, below = cut[old].children
            nodes.append(replace(cut[old], children=(number[above], number[below])))
        return replace(self, nodes=tuple(nodes))

    def check(self) -> None:
        """Raise ValueError if this is no tree, or a node reads a feature that is not bought."""
        children = [child for node in self.nodes for child in node.children if child >= 0]
        if not self.nodes or sorted(children) != list(range(1, len(self.nodes))):
            raise ValueError("nodes must each be the child of one node before")
        n_outputs = 1 if self.n_classes == 2 else self.n_classes
        for place, (has, node) in enumerate(zip(self.has, self.nodes, strict=True)):
            above, below = node.children
            if (above < 0) != (below < 0) or (above >= 0 and min(above, below) <= place):
                raise ValueError("children must come after their parent")
            if np.unique(node.bought).size < node.bought.size:
                raise ValueError("a node must buy a feature once")
            if (node.gate.intercepts.size, node.leaf.intercepts.size) != (1, n_outputs):
                raise ValueError("a gate must have one output, and a leaf those of the classes")
            for linear in (node.gate, node.leaf):
                if not has[self.basis.feature[linear.columns]].all():
                    raise ValueError("a node must read only what is bought on its path")


def tree_sql(
    tree: ClassifierTree,
    encoder: MatrixEncoder,
    means: Floats | None,
    classes: Sequence[str],
    number: int | None,
) -> str:
    """Return the probability of a class by its number, or the most probable of `classes`.

    means (n_matrix_columns,): replace unknown cells; None if these are errors, which give NULL.
    """
    texts = [value_sql(encoder, column, means) for column in range(encoder.source.size)]

    def score(linear: Linear, weights: Floats, constant: float = 0.0) -> str:
        """Return a combination of the outputs and a constant."""
        intercept = float(weights @ linear.intercepts) + constant
        columns = linear.columns
        return _score(weights @ linear.coefficients, intercept, columns, tree.basis, texts)

    lines: dict[int, list[str]] = {}
    for place in reversed(range(len(tree.nodes))):
        node = tree.nodes[place]
        if node.is_leaf:
            lines[place] = [_answer(node.leaf, score, classes, number)]
        else:
            is_above = f"{score(node.gate, np.ones(1))} > {sql_literal(node.threshold)}"
            above, below = (lines.pop(child) for child in node.children)
            lines[place] = sql_case([(is_above, above)], below)
    known = readable_sql(encoder)
    return "\n".join(sql_case([(known, lines[0])]) if known else lines[0])


def _score(
    coefficients: Floats, intercept: float, chosen: Integers, basis: Basis, texts: Sequence[str]
) -> str:
    """Return a linear score; the steps of a column are one CASE of cumulative sums."""
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
    """Return the prediction of a leaf: a class, or the probability of one."""
    n = len(classes)
    others = [place for place in range(n) if place != number]
    if leaf.link == "softmax":
        signs = np.eye(n)[:, n - leaf.intercepts.size :]  # the second of two classes has a score
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
        scores = [score(leaf, *pair) for pair in pairs]
        shares = [  # as `Linear.probabilities` clips them
            f"CASE WHEN {score} < 1e-6 THEN 1e-6 WHEN {score} > 1e0 THEN 1e0 ELSE {score} END"
            for score in scores
        ]
        if number is not None:
            return f"{shares[number]} / ({' + '.join(shares)})"
        ahead = [[f"{shares[k]} >= {other}" for other in shares[k + 1 :]] for k in range(n)]
    whens = [
        f"WHEN {' AND '.join(conditions)} THEN {name}"  # each previous one is below one of these
        for conditions, name in zip(ahead[:-1], classes[:-1], strict=True)
    ]
    return f"CASE {' '.join(whens)} ELSE {classes[-1]} END"
