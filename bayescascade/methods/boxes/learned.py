"""What a user reads of a union of boxes: its sides in words, what they keep out, and its rates."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayescascade.base.errors import ModelFileError
from bayescascade.data.levels import level_text
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.methods.boxes.union import BoxUnion, Flags, Floats
from bayescascade.report.numbers import count_texts, share_text
from bayescascade.report.page import BLANK, Numbers, Page, Pieces, PrintedTable, count_of


@dataclass(frozen=True, slots=True, eq=False)
class LearnedBoxes:
    """A union of boxes, and what was counted inside and outside of it.

    counts (2, 2) float64: weights of negatives and positives, outside and inside; kept_out: of each
    closed side, by box and column of the matrix, the lower before the upper, the weight of
    negatives that this side alone keeps out of its box; prior_weight > 0: rows of each kind that a
    rate begins with.
    """

    union: BoxUnion
    counts: Floats
    kept_out: Floats  # (n_boxes, n_columns, 2), 0 where a side is open
    prior_weight: float

    @classmethod
    def of(
        cls, union: BoxUnion, rows: Floats, is_positive: Flags, weights: Floats, prior_weight: float
    ) -> "LearnedBoxes":
        """Count rows inside and outside of a union."""
        inside = union.contains(rows)
        counts = np.zeros((2, 2))
        np.add.at(counts, (inside.astype(int), is_positive.astype(int)), weights)
        kept_out = np.zeros((*union.lower.shape, 2))
        negatives, weighed = rows[~is_positive], weights[~is_positive]
        for box in range(union.n_boxes):
            sides = negatives < union.lower[box], negatives > union.upper[box]
            n_outside = sides[0].sum(axis=1) + sides[1].sum(axis=1)
            for which, outside in enumerate(sides):
                kept_out[box, :, which] = weighed[n_outside == 1] @ outside[n_outside == 1]
        return cls(union, counts, kept_out, prior_weight)

    @property
    def rates(self) -> Floats:
        """Rates of positives outside and inside, (2,)."""
        rates: Floats = (self.counts[:, 1] + self.prior_weight) / (
            self.counts.sum(axis=1) + 2.0 * self.prior_weight
        )
        return rates

    def probabilities(self, rows: Floats) -> Floats:
        """Return the rate of each row, (n_rows,)."""
        found: Floats = self.rates[self.union.contains(rows).astype(int)]
        return found

    def to_record(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return {
            **self.union.to_record(),
            "counts": self.counts.tolist(),
            "kept_out": self.kept_out.tolist(),
        }

    @classmethod
    def from_record(
        cls, record: Mapping[str, Any], n_columns: int, prior_weight: float
    ) -> "LearnedBoxes":
        """Return what `to_record` recorded; ModelFileError if it is nothing of that."""
        union = BoxUnion.from_record(record, n_columns)
        counts = np.array(record["counts"], np.float64)
        kept_out = np.array(record["kept_out"], np.float64)
        kept_out = kept_out.reshape(union.n_boxes, n_columns, 2)
        both = np.append(counts.ravel(), kept_out.ravel())
        if counts.shape != (2, 2) or not (np.isfinite(both) & (both >= 0.0)).all():
            raise ModelFileError("a saved union's counts must be numbers >= 0, inside and outside")
        return cls(union, counts, kept_out, prior_weight)

    # -- in words ----------------------------------------------------------------------------------

    def page(self, encoder: MatrixEncoder, positive: str, doubts: Floats | None = None) -> Page:
        """Return a table for each box, and a line about all."""
        blocks: list[Any] = [Pieces(self.pieces(positive)), BLANK]
        for box in range(self.union.n_boxes):
            columns = np.flatnonzero(
                np.isfinite(self.union.lower[box]) | np.isfinite(self.union.upper[box])
            )
            blocks.append(self._table(encoder, box, columns.tolist(), doubts))
        return tuple(blocks if self.union.n_boxes else blocks[:1])

    def pieces(self, positive: str) -> list[str]:
        """Return how many boxes there are, and how many rows of each kind they hold."""
        (negatives, positives), inside = self.counts.sum(axis=0), self.counts[1]
        held = count_texts([inside[1], positives, inside[0], negatives])
        return [
            count_of(self.union.n_boxes, "box", "boxes"),
            count_of(self.union.n_sides, "closed side"),
            f'holds {held[0]} of {held[1]} rows of "{positive}"',
            f"and {held[2]} of {held[3]} others",
            f"rate {share_text(self.rates[1])} inside, {share_text(self.rates[0])} outside",
        ]

    def _table(
        self, encoder: MatrixEncoder, box: int, columns: list[int], doubts: Floats | None
    ) -> PrintedTable:
        ends = [self._end_texts(encoder, box, column) for column in columns]
        kept = count_texts(self.kept_out[box].ravel().tolist())
        numbers = [
            Numbers("at least", [low for low, _ in ends]),
            Numbers("at most", [high for _, high in ends]),
            *(
                Numbers(
                    f"{word}\nkeeps out",
                    [
                        kept[2 * column + which] if np.isfinite(sides[box, column]) else ""
                        for column in columns
                    ],
                )
                for which, (word, sides) in enumerate(
                    (("lower", self.union.lower), ("upper", self.union.upper))
                )
            ),
        ]
        if doubts is not None:
            shares = [share_text(doubts[box, column]) for column in columns]
            numbers.append(Numbers("draws\nwithout", shares))
        labels = [encoder.column_texts[column] for column in columns]
        return PrintedTable(labels or ["any row"], numbers if labels else [], f"box {box + 1}")

    def _end_texts(self, encoder: MatrixEncoder, box: int, column: int) -> tuple[str, str]:
        """Return what a column is at least and at most, by its levels if it has some."""
        low, high = float(self.union.lower[box, column]), float(self.union.upper[box, column])
        levels = encoder.levels[int(encoder.source[column])]
        if (
            levels is not None
            and len(np.flatnonzero(encoder.source == encoder.source[column])) == 1
        ):
            texts = [level_text(level) for level in levels.levels]
            first = texts[min(max(int(np.ceil(low)), 0), len(texts) - 1)] if low > -np.inf else ""
            last = texts[max(min(int(np.floor(high)), len(texts) - 1), 0)] if high < np.inf else ""
            return first, last
        if levels is not None:  # a column of 0 and 1
            return ("yes" if low > 0 else "", "no" if high < 1 else "")
        return (f"{low:.6g}" if low > -np.inf else "", f"{high:.6g}" if high < np.inf else "")

    def reasons(self, rows: Floats) -> list[str]:
        """Return in which box each row is, in words."""
        inside = self.union.inside(rows)
        return [
            f"in box {int(np.argmax(each)) + 1}" if each.any() else "in no box" for each in inside
        ]
