"""What all densities of rows in unrecorded classes show: the classes, and what is special in each.

A class is described by the levels whose share in it differs most from their share in all rows.
"""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import rel_entr

from bayescascade.base.arrays import Codes, Floats
from bayescascade.base.errors import ParameterError
from bayescascade.data.schema import Schema
from bayescascade.model.density_parts import DensityParts
from bayescascade.report.axes import Bar, plot_bars
from bayescascade.report.numbers import count_texts, share_text, significant_text
from bayescascade.report.page import BLANK, Numbers, Page, Pieces, PrintedTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FEWEST_SHOWN, _MOST_SHOWN, _LEAST_WORTH = 2, 5, 0.05  # levels of a class; nats of each
_TIE = 1e-9  # nats
_LEAST_SHOWN = 1e-3  # least probability of a class in an explanation


class ClassStandout(NamedTuple):
    """A level that is more, or less, probable in a class than among all rows."""

    column: int
    code: int
    inside: float
    overall: float
    is_given: bool  # whether the comparison is with rows that satisfy conditions

    def words(self, schema: Schema) -> str:
        """Return it in words, such as "sky is grey: 83.0 % (all rows 31.0 %)"."""
        level = schema.columns[self.column].condition_words((self.code,))
        compared = "all rows given this" if self.is_given else "all rows"
        return f"{level}: {share_text(self.inside)} ({compared} {share_text(self.overall)})"


class RowClasses(DensityParts):
    """A density over rows that belong to classes, the largest first; its parts are the classes."""

    @property
    @abstractmethod
    def n_components(self) -> int:
        """Number of classes, before any are merged."""

    @property
    @abstractmethod
    def level_probabilities(self) -> Sequence[Floats]:
        """For each column, the probabilities of its levels in each class, (n_classes, n_levels)."""

    @abstractmethod
    def class_probabilities(self, codes: Codes) -> Floats:
        """Return the probability of each class for (n_columns, n) coded rows, (n, n_classes).

        Cells coded -1 are summed out; rows that contradict the conditions are NaN.
        """

    @abstractmethod
    def to_record(self) -> dict[str, Any]:
        """Return the record for a saved file."""

    def overall(self, j: int) -> Floats:
        """Return the probabilities of a column's levels in all rows, (n_levels,)."""
        overall: Floats = self.probabilities @ self.level_probabilities[j]
        return overall

    @cached_property
    def log_domain(self) -> float:
        """Log volume of all cells that satisfy the conditions, nats."""
        left = [
            column.widths[list(self.conditions.get(j, range(column.n_levels)))].sum()
            for j, column in enumerate(self.schema.columns)
        ]
        return float(np.log(left).sum())

    @property
    def log_volumes(self) -> Floats:
        """Log volume of each class, equal to that of the domain, (n_classes,) nats."""
        return np.full(self.counts.size, self.log_domain)

    # -- words -------------------------------------------------------------------------------------

    @cached_property
    def standouts(self) -> list[list[ClassStandout]]:
        """The characteristic levels of each class, at most one per column, in order."""
        found: list[list[tuple[float, ClassStandout]]] = [[] for _ in self.counts]
        for j, inside in enumerate(self.level_probabilities):
            overall = self.overall(j)
            worth = rel_entr(inside, overall) + rel_entr(1 - inside, (1 - overall).clip(min=1e-300))
            # both of two levels have the same worth: choose the more probable one inside
            for k, code in enumerate((worth + _TIE * inside).argmax(axis=1).tolist()):
                shares = float(inside[k, code]), float(overall[code])
                standout = ClassStandout(j, code, *shares, bool(self.conditions))
                found[k].append((float(worth[k, code]), standout))
        kept = []
        for own in found:
            own.sort(key=lambda item: -item[0])
            most = enumerate(own[:_MOST_SHOWN])
            kept.append(
                [standout for i, (w, standout) in most if i < _FEWEST_SHOWN or w >= _LEAST_WORTH]
            )
        return kept

    def _words(self, k: int) -> list[str]:
        return [standout.words(self.schema) for standout in self.standouts[k]]

    def page(self) -> Page:
        """Return the conditions, if any, and each class with its characteristic levels."""
        lead: Page = (*self.given_page(), BLANK) if self.conditions else ()
        return (*lead, *self._table(self.number_columns()), *self.given_key())

    def number_columns(self) -> list[Numbers]:
        """Return rows and share of each class."""
        return super().number_columns()[:2]

    def _table(self, columns: list[Numbers]) -> Page:
        below = [Pieces(self._words(k), indent=2, first="  ") for k in range(self.n_parts)]
        labels = [f"class {k + 1}" for k in range(self.n_parts)]
        return (PrintedTable(labels, columns, below=below),)

    @property
    def how_to_read(self) -> list[tuple[str, str]]:
        """How to read the classes."""
        read = (
            "Each group is a class of similar rows. The classes are not recorded in the table, "
            "so the model gives probabilities. Under each class are the levels whose share in "
            "the class differs most from their share in all rows."
        )
        return [("", read)]

    def columns_in_words(self) -> list[tuple[str, str]]:
        """Return explanations of the numbers of the classes, by their headings."""
        return super().columns_in_words()[:2]

    def parts_in_words(self) -> list[tuple[str, str]]:
        """Return the classes with their characteristic levels."""
        rows, shares = count_texts(self.counts.tolist()), self.probabilities.tolist()
        return [
            (f"class {k + 1}: {'; '.join(self._words(k))}", f"{rows[k]} rows ({share_text(share)})")
            for k, share in enumerate(shares)
        ]

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the shares of the classes, with characteristic levels, and return the axes.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw into; by default those of a new figure.
        """
        bars = [
            Bar("; ".join([f"class {k + 1}", *self._words(k)[:2]]), (share,), share_text(share))
            for k, share in enumerate(self.probabilities.tolist())
        ]
        return plot_bars(bars, ax, x_label="share of the rows")

    def _explanations(self, codes: Codes) -> Iterable[str]:
        row = codes[:, np.newaxis]
        log_density = float(self.score_codes(row)[0])
        for k, probability in enumerate(self.class_probabilities(row)[0].tolist()):
            if probability >= _LEAST_SHOWN:
                yield f"class {k + 1}: probability {probability:.4g}"
        relative = float(np.exp(log_density + self.log_domain))
        density = significant_text(log_density, 4)
        yield f"all classes together: density of this row {density}, {relative:.3g} x uniform"

    def _sql(self) -> list[str]:
        raise ParameterError(
            "SQL needs a density in parts that exclude each other, got classes that overlap"
        )

    def _own_dict(self) -> dict[str, Any]:
        """Return the classes.

        ``{"classes": [{"count": n, "share": p, "stands_out": [{"level": words, "inside": p, "all":
        q}, ...]}, ...]}``.
        """
        classes = []
        for k, share in enumerate(self.probabilities.tolist()):
            stands_out = [
                {
                    "level": self.schema.columns[one.column].condition_words((one.code,)),
                    "inside": one.inside,
                    "all": one.overall,
                }
                for one in self.standouts[k]
            ]
            classes.append(
                {"count": float(self.counts[k]), "share": share, "stands_out": stands_out}
            )
        return {"classes": classes}
