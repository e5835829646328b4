"""What a user sees of a gate and two models: coefficients, and each row's way in words."""

from itertools import compress
from typing import Any

import numpy as np

from bayescascade.data.cell_policy import Matrix
from bayescascade.data.levels import level_text
from bayescascade.methods.adaptive.gated import Gated
from bayescascade.methods.adaptive.linear_scores import LinearScores
from bayescascade.report.page import Numbers, Page, PrintedTable

HOW_TO_READ = (
    (
        "",
        "The first table has a line for each column that every row reads. Rows whose gate's score "
        "is above the cut go to the full model, the others to the local model.",
    ),
    ("gate", "what one more of the column adds to the log odds that a row is hard"),
    ("local", "what one more of it adds to the log odds of the class, or to its score"),
    ("rows", "the share of the rows for which a feature is looked at"),
    ("spent", "what that comes to for a row on average"),
)
"""Terms of the page, or nothing, and what they mean."""

_MOST_OUTPUTS = 3  # that have a column each


def score_table(model: Gated, columns: list[str], classes: list[Any]) -> Page:
    """Return a line for each column that gate or local model weigh, per unit."""
    if not (isinstance(model.gate, LinearScores) and isinstance(model.local, LinearScores)):
        return ()
    gate, local = model.gate.coef_[0], model.local.coef_
    if np.isinf(model.cut):
        gate = np.zeros_like(gate)
    used = np.flatnonzero((gate != 0) | local.any(axis=0))
    if not used.size:
        return ()
    told = [Numbers("gate", _texts(gate[used]))] if gate.any() else []
    if len(local) == 1:
        told.append(Numbers(f"local: {level_text(classes[1])}", _texts(local[0, used])))
    elif len(local) <= _MOST_OUTPUTS:
        told += [
            Numbers(f"local: {level_text(label)}", _texts(row[used]))
            for label, row in zip(classes, local, strict=True)
        ]
    else:
        told.append(Numbers("local: largest", _texts(np.abs(local[:, used]).max(axis=0))))
    return (PrintedTable([columns[column] for column in used], told, "column"),)


def way_texts(model: Gated, rows: Matrix, names: list[str]) -> list[str]:
    """Return where each row went, and what it read."""
    sent, used = model.sent(rows).tolist(), model.used(rows).tolist()
    where = {True: f"sent to {model.full.text}", False: "kept"}
    if model.cut == -np.inf:
        where[True] = f"all rows go to {model.full.text}"
    return [
        f"{where[one]}: reads {', '.join(compress(names, row)) or 'nothing'}"
        for one, row in zip(sent, used, strict=True)
    ]


def _texts(numbers: Any) -> list[str]:
    return [f"{one:.4g}" for one in numbers]
