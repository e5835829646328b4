"""Pages of fitted models and of traces: the data, the search, how well it went, the posterior.

Everything fits 80 columns and reads the same in a terminal, in a file and in a notebook.
"""

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from bayescascade.data.column import Column
from bayescascade.data.levels import level_text
from bayescascade.model.inference_data import convergence_advice
from bayescascade.model.words import COLUMNS_USED, trace_words
from bayescascade.report.numbers import (
    cells_text,
    count_texts,
    diagnostic_text,
    nats_text,
    significant_text,
)
from bayescascade.report.page import (
    BLANK,
    Heading,
    Numbers,
    Page,
    Pieces,
    Table,
    counted,
    warning,
)

if TYPE_CHECKING:
    from bayescascade.data.schema import Schema
    from bayescascade.data.table import Table as DataTable
    from bayescascade.model.estimator import AnyEstimator
    from bayescascade.model.inference_data import Diagnostic
    from bayescascade.model.solution import Certificate
    from bayescascade.model.summary import FitSummary
    from bayescascade.model.trace import Trace

__all__ = ["data_pieces", "estimator_page", "trace_page"]

_SEARCHES = {
    "anneal+metropolis": "annealing and {chains}",
    "anneal": "annealing in {chains}",
    "metropolis": "{chains}",
    "tempering": "{chains} with replica exchange",
}
_MOST_ORDERED = 12  # levels of an ordinal column that are all listed
_LEAST_SHARE = 0.005  # shares that would be printed as 0.00 are left out
_MOST_SHARES = 10


def estimator_page(model: "AnyEstimator") -> Page:
    """Return data, search, convergence, columns, what was learned and posterior of a fitted model.

    Parameters
    ----------
    model : estimator
        Fitted, or read from a file.
    """
    summary, learned = model.summary_, model.learned_
    words = [model.title, *model.parameter_words(model.get_params())]
    if model.predictive == "average":
        words.append("predictive average")
    return (
        Heading(_data_pieces(model, summary)),
        Pieces([", ".join(words)]),
        Pieces(list(_search_pieces(model, summary))),
        Pieces(list(_convergence_pieces(summary))),
        *(warning(f"warning: {text}") for text in summary.warnings),
        Pieces(list(_column_pieces(model))),
        BLANK,
        *learned.page(),
        BLANK,
        *model._legend(learned),
        *_shares_page(summary.shares),
    )


def trace_page(trace: "Trace") -> Page:
    """Return what a trace says of how well the posterior was explored."""
    from bayescascade.model.registry import find_class

    settings = trace.settings
    name = str(settings.get("model", "unknown model"))
    model = find_class(name)
    heading = [
        *([str(settings["source"])] if settings.get("source") else []),
        name if model is None else model.title,
        f"search {settings.get('search', 'unknown')}",
        f"{trace.n_chains} x {trace.n_draws:,} {'draws' if trace.is_sample else 'temperatures'}",
    ]
    words = [] if model is None else model.parameter_words(settings)
    rates = [
        f"{move} {'never tried' if math.isnan(rate) else f'{rate:.3f}'}"
        for move, rate in trace.acceptance.items()
    ]
    page: Page = (Heading(heading), Pieces([", ".join(words)]))
    if settings.get("interrupted"):
        page += (warning("interrupted: the search was ended early"),)
    if trace.is_sample:
        page += (BLANK, *_diagnostics_page(trace.diagnostics(), settings.get("search")))
    else:
        path = "no draws from the posterior: this is the path of an annealing"
        page += (BLANK, Pieces([path]))
    page += (BLANK,)
    if rates:
        page += (Pieces(rates, indent=12, first="accepted".ljust(12)),)
    if not trace.is_sample:
        return page
    shares = trace.shares()
    if COLUMNS_USED in shares:
        by_name = sorted(shares[COLUMNS_USED].items())
        shares[COLUMNS_USED] = dict(sorted(by_name, key=lambda item: -item[1]))
    return (*page, *_shares_page(shares))


def data_pieces(data: "FitSummary | DataTable", schema: "Schema") -> list[str]:
    """Return how many rows, distinct ones, columns and cells there are, and of which file."""
    is_weighted = data.total_weight != data.n_rows
    return [
        *([data.source] if data.source else []),
        counted(data.n_rows, "row"),
        *([f"weight {count_texts([data.total_weight])[0]}"] if is_weighted else []),
        f"{data.n_distinct:,} distinct",
        counted(schema.n_columns, "column"),
        f"volume {significant_text(schema.log_cells)}"
        if schema.n_cells is None
        else f"{cells_text(schema.log_cells)} cells",
    ]


def _data_pieces(model: "AnyEstimator", summary: "FitSummary") -> list[str]:
    pieces = data_pieces(summary, model.schema_)
    if model.is_classifier:  # cells say little of what is learned from labels
        pieces[-1] = counted(len(model.classes_), "class", "classes")
    return pieces


