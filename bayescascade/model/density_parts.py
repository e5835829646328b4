"""Densities that consist of parts: the nodes of a tree, or the parts of a list."""

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import pandas as pd

from bayescascade.base.arrays import Codes, Floats
from bayescascade.base.errors import DataError
from bayescascade.base.texts import printable
from bayescascade.data.cell_policy import UnknownCells
from bayescascade.data.column import MISSING, UNKNOWN
from bayescascade.data.levels import level_text, plain_level, quoted
from bayescascade.data.schema import Conditions, Schema, agrees, conditions_words, narrow_conditions
from bayescascade.data.sql import sql_case, sql_condition, sql_domain, sql_literal
from bayescascade.report.numbers import (
    cells_text,
    common_text,
    count_texts,
    ratio_text,
    share_text,
    significant_text,
)
from bayescascade.report.page import BLANK, Numbers, Page, Pieces
from bayescascade.report.printed import Pictured

_STRONGEST = math.log(20.0)  # bars are cut at 20 times, and at a 20th
_NOTICEABLE = math.log(1.005)  # ratios that are not printed as 1.00 are colored


VOLUME_WORDS = "volume: widths of bins x numbers of levels"
"""The explanation of a volume in a key."""


class DensityParts(Pictured):
    """A density over the rows of a schema that consists of numbered parts.

    Attributes
    ----------
    schema : Schema
        The columns.
    counts, probabilities : (n_parts,) float64
        Weight of the rows and probability of each part.
    conditions : mapping of int to tuple of int
        Codes on which the density is conditioned, by column.
    conditions_probability : float in (0, 1]
        Probability of the conditions; 1 if there are none.
    condition_numbers : mapping of int to str
        Numbers that were given for continuous columns and that stand for their bins, by column.
    """

    schema: Schema
    counts: Floats
    probabilities: Floats
    conditions: Conditions
    conditions_probability: float
    condition_numbers: Mapping[int, str]

    @property
    def n_parts(self) -> int:
        """Number of parts that do not consist of other parts."""
        return len(self.probabilities)

    @property
    @abstractmethod
    def log_volumes(self) -> Floats:
        """Log volume of each part, nats, (n_parts,) float64."""

    @property
    @abstractmethod
    def log_domain(self) -> float:
        """Log volume of all cells that satisfy the conditions, nats."""

    @abstractmethod
    def score_codes(self, codes: Codes) -> Floats:
        """Return the log density of (n_columns, n_rows) coded rows, nats; -1 is integrated out."""

    @abstractmethod
    def sample_codes(self, n: int, rng: np.random.Generator) -> Codes:
        """Draw (n_columns, n) codes."""

    @abstractmethod
    def _given(self, known: Conditions) -> tuple[dict[str, Any], float]:
        """Return the fields changed by conditions, and the probability of the conditions.

        Probabilities, unless they follow, are the old ones, scaled by each part's remaining share.
        """

    @abstractmethod
    def _explanations(self, codes: Codes) -> Iterable[str]:
        """Return in words the parts that may contain a coded row, with their statistics."""

    @abstractmethod
    def _table(self, columns: list[Numbers]) -> Page:
        """Return the table of the parts."""

    def to_sql(self) -> str:
        """Return the log density of a row, nats, as a standard SQL expression.

        Use it as in ``f"SELECT *, {density.to_sql()} AS log_density FROM passengers"``. It reads
        columns by their names. The result is NULL if a cell is missing and its column has no
        missing level, or if a value is outside the domain of its column.

        Raises
        ------
        ParameterError
            If leaves are dependent, which would need a determinant for each row.
        DataError
            If a name or level holds a NUL character.
        """
        inside = self._sql()
        if self.conditions:
            columns = self.schema.columns
            known = [sql_condition(columns[j], codes) for j, codes in self.conditions.items()]
            inside = sql_case([(" AND ".join(known), inside)], [sql_literal(-math.inf)])
        return "\n".join(sql_case([(sql_domain(self.schema), inside)]))

    @abstractmethod
    def _sql(self) -> list[str]:
        """Return the log density of rows in the domain that agree with the conditions, as lines."""

    @abstractmethod
    def _own_dict(self) -> dict[str, Any]:
        """Return the parts for `to_dict`."""

    def condition(self, conditions: Mapping[str, object]) -> Self:
        """Return the conditional density, given conditions.

        Parameters
        ----------
        conditions : mapping of str to level, list of levels or pair of bin edges
            Such as ``{"sex": "male", "class": ["1st", "2nd"]}``.

        Returns
        -------
        density
            A density of the same class. Splits that the conditions decide are removed, as are parts
            that contradict them; the last remaining part of a list is the `else` part. A part that
            is partly excluded keeps the remaining share of its volume or of its level
            probabilities. Then `counts` are expected counts.

        Raises
        ------
        DataError
            If a column or level is unknown, if conditions contradict earlier ones or have
            probability zero, or if levels of an ordered column are not adjacent.
        """
        known = narrow_conditions(self.schema, self.conditions, conditions)
        changes, probability = self._given(known)
        if not probability > 0:
            raise DataError(
                f"conditions must have a positive probability, got {dict(conditions)!r}"
            )
        if "probabilities" in changes:
            changes["probabilities"] /= probability
        changes["conditions_probability"] = self.conditions_probability * probability
        changes["condition_numbers"] = {**self.condition_numbers, **self._numbers_in(conditions)}
        return replace(self, **changes, conditions=known)  # type: ignore[type-var] # dataclasses

    def _numbers_in(self, conditions: Mapping[str, object]) -> dict[int, str]:
        """Return the numbers among conditions that select a bin, by column."""
        numbers = {}
        for j, column in enumerate(self.schema.columns):
            value: Any = conditions.get(column.name)  # None selects the missing level
            is_one = pd.api.types.is_scalar(value) and not pd.isna(value)
            if column.kind == "continuous" and is_one:
                numbers[j] = level_text(plain_level(column.name, value))
        return numbers

    def explain(self, row: Mapping[str, object] | pd.Series) -> str:
        """Return in words the rule of the part that contains a row, with its statistics.

        A row with missing cells may be in several parts, and gets a line for each. For an
        independent leaf, the text has its average density, the levels of most of its rows, and the
        levels of this row that are rare in it. Cells outside the domain are named first, and are
        then treated as missing.
        """
        unknown = UnknownCells()
        codes = self.schema.encode_row(row, unknown)
        contradicts = any(codes[j] == UNKNOWN for j in self.conditions)
        if contradicts or not agrees(self.conditions, codes[:, np.newaxis])[0]:
            raise DataError(f"the row contradicts the conditions: {self.conditions_words()}")
        codes[codes == UNKNOWN] = MISSING
        texts = [self._unknown_words(name, level) for name, level in unknown.levels.items()]
        return "\n".join([*texts, *self._explanations(codes)])

    def _unknown_words(self, name: str, level: str | None) -> str:
        """Return a cell outside the domain in words, with the reason."""
        is_range = self.schema.columns[self.schema.names.index(name)].kind == "continuous"
        why = "is outside the range of the training rows" if is_range else "no training row has"
        shown = "missing" if level is None else quoted(printable(level))
        return f"{quoted(printable(name))} is {shown}, which {why}"

    @cached_property
    def log_densities(self) -> Floats:
        """Log of probability divided by volume for each part, nats; -inf if it is 0.

        This is the average density over the part. In a uniform part, it is the density everywhere.
        """
        with np.errstate(divide="ignore"):
            log_densities: Floats = np.log(self.probabilities) - self.log_volumes
        return log_densities

    @property
    def relative_densities(self) -> Floats:
        """Average density of each part as a multiple of the uniform density on the domain."""
        relative: Floats = np.exp(self.log_densities + self.log_domain)
        return relative

    @property
    @abstractmethod
    def how_to_read(self) -> Sequence[tuple[str, str]]:
        """How to read the parts, for readers of reports who see them for the first time."""

    @abstractmethod
    def parts_in_words(self) -> list[tuple[str, str]]:
        """Return the rules of the parts in the short print, with their statistics."""

    def columns_in_words(self) -> list[tuple[str, str]]:
        """Return explanations of the numbers of the parts, by their headings."""
        has_cells = self.schema.n_cells is not None
        size, each = ("cells", "a cell") if has_cells else ("volume", "a unit of volume")
        evenly = "all cells were equally common" if has_cells else "rows were spread evenly"
        sizes = (
            "the number of combinations of levels in the group"
            if has_cells
            else "the product of the widths of the bins and the numbers of levels in the group"
        )
        return [
            ("rows", "the number of rows in the group"),
            (
                "share",
                "the probability of the group in the model, which is slightly smoothed compared "
                "with its share of the rows",
            ),
            (size, sizes),
            ("density", f"the probability of {each} of the group"),
            (
                "x uniform",
                f"the density, divided by what it would be if {evenly}: bars to the right (blue) "
                "are more common, bars to the left (amber) are rarer",
            ),
        ]

    def _part_in_words(self, part: int) -> str:
        """Return the rows of a part, its share, and its ratio to the uniform density, in words."""
        (rows,) = count_texts([float(self.counts[part])])
        share = share_text(float(self.probabilities[part]))
        ratio = float(self.log_densities[part]) + self.log_domain
        return f"{rows} {'row' if rows == '1' else 'rows'} ({share})\n{common_text(ratio)}"

    def conditions_words(self) -> str:
        """Return the conditions of the density in words; empty if there are none."""
        return conditions_words(self.schema, self.conditions)

    @property
    def key(self) -> tuple[str, ...]:
        """Further explanations of the table."""
        return ()

    @property
    def given_text(self) -> str:
        """The conditions and their probability, such as "given sex is male (probability 0.786)"."""
        probability = significant_text(math.log(self.conditions_probability))
        return f"given {self.conditions_words()} (probability {probability})"

    def given_page(self) -> Page:
        """Return the conditions, and the bin that holds each number; nothing if there are none."""
        if not self.conditions:
            return ()
        bins = []
        for j, number in self.condition_numbers.items():
            words = self.schema.columns[j].describe_codes(self.conditions[j])
            bins.append(f"{number} is in the bin {words.removeprefix('in ')}")
        return (Pieces([self.given_text], "bold"), *((Pieces(bins, first="  "),) if bins else ()))

    def given_key(self) -> Page:
        """Return why expected rows and shares may differ; nothing without conditions."""
        texts = [
            "expected rows: counted rows, times the share of their group that meets the conditions",
            "share, probability: from the model shown alone, with its smoothing",
        ]
        if self.schema.n_cells is None:
            texts.append(VOLUME_WORDS)
        return (BLANK, Pieces(texts, "dim")) if self.conditions else ()

    def page(self) -> Page:
        """Return the conditions, if any, and the table of the parts.

        ``share`` is the probability, and ``density`` the share per cell or unit of volume. ``x
        uniform`` is the density divided by the uniform density, in cyan if above 1, in yellow if
        below.
        """
        table = self._table(self.number_columns())
        if not self.conditions:
            return table
        return (*self.given_page(), BLANK, *table, *self.given_key())

    def number_columns(self) -> list[Numbers]:
        """Return rows, share, cells or volume, density and ratio to uniform of each part."""
        has_cells = self.schema.n_cells is not None
        size_text = cells_text if has_cells else significant_text
        ratios: list[float] = (self.log_densities + self.log_domain).tolist()
        return [
            Numbers(
                "expected\nrows" if self.conditions else "rows", count_texts(self.counts.tolist())
            ),
            Numbers(
                "share",
                [share_text(p) for p in self.probabilities.tolist()],
                bars=self.probabilities.tolist(),
            ),
            Numbers(
                "cells" if has_cells else "volume",
                [size_text(v) for v in self.log_volumes.tolist()],
            ),
            Numbers("density", [significant_text(d) for d in self.log_densities.tolist()]),
            Numbers(
                "x uniform",
                [ratio_text(r) for r in ratios],
                [_style(r) for r in ratios],
                bars=[max(-1.0, min(1.0, r / _STRONGEST)) for r in ratios],
                is_centered=True,
            ),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the parts at full precision, and the conditions, if any, as plain data."""
        given = {
            "given": self.conditions_words(),
            "probability_given": float(self.conditions_probability),
        }
        return {**self._own_dict(), **(given if self.conditions else {})}


def _style(log_ratio: float) -> str:
    """Return the style of a ratio to the uniform density: more, less, or none if it is 1.00."""
    if abs(log_ratio) < _NOTICEABLE:
        return ""
    return "more" if log_ratio > 0 else "less"
