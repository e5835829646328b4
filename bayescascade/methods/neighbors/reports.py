"""What a user reads of learned prototypes beside themselves: a line for each class, and words."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayescascade.data.levels import level_text
from bayescascade.methods.neighbors.tally import Tally
from bayescascade.model.reporting import OF_ROWS
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
"""Terms of the page, or nothing, and what they mean."""

CANNOT_TELL = (
    "Misclassified rows are counted among the training rows. The share will be larger for other "
    "rows.",
    "A prototype is not a row. But it may be close to a row if a class has few rows.",
    *OF_ROWS,
)
"""What prototypes are not to be asked."""

WORSE = (
    "the prototypes misclassify more rows than always predicting the most common class: change "
    "n_prototypes, random_state or rule"
)
"""What is objected to prototypes that are of no use."""


def class_page(classes: NDArray[Any], tally: Tally, labels: NDArray[np.int64]) -> Page:
    """Return each class with its rows, prototypes, and rows misclassified.

    classes (n_classes,); labels (n_prototypes,), positions of classes.
    """
    columns = [
        Numbers("rows", count_texts(tally.rows.tolist())),
        Numbers("prototypes", count_texts(np.bincount(labels).tolist())),
        Numbers("misclassified", list(map(share_text, (tally.wrong / tally.rows).tolist()))),
    ]
    return (PrintedTable([level_text(label) for label in classes.tolist()], columns, "class"),)


def prior_texts(scale: float | None, n_choosing: int | None) -> list[str]:
    """Return how many held-out rows chose the prior's scale, in words; nothing if it was given."""
    if n_choosing is None:
        return []
    by = f"chosen on {n_choosing:,} held-out rows"
    if not n_choosing:
        by = "not chosen: there are too few rows to hold some out"
    return [f"prior scale {scale:g}, {by}"]
