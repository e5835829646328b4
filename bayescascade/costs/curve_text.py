"""A cost-accuracy curve as a table."""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from bayescascade.report.layout import Ink
from bayescascade.report.number_columns import NumberColumns
from bayescascade.report.number_table import number_table
from bayescascade.report.numbers import cost_texts

if TYPE_CHECKING:
    from bayescascade.costs.curve import CostAccuracyCurve, CurvePoint

__all__ = ["curve_table", "curve_text"]


def curve_text(curve: "CostAccuracyCurve", *, width: int = 80, color: bool = False) -> str:
    """Return a curve as a table with a line for each classifier.

    Parameters
    ----------
    curve : CostAccuracyCurve
    width : int >= 60
        Most columns of a line.
    color : bool
        Whether to write ANSI codes.

    Returns
    -------
    str
        Without a line break at the end. Costs are of a row on average, errors shares of the rows,
        both with their standard errors; features are those acquired for a row on average.
    """
    return "\n".join(_lines(curve, width, Ink(color)))


def curve_table(
    points: "Sequence[CurvePoint]", labels: Sequence[str], header: str, width: int, ink: Ink
) -> list[str]:
    """Return the lines of the table of some points, header first, each with its label."""
    columns = (
        _with_errors(
            cost_texts([point.cost for point in points]), [point.cost_error for point in points]
        ),
        _with_errors(
            [f"{100 * point.error:.2f} %" for point in points],
            [100 * point.error_error for point in points],
        ),
        ["" if math.isnan(point.n_features) else f"{point.n_features:,.1f}" for point in points],
        ["" if point.n_trees is None else f"{point.n_trees:,}" for point in points],
        ["" if point.n_splits is None else f"{point.n_splits:,}" for point in points],
    )
    numbers = NumberColumns(("cost", "error", "features", "trees", "splits"), columns)
    return number_table(labels, numbers, width, ink, header)


def _lines(curve: "CostAccuracyCurve", width: int, ink: Ink) -> Iterator[str]:
    yield ink("bold", f"{curve.n_rows:,} test rows")
    yield ""
    labels = [
        point.label if point is curve.of(point.label)[0] else "" for point in curve.points
    ]  # a family's name stands once
    yield from curve_table(curve.points, labels, "", width, ink)
    yield ""
    yield ink("dim", "±: standard error over the rows")


def _with_errors(texts: Sequence[str], errors: Sequence[float]) -> list[str]:
    decimals = [len(text.removesuffix(" %").partition(".")[2]) for text in texts]
    return [
        text if math.isnan(error) else f"{text} ± {error:.{max(2, places)}f}"
        for text, error, places in zip(texts, errors, decimals, strict=True)
    ]
