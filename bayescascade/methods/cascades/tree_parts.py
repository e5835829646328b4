"""What is where in a density tree: boxes, volumes and shares of levels of its nodes."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bayescascade.data.evidence import Evidence
from bayescascade.data.schema import Schema
from bayescascade.methods.cascades.tree import Tree, block_codes, level_starts, pack_block, root_box
from bayescascade.model.density_parts import DensityParts

__all__ = ["TreeParts"]


@dataclass(frozen=True, eq=False)
class TreeParts(DensityParts):
    """A tree with what its leaves hold.

    Parameters
    ----------
    schema : Schema
        The columns.
    tree : Tree
        The structure.
    counts : (n_nodes,) float64
        Weight of the rows at each node; of a conditional density, the weight expected.
    probabilities : (n_nodes,) float64
        Probability of each node; 1 at the root, sums over branches.
    evidence : mapping of int to tuple of int
        Codes that the density was conditioned on, by column; its domain is what is left.
    evidence_probability : float in (0, 1]
        Probability of that evidence; 1 without any.
    level_probabilities : (n_leaves, L) float64 or None
        Of independent leaves, left to right: the probability, inside the leaf, of every level; the
        L levels of all columns one column after the other. They sum up to 1 over each column, and
        levels that the leaf's box lacks have 0. None: leaves are uniform.
    """

    schema: Schema
    tree: Tree
    counts: NDArray[np.float64]
    probabilities: NDArray[np.float64]
    evidence: Evidence
    evidence_probability: float = 1.0
    level_probabilities: NDArray[np.float64] | None = None

    @cached_property
    def is_nominal(self) -> tuple[bool, ...]:
        """Whether each column is nominal."""
        return tuple(column.kind == "nominal" for column in self.schema.columns)

    def branch_words(self, node: int) -> str:
        """Return what leads to a node from its parent, "class is crew, 3rd"; else "everyone"."""
        if node == 0:
            return "everyone"
        column = int(self.tree.feature[self.tree.parent[node]])
        return self.schema.columns[column].condition_words(self._branch_codes(node))

    @cached_property
    def boxes(self) -> list[list[tuple[int, ...]]]:
        """The codes of every column that are left at every node."""
        return [
            [block_codes(nominal, int(w)) for nominal, w in zip(self.is_nominal, box, strict=True)]
            for box in self._blocks
        ]

    @cached_property
    def _blocks(self) -> NDArray[np.uint64]:
        """`boxes` as words, (n_nodes, p) uint64."""
        root = root_box(self.schema)
        for j, codes in self.evidence.items():
            root[j] = pack_block(self.is_nominal[j], codes)
        return self.tree.boxes(root)

    @cached_property
    def box_widths(self) -> NDArray[np.float64]:
        """Total width of every column's codes at every node, (n_nodes, p) float64."""
        box_widths = np.empty(self._blocks.shape)
        for j, (column, nominal) in enumerate(
            zip(self.schema.columns, self.is_nominal, strict=True)
        ):
            widths = column.widths
            words, position = np.unique(self._blocks[:, j], return_inverse=True)
            sums = [widths[list(block_codes(nominal, int(word)))].sum() for word in words]
            box_widths[:, j] = np.array(sums)[position]
        return box_widths

    @cached_property
    def log_volumes(self) -> NDArray[np.float64]:
        """Log volume of every node, nats, (n_nodes,) float64."""
        volumes: NDArray[np.float64] = np.log(self.box_widths).sum(axis=1)
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
    def depth(self) -> int:
        """Splits on the longest path."""
        return self.tree.depth

    @cached_property
    def leaf_rows(self) -> NDArray[np.int64]:
        """Which of the leaves each node is, from the left; -1 for inner nodes."""
        rows = np.full(self.tree.n_nodes, -1, np.int64)
        rows[self.tree.leaves] = np.arange(self.n_leaves)
        return rows

    def level_shares(self, leaf: int, column: int) -> NDArray[np.float64]:
        """Return the probability, inside a leaf, of each of a column's codes in `boxes`."""
        codes = list(self.boxes[leaf][column])
        if self.level_probabilities is None:
            widths = self.schema.columns[column].widths[codes]
            by_width: NDArray[np.float64] = widths / widths.sum()
            return by_width
        levels = self._level_starts[column] + np.array(codes)
        shares: NDArray[np.float64] = self.level_probabilities[self.leaf_rows[leaf], levels]
        return shares

    @cached_property
    def _level_starts(self) -> NDArray[np.int64]:
        return level_starts(self.schema)

    def _branch_codes(self, node: int) -> tuple[int, ...]:
        column = int(self.tree.feature[self.tree.parent[node]])
        return block_codes(self.is_nominal[column], int(self.tree.block[node]))
