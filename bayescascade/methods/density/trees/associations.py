"""Associations of pairs of columns, for a model whose tree has no groups to read.

The measure is the mutual information of two columns, ``I = sum_cd p_cd ln(p_cd / (p_c p_d))`` nats,
of the fitted probabilities of their levels. If they are independent, ``2 n I`` of n rows has nearly
a chi-squared distribution with ``(m_u - 1) (m_v - 1)`` degrees of freedom (Wilks 1938), for columns
of m_u and m_v levels. Pairs are shown if its upper tail, times the number of pairs, is below 0.05.
So among columns that are all independent, at most one in 20 tables shows any pair.
"""

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import chdtrc, rel_entr

from bayescascade.base.arrays import Floats, Integers
from bayescascade.base.typed_words import typed
from bayescascade.data.schema import Schema
from bayescascade.report.axes import Bar, blank_figure, plot_bars, save_png
from bayescascade.report.numbers import probability_text
from bayescascade.report.page import BLANK, Numbers, Page, Pieces, PrintedTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_FALSE = 0.05  # share of tables of independent columns that show any pair
_MOST_SHOWN = 10
_WIDTH, _LINE = 7.5, 0.4  # inches

HOW_TO_READ = (
    "nats",
    "how much one column of the pair tells about the other (their mutual information): 0 if they "
    "are independent, 0.69 if each is the other's copy and two levels are equally common",
)
"""How to read the table, for reports."""


class Association(NamedTuple):
    """Two columns, their mutual information, and their most associated levels."""

    columns: tuple[int, int]
    codes: tuple[int, int]
    information: float  # mutual information, nats
    together: float  # probability of the two levels
    apart: float  # the same probability if the columns were independent

    def names(self, schema: Schema) -> str:
        """Return the two columns in words."""
        return " and ".join(schema.names[j] for j in self.columns)

    def words(self, schema: Schema) -> str:
        """Return the two levels in words, such as "sky is grey with wind is gale 0.40 (0.12)"."""
        levels = " with ".join(self._levels(schema))
        return f"{levels} {probability_text(self.together)} ({probability_text(self.apart)})"

    def to_dict(self, schema: Schema) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "features": [schema.names[j] for j in self.columns],
            "information": self.information,
            "levels": self._levels(schema),
            "together": self.together,
            "apart": self.apart,
        }

    def _levels(self, schema: Schema) -> list[str]:
        pairs = zip(self.columns, self.codes, strict=True)
        return [schema.columns[j].condition_words((code,)) for j, code in pairs]


def associations_of(joint: Floats, starts: Integers, n_rows: float) -> list[Association]:
    """Return the pairs of columns that are associated, the largest mutual information first.

    Parameters
    ----------
    joint : (L, L) float64
        Probabilities of pairs of levels; those of levels on the diagonal.
    starts : (p + 1,) int64
        Where the levels of each column begin.
    n_rows : float
        Weight of the rows.
    """
    single = joint.diagonal()
    worth = rel_entr(joint, np.outer(single, single))
    by_columns = np.add.reduceat(np.add.reduceat(worth, starts[:-1], 0), starts[:-1], 1)
    n_others = np.diff(starts) - 1
    first, second = np.triu_indices(n_others.size, 1)
    information = by_columns[first, second].clip(min=0.0)
    degrees = np.maximum(n_others[first] * n_others[second], 1)
    tails = chdtrc(degrees, 2.0 * n_rows * information)
    found = []
    for pair in np.flatnonzero(tails * first.size < _MOST_FALSE).tolist():
        u, v = int(first[pair]), int(second[pair])
        own = worth[starts[u] : starts[u + 1], starts[v] : starts[v + 1]]
        a, b = divmod(int(own.argmax()), own.shape[1])
        place, other = int(starts[u]) + a, int(starts[v]) + b
        together, apart = float(joint[place, other]), float(single[place] * single[other])
        shared = float(information[pair])
        found.append(Association((u, v), (a, b), shared, together, apart))
    return sorted(found, key=lambda pair: -pair.information)


def associations_page(
    found: Sequence[Association], schema: Schema, most_shown: int = _MOST_SHOWN
) -> Page:
    """Return a table of the strongest associations; a sentence if there are none."""
    if not found:
        return (BLANK, Pieces(["No two columns clearly depend on each other in this model."]))
    shown = found[:most_shown]
    table = PrintedTable(
        [pair.names(schema) for pair in shown],
        [Numbers("nats", [f"{pair.information:.3f}" for pair in shown])],
        "strongest associations",
        below=[Pieces([pair.words(schema)]) for pair in shown],
    )
    texts = [
        "nats: mutual information, which is 0 for independent columns",
        "below: the most associated levels, their joint probability and, in brackets, what it "
        "would be if the columns were independent",
    ]
    n_more = len(found) - len(shown)
    if n_more:
        texts.append(f"{n_more:,} more: {typed('to_dict()', '--json')}")
    return (BLANK, table, BLANK, Pieces(texts, "dim"))


def in_words(found: Sequence[Association], schema: Schema) -> list[tuple[str, str]]:
    """Return the strongest associations for reports: the columns, and the details."""
    return [
        (pair.names(schema), f"{pair.information:.3f} nats\n{pair.words(schema)}")
        for pair in found[:_MOST_SHOWN]
    ]


def plot_associations(
    found: Sequence[Association], schema: Schema, ax: "Axes | None" = None
) -> "Axes":
    """Draw a bar for each of the strongest associations, by its mutual information."""
    shown = found[:_MOST_SHOWN]
    bars = [Bar(pair.names(schema), (pair.information,), pair.words(schema)) for pair in shown]
    x_label = "mutual information, nats; beside: two levels, how common (if independent)"
    return plot_bars(bars, ax, x_label=x_label)


def save_associations(
    found: Sequence[Association], schema: Schema, target: "str | PathLike[str]"
) -> None:
    """Draw the same into a PNG file."""
    figure = blank_figure(_WIDTH, 1.0 + _LINE * min(len(found), _MOST_SHOWN), layout="constrained")
    plot_associations(found, schema, figure.subplots())
    save_png(figure, target)
