"""Traces as text: convergence, acceptance of the moves, posterior of sizes and columns."""

import math
from typing import TYPE_CHECKING

from bayescascade.model.draws import COLUMNS_USED, convergence_advice
from bayescascade.model.page import posterior_lines
from bayescascade.model.words import model_words, parameter_words
from bayescascade.report.layout import Ink, flow, ljust, longest, rjust
from bayescascade.report.numbers import diagnostic_text, nats_text

if TYPE_CHECKING:
    from bayescascade.model.draws import Diagnostic, Trace

__all__ = ["trace_text"]

_HEADERS = ("mean", "sd", "R-hat", "ESS")


def trace_text(trace: "Trace", *, width: int = 80, color: bool = False) -> str:
    """Return what a trace says of how well the posterior was explored.

    Parameters
    ----------
    trace : Trace
    width : int
        Most columns of a line.
    color : bool
        Whether to write ANSI codes.

    Returns
    -------
    str
        Without a line break at the end.
    """
    ink = Ink(color)
    settings = trace.settings
    pieces = [
        *([str(settings["source"])] if settings.get("source") else []),
        trace.title or model_words(str(settings.get("model", "unknown model"))),
        f"search {settings.get('search', 'unknown')}",
        f"{trace.n_chains} x {trace.n_draws:,} {'draws' if trace.is_sample else 'temperatures'}",
    ]
    first, *others = flow(pieces, width, 2)
    lines = [ink("bold", first), *others]
    told = trace.told or ", ".join(parameter_words(settings))
    lines += flow([told], width, 2) if told else []
    if settings.get("interrupted"):
        lines.append(ink("warning", "interrupted: the search was ended early"))
    if trace.is_sample:
        diagnostics = trace.diagnostics()
        lines += ["", *_diagnostic_lines(diagnostics, trace, width, ink)]
    else:
        lines += ["", "no draws from the posterior: this is the path of an annealing"]
    rates = [f"{name} {_rate_text(rate)}" for name, rate in trace.acceptance.items()]
    lines += ["", *(flow(rates, width, 12, first="accepted".ljust(12)) if rates else [])]
    if trace.is_sample:
        shares = trace.shares()
        if COLUMNS_USED in shares:
            by_name = sorted(shares[COLUMNS_USED].items())
            shares[COLUMNS_USED] = dict(sorted(by_name, key=lambda item: -item[1]))
        lines += posterior_lines(shares, width)
    return "\n".join(lines)


def _diagnostic_lines(
    diagnostics: "dict[str, Diagnostic]", trace: "Trace", width: int, ink: Ink
) -> list[str]:
    """Return a table of the traced quantities, and what is wrong with them."""
    labels = [trace.words_of(name) for name in diagnostics]
    columns = [
        [nats_text(d.mean) for d in diagnostics.values()],
        [f"{d.sd:,.2f}" for d in diagnostics.values()],
        [diagnostic_text(d.r_hat, 3) for d in diagnostics.values()],
        [diagnostic_text(d.ess, 0) for d in diagnostics.values()],
    ]
    widths = [longest([h, *column]) for h, column in zip(_HEADERS, columns, strict=True)]
    label_width = longest(labels)

    def line(label: str, cells: tuple[str, ...]) -> str:
        numbers = [rjust(cell, w) for cell, w in zip(cells, widths, strict=True)]
        return "   ".join([ljust(label, label_width), *numbers])

    lines = [ink("dim", line("", _HEADERS))]
    for label, cells, diagnostic in zip(
        labels, zip(*columns, strict=True), diagnostics.values(), strict=True
    ):
        lines.append(ink("" if diagnostic.is_fine else "warning", line(label, cells)))
    if not all(diagnostic.is_fine for diagnostic in diagnostics.values()):
        todo = convergence_advice(trace.settings.get("search"))
        advice = (
            "warning: R-hat should be at most 1.01 and ESS at least 400: "
            f"{todo}, and compare the chains' traces (--plots)"
        )
        lines += [ink("warning", text) for text in flow([advice], width, 2)]
    return lines


def _rate_text(rate: float) -> str:
    return "never tried" if math.isnan(rate) else f"{rate:.3f}"
