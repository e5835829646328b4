"""A path of prunings as a table."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from bayescascade.report.layout import Ink, flow
from bayescascade.report.number_columns import NumberColumns
from bayescascade.report.number_table import number_table
from bayescascade.report.numbers import cost_texts, significant_text

if TYPE_CHECKING:
    from bayescascade.methods.prunings.path import PruningPath

__all__ = ["error_gap_text", "gap_text", "path_text"]

_PROVED = 1e-6  # a relative gap that is a rounding error


def path_text(path: "PruningPath[Any]", *, width: int = 80, color: bool = False) -> str:
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
        could be lower at most. Of budgets, ``at least`` is what the tree error of no pruning within
        the budget is below.
    """
    return "\n".join(_lines(path, width, Ink(color)))


def gap_text(gap: float) -> str:
    """Return what a relative gap says: "optimal", or "gap 0.12 %"."""
    return "optimal" if gap < _PROVED else f"gap {100 * gap:.2g} %"


def error_gap_text(gap: float) -> str:
    """Return by how much an error rate may be above the best one: "optimal" if not at all."""
    if gap < _PROVED:
        return "optimal"
    return f"tree error at most {100 * gap:.2g} points above the best within it"


def _lines(path: "PruningPath[Any]", width: int, ink: Ink) -> Iterator[str]:
    yield ink("bold", f"{len(path)} {'pruning' if len(path) == 1 else 'prunings'} of a forest")
    if path.interrupted:
        told = "interrupted: those not found by then are missing"
        yield from (ink("warning", line) for line in flow([told], width, 2))
    yield ""
    if path.knob != "tradeoff":
        frame = path.to_frame()
        labels = [f"{value:.12g}" for value in frame.pop(frame.columns[0])]
        texts = (cost_texts(frame["cost"].tolist()), [f"{n:,}" for n in frame["n_splits"]])
        label = path.knob if path.budgets is None else "budget"
        yield from number_table(labels, NumberColumns(("cost", "splits"), texts), width, ink, label)
        return
    tradeoffs, costs = [_number(one) for one in path.tradeoffs], cost_texts(path.costs.tolist())
    errors = [_percentage(error) for error in path.errors]
    n_splits = [f"{model.forest_.n_splits:,}" for model in path]
    if path.budgets is not None:
        least = [_percentage(error) for error in path.least_errors]
        headers = ("cost", "tree error", "at least", "splits", "tradeoff")
        numbers = NumberColumns(headers, (costs, errors, least, n_splits, tradeoffs))
        labels = [f"{budget:.12g}" for budget in path.budgets]
        yield from number_table(labels, numbers, width, ink, "budget")
        return
    objectives = [_number(objective) for objective in path.objectives]
    gaps = [gap_text(gap).removeprefix("gap ") for gap in path.gaps]
    headers = ("cost", "tree error", "splits", "objective", "gap")
    numbers = NumberColumns(headers, (costs, errors, n_splits, objectives, gaps))
    yield from number_table(tradeoffs, numbers, width, ink, "tradeoff")


def _percentage(error: float) -> str:
    return f"{100 * max(error, 0.0):.2f} %"


def _number(value: float) -> str:
    return significant_text(math.log(value)) if value > 0 else "0"
