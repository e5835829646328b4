"""A density tree: a cascade with what its leaves hold, and everything a user asks of it.

`DensityTree` needs no data: counts of its nodes, probabilities and the schema are all there is to
print it, score rows (missing cells integrated out), draw rows, condition on evidence and save it.
Inside a leaf the density is uniform, so a leaf of probability ``p`` and volume ``v`` has density
``p / v``: per cell of nominal and ordinal columns, per unit of continuous ones.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayescascade.cascades.blocks import block_codes, full_block, pack_block
from bayescascade.cascades.tree import LEAF, Tree
from bayescascade.errors import DataError
from bayescascade.evidence import Evidence, evidence_words, narrow_evidence
from bayescascade.schema import Schema

__all__ = ["DensityTree"]


@dataclass(frozen=True, eq=False)
class DensityTree:
    """A density that is constant on the leaves of a tree.

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
    """

    schema: Schema
    tree: Tree
    counts: NDArray[np.float64]
    probabilities: NDArray[np.float64]
    evidence: Evidence
    evidence_probability: float = 1.0

    # -- what is where -----------------------------------------------------------------------------

    @cached_property
    def is_nominal(self) -> tuple[bool, ...]:
        """Whether each column is nominal."""
        return tuple(column.kind == "nominal" for column in self.schema.columns)

    @cached_property
    def boxes(self) -> list[list[tuple[int, ...]]]:
        """The codes of every column that are left at every node."""
        root = [
            pack_block(nominal, self.evidence[j])
            if j in self.evidence
            else full_block(nominal, column.n_levels)
            for j, (column, nominal) in enumerate(
                zip(self.schema.columns, self.is_nominal, strict=True)
            )
        ]
        packed = self.tree.boxes(np.array(root, np.uint64))
        return [
            [block_codes(nominal, int(w)) for nominal, w in zip(self.is_nominal, box, strict=True)]
            for box in packed
        ]

    @cached_property
    def box_widths(self) -> NDArray[np.float64]:
        """Total width of every column's codes at every node, (n_nodes, p) float64."""
        widths = [column.widths for column in self.schema.columns]
        return np.array(
            [[w[list(c)].sum() for w, c in zip(widths, b, strict=True)] for b in self.boxes]
        )

    @cached_property
    def log_volumes(self) -> NDArray[np.float64]:
        """Log volume of every node, nats, (n_nodes,) float64."""
        volumes: NDArray[np.float64] = np.log(self.box_widths).sum(axis=1)
        return volumes

    @cached_property
    def log_densities(self) -> NDArray[np.float64]:
        """Log of probability over volume at every node, nats; -inf where the probability is 0."""
        with np.errstate(divide="ignore"):
            log_densities: NDArray[np.float64] = np.log(self.probabilities) - self.log_volumes
        return log_densities

    @property
    def relative_densities(self) -> NDArray[np.float64]:
        """Density of every node as a multiple of the uniform density on the domain."""
        relative: NDArray[np.float64] = np.exp(self.log_densities + self.log_volumes[0])
        return relative

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return self.tree.n_leaves

    @property
    def depth(self) -> int:
        """Splits on the longest path."""
        return self.tree.depth

    # -- words -------------------------------------------------------------------------------------

    def branch_words(self, node: int) -> str:
        """Return what leads to a node from its parent, such as "class is crew, 3rd"."""
        column = self.schema.columns[self.tree.feature[self.tree.parent[node]]]
        return f"{column.name} is {column.describe_codes(self._branch_codes(node))}"

    def rule_words(self, node: int) -> str:
        """Return all conditions on a node, such as "sex is male and class is crew, 3rd"."""
        conditions = []
        for j, (column, codes) in enumerate(
            zip(self.schema.columns, self.boxes[node], strict=True)
        ):
            if codes != self.boxes[0][j]:
                conditions.append(f"{column.name} is {column.describe_codes(codes)}")
        return " and ".join(conditions) if conditions else "any row"

    def evidence_words(self) -> str:
        """Return what the density was conditioned on; empty if on nothing."""
        return evidence_words(self.schema, self.evidence)

    def explain(self, row: Mapping[str, object] | pd.Series) -> str:
        """Return the rule of the leaf that holds a row and what is known of that leaf, in words.

        A row with missing cells that could be in several leaves gets one line for each.
        """
        codes = self.schema.encode_row(row)
        lines = [self._leaf_words(leaf) for leaf in self._leaves_for(codes)]
        if not lines:
            raise DataError(f"the row contradicts the evidence: {self.evidence_words()}")
        return "\n".join(lines)

    def _leaf_words(self, leaf: int) -> str:
        total = self.counts[0]
        return (
            f"{self.rule_words(leaf)}: {self.counts[leaf]:,.10g} of {total:,.10g} rows, "
            f"probability {self.probabilities[leaf]:.4g}, "
            f"density {np.exp(self.log_densities[leaf]):.4g}, "
            f"{self.relative_densities[leaf]:.3g} x uniform"
        )

    # -- densities and draws -----------------------------------------------------------------------

    def score_codes(self, codes: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return the log density of coded rows, (n_rows,) float64 nats; see `Schema.encode`.

        Cells coded -1 are missing and integrated out, so the result is then the density of the
        cells that are there. Rows outside the domain get -inf.
        """
        from bayescascade.cascades import kernels

        n_nodes = self.tree.n_nodes
        first = np.full(n_nodes, -1, np.int64)
        following = np.full(n_nodes, -1, np.int64)
        for node in range(n_nodes):
            children = self.tree.children(node)
            first[node] = children[0] if children else -1
            following[children[:-1]] = children[1:]
        out = np.empty(codes.shape[1])
        kernels.score_rows(
            np.ascontiguousarray(codes, np.int32),
            np.array(self.is_nominal, np.bool_),
            self.tree.feature.astype(np.int64),
            first,
            following,
            self.tree.block.copy(),
            self.box_widths,
            self.log_densities,
            np.empty(n_nodes + 1, np.int64),
            out,
        )
        for j, allowed in self.evidence.items():
            out[(codes[j] >= 0) & ~np.isin(codes[j], allowed)] = -np.inf
        return out

    def sample_codes(self, n: int, rng: np.random.Generator) -> NDArray[np.int32]:
        """Draw (p, n) codes: a leaf by its probability, then every column within the leaf."""
        leaves = self.tree.leaves
        shares = self.probabilities[leaves]
        chosen = rng.choice(leaves, size=n, p=shares / shares.sum())
        codes = np.empty((self.schema.n_columns, n), np.int32)
        for leaf in np.unique(chosen):
            inside = np.flatnonzero(chosen == leaf)
            for j, left in enumerate(self.boxes[leaf]):
                widths = self.schema.columns[j].widths[list(left)]
                codes[j, inside] = rng.choice(left, size=inside.size, p=widths / widths.sum())
        return codes

    def condition(self, evidence: Mapping[str, object]) -> "DensityTree":
        """Return the density given evidence, as a tree over what the evidence leaves open.

        Parameters
        ----------
        evidence : mapping of str to level, list of levels or pair of bin edges
            Such as ``{"sex": "male", "class": ["1st", "2nd"]}``.

        Returns
        -------
        DensityTree
            Splits that the evidence decides are gone. Within a leaf rows are spread uniformly, so
            a leaf that the evidence cuts keeps the share of its volume; `counts` are then expected.

        Raises
        ------
        DataError
            If a column or level is unknown, contradicts earlier evidence, has probability zero, or
            if levels of an ordered column are not neighbors.
        """
        known = narrow_evidence(self.schema, self.evidence, evidence)
        kept = self._restricted(known)
        if not kept.probability > 0:
            raise DataError(f"evidence must have a positive probability, got {dict(evidence)!r}")
        flat = _Flat()
        flat.add(kept, -1, 0, self.is_nominal)
        return DensityTree(
            self.schema,
            Tree.from_nodes(flat.feature, flat.parent, flat.block),
            np.array(flat.counts),
            np.array(flat.probabilities) / kept.probability,
            known,
            self.evidence_probability * kept.probability,
        )

    # -- as plain data -----------------------------------------------------------------------------

    def to_dict(self, node: int = 0) -> dict[str, Any]:
        """Return the tree as nested plain data.

        Inner nodes are ``{"feature": name, "branches": [{"levels": [...], "child": {...}}, ...]}``
        (continuous: ``"interval": [low, high]`` for ``levels``; a missing level is None, or
        ``"missing": True`` beside an interval), leaves
        ``{"count": n, "volume": v, "probability": p, "density": p / v}``. A volume beyond the
        largest float, 1.8e308, is infinite.
        """
        children = self.tree.children(node)
        if not children:
            with np.errstate(over="ignore"):  # over a thousand binary columns
                volume = float(np.exp(self.log_volumes[node]))
            return {
                "count": float(self.counts[node]),
                "volume": volume,
                "probability": float(self.probabilities[node]),
                "density": float(np.exp(self.log_densities[node])),
            }
        name = self.schema.columns[self.tree.feature[node]].name
        branches = [{**self._branch_dict(c), "child": self.to_dict(c)} for c in children]
        return {"feature": name, "branches": branches}

    def __str__(self) -> str:
        from bayescascade.report.text import tree_text

        return tree_text(self)

    def _branch_codes(self, node: int) -> tuple[int, ...]:
        column = int(self.tree.feature[self.tree.parent[node]])
        return block_codes(self.is_nominal[column], int(self.tree.block[node]))

    def _branch_dict(self, node: int) -> dict[str, Any]:
        column = self.schema.columns[self.tree.feature[self.tree.parent[node]]]
        codes = list(self._branch_codes(node))
        missing = column.has_missing_level and codes[-1] == column.n_levels - 1
        if column.kind != "continuous":
            levels = [column.levels[code] for code in codes[: len(codes) - missing]]
            return {"levels": [*levels, None] if missing else levels}
        bins = codes[: len(codes) - missing]
        interval = [column.edges[bins[0]], column.edges[bins[-1] + 1]] if bins else None
        return {"interval": interval, "missing": True} if missing else {"interval": interval}

    def _leaves_for(self, codes: NDArray[np.int32]) -> Iterator[int]:
        """Yield the leaves that a coded row may be in, left to right."""
        for leaf in self.tree.leaves:
            box = self.boxes[leaf]
            if all(code < 0 or code in left for code, left in zip(codes, box, strict=True)):
                yield int(leaf)

    def _restricted(self, evidence: Evidence, node: int = 0) -> "_Kept":
        """Return what is left below a node, decided splits dropped."""
        children = self.tree.children(node)
        if not children:
            share = 1.0
            for j, allowed in evidence.items():
                widths = self.schema.columns[j].widths
                left = [code for code in self.boxes[node][j] if code in allowed]
                share *= widths[left].sum() / self.box_widths[node, j]
            return _Kept(LEAF, (), self.counts[node] * share, self.probabilities[node] * share)
        column = int(self.tree.feature[node])
        open_codes = evidence.get(column)
        branches = []
        for child in children:
            codes = self._branch_codes(child)
            if open_codes is not None:
                codes = tuple(code for code in codes if code in open_codes)
            if codes:
                branches.append((codes, self._restricted(evidence, child)))
        if len(branches) == 1:
            return branches[0][1]
        branches.sort(key=lambda branch: branch[0][0])
        return _Kept(
            column,
            tuple(branches),
            sum(kept.count for _, kept in branches),
            sum(kept.probability for _, kept in branches),
        )


@dataclass(frozen=True, slots=True)
class _Kept:
    """A subtree restricted to evidence."""

    feature: int
    branches: Sequence[tuple[tuple[int, ...], "_Kept"]]
    count: float
    probability: float


class _Flat:
    """Arrays of a tree under construction, in preorder."""

    def __init__(self) -> None:
        self.feature: list[int] = []
        self.parent: list[int] = []
        self.block: list[int] = []
        self.counts: list[float] = []
        self.probabilities: list[float] = []

    def add(self, kept: _Kept, parent: int, block: int, is_nominal: Sequence[bool]) -> None:
        index = len(self.feature)
        self.feature.append(kept.feature)
        self.parent.append(parent)
        self.block.append(block)
        self.counts.append(kept.count)
        self.probabilities.append(kept.probability)
        for codes, child in kept.branches:
            self.add(child, index, pack_block(is_nominal[kept.feature], codes), is_nominal)
