"""The density of trees of hidden states: scores with missing cells summed out, and draws.

A class of a row is a state that its columns share, and each column has its own: the probability of
a class is the expected share of the columns in it. Conditions on a column remove some of its
levels.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp, softmax

from bayescascade.base.arrays import Codes, Floats, Integers, Reals
from bayescascade.base.errors import ModelFileError
from bayescascade.base.saved_arrays import are_shares, read_array
from bayescascade.base.validation import check_integer
from bayescascade.data.schema import Schema
from bayescascade.methods.density.hidden_trees.em import HiddenTrees, pass_down, pass_up
from bayescascade.methods.density.mixtures.density import drawn_codes
from bayescascade.methods.density.mixtures.merged import MergedClasses, read_merged
from bayescascade.model.packing import Unpacked, pack_singles
from bayescascade.report.numbers import share_text
from bayescascade.report.page import BLANK, Numbers, Page, Pieces, PrintedTable

_AT_ONCE = 1 << 20  # numbers of all messages of some rows
_MOST_SHOWN = 8  # pairs of neighbors


class Neighbors(NamedTuple):
    """Two columns that are joined in the tree, and how often they are in the same class."""

    above: int
    below: int
    share: float


@dataclass(frozen=True, eq=False, kw_only=True)
class HiddenDensity(MergedClasses):
    """An average of trees of hidden states with equal weights.

    Parameters
    ----------
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

    parents: Integers
    first: Reals
    moves: Reals
    levels: tuple[Reals, ...]

    @classmethod
    def of(cls, schema: Schema, total_weight: float, trees: HiddenTrees) -> "HiddenDensity":
        """Build from what EM found."""
        p = len(trees.parents)
        levels = np.split(trees.levels[:, :-p], trees.starts[1:], axis=1)
        return cls(
            schema=schema, total_weight=total_weight, parents=trees.parents,
            first=trees.first[:, 0], moves=trees.moves, levels=tuple(levels),
            merged=np.zeros((len(trees.first), trees.first.shape[2]), np.int64),
        )  # fmt: skip

    @property
    def n_components(self) -> int:
        """Number of states of each column."""
        return int(self.first.shape[1])

    @cached_property
    def _trees(self) -> HiddenTrees:
        """The trees in float64, which sum to one without the error of rounding to float32.

        Levels that contradict the conditions have probability 0.
        """
        first, moves = self.first.astype(np.float64), self.moves.astype(np.float64)
        left, missing = [], []
        for j, single in enumerate(self.levels):
            own = single.astype(np.float64)
            own /= own.sum(axis=1, keepdims=True)
            own[:, [k for k in range(own.shape[1]) if k not in self._left(j)]] = 0.0
            left.append(own)
            missing.append(own.sum(axis=1, keepdims=True))
        return HiddenTrees(
            self.parents,
            (first / first.sum(axis=1, keepdims=True))[:, np.newaxis],
            moves / moves.sum(axis=3, keepdims=True),
            np.concatenate([*left, *missing], axis=1),
            np.cumsum(self.schema.n_levels) - self.schema.n_levels,
        )

    def _left(self, j: int) -> Sequence[int]:
        return self.conditions.get(j, range(self.levels[j].shape[1]))

    def _blocks(self, codes: Codes) -> list[Codes]:
        """Split rows into blocks whose messages fit the memory."""
        at_once = max(1, _AT_ONCE // (self.first.size * len(self.parents)))
        return [codes[:, i : i + at_once] for i in range(0, codes.shape[1], at_once)]

    def _log_probabilities(self, codes: Codes) -> Floats:
        found = [logsumexp(pass_up(self._trees, own)[2], axis=0) for own in self._blocks(codes)]
        logs: Floats = np.concatenate([np.empty(0), *found]) - np.log(len(self.first))
        return logs

    def _beliefs(self, codes: Codes) -> Floats:
        """Return the probability of each member and state of each column, (p, n, m h)."""
        trees, (p, n), (m, h) = self._trees, codes.shape, self.first.shape
        inside, sent, logs = pass_up(trees, codes)
        beliefs = np.empty((p, m, n, h))
        for _ in pass_down(trees, inside, sent, beliefs):
            pass
        beliefs *= softmax(logs, axis=0)[..., np.newaxis]  # of members
        found: Floats = beliefs.transpose(0, 2, 1, 3).reshape(p, n, m * h)
        return found

    def _shares(self, codes: Codes) -> Floats:
        found = [self._beliefs(own).mean(axis=0) for own in self._blocks(codes)]
        return np.concatenate([np.empty((0, self.merged.size)), *found])

    @cached_property
    def _states(self) -> Floats:
        """The probability of each column's states, (p, m h)."""
        return self._beliefs(self._nothing)[:, 0]

    def _joint_levels(self) -> list[Floats]:
        found, trees = [], self._trees
        for u, own in enumerate(self._states):
            levels = trees.levels[:, trees.starts[u] :][:, : self.schema.n_levels[u]]
            sums = levels.sum(axis=1, keepdims=True)  # 0 where conditions rule a state out
            levels = (levels / np.where(sums > 0, sums, 1.0)).swapaxes(1, 2)
            found.append(own[:, np.newaxis] * levels.reshape(own.size, -1))
        return found

    # -- which columns share a class ---------------------------------------------------------------

    @cached_property
    def neighbors(self) -> list[Neighbors]:
        """Each pair of neighbors in the tree, the one that is most rarely in one class first."""
        trees, (m, h) = self._trees, self.first.shape
        inside, sent, logs = pass_up(trees, self._nothing)
        beliefs, members = np.empty((len(self.parents), m, 1, h)), softmax(logs[:, 0])
        is_same = self.merged[:, :, np.newaxis] == self.merged[:, np.newaxis]
        found = []
        for u, outside in pass_down(trees, inside, sent, beliefs):
            pairs = outside.swapaxes(1, 2) * trees.moves[u] * inside[u]
            share = float((pairs * is_same).sum(axis=(1, 2)) @ members)
            found.append(Neighbors(int(self.parents[u]), u, share))
        return sorted(found, key=lambda one: one.share)

    def page(self) -> Page:
        """Return the classes, and the neighbors that are most rarely in the same class."""
        if not self.neighbors:
            return super().page()
        names, rarest = self.schema.names, self.neighbors[:_MOST_SHOWN]
        text = "each column has its own class, mostly that of its neighbor; the least often:"
        labels = [f"{names[one.above]} - {names[one.below]}" for one in rarest]
        shares = Numbers("same class", [share_text(one.share) for one in rarest])
        return (*super().page(), BLANK, Pieces([text]), PrintedTable(labels, [shares]))

    def _own_dict(self) -> dict[str, Any]:
        names = self.schema.names
        pairs = [
            {"columns": [names[one.above], names[one.below]], "same_class": one.share}
            for one in self.neighbors
        ]
        return {**super()._own_dict(), "neighbors": pairs}

    def sample_codes(self, n: int, rng: np.random.Generator) -> Codes:
        """Draw (n_columns, n) codes: for each row a member, its states, and their levels."""
        trees = self._trees
        inside, _, logs = pass_up(trees, self._nothing)
        member = rng.choice(len(self.first), n, p=softmax(logs[:, 0]))
        states, codes = np.empty((2, len(self.parents), n), np.int32)
        for u in trees.order:
            parent = int(self.parents[u])
            if parent < 0:
                weights = inside[u][member, 0]
            else:
                weights = (trees.moves[u] * inside[u])[member, states[parent]]
            states[u] = drawn_codes(np.cumsum(weights, axis=1), rng)
            own = trees.levels[:, trees.starts[u] :][:, : self.schema.n_levels[u]]
            codes[u] = drawn_codes(np.cumsum(own, axis=1)[member, :, states[u]], rng)
        return codes

    # -- as plain data -----------------------------------------------------------------------------

    def to_record(self) -> dict[str, Any]:
        """Return the record for a saved file."""
        return {
            **self._merged_record(),
            "parents": self.parents.tolist(),
            "n_members": len(self.first),
            "n_states": self.n_components,
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
        density = cls(
            schema=schema, parents=parents, first=first, moves=moves, levels=tuple(levels),
            **read_merged(record, (m, h)),
        )  # fmt: skip
        if np.count_nonzero(parents < 0) != 1 or len(density._trees.order) != p:
            raise ModelFileError(f"parents of columns must be those of a tree, got {parents}")
        return density
