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
        "The first table has a line for each column that every row reads. Rows with a gate score "
        "above the cut go to the full model, the others to the local model.",
    ),
    ("gate", "the change of the log odds that a row is hard if the column increases by one"),
    (
        "local",
        "the change of the log odds (or of the score) of the class if the column increases by one",
    ),
    ("rows", "the share of the rows that need a feature"),
    ("spent", "the mean cost per row"),
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
