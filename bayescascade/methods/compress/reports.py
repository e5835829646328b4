"""Texts about learned prototypes: a line for each class, and words."""

from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.arrays import Floats, Integers
from bayescascade.base.store import Of, Within
from bayescascade.data.levels import level_text
from bayescascade.model.view import OF_ROWS
from bayescascade.report.numbers import count_texts, share_text
from bayescascade.report.page import Numbers, Page, PrintedTable

HOW_TO_READ = (
    (
        "",
        "A few prototypes are used in place of all rows. A new row gets the class of the nearest "
        "prototypes. The table has a line for each class.",
    ),
    ("misclassified", "the share of its rows for which another class is predicted"),
)
"""Terms of the page, or "", and their meanings."""

CANNOT_TELL = (
    "Misclassified rows are counted among the training rows. The share will be larger for other "
    "rows.",
    "A prototype is not a row. But it may be close to a row if a class has few rows.",
    *OF_ROWS,
)
"""What prototypes do not show."""

WORSE = (
    "the prototypes misclassify more rows than always predicting the most common class: change "
    "n_prototypes, random_state or rule"
)
"""The objection to useless prototypes."""


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """Weights of the rows of each class, and of those misclassified."""

    rows: Annotated[Floats, Of("classes", above=0)]
    wrong: Annotated[Floats, Of("classes", least=0)]

    def __post_init__(self) -> None:
        if (self.wrong > self.rows).any():
            raise ValueError("misclassified rows must be some of the rows of their class")

    @classmethod
    def of(
        cls, labels: Integers, taken: Integers, n_classes: int, weights: Floats | None = None
    ) -> Self:
        """Count rows by their labels and predicted classes."""
        weights = np.ones(len(labels)) if weights is None else weights
        rows = np.bincount(labels, weights, n_classes).astype(np.float64)
        return cls(rows, np.bincount(labels, weights * (taken != labels), n_classes).astype(float))

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(self.rows + other.rows, self.wrong + other.wrong)

    @property
    def is_worse(self) -> bool:
        """Whether always predicting the most common class misclassifies fewer rows."""
        return bool(self.wrong.sum() > self.rows.sum() - self.rows.max())


def class_page(classes: NDArray[Any], tally: Tally, labels: Integers) -> Page:
    """Return each class with its rows, prototypes, and rows misclassified.

    classes (n_classes,); labels (n_prototypes,), positions of classes.
    """
    columns = [
        Numbers("rows", count_texts(tally.rows.tolist())),
        Numbers("prototypes", count_texts(np.bincount(labels).tolist())),
        Numbers("misclassified", list(map(share_text, (tally.wrong / tally.rows).tolist()))),
    ]
    return (PrintedTable([level_text(label) for label in classes.tolist()], columns, "class"),)


@dataclass(frozen=True)
class PriorScale:
    """The prior's scale, None if flat; number of held-out rows that chose it, None if given."""

    scale: Annotated[int | float, Within(above=0)] | None
    n_choosing: Annotated[int, Within(0)] | None

    def __post_init__(self) -> None:
        if self.scale is None and self.n_choosing is not None:
            raise ValueError("a prior's scale that was chosen must be a number")

    def texts(self) -> list[str]:
        """Return in words how it was chosen; nothing if it was given."""
        if self.n_choosing is None:
            return []
        by = f"chosen on {self.n_choosing:,} held-out rows"
        if not self.n_choosing:
            by = "not chosen: there are too few rows to hold some out"
        return [f"prior scale {self.scale:g}, {by}"]