def _search_pieces(model: "AnyEstimator", summary: "FitSummary") -> Iterator[str]:
    if summary.certificate is not None:
        yield _certainty_words(model.learned_word, summary, summary.certificate)
    else:
        how = _SEARCHES.get(summary.method, "{chains}").format(
            chains=counted(summary.n_chains, "chain")
        )
        found = "interrupted: best found so far by" if summary.interrupted else "best found by"
        yield f"{found} {how}"
    yield f"log posterior {nats_text(model.log_posterior_)}"
    yield counted(getattr(model.learned_, model.size_name), *model.size_words)


def _certainty_words(learned: str, summary: "FitSummary", certificate: "Certificate") -> str:
    """Return what an exact search proved of the tree or list that it found."""
    which = f"no {learned} {certificate.scope}".rstrip()
    if certificate.gap == 0:
        return f"exact: {which} is more probable"
    found = "interrupted: best found so far" if summary.interrupted else "best found in its time"
    return f"{found}; {which} is more probable by over {certificate.gap:,.2f} nats"


def _convergence_pieces(summary: "FitSummary") -> Iterator[str]:
    certificate = summary.certificate
    if certificate is not None:
        if certificate.log_evidence is not None:
            yield f"log evidence {nats_text(certificate.log_evidence)}"
        yield certificate.extent
        n_draws = summary.n_chains * summary.n_draws
        yield f"{n_draws:,} independent draws" if n_draws else "nothing sampled: no posterior"
        return
    if summary.reason:
        yield summary.reason
    if not summary.diagnostics:
        yield "nothing sampled: no R-hat, no posterior"
        return
    found = summary.diagnostics
    r_hats = [f"{trace_words(k)} {diagnostic_text(d.r_hat, 3)}" for k, d in found.items()]
    yield f"R-hat: {', '.join(r_hats)}"
    yield f"ESS: {', '.join(diagnostic_text(d.ess, 0) for d in found.values())}"
    yield f"{summary.n_chains} x {summary.n_draws:,} draws"


def _column_pieces(model: "AnyEstimator") -> Iterator[str]:
    if model.is_classifier:
        yield f"classes: {', '.join(map(level_text, model.classes_.tolist()))}"
    for column in model.schema_.columns:
        yield _column_words(column, is_open=model.is_classifier)


def _column_words(column: Column, *, is_open: bool) -> str:
    """Return a column's name and domain, such as "sex: female, male" or "age: child < adult".

    The outer bins of a column that `is_open` have no ends.
    """
    texts = [level_text(level) for level in column.levels]
    if column.kind == "continuous":
        n_bins = len(column.edges) - 1
        low, high = column.edges[0], column.edges[-1]
        domain = f"{counted(n_bins, 'bin')} in [{low:g}, {high:g}]"
        if is_open and n_bins > 1:
            domain = f"{n_bins:,} bins cut at {', '.join(column.edge_texts()[1:-1])}"
    elif column.kind == "ordinal" and len(texts) > _MOST_ORDERED:
        domain = f"{texts[0]} < {texts[1]} < ... < {texts[-1]} ({len(texts):,} levels)"
    elif column.kind == "ordinal":
        domain = " < ".join(texts)
    else:
        domain = ", ".join(texts)
    if column.has_missing_level:
        domain = f"{domain} or missing" if domain else "missing"
    return f"{column.name}: {domain}" + (" (constant)" if column.n_levels == 1 else "")


def _shares_page(shares: Mapping[str, Mapping[str, float]]) -> Page:
    """Return what the draws say of sizes, what comes first, and columns; nothing without draws."""
    starts = [
        ("" if place else "posterior").ljust(12) + title.ljust(14)
        for place, title in enumerate(shares)
    ]
    return tuple(
        Pieces(_share_pieces(told), indent=len(start), first=start, gap="  ")
        for start, told in zip(starts, shares.values(), strict=True)
    )


def _share_pieces(shares: Mapping[str, float]) -> list[str]:
    """Return shares, largest first, as "6 (0.71)", the negligible ones left out."""
    kept = [f"{name} ({share:.2f})" for name, share in shares.items() if share >= _LEAST_SHARE]
    left_out = len(kept) - _MOST_SHARES
    return [*kept[:_MOST_SHARES], *([f"and {left_out} more"] if left_out > 0 else [])]


def _diagnostics_page(diagnostics: "Mapping[str, Diagnostic]", search: object) -> Page:
    """Return a table of the traced quantities, and what is wrong with them."""
    found = list(diagnostics.values())
    table = Table(
        [trace_words(name) for name in diagnostics],
        [
            Numbers("mean", [nats_text(d.mean) for d in found]),
            Numbers("sd", [f"{d.sd:,.2f}" for d in found]),
            Numbers("R-hat", [diagnostic_text(d.r_hat, 3) for d in found]),
            Numbers("ESS", [diagnostic_text(d.ess, 0) for d in found]),
        ],
        styles=["" if d.is_fine else "warning" for d in found],
    )
    if all(d.is_fine for d in found):
        return (table,)
    advice = (
        "warning: R-hat should be at most 1.01 and ESS at least 400: "
        f"{convergence_advice(search)}, and compare the chains' traces (--plots)"
    )
    return (table, warning(advice))
