"""What a user sees of the nearest neighbor policy: how far rows go, and how right it is."""

import numpy as np
from numpy.typing import NDArray

from bayescascade.report.numbers import share_text
from bayescascade.report.page import Numbers, PrintedTable

_MOST_LINES = 12

HOW_TO_READ = (
    (
        "",
        "The first table follows validation rows through all features, even if they would stop "
        "earlier. It compares the estimate from their neighbors with the truth.",
    ),
    ("go so far", "the share of rows that measure this number of features before they stop"),
    ("estimated", "the share of their neighbors that the measured features classify rightly"),
    ("actual", "the share of the rows that the measured features classify rightly"),
)
"""Terms of the page, or nothing, and what they mean."""


def step_table(steps: NDArray[np.float64]) -> PrintedTable:
    """Return a line for each number of features, of many for some."""
    n_steps = steps.shape[1]
    shown = np.arange(n_steps)
    if n_steps > _MOST_LINES:
        shown = np.unique(np.geomspace(1, n_steps, _MOST_LINES).round().astype(int)) - 1
    going, estimated, actual = steps[:, shown].tolist()
    columns = [
        Numbers("go so far", list(map(share_text, going))),
        Numbers("estimated", list(map(share_text, estimated))),
        Numbers("actual", list(map(share_text, actual))),
    ]
    return PrintedTable([f"{step}" for step in shown.tolist()], columns, "features")
