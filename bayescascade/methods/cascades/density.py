"""A density tree: a cascade with what its leaves hold, and everything a user asks of it.

It needs no data: counts of its nodes, probabilities and the schema are all there is to print it,
score rows (missing cells integrated out), draw rows, condition on evidence and save it.
Inside a uniform leaf of probability ``p`` and volume ``v`` the density is ``p / v``: per cell of
nominal and ordinal columns, per unit of continuous ones. Inside an independent leaf each column has
its own probabilities ``q`` of the levels that are left, of widths ``w``; the density of a row is
``p`` times the product of ``q / w`` over its levels, and ``p / v`` the average over the leaf.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import rel_entr

from bayescascade.data.column import Column
from bayescascade.data.conditions import agrees
from bayescascade.data.sql import sql_case, sql_condition, sql_literal
from bayescascade.methods.cascades.tree_parts import TreeParts
from bayescascade.report.axes import ratio_color
from bayescascade.report.box_tree import BoxTree
from bayescascade.report.folding import shown_nodes
from bayescascade.report.layout import wrap
from bayescascade.report.numbers import density_text
from bayescascade.report.page import Fold, Guided, Numbers, Page, Pieces

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOSTLY = "mostly "  # what stands out inside a leaf, below it
_WON = "the log likelihood that splits gain"
_MOST_TOLD = 3  # levels that stand out, in an explanation

_LABEL_WIDTH = 28  # characters of a box's line
_MOST_STANDOUTS = 2  # levels that stand out inside an independent leaf


@dataclass(frozen=True, eq=False)
class LearnedDensityTree(TreeParts):
    """A density that is uniform or a product over columns inside each leaf of a tree.

    Its parameters are those of `TreeParts`.
    """

    most_lines: ClassVar[int] = 2  # of what stands out inside a leaf

    # -- words -------------------------------------------------------------------------------------

    def rule_words(self, node: int) -> str:
        """Return all conditions of a node, such as "sex is male and class is crew, 3rd"."""
        boxes = zip(self.schema.columns, self.boxes[node], self.boxes[0], strict=True)
        conditions = [column.condition_words(left) for column, left, full in boxes if left != full]
        return " and ".join(conditions) if conditions else "any row"

    def _explanations(self, codes: NDArray[np.int32]) -> Iterator[str]:
        for leaf in self.tree.leaves.tolist():
            box = self.boxes[leaf]
            if all(code < 0 or code in left for code, left in zip(codes, box, strict=True)):
                yield self._leaf_words(leaf, codes)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the tree, with its root on the left, and return the axes.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw into, scaled to fit. By default those of a new figure of the necessary
            size.
        """
        return self._picture.plot(ax)

    def draw(self, target: "str | PathLike[str]") -> None:
        """Draw the tree into a PNG file, which is replaced only when it is complete."""
        self._picture.save(target)

    def to_dot(self) -> str:
        """Return the tree as Graphviz source, for ``dot -Tsvg tree.dot > tree.svg``."""
        return self._picture.dot("cascade")

    @property
    def _picture(self) -> BoxTree:
        fills = [_fill(self, node) for node in range(self.tree.n_nodes)]
        return BoxTree(_box_texts(self), fills, self.tree.parent)

    @property
    def key(self) -> tuple[str, ...]:
        """Further explanations of the table."""
        if self.level_probabilities is None:
            return ()
        return ("mostly: what stands out inside a leaf, and its probability",)

    def _table(self, columns: list[Numbers]) -> Page:
        """Return the tree; under an independent leaf are the levels that stand out inside it."""
        nodes = range(self.tree.n_nodes)
        inside = [
            Pieces(
                self._inside_words(node) if is_leaf else [],
                indent=len(_MOSTLY),
                first=_MOSTLY,
                most_lines=self.most_lines,
            )
            for node, is_leaf in zip(nodes, self.tree.feature < 0, strict=True)
        ]
        labels = [self.branch_words(node, is_full=True) for node in nodes]
        short = [self.branch_words(node) for node in nodes]
        parents = self.tree.parent.tolist()
        sizes = self.counts.tolist()
        fold = Fold(self.gains.tolist(), _WON, ("leaf", "leaves"), sizes, labels=short)
        return (Guided(labels, parents, columns, self.rule_words, inside, fold),)

    @property
    def how_to_read(self) -> list[tuple[str, str]]:
        """How to read the tree."""
        inside = "Inside a group that is not divided further all combinations are equally probable."
        if self.level_probabilities is not None:
            inside = (
                "In a group that is not divided further, combinations may differ. The line below "
                "it says what is typical, with its probability."
            )
        read = (
            "Read it from the top. Each line is a group of rows. The indented lines below it "
            "divide the group by one column. The rows of a group satisfy its line and all lines "
            "above it on its path."
        )
        folds = (
            "Click a small triangle to open or close a part. The least informative parts are "
            "closed at first. The printed page shows all parts."
        )
        return [("", read), ("", folds), ("", inside)]

    def parts_in_words(self) -> list[tuple[str, str]]:
        """Return the rule of each group with its statistics, the most unusual group first.

        Groups are leaves, or nodes whose subtrees are folded in the print because they gain little.
        """
        (table,) = self._table([])
        assert isinstance(table, Guided)
        shown = shown_nodes(table)
        children = table.children
        groups = np.array([node for node in sorted(shown) if shown.isdisjoint(children[node])])
        q, u = self.probabilities[groups], np.exp(self.log_volumes[groups] - self.log_domain)
        told = []
        for node in groups[np.argsort(u - q - rel_entr(q, u), kind="stable")].tolist():
            is_leaf = not children[node]
            mostly = " and ".join(self._inside_words(node)[:_MOST_TOLD] if is_leaf else [])
            rule = self.rule_words(node) + (f"; mostly {mostly}" if mostly else "")
            told.append((rule, self._part_in_words(node)))
        return told

    def _inside_words(self, leaf: int) -> list[str]:
        """Return what there is to say of the inside of a leaf, the most telling first."""
        return [one.words(self.schema) for one in self.standouts(leaf)]

    def _leaf_words(self, leaf: int, codes: NDArray[np.int32]) -> str:
        log_density, is_average = self._log_density_told(leaf, codes)
        n, total, probability = self.counts[leaf], self.counts[0], self.probabilities[leaf]
        relative = float(np.exp(log_density + self.log_domain))
        told = density_text(n, total, probability, log_density, relative, is_average=is_average)
        words = f"{self.rule_words(leaf)}: {told}"
        if self.level_probabilities is None:
            return words
        for how, standouts in (
            ("mostly", self.standouts(leaf)),
            ("rarely", self.rarities(leaf, codes)),
        ):
            told = " and ".join(one.words(self.schema) for one in standouts[:_MOST_TOLD])
            words += f"; {how} {told}" if told else ""
        return words

    def _log_density_told(self, leaf: int, codes: NDArray[np.int32]) -> tuple[float, bool]:
        """Return which log density to tell of a row, and whether it is the leaf's average."""
        del codes
        return float(self.log_densities[leaf]), self.level_probabilities is not None

    # -- densities and draws -----------------------------------------------------------------------

    def score_codes(self, codes: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return the log density of coded rows, (n_rows,) float64 nats; see `Schema.encode`.

        Cells coded -1 are missing. They are integrated out, so the result is the marginal density
        of the observed cells. Rows outside the domain get -inf.
        """
        with np.errstate(divide="ignore"):
            log_probabilities, levels = np.log(self.probabilities), self.level_probabilities
            log_levels = None if levels is None else np.log(levels)
        return self.score_codes_given(codes, log_probabilities, log_levels)

    def score_codes_given(
        self,
        codes: NDArray[np.int32],
        log_probabilities: NDArray[np.float64],
        log_level_probabilities: NDArray[np.float64] | None,
    ) -> NDArray[np.float64]:
        """Return the same as `score_codes`, with other probabilities of the leaves.

        Parameters
        ----------
        codes : (p, n_rows) int32
        log_probabilities : (n_nodes,) float64
            Log probabilities of the leaves. Those of inner nodes have no effect.
        log_level_probabilities : (n_leaves, L) float64 or None
            Logs in place of `level_probabilities`; None if these are None.
        """
        from bayescascade.base.jit import sparing
        from bayescascade.methods.cascades.kernels.sweep import score_rows

        first, following = self._links
        log_weights, log_levels = log_probabilities, np.empty((0, 0))
        if log_level_probabilities is None:
            log_weights = log_probabilities - self.log_volumes
        else:
            widths = np.concatenate([column.widths for column in self.schema.columns])
            log_levels = log_level_probabilities - np.log(widths)
        out = np.empty(codes.shape[1])
        with sparing(codes.size * self.tree.n_nodes):
            score_rows(
                np.ascontiguousarray(codes, np.int32), np.array(self.is_nominal, np.bool_),
                self.tree.feature.astype(np.int64), first, following, self.tree.block.copy(),
                self.box_widths, log_weights, self.leaf_rows, self._level_starts, log_levels,
                np.empty(self.tree.n_nodes + 1, np.int64), out,
            )  # fmt: skip
        out[~agrees(self.conditions, codes)] = -np.inf
        return out

    @cached_property
    def _links(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """First child and next sibling of every node, -1 for none, each (n_nodes,) int64."""
        first = np.full(self.tree.n_nodes, -1, np.int64)
        following = np.full(self.tree.n_nodes, -1, np.int64)
        for node in range(self.tree.n_nodes):
            children = self.tree.children(node)
            first[node] = children[0] if children else -1
            following[children[:-1]] = children[1:]
        return first, following

    def sample_codes(self, n: int, rng: np.random.Generator) -> NDArray[np.int32]:
        """Draw (p, n) codes: a leaf by its probability, then the row within the leaf."""
        leaves = self.tree.leaves
        shares = self.probabilities[leaves]
        chosen = rng.choice(leaves, size=n, p=shares / shares.sum())
        codes = np.empty((self.schema.n_columns, n), np.int32)
        for leaf in np.unique(chosen):
            inside = np.flatnonzero(chosen == leaf)
            codes[:, inside] = self._sample_inside(leaf, inside.size, rng)
        return codes

    def _sample_inside(self, leaf: int, n: int, rng: np.random.Generator) -> NDArray[np.int32]:
        codes = np.empty((self.schema.n_columns, n), np.int32)
        for j, left in enumerate(self.boxes[leaf]):
            codes[j] = rng.choice(left, size=n, p=self.level_shares(leaf, j))
        return codes

    # -- as plain data -----------------------------------------------------------------------------

    def _sql(self, node: int = 0) -> list[str]:
        children = self.tree.children(node)
        if not children and self.level_probabilities is None:
            return [sql_literal(float(self.log_densities[node]))]
        if not children:
            return self._independent_sql(node)
        column = self.schema.columns[self.tree.feature[node]]
        return sql_case(
            (sql_condition(column, self._branch_codes(child)), self._sql(child))
            for child in children
        )

    def _independent_sql(self, leaf: int) -> list[str]:
        """Return the log density inside an independent leaf: a term for each column."""
        lines = [sql_literal(float(np.log(self.probabilities[leaf])))]
        for j, (column, left) in enumerate(zip(self.schema.columns, self.boxes[leaf], strict=True)):
            with np.errstate(divide="ignore"):  # of a level that no row has
                logs = np.log(self.level_shares(leaf, j)) - np.log(column.widths[list(left)])
            first, *others = sql_case(
                (sql_condition(column, [code]), [sql_literal(log)])
                for code, log in zip(left, logs.tolist(), strict=True)
            )
            lines += [f"+ {first}", *others]
        return lines

    def node_dict(self, node: int = 0) -> dict[str, Any]:
        """Return the tree below a node as nested plain data.

        Inner nodes are ``{"feature": name, "branches": [{"levels": [...], "child": {...}}, ...]}``
        (continuous: ``"interval": [low, high]`` for ``levels``; a missing level is None, or
        ``"missing": True`` beside an interval), leaves
        ``{"count": n, "volume": v, "probability": p, "density": p / v}``. A volume beyond the
        largest float, 1.8e308, is infinite. Independent leaves also have every level left of every
        column: ``"levels": {name: [{"levels": [level], "probability": q}, ...], ...}``.
        """
        children = self.tree.children(node)
        if not children:
            with np.errstate(over="ignore"):  # over a thousand binary columns
                volume = float(np.exp(self.log_volumes[node]))
            leaf: dict[str, Any] = {
                "count": float(self.counts[node]),
                "volume": volume,
                "probability": float(self.probabilities[node]),
                "density": float(np.exp(self.log_densities[node])),
            }
            if self.level_probabilities is not None:
                leaf["levels"] = self._levels_dict(node)
            return leaf
        column = self.schema.columns[self.tree.feature[node]]
        branches = [
            {**_codes_dict(column, list(self._branch_codes(child))), "child": self.node_dict(child)}
            for child in children
        ]
        return {"feature": column.name, "branches": branches}

    def _own_dict(self) -> dict[str, Any]:
        return {"n_leaves": self.n_leaves, "tree": self.node_dict()}

    def _levels_dict(self, leaf: int) -> dict[str, list[dict[str, Any]]]:
        told: dict[str, list[dict[str, Any]]] = {column.name: [] for column in self.schema.columns}
        for j, column in enumerate(self.schema.columns):
            shares = self.level_shares(leaf, j).tolist()
            for code, share in zip(self.boxes[leaf][j], shares, strict=True):
                told[column.name].append({**_codes_dict(column, [code]), "probability": share})
        return told


def _codes_dict(column: Column, codes: list[int]) -> dict[str, Any]:
    """Return codes of a column, ascending, as plain data; see `LearnedDensityTree.node_dict`."""
    missing = column.has_missing_level and codes[-1] == column.n_levels - 1
    if column.kind != "continuous":
        levels = [column.levels[code] for code in codes[: len(codes) - missing]]
        return {"levels": [*levels, None] if missing else levels}
    bins = codes[: len(codes) - missing]
    interval = [column.edges[bins[0]], column.edges[bins[-1] + 1]] if bins else None
    return {"interval": interval, "missing": True} if missing else {"interval": interval}


def _box_texts(density: TreeParts) -> list[list[str]]:
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


def _fill(density: TreeParts, node: int) -> str:
    """Return a leaf's color, as in "#4389cd"; empty for inner nodes."""
    if density.tree.feature[node] >= 0:
        return ""
    return ratio_color(float(density.log_densities[node] + density.log_volumes[0]))
