"""A density tree: a cascade with the contents of its leaves, as users work with it.

It needs no data: the counts of its nodes, probabilities and the schema suffice to print it, score
rows (missing cells are integrated out), draw rows, condition on evidence and save it. Inside a
uniform leaf of probability ``p`` and volume ``v`` the density is ``p / v``: per cell of nominal and
ordinal columns, per unit of continuous ones. Inside an independent leaf each column has its own
probabilities ``q`` of its remaining levels, which have widths ``w``; the density of a row is ``p``
times the product of ``q / w`` over its levels, and ``p / v`` the average over the leaf.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import rel_entr

from bayescascade.base.arrays import Codes, Floats, Integers
from bayescascade.data.schema import Conditions, Schema, agrees
from bayescascade.methods.density.trees import associations, tree_parts
from bayescascade.methods.density.trees.associations import Association
from bayescascade.methods.density.trees.tree import (
    Tree,
    block_codes,
    level_starts,
    pack_block,
    root_box,
)
from bayescascade.methods.density.trees.tree_parts import codes_dict
from bayescascade.model.density_parts import DensityParts
from bayescascade.report.folding import shown_nodes
from bayescascade.report.numbers import density_text
from bayescascade.report.page import Fold, Guided, Numbers, Page, Pieces

if TYPE_CHECKING:
    from matplotlib.axes import Axes


MOST_READ = 30
"""Leaves of the largest tree that is readable."""

_MOSTLY = "mostly "  # prefix of the line of standouts below a leaf
_WON = "the gain in log likelihood"
_MOST_NAMED = 3  # standouts in an explanation

_READ = (
    "Read it from the top. Each line is a group of rows. The indented lines below it divide the "
    "group by one column. The rows of a group satisfy its line and all lines above it on its path."
)
_FOLDS = (
    "Click a small triangle to open or close a part. The least informative parts are closed at "
    "first. The printed page shows all parts."
)
_ALIKE = "Inside a group that is not divided further all combinations are equally probable."
_TYPICAL = (
    "In a group that is not divided further, combinations may differ. The line below it says what "
    "is typical, with its probability."
)


def can_be_read(n_leaves: int) -> bool:
    """Whether a tree of this size is readable: it has a few leaves, but more than one."""
    return 1 < n_leaves <= MOST_READ


@dataclass(frozen=True, eq=False)
class LearnedDensityTree(DensityParts):
    """A density that is uniform or a product over columns inside each leaf of a tree.

    Parameters
    ----------
    schema : Schema
        The columns.
    tree : Tree
        The structure.
    counts : (n_nodes,) float64
        Weight of the rows at each node. For a conditional density, the expected weight.
    probabilities : (n_nodes,) float64
        Probability of each node. It is 1 at the root, and the sum over its branches at each split.
    conditions : mapping of int to tuple of int
        Codes on which the density is conditioned, by column. The domain has only cells with these
        codes.
    conditions_probability : float in (0, 1]
        Probability of the conditions; 1 if there are none.
    condition_numbers : mapping of int to str
        Numbers that were given for continuous columns and that stand for their bins, by column.
    level_probabilities : (n_leaves, L) float64 or None
        For independent leaves, from left to right: the probability of each level inside the leaf.
        The L levels of all columns are in the order of the columns. The sum over each column is 1,
        and levels outside the box of the leaf have probability 0. None: leaves are uniform.
    """

    schema: Schema
    tree: Tree
    counts: Floats
    probabilities: Floats
    conditions: Conditions = field(default_factory=dict)
    conditions_probability: float = 1.0
    condition_numbers: Mapping[int, str] = field(default_factory=dict, kw_only=True)
    level_probabilities: Floats | None = None

    most_lines: ClassVar[int] = 2  # for the standouts of a leaf

    # -- boxes and shares --------------------------------------------------------------------------

    @cached_property
    def is_nominal(self) -> tuple[bool, ...]:
        """Whether each column is nominal."""
        return tuple(column.kind == "nominal" for column in self.schema.columns)

    def branch_words(self, node: int, *, is_full: bool = False) -> str:
        """Return the condition of a branch, such as "class is crew, 3rd"; "everyone" at the root.

        Long lists of levels are shortened unless `is_full`.
        """
        if node == 0:
            return "everyone"
        column = int(self.tree.feature[self.tree.parent[node]])
        codes = self.branch_codes(node)
        return self.schema.columns[column].condition_words(codes, is_full=is_full)

    @cached_property
    def boxes(self) -> list[list[tuple[int, ...]]]:
        """The remaining codes of each column at each node."""
        return self.tree.codes(self.is_nominal, self._root)

    @cached_property
    def _root(self) -> NDArray[np.uint64]:
        root = root_box(self.schema)
        for j, codes in self.conditions.items():
            root[j] = pack_block(self.is_nominal[j], codes)
        return root

    @cached_property
    def box_widths(self) -> Floats:
        """Total width of the codes of each column at each node, (n_nodes, p) float64."""
        blocks = self.tree.boxes(self._root)
        box_widths = np.empty(blocks.shape)
        for j, column in enumerate(self.schema.columns):
            words, position = np.unique(blocks[:, j], return_inverse=True)
            codes = [list(block_codes(self.is_nominal[j], word)) for word in words.tolist()]
            widths = column.widths
            box_widths[:, j] = np.array([widths[left].sum() for left in codes])[position]
        return box_widths

    @cached_property
    def log_volumes(self) -> Floats:
        """Log volume of each node, nats, (n_nodes,) float64."""
        volumes: Floats = np.log(self.box_widths).sum(axis=1)
        return volumes

    @property
    def log_domain(self) -> float:
        """Log volume of the root, nats."""
        return float(self.log_volumes[0])

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return self.tree.n_leaves

    n_parts = n_leaves

    @property
    def is_readable(self) -> bool:
        """Whether the tree has a few leaves, but more than one."""
        return can_be_read(self.n_leaves)

    @cached_property
    def associations(self) -> Sequence[Association]:
        """Pairs of columns that depend on each other, if the tree has no splits that show this.

        The strongest is first; see `methods.density.trees.associations`. Empty for a tree
        with splits, and under conditions.
        """
        joint = self._joint_levels if self.n_leaves == 1 and not self.conditions else None
        if joint is None:
            return ()
        return associations.associations_of(joint, self.level_starts, float(self.counts[0]))

    @property
    def _joint_levels(self) -> Floats | None:
        """Probabilities of pairs of levels in a single leaf, (L, L); None if independent."""
        return None

    @property
    def depth(self) -> int:
        """Number of splits on the longest path."""
        return self.tree.depth

    @cached_property
    def leaf_rows(self) -> Integers:
        """Index of each node among the leaves, from the left; -1 for inner nodes."""
        rows = np.full(self.tree.n_nodes, -1, np.int64)
        rows[self.tree.leaves] = np.arange(self.n_leaves)
        return rows

    def level_shares(self, leaf: int, column: int) -> Floats:
        """Return the probability, inside a leaf, of each code of a column in `boxes`."""
        if self.level_probabilities is None:
            return self.width_shares(leaf, column)
        levels = self.level_starts[column] + np.array(self.boxes[leaf][column])
        shares: Floats = self.level_probabilities[self.leaf_rows[leaf], levels]
        return shares

    def width_shares(self, leaf: int, column: int) -> Floats:
        """Return the share of each code of a column in the width of a leaf."""
        widths = self.schema.columns[column].widths[list(self.boxes[leaf][column])]
        shares: Floats = widths / widths.sum()
        return shares

    @cached_property
    def level_starts(self) -> Integers:
        """Where the levels of each column begin among all levels, (p + 1,) int64."""
        return level_starts(self.schema)

    def branch_codes(self, node: int) -> tuple[int, ...]:
        """Return the codes that lead to a node from its parent."""
        column = int(self.tree.feature[self.tree.parent[node]])
        return block_codes(self.is_nominal[column], int(self.tree.block[node]))

    @cached_property
    def gains(self) -> Floats:
        """Gain of each node as a branch of its parent, (n_nodes,) float64 >= 0 nats; root 0.

        The gains of the branches of a split add up to the gain of the split, by the probabilities
        of the nodes. For dependent leaves, gains are summed over single columns.
        """
        return tree_parts.branch_gains(
            self.tree, self.counts, self.probabilities, self.log_volumes, self.level_probabilities,
            self.level_starts,
        )  # fmt: skip

    standouts, rarities = tree_parts.standouts, tree_parts.rarities

    # -- words -------------------------------------------------------------------------------------

    def rule_words(self, node: int) -> str:
        """Return all conditions of a node, such as "sex is male and class is crew, 3rd"."""
        boxes = zip(self.schema.columns, self.boxes[node], self.boxes[0], strict=True)
        conditions = [column.condition_words(left) for column, left, full in boxes if left != full]
        return " and ".join(conditions) if conditions else "any row"

    def _explanations(self, codes: Codes) -> Iterator[str]:
        for leaf in self.tree.leaves.tolist():
            box = self.boxes[leaf]
            if all(code < 0 or code in left for code, left in zip(codes, box, strict=True)):
                yield self._leaf_words(leaf, codes)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the tree, with its root on the left, and return the axes.

        For a tree without splits, draw its `associations`, if there are any.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw into, scaled to fit. By default those of a new figure of the necessary
            size.
        """
        if self.associations:
            return associations.plot_associations(self.associations, self.schema, ax)
        return tree_parts.tree_picture(self).plot(ax)

    def draw(self, target: "str | PathLike[str]") -> None:
        """Draw it as `plot` does into a PNG file, which is replaced only when it is complete."""
        if self.associations:
            associations.save_associations(self.associations, self.schema, target)
            return
        tree_parts.tree_picture(self).save(target)

    def to_dot(self) -> str:
        """Return the tree as Graphviz source, for ``dot -Tsvg tree.dot > tree.svg``."""
        return tree_parts.tree_picture(self).dot("cascade")

    @property
    def key(self) -> tuple[str, ...]:
        """Further explanations of the table."""
        if self.level_probabilities is None:
            return ()
        return ("mostly: levels more common than if spread evenly, and their probability",)

    def _table(self, columns: list[Numbers]) -> Page:
        """Return the tree; the standouts of an independent leaf are listed under it."""
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
        tree = Guided(labels, parents, columns, self.rule_words, inside, fold)
        if self.n_leaves > 1 or self.conditions:
            return (tree,)
        return (tree, *associations.associations_page(self.associations, self.schema))

    @property
    def how_to_read(self) -> list[tuple[str, str]]:
        """How to read the tree."""
        inside = _ALIKE if self.level_probabilities is None else _TYPICAL
        if self.n_leaves == 1:
            texts = [("", inside)]
            return [*texts, associations.HOW_TO_READ] if self.associations else texts
        return [("", _READ), ("", _FOLDS), ("", inside)]

    def parts_in_words(self) -> list[tuple[str, str]]:
        """Return the rule of each group with its statistics, the most unusual group first.

        Groups are leaves, or nodes whose subtrees are folded in the print because they gain little.
        For a tree without splits, these are its associations, if there are any.
        """
        if self.associations:
            return associations.in_words(self.associations, self.schema)
        table = self._table([])[0]
        assert isinstance(table, Guided)
        shown = shown_nodes(table)
        children = table.children
        groups = np.array([node for node in sorted(shown) if shown.isdisjoint(children[node])])
        q, u = self.probabilities[groups], np.exp(self.log_volumes[groups] - self.log_domain)
        texts = []
        for node in groups[np.argsort(u - q - rel_entr(q, u), kind="stable")].tolist():
            is_leaf = not children[node]
            mostly = " and ".join(self._inside_words(node)[:_MOST_NAMED] if is_leaf else [])
            rule = self.rule_words(node) + (f"; mostly {mostly}" if mostly else "")
            texts.append((rule, self._part_in_words(node)))
        return texts

    def _inside_words(self, leaf: int) -> list[str]:
        """Return facts about the inside of a leaf, the most important first."""
        return [standout.words(self.schema) for standout in self.standouts(leaf)]

    def _leaf_words(self, leaf: int, codes: Codes) -> str:
        log_density, is_average = self._reported_log_density(leaf, codes)
        n, total, probability = self.counts[leaf], self.counts[0], self.probabilities[leaf]
        relative = float(np.exp(log_density + self.log_domain))
        is_of_row = self.level_probabilities is not None and not is_average
        text = density_text(
            n, total, probability, log_density, relative,
            is_average=is_average, is_of_row=is_of_row,
        )  # fmt: skip
        words = f"{self.rule_words(leaf)}: {text}"
        if self.level_probabilities is None:
            return words
        for how, found in (
            ("mostly", self.standouts(leaf)),
            ("rarely", self.rarities(leaf, codes)),
        ):
            text = " and ".join(standout.words(self.schema) for standout in found[:_MOST_NAMED])
            words += f"; {how} {text}" if text else ""
        return words

    def _reported_log_density(self, leaf: int, codes: Codes) -> tuple[float, bool]:
        """Return the log density to report for a row, and whether it is the leaf's average."""
        del codes
        return float(self.log_densities[leaf]), self.level_probabilities is not None

    # -- densities and draws -----------------------------------------------------------------------

    def score_codes(self, codes: Codes) -> Floats:
        """Return the log density of coded rows, (n_rows,) float64 nats; see `Schema.encode`.

        Cells coded -1 are missing. They are integrated out, so the result is the marginal density
        of the observed cells. Rows outside the domain get -inf.
        """
        with np.errstate(divide="ignore"):
            log_probabilities, levels = np.log(self.probabilities), self.level_probabilities
            log_levels = None if levels is None else np.log(levels)
        return self.score_codes_given(codes, log_probabilities, log_levels)

    def score_codes_given(
        self, codes: Codes, log_probabilities: Floats, log_level_probabilities: Floats | None
    ) -> Floats:
        """Return the same as `score_codes`, with other probabilities of the leaves.

        Parameters
        ----------
        codes : (p, n_rows) int32
        log_probabilities : (n_nodes,) float64
            Log probabilities of the leaves. Those of inner nodes have no effect.
        log_level_probabilities : (n_leaves, L) float64 or None
            Logs that replace those of `level_probabilities`; None if these are None.
        """
        from bayescascade.base.jit import sparing
        from bayescascade.methods.density.trees.kernels.sweep import score_rows

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
                self.box_widths, log_weights, self.leaf_rows, self.level_starts, log_levels,
                np.empty(self.tree.n_nodes + 1, np.int64), out,
            )  # fmt: skip
        out[~agrees(self.conditions, codes)] = -np.inf
        return out

    @cached_property
    def _links(self) -> tuple[Integers, Integers]:
        """First child and next sibling of every node, -1 for none, each (n_nodes,) int64."""
        first = np.full(self.tree.n_nodes, -1, np.int64)
        following = np.full(self.tree.n_nodes, -1, np.int64)
        for node in range(self.tree.n_nodes):
            children = self.tree.children(node)
            first[node] = children[0] if children else -1
            following[children[:-1]] = children[1:]
        return first, following

    def sample_codes(self, n: int, rng: np.random.Generator) -> Codes:
        """Draw (p, n) codes: a leaf by its probability, then the row within the leaf."""
        leaves = self.tree.leaves
        shares = self.probabilities[leaves]
        chosen = rng.choice(leaves, size=n, p=shares / shares.sum())
        codes = np.empty((self.schema.n_columns, n), np.int32)
        for leaf in np.unique(chosen):
            inside = np.flatnonzero(chosen == leaf)
            codes[:, inside] = self._sample_inside(leaf, inside.size, rng)
        return codes

    def _sample_inside(self, leaf: int, n: int, rng: np.random.Generator) -> Codes:
        codes = np.empty((self.schema.n_columns, n), np.int32)
        for j, left in enumerate(self.boxes[leaf]):
            codes[j] = rng.choice(left, size=n, p=self.level_shares(leaf, j))
        return codes

    # -- conditions --------------------------------------------------------------------------------

    def _given(self, known: Conditions) -> tuple[dict[str, Any], float]:
        nested, leaves = tree_parts.tree_given(self.tree, self.is_nominal, known)
        tree = Tree.from_nested(nested, self.is_nominal)
        shares, inside = self._inside_given(known, leaves)
        counts = tree.summed(self.counts[leaves] * shares)
        probabilities = tree.summed(self.probabilities[leaves] * shares)
        changes = {"tree": tree, "counts": counts, "probabilities": probabilities, **inside}
        return changes, float(probabilities[0])

    _inside_given = tree_parts.levels_given

    # -- as plain data -----------------------------------------------------------------------------

    def _sql(self) -> list[str]:
        return tree_parts.tree_sql(self)

    def node_dict(self, node: int = 0) -> dict[str, Any]:
        """Return the tree below a node as nested plain data.

        Inner nodes are ``{"feature": name, "branches": [{"levels": [...], "child": {...}}, ...]}``
        (continuous: ``"interval": [low, high]`` for ``levels``; a missing level is None, or
        ``"missing": True`` in addition to an interval), leaves ``{"count": n, "volume": v,
        "probability": p, "density": p / v}``. A volume beyond the largest float, 1.8e308, is
        infinite. Independent leaves also have each remaining level of each column: ``"levels":
        {name: [{"levels": [level], "probability": q}, ...], ...}``.
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
            {**codes_dict(column, list(self.branch_codes(child))), "child": self.node_dict(child)}
            for child in children
        ]
        return {"feature": column.name, "branches": branches}

    def _own_dict(self) -> dict[str, Any]:
        record = {"n_leaves": self.n_leaves, "tree": self.node_dict()}
        if self.n_leaves > 1 or self.conditions:
            return record
        found = [association.to_dict(self.schema) for association in self.associations]
        return {**record, "associations": found}

    def _levels_dict(self, leaf: int) -> dict[str, list[dict[str, Any]]]:
        record: dict[str, list[dict[str, Any]]] = {
            column.name: [] for column in self.schema.columns
        }
        for j, column in enumerate(self.schema.columns):
            shares = self.level_shares(leaf, j).tolist()
            for code, share in zip(self.boxes[leaf][j], shares, strict=True):
                record[column.name].append({**codes_dict(column, [code]), "probability": share})
        return record
