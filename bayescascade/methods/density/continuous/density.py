"""The density of a continuous mixture: many trees of one structure, with missing cells summed out.

The log probability of a row's observed cells at each point is a sum over columns. A cell whose
parent is observed, or that has none, adds the log of its table's entry. Only missing columns with
observed ones below, or with conditions, need sums: such a column u sends its parent ::

    s_u(m) = sum_l P(l | m) prod_(children c of u) s_c(l)

where an observed child of code x sends ``P(x | l)``, and l is a level that the conditions allow.
Other missing columns send ones.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from bayescascade.base.arrays import Codes, Flags, Floats, Integers, Reals
from bayescascade.base.errors import ModelFileError
from bayescascade.base.saved_arrays import are_shares, read_array
from bayescascade.data.schema import Schema
from bayescascade.methods.density.continuous.network import NetState, TreeCells, memberships
from bayescascade.methods.density.mixtures.density import drawn_codes
from bayescascade.methods.density.mixtures.em import parents_first
from bayescascade.methods.density.mixtures.merged import MergedClasses, read_merged
from bayescascade.model.packing import Unpacked, pack_singles

_AT_ONCE = 1 << 20  # numbers of an array of rows, levels and points
_TOLERANCE = 1e-9  # for the sum of saved shares


@dataclass(frozen=True, eq=False, kw_only=True)
class ContinuousDensity(MergedClasses):
    """A mixture of trees of one structure, one for each point.

    Parameters
    ----------
    parents : (p,) int64
        Each column's parent, -1 for none.
    shares : (K,) float64
        Shares of the points.
    tables : tuple of (n_above, n_levels, K) float32
        For each column the probabilities of its levels, given the parent's level, at each point;
        for columns without a parent ``n_above`` is 1.
    """

    parents: Integers
    shares: Floats
    tables: tuple[Reals, ...]

    @classmethod
    def of(
        cls, schema: Schema, total_weight: float, cells: TreeCells, state: NetState
    ) -> "ContinuousDensity":
        """Build from what was learned."""
        tables = np.exp(cells.log_tables(state.network.layers(state.points)[2]))
        shares = np.exp(state.log_shares.astype(np.float64))
        found = np.split(tables, cells.starts[1:-1])
        shaped = [
            own.reshape(-1, size, shares.size) for own, size in zip(found, cells.sizes, strict=True)
        ]
        return cls(
            schema=schema, total_weight=total_weight, parents=cells.parents,
            shares=shares / shares.sum(), tables=tuple(shaped),
            merged=np.zeros(shares.size, np.int64),
        )  # fmt: skip

    @property
    def n_components(self) -> int:
        """Number of points."""
        return self.shares.size

    @cached_property
    def _order(self) -> list[int]:
        """The columns, parents before their children; those in circles are left out."""
        return parents_first(tuple(self.parents.tolist()))

    @cached_property
    def _tables(self) -> tuple[Floats, ...]:
        """Tables in float64, which sum to one without the error of rounding to float32."""
        found = [own.astype(np.float64) for own in self.tables]
        return tuple(own / own.sum(axis=1, keepdims=True) for own in found)

    @cached_property
    def _log_tables(self) -> tuple[Floats, ...]:
        return tuple(np.log(own) for own in self._tables)

    @cached_property
    def _log_cells(self) -> Floats:
        """Log probabilities of all cells, (n_cells, K)."""
        return np.concatenate([own.reshape(-1, self.shares.size) for own in self._log_tables])

    def _blocks(self, codes: Codes) -> list[Floats]:
        """Return `_log_joint` of blocks of rows that fit the memory."""
        at_once, whole = max(1, _AT_ONCE // self.shares.size), codes.astype(np.int64)
        starts = range(0, codes.shape[1], at_once)
        return [self._log_joint(whole[:, i : i + at_once]) for i in starts]

    def _log_probabilities(self, codes: Codes) -> Floats:
        return np.concatenate([np.empty(0), *map(memberships, self._blocks(codes))])

    def _shares(self, codes: Codes) -> Floats:
        blocks = self._blocks(codes)
        for own in blocks:
            memberships(own)
        return np.concatenate([np.empty((0, self.shares.size)), *blocks])

    def _log_joint(self, codes: Integers) -> Floats:
        """Return the log of share times probability of rows' cells at points, (n, K)."""
        above = np.where((self.parents < 0)[:, np.newaxis], 0, codes[self.parents])
        is_summed = (codes < 0) | (above < 0)
        n_cells = np.array([own[..., 0].size for own in self.tables])
        starts, sizes = np.cumsum(n_cells) - n_cells, self.schema.n_levels
        cells = (starts + above.T * sizes + codes.T)[~is_summed.T]
        ends = np.concatenate([[0], np.cumsum(np.count_nonzero(~is_summed, axis=0))])
        shape = (codes.shape[1], len(self._log_cells))
        joint: Floats = csr_array((np.ones(cells.size), cells, ends), shape) @ self._log_cells
        joint += np.log(self.shares)
        if (codes < 0).any():
            patterns, group = np.unique(codes < 0, axis=1, return_inverse=True)
            for i, is_missing in enumerate(patterns.T):
                rows = np.flatnonzero(group.ravel() == i)
                joint[rows] += self._log_sums(codes[:, rows], is_missing)[0]
        return joint

    def _log_sums(
        self, codes: Integers, is_missing: Flags
    ) -> tuple[Floats | float, dict[int, Floats]]:
        """Return logs of the sums over missing columns of rows that miss the same, (n, K).

        And the messages to missing columns, for each level up to a factor, (n_levels, n, K).
        """
        sent, reached, total = dict[int, Floats](), dict[int, Floats](), 0.0
        for j in reversed(self._order):
            above, log_table = self.parents[j], self._log_tables[j]
            if not is_missing[j]:
                if above >= 0 and is_missing[above]:
                    message = log_table[:, codes[j]]
                    sent[above] = sent.get(above, 0.0) + message
                continue
            if j in self.conditions:
                left = np.full((log_table.shape[1], codes.shape[1], self.shares.size), -np.inf)
                left[list(self.conditions[j])] = 0.0
                sent[j] = sent.get(j, 0.0) + left
            if j not in sent:
                continue
            inside = sent.pop(j)
            most = inside.max(axis=0)
            reached[j] = inside = np.exp(inside - most)
            table = self._tables[j]
            if above >= 0 and is_missing[above]:
                message = np.log(np.einsum("mlk,lnk->mnk", table, inside)) + most
                sent[above] = sent.get(above, 0.0) + message
            else:
                table = table[codes[above] if above >= 0 else np.zeros(codes.shape[1], int)]
                total = total + np.log(np.einsum("nlk,lnk->nk", table, inside)) + most
        return total, reached

    @cached_property
    def _given_tables(self) -> list[Floats]:
        """The tables of each column given the conditions."""
        _, reached = self._log_sums(
            self._nothing.astype(np.int64), np.ones(len(self.parents), bool)
        )
        tables = list(self._tables)
        for j, message in reached.items():
            table = tables[j] * message.swapaxes(0, 1)
            tables[j] = table / table.sum(axis=1, keepdims=True)
        return tables

    @cached_property
    def _levels_at_points(self) -> list[Floats]:
        """For each column the probabilities of its levels at each point, (n_levels, K)."""
        found = [np.empty(0)] * len(self.parents)
        for j in self._order:
            above, table = self.parents[j], self._given_tables[j]
            found[j] = table[0] if above < 0 else np.einsum("mk,mlk->lk", found[above], table)
        return found

    def _joint_levels(self) -> list[Floats]:
        shares = self._shares(self._nothing)[0]
        return [(own * shares).T for own in self._levels_at_points]

    def sample_codes(self, n: int, rng: np.random.Generator) -> Codes:
        """Draw (n_columns, n) codes: for each row a point, and then the row by its tree."""
        points = rng.choice(self.shares.size, n, p=self._shares(self._nothing)[0])
        codes = np.empty((len(self.parents), n), np.int32)
        for j in self._order:
            above = codes[self.parents[j]] if self.parents[j] >= 0 else np.zeros(n, int)
            sums = np.cumsum(self._given_tables[j], axis=1)[above, :, points]
            codes[j] = drawn_codes(sums, rng)
        return codes

    def to_record(self) -> dict[str, Any]:
        """Return the record for a saved file."""
        return {
            **self._merged_record(),
            "parents": self.parents.tolist(),
            "shares": self.shares.tolist(),
            "tables": pack_singles(self.tables),
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any], schema: Schema) -> "ContinuousDensity":
        """Rebuild from the result of `to_record`; ModelFileError if it is inconsistent."""
        n, sizes = schema.n_columns, schema.n_levels.astype(np.int64)
        parents = read_array(record, "parents", (n,), np.int64, least=-1, most=n - 1)
        shares = read_array(record, "shares", (None,), least=0.0)
        above = np.where(parents >= 0, sizes[parents], 1)
        shapes = [(m, own, shares.size) for m, own in zip(above, sizes, strict=True)]
        tables = tuple(Unpacked(record).singles("tables", shapes))
        are_probable = all(bool((own > 0).all()) and are_shares(own, 1) for own in tables)
        if abs(shares.sum() - 1.0) > _TOLERANCE or not are_probable:
            raise ModelFileError("shares and tables of points must be probabilities")
        density = cls(
            schema=schema, parents=parents, shares=shares, tables=tables,
            **read_merged(record, shares.shape),
        )  # fmt: skip
        if len(density._order) != n:
            raise ModelFileError(f"parents of columns must form no circle, got {parents.tolist()}")
        return density
