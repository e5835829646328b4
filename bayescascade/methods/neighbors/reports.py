"""What a user reads of learned prototypes beside themselves: a line for each class, and words."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayescascade.data.levels import level_text
from bayescascade.model.reporting import OF_ROWS
from bayescascade.report.numbers import count_texts, share_text
from bayescascade.report.page import Numbers, Page, PrintedTable

HOW_TO_READ = (
    (
        "",
        "A few prototypes stand in for all rows: a new row is of the class whose prototypes are "
        "nearest to it. The table has a line for each class.",
    ),
    ("misclassified", "the share of its rows that are predicted to be of another class"),
)
"""Terms of the page, or nothing, and what they mean."""

CANNOT_TELL = (
    "Misclassified rows are counted among the training rows; of other rows more will be.",
    "A prototype is no row, but may be close to one where a class has few rows.",
    *OF_ROWS,
)
"""What prototypes are not to be asked."""

WORSE = (
    "the prototypes misclassify more rows than the most frequent class alone would: change "
    "n_prototypes, random_state or rule"
)
"""What is objected to prototypes that are of no use."""


def class_page(
    classes: NDArray[Any],
    sizes: NDArray[np.int64],
    wrong: NDArray[np.int64],
    labels: NDArray[np.int64],
) -> Page:
    """Return each class with its rows, prototypes, and rows misclassified.

    classes, sizes and wrong (n_classes,); labels (n_prototypes,), positions of classes.
    """
    columns = [
        Numbers("rows", count_texts(sizes.tolist())),
        Numbers("prototypes", count_texts(np.bincount(labels).tolist())),
        Numbers("misclassified", list(map(share_text, (wrong / sizes).tolist()))),
    ]
    return (PrintedTable([level_text(label) for label in classes.tolist()], columns, "class"),)


def prior_texts(scale: float | None, n_choosing: int | None) -> list[str]:
    """Return how many held-out rows chose the prior's scale, in words; nothing if it was given."""
    if n_choosing is None:
        return []
    by = f"chosen on {n_choosing:,} held-out rows"
    if not n_choosing:
        by = "not chosen: prototypes leave no rows to hold out"
    return [f"prior scale {scale:g}, {by}"]
