"""The density of trees of hidden states: scores with missing cells summed out, and draws."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bayescascade.base.arrays import Codes, Floats, Integers, Reals
from bayescascade.base.errors import ModelFileError
from bayescascade.base.saved_arrays import are_shares, read_array
from bayescascade.base.validation import check_integer
from bayescascade.data.conditions import subtract_widths
from bayescascade.data.schema import Schema
from bayescascade.methods.hidden_trees.em import HiddenTrees, pass_up, with_missing
from bayescascade.methods.mixtures.density import drawn_codes
from bayescascade.model.packing import Unpacked, pack_singles

_AT_ONCE = 1 << 20  # numbers of all messages of some rows


@dataclass(frozen=True, eq=False)
class HiddenDensity:
    """An average of trees of hidden states with equal weights.

    Parameters
    ----------
    schema : Schema
        The columns.
    parents : (p,) int64
        Each column's parent in the trees, -1 for the root.
    first : (n_members, n_states) float32
        Probabilities of the root's states.
    moves : (p, n_members, n_states, n_states) float32
        For each column the probabilities of its states, given the parent's state (rows); those of
        the root are not used.
    levels : tuple of (n_members, n_levels, n_states) float32
        For each column the probabilities of its levels, given its state.
    """

    schema: Schema
    parents: Integers
    first: Reals
    moves: Reals
    levels: tuple[Reals, ...]

    @classmethod
    def of(cls, schema: Schema, trees: HiddenTrees) -> "HiddenDensity":
        """Build from what EM found."""
        levels = np.split(trees.levels[:, :-1], trees.starts[1:], axis=1)
        return cls(schema, trees.parents, trees.first[:, 0], trees.moves, tuple(levels))

    @property
    def n_states(self) -> int:
        """Number of states of each column."""
        return int(self.first.shape[1])

    @cached_property
    def _trees(self) -> HiddenTrees:
        """The trees in float64, which sum to one without the error of rounding to float32."""
        first, moves = self.first.astype(np.float64), self.moves.astype(np.float64)
        levels = [own.astype(np.float64) for own in self.levels]
        return HiddenTrees(
            self.parents,
            (first / first.sum(axis=1, keepdims=True))[:, np.newaxis],
            moves / moves.sum(axis=3, keepdims=True),
            with_missing(
                np.concatenate([own / own.sum(axis=1, keepdims=True) for own in levels], 1)
            ),
            np.cumsum(self.schema.n_levels) - self.schema.n_levels,
        )

    def score_codes(self, codes: Codes) -> Floats:
        """Return the log density of coded rows, (n_rows,) float64 nats; -1 is integrated out."""
        scores = np.empty(codes.shape[1])
        n_at_once = max(1, _AT_ONCE // (self.first.size * len(self.parents)))
        for i in range(0, scores.size, n_at_once):
            part = slice(i, i + n_at_once)
            scores[part] = np.logaddexp.reduce(pass_up(self._trees, codes[:, part])[2])
        scores -= np.log(len(self.first))
        subtract_widths(scores, self.schema, {}, codes)
        return scores

    def sample_codes(self, n: int, rng: np.random.Generator) -> Codes:
        """Draw (n_columns, n) codes: for each row a member, its states, and their levels."""
        trees, member = self._trees, rng.integers(len(self.first), size=n)
        states, codes = np.empty((2, len(self.parents), n), np.int32)
        for u in trees.order:
            parent = int(self.parents[u])
            if parent < 0:
                states[u] = drawn_codes(np.cumsum(trees.first, axis=2)[member, 0], rng)
            else:
                states[u] = drawn_codes(
                    np.cumsum(trees.moves[u], axis=2)[member, states[parent]], rng
                )
            own = trees.levels[:, trees.starts[u] :][:, : self.schema.n_levels[u]]
            codes[u] = drawn_codes(np.cumsum(own, axis=1)[member, :, states[u]], rng)
        return codes

    # -- as plain data -----------------------------------------------------------------------------

    def to_record(self) -> dict[str, Any]:
        """Return the record for a saved file."""
        return {
            "parents": self.parents.tolist(),
            "n_members": len(self.first),
            "n_states": self.n_states,
            "probabilities": pack_singles((self.first, self.moves, *self.levels)),
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any], schema: Schema) -> "HiddenDensity":
        """Rebuild from the result of `to_record`; ModelFileError if it is inconsistent."""
        p = schema.n_columns
        parents = read_array(record, "parents", (p,), np.int64, least=-1, most=p - 1)
        m, h = (check_integer(name, record[name], minimum=1) for name in ("n_members", "n_states"))
        shapes = [(m, h), (p, m, h, h), *((m, int(own), h) for own in schema.n_levels)]
        first, moves, *levels = Unpacked(record).singles("probabilities", shapes)
        of_levels = (own.swapaxes(1, 2) for own in levels)
        if not all(map(are_shares, (first, moves, *of_levels))):
            raise ModelFileError("probabilities of hidden states and levels must sum to 1")
        density = cls(schema, parents, first, moves, tuple(levels))
        if np.count_nonzero(parents < 0) != 1 or len(density._trees.order) != p:
            raise ModelFileError(f"parents of columns must be those of a tree, got {parents}")
        return density
