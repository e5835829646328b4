"""The cells of a smoothed histogram, as a density for users.

`CellDensity` needs no data except the cells with rows and their counts. With ``n`` rows, ``n_x`` of
them in cell ``x`` of the ``C`` cells that satisfy conditions, the cell has the probability ``(n_x +
a) / (n + C a)`` with the pseudo-count ``a``. Its parts are the cells with rows, one by one, and all
others together, which are equally probable. Inside a cell the density is uniform.

A row with missing values belongs to ``M`` cells with ``m`` rows in total, so its known values have
the probability ``(m + M a) / (n + C a)``. All results are exact, and need only the cells with rows.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, logsumexp, rel_entr

from bayescascade.base.arrays import Codes, Floats, Integers
from bayescascade.data.schema import Conditions, Schema, agrees, subtract_widths
from bayescascade.data.sql import sql_case, sql_condition, sql_literal
from bayescascade.model.density_parts import DensityParts
from bayescascade.report.axes import Bar, plot_bars, ratio_color
from bayescascade.report.folding import shown_rows
from bayescascade.report.numbers import density_text, ratio_text
from bayescascade.report.page import Fold, Numbers, Page, PrintedTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_OTHERS = "any other combination"
_MOST_DRAWN = 20  # most bars of cells


@dataclass(frozen=True, eq=False)
class CellDensity(DensityParts):
    """A density by the counts of cells and a pseudo-count."""

    schema: Schema
    cells: Codes  # (n_columns, n_cells): distinct cells with rows that satisfy the conditions
    counts: Floats  # (n_parts,): weight > 0 of the rows in each; last 0 if there are other cells
    probabilities: Floats  # (n_parts,): of each part, and of all others together; the sum is 1
    log_pseudo_count: float  # log of a cell's pseudo-count
    conditions: Conditions = field(default_factory=dict)  # codes by column
    conditions_probability: float = 1.0  # in (0, 1]; 1 without conditions
    # by column: the number given for the bin of a continuous column
    condition_numbers: Mapping[int, str] = field(default_factory=dict, kw_only=True)

    @classmethod
    def of(
        cls, schema: Schema, cells: Codes, counts: Floats, log_pseudo_count: float
    ) -> "CellDensity":
        """Return the density over all cells of a schema, given those with rows."""
        counts, probabilities, _ = _parts(schema, counts, log_pseudo_count, {})
        return cls(schema, cells, counts, probabilities, log_pseudo_count)

    # -- what is where -----------------------------------------------------------------------------

    @cached_property
    def log_volumes(self) -> Floats:
        """Log volume of each cell with rows, and of all others together, nats."""
        of_cells = np.zeros(self.n_cells)
        for column, codes in zip(self.schema.columns, self.cells, strict=True):
            of_cells += np.log(column.widths)[codes]
        if self.n_cells == self.counts.size:
            return of_cells
        n_left = _n_left(self.schema, self.conditions).tolist()  # products may be huge
        log_others = math.log(math.prod(n_left) - self.n_cells)
        widths = [c.widths[list(left)] for c, left in self._columns_left()]
        if all(np.ptp(each) == 0 for each in widths):
            log_others += math.fsum(math.log(each[0]) for each in widths)
        else:
            least = log_others + math.fsum(math.log(each.min()) for each in widths)
            share = math.exp(float(logsumexp(of_cells, b=1.0)) - self.log_domain)
            log_others = max(least, self.log_domain + math.log1p(-share)) if share < 1 else least
        return np.append(of_cells, log_others)

    @cached_property
    def log_domain(self) -> float:
        """Log volume of all cells that satisfy the conditions, nats."""
        return math.fsum(
            math.log(column.widths[list(left)].sum()) for column, left in self._columns_left()
        )

    @property
    def n_cells(self) -> int:
        """Number of cells with rows that satisfy the conditions."""
        return int(self.cells.shape[1])

    def _columns_left(self) -> Iterable[tuple[Any, Sequence[int]]]:
        """Yield each column and its codes that satisfy the conditions."""
        for j, column in enumerate(self.schema.columns):
            yield column, self.conditions.get(j, range(column.n_levels))

    # -- words -------------------------------------------------------------------------------------

    @cached_property
    def labels(self) -> list[str]:
        """The cells with rows in words, and all others."""
        texts = [self._cell_words(cell) for cell in self.cells.T]
        return [*texts, _OTHERS] if self.counts.size > self.n_cells else texts

    def _cell_words(self, codes: Codes) -> str:
        """Return the known values of a row, such as "sex is male and age is child"."""
        columns = zip(self.schema.columns, codes.tolist(), strict=True)
        conditions = [c.condition_words([code]) for c, code in columns if code >= 0]
        return " and ".join(conditions) if conditions else "any row"

    @property
    def gains(self) -> Floats:
        """Gain of each part over the uniform density, (n_parts,) float64 >= 0 nats."""
        q, u = self.probabilities, np.exp(self.log_volumes - self.log_domain)
        gains: Floats = self.counts.sum() * (rel_entr(q, u) - q + u)
        return gains.clip(min=0.0)

    def _table(self, columns: list[Numbers]) -> Page:
        won = "the gain in log likelihood"
        fold = Fold(
            self.gains.tolist(), won, ("cell", "cells"), self.counts.tolist(), keeps_last=True
        )
        return (PrintedTable(self.labels, columns, least_label=0, stacks=True, fold=fold),)

    @property
    def how_to_read(self) -> list[tuple[str, str]]:
        """How to read the cells."""
        read = (
            "Each group is one combination of levels that occurs in the rows. The last group "
            "contains all other combinations. They do not occur in the rows, and are equally "
            "probable."
        )
        return [("", read)]

    def parts_in_words(self) -> list[tuple[str, str]]:
        """Return the most informative cells, with their statistics."""
        (table,) = self._table([])
        assert isinstance(table, PrintedTable)
        return [(self.labels[k], self._part_in_words(k)) for k in sorted(shown_rows(table))]

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw a bar for each of the most probable cells and one for the others; return the axes.

        Blue cells are denser than uniform, orange ones rarer. By default `ax` is a new figure, high
        enough for the bars.
        """
        ratios = self.log_densities + self.log_domain
        order = np.argsort(-self.probabilities[: self.n_cells], kind="stable")
        drawn, rest = order[:_MOST_DRAWN], order[_MOST_DRAWN:]
        shown = [(self.labels[k], self.probabilities[k], ratios[k]) for k in drawn.tolist()]
        others = np.append(rest, np.arange(self.n_cells, self.counts.size))
        if others.size:
            share = float(self.probabilities[others].sum())
            log_volume = float(logsumexp(self.log_volumes[others]))
            ratio = math.log(share) - log_volume + self.log_domain if share else -math.inf
            shown.append((_OTHERS, share, ratio))
        bars = [
            Bar(label, (float(share),), f"{ratio_text(ratio)} x uniform", (ratio_color(ratio),))
            for label, share, ratio in shown
        ]
        return plot_bars(bars, ax, x_label="share; blue: denser than uniform, orange: rarer")

    def _explanations(self, codes: Codes) -> Iterable[str]:
        row = codes[:, np.newaxis]
        (count,), (log_mass,) = self._counts_and_masses(row)
        log_volume = math.fsum(
            math.log(column.widths[code if code >= 0 else list(left)].sum())
            for (column, left), code in zip(self._columns_left(), codes.tolist(), strict=True)
        )
        log_density, is_average = float(log_mass) - log_volume, bool((codes < 0).any())
        mass, relative = math.exp(log_mass), math.exp(log_density + self.log_domain)
        n, total = float(count), float(self.counts.sum())
        text = density_text(n, total, mass, log_density, relative, is_average=is_average)
        yield f"{self._cell_words(codes)}: {text}"

    # -- densities and draws -----------------------------------------------------------------------

    def score_codes(self, codes: Codes) -> Floats:
        """Return the log density of coded rows, (n_rows,) float64 nats; see `Schema.encode`.

        Cells coded -1 are missing and integrated out. Rows that contradict the conditions get -inf.
        """
        _, scores = self._counts_and_masses(codes)
        subtract_widths(scores, self.schema, self.conditions, codes)
        return scores

    def _counts_and_masses(self, codes: Codes) -> tuple[Floats, Floats]:
        """Return the weight that agrees with each row, and the log probability of its values."""
        counts, log_ways = np.empty(codes.shape[1]), np.empty(codes.shape[1])
        log_left = np.log(_n_left(self.schema, self.conditions).astype(np.float64))
        of_cells = self.counts[: self.n_cells]
        patterns, members = np.unique(codes >= 0, axis=1, return_inverse=True)
        for number, is_there in enumerate(patterns.T):
            rows, known = np.flatnonzero(members.ravel() == number), np.flatnonzero(is_there)
            counts[rows] = _weights_of(codes[known][:, rows], self.cells[known], of_cells)
            log_ways[rows] = log_left[~is_there].sum()
        total = np.logaddexp(_log(of_cells.sum()), self.log_pseudo_count + log_left.sum())
        return counts, np.logaddexp(_log(counts), self.log_pseudo_count + log_ways) - total

    def sample_codes(self, n: int, rng: np.random.Generator) -> Codes:
        """Draw (n_columns, n) codes: a training row's cell, or any cell by pseudo-counts."""
        of_cells = self.counts[: self.n_cells]
        codes = np.empty((self.schema.n_columns, n), np.int32)
        for j, (_, left) in enumerate(self._columns_left()):
            codes[j] = rng.choice(np.array(left, np.int32), size=n)
        log_left = np.log(_n_left(self.schema, self.conditions).astype(np.float64)).sum()
        log_odds = _log(of_cells.sum()) - self.log_pseudo_count - log_left
        is_a_row = rng.random(n) < expit(log_odds) if self.n_cells else np.zeros(n, bool)
        if is_a_row.any():
            chosen = rng.choice(self.n_cells, size=int(is_a_row.sum()), p=of_cells / of_cells.sum())
            codes[:, is_a_row] = self.cells[:, chosen]
        return codes

    def _given(self, known: Conditions) -> tuple[dict[str, Any], float]:
        is_left = agrees(known, self.cells)
        counts = self.counts[: self.n_cells]
        *_, log_before = _parts(self.schema, counts, self.log_pseudo_count, self.conditions)
        kept, shares, log_left = _parts(self.schema, counts[is_left], self.log_pseudo_count, known)
        probability = math.exp(log_left - log_before)
        changes = {
            "cells": self.cells[:, is_left],
            "counts": kept,
            "probabilities": shares * probability,
        }
        return changes, probability

    # -- as plain data -----------------------------------------------------------------------------

    def _sql(self) -> list[str]:
        columns, log_densities = self.schema.columns, self.log_densities.tolist()
        cells = []
        for cell, log_density in zip(self.cells.T.tolist(), log_densities, strict=False):
            conditions = [sql_condition(c, [code]) for c, code in zip(columns, cell, strict=True)]
            cells.append((" AND ".join(conditions), [sql_literal(log_density)]))
        log_left = np.log(_n_left(self.schema, self.conditions).astype(np.float64)).sum()
        of_cells = self.counts[: self.n_cells]
        total = np.logaddexp(_log(of_cells.sum()), self.log_pseudo_count + log_left)
        constant, terms = float(self.log_pseudo_count - total), list[str]()
        for column in columns:
            log_widths = np.log(column.widths)
            if np.ptp(log_widths) == 0:
                constant -= float(log_widths[0])
                continue
            first, *more = sql_case(
                (sql_condition(column, [code]), [sql_literal(float(-width))])
                for code, width in enumerate(log_widths)
            )
            terms += [f"+ {first}", *more]
        return sql_case(cells, [sql_literal(constant), *terms])

    def _own_dict(self) -> dict[str, Any]:
        """Return the cells with rows as plain data.

        ``{"n_cells_with_rows": k, "cells": [{"cell": {name: words, ...}, "count": n, "probability":
        p, "density": d}, ...]}``, and the same numbers of all other cells under "other".
        """
        names = ("count", "probability", "density")
        each = (self.counts, self.probabilities, np.exp(self.log_densities))
        parts = [dict(zip(names, own, strict=True)) for own in np.transpose(each).tolist()]

        def words(cell: list[int]) -> dict[str, str]:
            columns = zip(self.schema.columns, cell, strict=True)
            return {column.name: column.describe_codes([code]) for column, code in columns}

        described = zip(self.cells.T.tolist(), parts, strict=False)
        cells = [{"cell": words(cell), **part} for cell, part in described]
        other = {"other": parts[-1]} if self.counts.size > self.n_cells else {}
        return {"n_cells_with_rows": self.n_cells, "cells": cells, **other}


