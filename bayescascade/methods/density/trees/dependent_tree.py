"""A density tree whose leaves average over trees of dependences among their columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bayescascade.base.arrays import Codes, Floats
from bayescascade.base.errors import DataError, ParameterError
from bayescascade.data.schema import Conditions, Schema
from bayescascade.methods.density.trees.density import LearnedDensityTree
from bayescascade.methods.density.trees.dependence import (
    DependentLeaf,
    GivenLeaf,
    JoinedPair,
    integrate_missing,
)
from bayescascade.methods.density.trees.tree import Tree, leaf_boxes, levels_left
from bayescascade.report.numbers import count_texts
from bayescascade.report.pair_arcs import PairArcs, plot_arcs

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_MOST_STANDOUTS, _MOST_PAIRS = 4, 4  # most words for a leaf
_MOST_PANELS = 12  # in a picture


@dataclass(frozen=True, eq=False)
class DependentTree(LearnedDensityTree):
    """A density whose leaves, `inside` from left to right, average over trees of their columns."""

    inside: Sequence[DependentLeaf | GivenLeaf] = ()

    most_lines: ClassVar[int] = 4

    @classmethod
    def of(
        cls,
        schema: Schema,
        tree: Tree,
        counts: Floats,
        shares: Floats,
        pairs: Floats,
        a: float,
        made: dict[Any, DependentLeaf],
    ) -> "DependentTree":
        """Build from nodes' counts and shares and leaves' `pair_counts`; `made` is a cache."""
        inside = []
        for box, own in zip(leaf_boxes(schema, tree), pairs, strict=True):
            key = (box.tobytes(), sha256(own).digest())
            if key not in made:
                made[key] = DependentLeaf(schema, box, own.copy(), a)  # not a view of all
            inside.append(made[key])
        levels = np.array([leaf.level_probabilities for leaf in inside])
        return cls(schema, tree, counts, shares, level_probabilities=levels, inside=inside)

    @property
    def _joint_levels(self) -> Floats | None:
        return self.inside[0].joint_levels

    def pairs(self, leaf: int) -> Sequence[JoinedPair]:
        """Return a leaf's `DependentLeaf.strongest_pairs`."""
        return self.inside[int(self.leaf_rows[leaf])].strongest_pairs

    def plot_joined(self, ax: "Axes | None" = None) -> "Axes":
        """Draw which columns are joined in each leaf, on `ax` or a new figure, and return the axes.

        Each panel is a leaf, the largest first. Each arc is a pair of columns from `pairs`; a wider
        arc means that they are joined with a higher probability. Leaves without such pairs are
        omitted, and all after the twelfth leaf. Raises DataError if no two columns are joined in
        any leaf.
        """
        leaves = [leaf for leaf in self.tree.leaves.tolist() if self.pairs(leaf)]
        if not leaves:
            raise DataError("plot_joined needs columns that are joined in a leaf, got none")
        leaves.sort(key=lambda leaf: -float(self.counts[leaf]))
        return plot_arcs([self._arcs(leaf) for leaf in leaves[:_MOST_PANELS]], ax)

    def _arcs(self, leaf: int) -> PairArcs:
        pairs = self.pairs(leaf)
        columns = sorted({column for pair in pairs for column in pair.columns})
        place = {column: number for number, column in enumerate(columns)}
        ends = [(place[s], place[t], p) for (s, t), _, p, *_ in pairs]
        (rows,) = count_texts([float(self.counts[leaf])])
        title = f"{self.rule_words(leaf)}: {rows} {'row' if rows == '1' else 'rows'}"
        return PairArcs(title, [self.schema.names[j] for j in columns], ends)

    @property
    def key(self) -> tuple[str, ...]:
        """Further explanations of the table."""
        if self.associations or not any(map(self.pairs, self.tree.leaves.tolist())):
            return super().key
        with_ = (
            "with: levels of columns that probably depend on each other, their joint probability "
            "and, in brackets, what it would be if they were independent"
        )
        return (*super().key, with_)

    def _inside_words(self, leaf: int) -> list[str]:
        most = 0 if self.associations else _MOST_PAIRS  # they have the same pairs
        pairs = [pair.words(self.schema) for pair in self.pairs(leaf)[:most]]
        return super()._inside_words(leaf)[:_MOST_STANDOUTS] + pairs

    def _leaf_words(self, leaf: int, codes: Codes) -> str:
        words = super()._leaf_words(leaf, codes)
        text = " and ".join(p.words(self.schema, " if independent") for p in self.pairs(leaf)[:2])
        return f"{words}; columns depend on each other: {text}" if text else words

    def _reported_log_density(self, leaf: int, codes: Codes) -> tuple[float, bool]:
        if (codes < 0).any():
            return super()._reported_log_density(leaf, codes)
        inside = self.inside[self.leaf_rows[leaf]].score_codes(codes[:, np.newaxis])
        return float(np.log(self.probabilities[leaf]) + inside[0]), False

    def score_codes(self, codes: Codes) -> Floats:
        """Return the log density of coded rows, (n_rows,) float64 nats; see `integrate_missing`."""
        return integrate_missing(self._score, self.schema, codes)

    def _score(self, codes: Codes) -> Floats:
        places = codes + self.level_starts[:-1, np.newaxis]
        scores = np.full(codes.shape[1], -np.inf)
        log_probabilities = np.log(self.probabilities[self.tree.leaves])
        left = levels_left(self.schema, self.tree.boxes(self._root)[self.tree.leaves])
        for leaf, log_probability, own in zip(self.inside, log_probabilities, left, strict=True):
            inside = np.flatnonzero(own[places].all(axis=0))
            scores[inside] = log_probability + leaf.score_codes(codes[:, inside])
        return scores

    def _sample_inside(self, leaf: int, n: int, rng: np.random.Generator) -> Codes:
        return self.inside[int(self.leaf_rows[leaf])].sample_codes(n, rng)

    def _sql(self) -> list[str]:
        raise ParameterError(
            'leaf must be "uniform" or "independent" for SQL, which has no determinants, '
            'got "dependent"'
        )

    def node_dict(self, node: int = 0) -> dict[str, Any]:
        """Return the tree as nested plain data, as in `LearnedDensityTree`.

        Leaves also have ``"pairs": [{"features": [one, other], "levels": [words, words],
        "probability": p, "together": q, "apart": r}, ...]``, see `JoinedPair`.
        """
        record = super().node_dict(node)
        if self.tree.feature[node] < 0:
            record["pairs"] = [
                {
                    "features": [self.schema.names[j] for j in pair.columns],
                    "levels": pair.levels(self.schema),
                    **dict(zip(pair._fields[2:], pair[2:], strict=True)),
                }
                for pair in self.pairs(node)
            ]
        return record

    def _inside_given(
        self, known: Conditions, leaves: Sequence[int]
    ) -> tuple[Floats, dict[str, Any]]:
        shares, inside = np.empty(len(leaves)), []
        for i, leaf in enumerate(leaves):
            whole, boxes = self.inside[int(self.leaf_rows[leaf])], enumerate(self.boxes[leaf])
            left = [[code for code in codes if code in known.get(j, codes)] for j, codes in boxes]
            inside.append(whole.given(left))
            shares[i] = inside[i].mass / whole.mass
        levels = np.array([leaf.level_probabilities for leaf in inside])
        return shares, {"inside": inside, "level_probabilities": levels}
