"""A density tree whose leaves average over all trees of dependences, to be read and asked."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.errors import ParameterError
from bayescascade.data.evidence import Evidence
from bayescascade.data.schema import Schema
from bayescascade.methods.cascades.density import DensityTree
from bayescascade.methods.cascades.dependence import DependentLeaf, JoinedPair, integrate_missing
from bayescascade.methods.cascades.tree import Tree, leaf_boxes, levels_left

__all__ = ["DependentTree"]

Floats = NDArray[np.float64]

_MOST_STANDOUTS, _MOST_PAIRS = 4, 4  # told of a leaf


@dataclass(frozen=True, eq=False)
class DependentTree(DensityTree):
    """A density that, inside each leaf of a tree, is an average over all trees of its columns.

    Parameters
    ----------
    inside : sequence of DependentLeaf
        The leaves, left to right. The other parameters are those of `TreeParts`, of which
        `level_probabilities` are each column's own.
    """

    inside: Sequence[DependentLeaf] = ()

    most_lines: ClassVar[int] = 4

    @classmethod
    def of(
        cls,
        schema: Schema,
        tree: Tree,
        counts: Floats,
        probabilities: Floats,
        inside: Sequence[DependentLeaf],
    ) -> "DependentTree":
        """Build from leaves, which know the probabilities of their levels."""
        levels = np.array([leaf.level_probabilities for leaf in inside])
        return cls(
            schema, tree, counts, probabilities, level_probabilities=levels, inside=tuple(inside)
        )

    def pairs(self, leaf: int) -> list[JoinedPair]:
        """Return a leaf's pairs of columns that are probably joined, the most telling first."""
        return self._pairs[int(self.leaf_rows[leaf])]

    @cached_property
    def _pairs(self) -> list[list[JoinedPair]]:
        return [
            leaf.strongest_pairs() if count > 0 else []
            for leaf, count in zip(self.inside, self.counts[self.tree.leaves], strict=True)
        ]

    @property
    def legend(self) -> tuple[str, ...]:
        """What else a reader of the table has to know."""
        return (
            *super().legend,
            "with: levels of columns that are probably joined, how probable they are together, "
            "and would be apart",
        )

    def _inside_words(self, leaf: int) -> list[str]:
        pairs = [pair.words(self.schema) for pair in self.pairs(leaf)[:_MOST_PAIRS]]
        return super()._inside_words(leaf)[:_MOST_STANDOUTS] + pairs

    def _leaf_words(self, leaf: int, codes: NDArray[np.int32]) -> str:
        words = super()._leaf_words(leaf, codes)
        told = " and ".join(pair.words(self.schema) for pair in self.pairs(leaf)[:2])
        return f"{words}; joined {told}" if told else words

    def score_codes(self, codes: NDArray[np.int32]) -> Floats:
        """Return the log density of coded rows, (n_rows,) float64 nats; see `Schema.encode`.

        Cells coded -1 are missing and integrated out, by all ways to fill them in.

        Raises
        ------
        DataError
            If there are more than 65,536 such ways for a row.
        """
        return integrate_missing(self._score, self.schema, codes)

    def _score(self, codes: NDArray[np.int32]) -> Floats:
        places = codes + self._level_starts[:-1, np.newaxis]
        scores = np.full(codes.shape[1], -np.inf)
        with np.errstate(divide="ignore"):
            log_probabilities = np.log(self.probabilities[self.tree.leaves])
        left = levels_left(self.schema, leaf_boxes(self.schema, self.tree))
        for leaf, log_probability, own in zip(self.inside, log_probabilities, left, strict=True):
            inside = np.flatnonzero(own[places].all(axis=0))
            scores[inside] = log_probability + leaf.score_codes(codes[:, inside])
        return scores

    def sample_codes(self, n: int, rng: np.random.Generator) -> NDArray[np.int32]:
        """Draw (p, n) codes: a leaf by its probability, a tree of its columns, then the row."""
        shares = self.probabilities[self.tree.leaves]
        chosen = rng.choice(len(self.inside), size=n, p=shares / shares.sum())
        codes = np.empty((self.schema.n_columns, n), np.int32)
        for leaf in np.unique(chosen):
            rows = np.flatnonzero(chosen == leaf)
            codes[:, rows] = self.inside[leaf].sample_codes(rows.size, rng)
        return codes

    def to_dict(self, node: int = 0) -> dict[str, Any]:
        """Return the tree as nested plain data.

        As of `DensityTree`; leaves also have ``"pairs": [{"features": [one, other], "probability":
        p, "levels": [words, words], "together": q, "apart": r}, ...]``, the columns probably
        joined.
        """
        record = super().to_dict(node)
        if self.tree.feature[node] < 0:
            names = self.schema.names
            record["pairs"] = [
                {
                    "features": [names[j] for j in pair.columns],
                    "probability": pair.probability,
                    "levels": [
                        self.schema.columns[j].condition_words((code,))
                        for j, code in zip(pair.columns, pair.codes, strict=True)
                    ],
                    "together": pair.together,
                    "apart": pair.apart,
                }
                for pair in self.pairs(node)
            ]
        return record

    def _given(self, known: Evidence) -> tuple[dict[str, Any], float]:
        del known
        raise ParameterError(
            'leaf must be "uniform" or "independent" for a density given evidence, got "dependent"'
        )