def _n_left(schema: Schema, conditions: Conditions) -> Integers:
    """Return the number of codes of each column that satisfy conditions, (n_columns,) int64."""
    n_left = schema.n_levels.copy()
    for j, codes in conditions.items():
        n_left[j] = len(codes)
    return n_left


def _parts(
    schema: Schema, counts: Floats, log_pseudo_count: float, conditions: Conditions
) -> tuple[Floats, Floats, float]:
    """Return counts and shares of parts, from cells (n_cells,), and the log total weight."""
    n_left = _n_left(schema, conditions).tolist()
    log_all = log_pseudo_count + math.fsum(map(math.log, n_left))
    log_total = float(np.logaddexp(_log(counts.sum()), log_all))
    probabilities = np.exp(np.logaddexp(_log(counts), log_pseudo_count) - log_total)
    n_others = math.prod(n_left) - counts.size
    if n_others:
        share = math.exp(log_pseudo_count + math.log(n_others) - log_total)
        counts, probabilities = np.append(counts, 0.0), np.append(probabilities, share)
    return counts, probabilities, log_total


def _weights_of(codes: Codes, known_codes: Codes, weights: Floats) -> Floats:
    """Return the weight of the known rows that equal each row; rows are columns of the arrays."""
    together = np.concatenate([known_codes, codes], axis=1)
    _, groups = np.unique(together, axis=1, return_inverse=True)
    groups = groups.ravel()
    sums: Floats = np.zeros(groups.max(initial=-1) + 1)
    sums += np.bincount(groups[: weights.size], weights, sums.size)
    return sums[groups[weights.size :]]


def _log(values: Any) -> Any:  # Any: a number or an array
    """Return logarithms, -inf for 0."""
    with np.errstate(divide="ignore"):
        return np.log(values)
