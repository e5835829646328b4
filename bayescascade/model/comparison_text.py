"""How densities compare on halves of a table, as text."""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from bayescascade.model.comparison import Comparison
from bayescascade.model.page import data_pieces
from bayescascade.model.words import model_words
from bayescascade.report.layout import Ink, flow
from bayescascade.report.numbers import cells_text, significant_text

__all__ = ["comparison_text"]

_NAME_WIDTH = 24
_WIDTHS = (18, 18, 9, 9)


def comparison_text(comparison: Comparison, *, width: int = 80, color: bool = False) -> str:
    """Return a table with a line for each density.

    Parameters
    ----------
    comparison : Comparison
        Of halvings that are not whole, those that are; see `Comparison.whole`.
    width : int >= 60
        Most columns of the heading's lines; the table has 78.
    color : bool
        Whether to write ANSI codes.

    Returns
    -------
    str
        Without a line break at the end. ``held out`` is the mean log likelihood of the rows that
        were not learned from, ``behind`` how far below the best of the densities; both with the
        standard error of their mean over halvings, where there are several.
    """
    return "\n".join(_lines(comparison.whole, width, Ink(color)))


def _lines(comparison: Comparison, width: int, ink: Ink) -> Iterator[str]:
    table = comparison.table
    first, *more = flow(data_pieces(table, table.schema), width, 2)
    yield ink("bold", first)
    yield from more
    models = [model for model in comparison.models if comparison.of(model)]
    if not models:
        yield "nothing has been learned yet"
        return
    n_halvings = len(comparison.of(models[0]))
    halvings = "1 random halving" if n_halvings == 1 else f"{n_halvings} random halvings"
    yield from flow([f"{halvings}: learned on one half, scored on the other, nats a row"], width, 2)
    yield ""
    yield _line("", ("held out", "behind", "parts", "seconds")).rstrip()
    scores = {model: comparison.log_likelihoods(model) for model in models}
    best = max(models, key=lambda model: scores[model].mean())
    for model in models:
        outcomes = comparison.of(model)
        cells = (
            _mean(scores[model]),
            "" if model == best else _mean(scores[best] - scores[model]),
            _parts(float(np.mean([outcome.n_parts for outcome in outcomes]))),
            f"{np.mean([outcome.seconds for outcome in outcomes]):,.1f}",
        )
        line = _line(model_words(model), cells)
        yield ink("bold", line) if model == best else line
    yield ""
    told = ["parts: leaves, rules with the else, cells"]
    if n_halvings > 1:
        told.insert(0, "±: standard error over halvings")
    yield from (ink("dim", line) for line in flow(told, width, 2))


def _line(name: str, cells: tuple[str, ...]) -> str:
    padded = (cell.rjust(width) for cell, width in zip(cells, _WIDTHS, strict=True))
    return name.ljust(_NAME_WIDTH) + "".join(padded)


def _mean(values: NDArray[np.float64]) -> str:
    """Return a mean, with its standard error if there is more than one value."""
    if values.size == 1:
        return f"{values[0]:.4f}"
    return f"{values.mean():.4f} ± {values.std(ddof=1) / math.sqrt(values.size):.4f}"


def _parts(mean: float) -> str:
    if mean == math.inf:
        return "> 1e308"
    if mean.is_integer():
        return cells_text(math.log(mean))
    return f"{mean:,.1f}" if mean < 1e6 else significant_text(math.log(mean), 2)
