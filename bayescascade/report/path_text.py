"""A path of prunings as a table."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from bayescascade.report.layout import Ink, flow
from bayescascade.report.number_columns import NumberColumns
from bayescascade.report.number_table import number_table
from bayescascade.report.numbers import cost_texts, significant_text

if TYPE_CHECKING:
    from bayescascade.budget.path import PruningPath

__all__ = ["gap_text", "path_text"]

_PROVED = 1e-6  # a relative gap that is a rounding error


def path_text(path: "PruningPath", *, width: int = 80, color: bool = False) -> str:
    """Return the prunings of a path as a table with a line for each.

    Parameters
    ----------
    path : PruningPath
    width : int >= 60
        Most columns of a line.
    color : bool
        Whether to write ANSI codes.

    Returns
    -------
    str
        Without a line break at the end. ``cost`` is of a validation row on average, ``tree error``
        the mean error rate of the trees, each by itself; ``gap`` says by what share the objective
        could be lower at most.
    """
    return "\n".join(_lines(path, width, Ink(color)))


def gap_text(gap: float) -> str:
    """Return what a relative gap says: "optimal", or "gap 0.12 %"."""
    return "optimal" if gap < _PROVED else f"gap {100 * gap:.2g} %"


def _lines(path: "PruningPath", width: int, ink: Ink) -> Iterator[str]:
    yield ink("bold", f"{len(path)} {'pruning' if len(path) == 1 else 'prunings'} of a forest")
    if path.interrupted:
        told = "interrupted: those not found by then are missing"
        yield from (ink("warning", line) for line in flow([told], width, 2))
    yield ""
    numbers = NumberColumns(
        ("cost", "tree error", "splits", "objective", "gap"),
        (
            cost_texts(path.costs.tolist()),
            [f"{100 * max(error, 0.0):.2f} %" for error in path.errors],
            [f"{model.forest_.n_splits:,}" for model in path],
            [_number(objective) for objective in path.objectives],
            [gap_text(gap).removeprefix("gap ") for gap in path.gaps],
        ),
    )
    labels = [_number(tradeoff) for tradeoff in path.tradeoffs]
    yield from number_table(labels, numbers, width, ink, "tradeoff")


def _number(value: float) -> str:
    return significant_text(math.log(value)) if value > 0 else "0"
