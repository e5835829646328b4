"""Columns of numbers beside labels: the texts of a density's parts, their widths, their headers."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bayescascade.data.schema import Schema
from bayescascade.report.layout import longest, rjust
from bayescascade.report.numbers import (
    cells_text,
    count_texts,
    ratio_text,
    share_text,
    significant_text,
)

__all__ = ["NumberColumns", "PartDensities", "density_columns", "ratio_style"]

_NOTICEABLE = math.log(1.005)  # what is not printed as 1.00 x uniform is colored


class PartDensities(Protocol):
    """What is told in numbers of each node of a density tree, or each part of a density list."""

    @property
    def schema(self) -> Schema:
        """The columns."""
        ...

    @property
    def counts(self) -> NDArray[np.float64]:
        """Weights of the rows."""
        ...

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """Probabilities."""
        ...

    @property
    def log_volumes(self) -> NDArray[np.float64]:
        """Log volumes, nats."""
        ...

    @property
    def log_densities(self) -> NDArray[np.float64]:
        """Log densities, nats."""
        ...


@dataclass(frozen=True)
class NumberColumns:
    """Numbers as text, column by column.

    Parameters
    ----------
    headers : tuple of str
        A line break may be in a header.
    columns : tuple of lists of str
        For each header, the text of every row of the table.
    """

    headers: tuple[str, ...]
    columns: tuple[list[str], ...]

    @cached_property
    def widths(self) -> list[int]:
        """Columns of the terminal that each number takes, its header included."""
        return [
            longest([*header.split("\n"), *texts])
            for header, texts in zip(self.headers, self.columns, strict=True)
        ]

    def row(self, index: int, gap: int) -> list[str]:
        """Return the numbers of a row, aligned, each with `gap` spaces before it."""
        return self._aligned([column[index] for column in self.columns], gap)

    def header_lines(self, gap: int) -> Iterator[str]:
        """Yield the lines of the headers, which stand on the last one if they have one line."""
        split = [header.split("\n") for header in self.headers]
        height = max(map(len, split))
        for line in range(height):
            texts = [
                parts[line - height + len(parts)] if line >= height - len(parts) else ""
                for parts in split
            ]
            yield "".join(self._aligned(texts, gap))

    def _aligned(self, texts: Sequence[str], gap: int) -> list[str]:
        return [" " * gap + rjust(v, w) for v, w in zip(texts, self.widths, strict=True)]


def density_columns(
    parts: PartDensities, log_ratios: Sequence[float], *, is_expected: bool
) -> NumberColumns:
    """Return rows, share, cells or volume, density and ratio to uniform of every part.

    Parameters
    ----------
    parts : PartDensities
    log_ratios : (n_parts,) sequence of float
        Log densities over the uniform one, nats.
    is_expected : bool
        Whether the counts are expected ones, of a conditional density.
    """
    is_counted = parts.schema.n_cells is not None
    size_text = cells_text if is_counted else significant_text
    return NumberColumns(
        (
            "expected\nrows" if is_expected else "rows",
            "share",
            "cells" if is_counted else "volume",
            "density",
            "x uniform",
        ),
        (
            count_texts(parts.counts.tolist()),
            [share_text(p) for p in parts.probabilities.tolist()],
            [size_text(volume) for volume in parts.log_volumes.tolist()],
            [significant_text(log_density) for log_density in parts.log_densities.tolist()],
            [ratio_text(log_ratio) for log_ratio in log_ratios],
        ),
    )


def ratio_style(log_ratio: float) -> str:
    """Return the style of a ratio to the uniform density: more, less, or none if it is 1.00."""
    if abs(log_ratio) < _NOTICEABLE:
        return ""
    return "more" if log_ratio > 0 else "less"
