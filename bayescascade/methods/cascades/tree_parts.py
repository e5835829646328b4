"""What is where in a density tree: boxes, volumes, shares of levels, what conditions leave of them.

Levels stand out inside an independent leaf where they are far from their share of its box. By
width, a set of levels has the share ``u`` of its column's levels left; in the leaf it has the
probability ``q``. Stating that is worth ``q ln(q / u) + (1 - q) ln((1 - q) / (1 - u))`` nats.

* `standouts`: of each column the set with the largest ``q - u``, contiguous for ordered
  columns and of at most three levels for nominal ones; told if most rows have one of them and it
  is worth at least 0.1 nats (of two levels of equal width: from 0.73 on), and 3 nats over all of
  the leaf's rows, for a few rows may be alike by chance; the most worth first.
* `rarities`: of a row, the levels with ``q`` at most half of ``u``, the smallest ratio first.

A split wins log likelihood: with ``n`` rows at a node, a branch of the share ``q`` of its
probability and ``u`` of its volume wins ``n (q ln(q / u) - q + u)`` over leaving the node uniform.
Where leaves are independent inside, so would the node be, its levels mixed from the leaves; then a
branch wins ``n q`` times the divergence of its levels from the node's, added over all columns but
that of the split.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import rel_entr

from bayescascade.data.conditions import Conditions
from bayescascade.data.schema import Schema
from bayescascade.methods.cascades.tree import Tree, block_codes, level_starts, pack_block, root_box
from bayescascade.model.density_parts import DensityParts
from bayescascade.report.numbers import probability_text

Floats = NDArray[np.float64]

_LEAST_NATS = 0.1  # a row
_LEAST_TOTAL = 3.0  # nats, over a leaf's rows: 20 times as likely as by width
_MOST_LEVELS = 3  # of a nominal column, named together
_MOST_RATIO = 0.5  # of a level that is rare


class Standout(NamedTuple):
    """Levels of a column that stand out inside a leaf."""

    column: int
    codes: tuple[int, ...]  # ascending
    probability: float  # of those levels together, inside the leaf

    def words(self, schema: Schema) -> str:
        """Return it in words, such as "wind is yes 0.93"."""
        condition = schema.columns[self.column].condition_words(self.codes)
        return f"{condition} {probability_text(self.probability)}"


@dataclass(frozen=True, eq=False)
class TreeParts(DensityParts):
    """A tree with counts and probabilities.

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
    level_probabilities: Floats | None = None

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
        codes = self._branch_codes(node)
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
            box_widths[:, j] = np.array([column.widths[left].sum() for left in codes])[position]
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

    @property
    def n_parts(self) -> int:
        """Number of leaves."""
        return self.n_leaves

    @property
    def depth(self) -> int:
        """Number of splits on the longest path."""
        return self.tree.depth

    @cached_property
    def leaf_rows(self) -> NDArray[np.int64]:
        """Index of each node among the leaves, from the left; -1 for inner nodes."""
        rows = np.full(self.tree.n_nodes, -1, np.int64)
        rows[self.tree.leaves] = np.arange(self.n_leaves)
        return rows

    def level_shares(self, leaf: int, column: int) -> Floats:
        """Return the probability, inside a leaf, of each code of a column in `boxes`."""
        if self.level_probabilities is None:
            return self.width_shares(leaf, column)
        levels = self._level_starts[column] + np.array(self.boxes[leaf][column])
        shares: Floats = self.level_probabilities[self.leaf_rows[leaf], levels]
        return shares

    def width_shares(self, leaf: int, column: int) -> Floats:
        """Return the share of each code of a column in the width of a leaf."""
        widths = self.schema.columns[column].widths[list(self.boxes[leaf][column])]
        shares: Floats = widths / widths.sum()
        return shares

    @cached_property
    def _level_starts(self) -> NDArray[np.int64]:
        return level_starts(self.schema)

    def _branch_codes(self, node: int) -> tuple[int, ...]:
        column = int(self.tree.feature[self.tree.parent[node]])
        return block_codes(self.is_nominal[column], int(self.tree.block[node]))

    @cached_property
    def gains(self) -> Floats:
        """Gain of each node as a branch of its parent, (n_nodes,) float64 >= 0 nats; root 0.

        The gains of the branches of a split add up to the gain of the split, by the probabilities
        of the nodes. For dependent leaves, gains are summed over single columns.
        """
        tree, gains = self.tree, np.zeros(self.tree.n_nodes)
        nodes = np.arange(1, tree.n_nodes)
        parents, counts = tree.parent[nodes], self.counts[tree.parent[nodes]]
        above = self.probabilities[parents]
        q = np.divide(self.probabilities[nodes], above, out=np.zeros(nodes.size), where=above > 0)
        if self.level_probabilities is None:
            u = np.exp(self.log_volumes[nodes] - self.log_volumes[parents])
            gains[nodes] = counts * (rel_entr(q, u) - q + u)
            return gains.clip(min=0.0)
        levels = np.zeros((tree.n_nodes, self.level_probabilities.shape[1]))
        levels[tree.leaves] = self.level_probabilities
        levels[tree.leaves] *= self.probabilities[tree.leaves, np.newaxis]
        for node in range(tree.n_nodes - 1, 0, -1):
            levels[tree.parent[node]] += levels[node]
        totals = self.probabilities[:, np.newaxis]
        levels = np.divide(levels, totals, out=np.zeros_like(levels), where=totals > 0)
        for place, weight in enumerate((counts * q).tolist()):
            node, parent = place + 1, parents[place]
            start, end = self._level_starts[tree.feature[parent] :][:2]
            apart = rel_entr(levels[node], levels[parent])
            gains[node] = weight * (apart.sum() - apart[start:end].sum())
        return gains.clip(min=0.0)

    def standouts(self, leaf: int) -> list[Standout]:
        """Return the sets of levels of most rows of a leaf, the most informative first.

        Empty for a uniform leaf.
        """
        if self.level_probabilities is None:
            return []
        least = _LEAST_TOTAL / self.counts[leaf] if self.counts[leaf] > 0 else np.inf
        found = []
        for column, codes in enumerate(self.boxes[leaf]):
            shares, by_width = self.level_shares(leaf, column), self.width_shares(leaf, column)
            excess = shares - by_width
            if self.is_nominal[column]:
                order = np.argsort(-excess, kind="stable")[:_MOST_LEVELS]
                chosen = np.sort(order[excess[order] > 0])
            else:
                chosen = _largest_run(excess)
            q, u = min(1.0, float(shares[chosen].sum())), min(1.0, float(by_width[chosen].sum()))
            worth = float(rel_entr(q, u) + rel_entr(1 - q, 1 - u))
            if q >= 0.5 and q > u and worth >= max(_LEAST_NATS, least):
                found.append((worth, Standout(column, tuple(codes[i] for i in chosen), q)))
        found.sort(key=lambda item: -item[0])
        return [standout for _, standout in found]

    def rarities(self, leaf: int, codes: NDArray[np.int32]) -> list[Standout]:
        """Return the levels of a coded row that are rare in its leaf, the rarest first."""
        found = []
        for column, (code, left) in enumerate(zip(codes.tolist(), self.boxes[leaf], strict=True)):
            if code < 0:
                continue
            share = float(self.level_shares(leaf, column)[left.index(code)])
            ratio = share / float(self.width_shares(leaf, column)[left.index(code)])
            if ratio <= _MOST_RATIO:
                found.append((ratio, Standout(column, (code,), share)))
        found.sort(key=lambda item: item[0])
        return [standout for _, standout in found]

    def _given(self, known: Conditions) -> tuple[dict[str, Any], float]:
        nested, leaves = self._below(known, 0)
        tree = Tree.from_nested(nested, self.is_nominal)
        shares, inside = self._inside_given(known, leaves)
        counts = tree.summed(self.counts[leaves] * shares)
        probabilities = tree.summed(self.probabilities[leaves] * shares)
        changes = {"tree": tree, "counts": counts, "probabilities": probabilities, **inside}
        return changes, float(probabilities[0])

    def _inside_given(
        self, known: Conditions, leaves: Sequence[int]
    ) -> tuple[Floats, dict[str, Any]]:
        """Return the share of each leaf that conditions leave, and what that changes inside."""
        shares = np.ones(len(leaves))
        inside = self.level_probabilities
        if inside is not None:
            inside = inside[self.leaf_rows[leaves]]
        for j, allowed in known.items():
            widths = self.schema.columns[j].widths
            for row, leaf in enumerate(leaves):
                left = [code for code in self.boxes[leaf][j] if code in allowed]
                if inside is None:
                    shares[row] *= widths[left].sum() / self.box_widths[leaf, j]
                    continue
                start = self._level_starts[j]
                levels = inside[row, start : start + widths.size]
                chosen = levels[left]
                levels[:] = 0.0
                total = chosen.sum()
                # of levels of probability 0 alone the leaf has none, and any spread is right
                levels[left] = chosen / total if total > 0 else widths[left] / widths[left].sum()
                shares[row] *= total
        return shares, {"level_probabilities": inside}

    def _below(self, conditions: Conditions, node: int) -> tuple[Any, list[int]]:
        """Return the nested tree that conditions leave below a node, and its leaves in order."""
        children = self.tree.children(node)
        if not children:
            return None, [node]
        column = int(self.tree.feature[node])
        branches = []
        for child in children:
            codes = self._branch_codes(child)
            codes = tuple(code for code in codes if code in conditions.get(column, codes))
            if codes:
                branches.append((codes, *self._below(conditions, child)))
        if len(branches) == 1:
            return branches[0][1:]
        branches.sort(key=lambda branch: branch[0])
        leaves = [leaf for *_, below in branches for leaf in below]
        return (column, [(codes, nested) for codes, nested, _ in branches]), leaves


def _largest_run(excess: Floats) -> NDArray[np.intp]:
    """Return the positions of the run of numbers with the largest sum."""
    before = np.concatenate([[0.0], np.cumsum(excess)])
    gains = before[1:] - np.minimum.accumulate(before)[:-1]
    last = int(np.argmax(gains))
    first = int(np.argmin(before[: last + 1]))
    return np.arange(first, last + 1)
