"""Models as text: what was fitted, how well it was explored, and what was learned.

The layout fits 80 columns and reads the same in a terminal, in a file and in a notebook.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from bayescascade.base.validation import check_integer
from bayescascade.data.column import Column
from bayescascade.data.levels import level_text
from bayescascade.methods.cascades.tree_table import tree_table
from bayescascade.methods.rules.list_table import (
    density_list_table,
    has_class_columns,
    label_list_table,
)
from bayescascade.model.words import (
    LEARNED,
    SIZES,
    model_words,
    parameter_words,
    trace_words,
)
from bayescascade.report.layout import Ink, flow
from bayescascade.report.numbers import (
    cells_text,
    count_texts,
    diagnostic_text,
    nats_text,
    significant_text,
)

if TYPE_CHECKING:
    from bayescascade.data.schema import Schema
    from bayescascade.data.table import Table
    from bayescascade.methods.cascades.density import DensityTree
    from bayescascade.methods.rules.density_list import DensityList
    from bayescascade.methods.rules.label_list import LabelList
    from bayescascade.model.estimator import AnyEstimator
    from bayescascade.model.solution import Certificate
    from bayescascade.model.summary import FitSummary

__all__ = [
    "LEAST_WIDTH",
    "data_pieces",
    "density_list_text",
    "label_list_text",
    "learned_text",
    "model_text",
    "posterior_lines",
    "tree_text",
]

LEAST_WIDTH = 60

_SEARCHES = {
    "anneal+metropolis": "annealing and {chains}",
    "anneal": "annealing in {chains}",
    "metropolis": "{chains}",
    "tempering": "{chains} with replica exchange",
}
_DENSITIES = {"posterior_mean": "posterior mean probability", "empirical": "part of all rows"}
_MOST_ORDERED = 12  # levels of an ordinal column that are all listed
_LEAST_SHARE = 0.005  # shares that would be printed as 0.00 are left out
_MOST_SHARES = 10


def tree_text(density: "DensityTree", *, width: int = 80, color: bool = False) -> str:
    """Return a density tree as a table.

    Parameters
    ----------
    density : DensityTree
    width : int >= 60
        Most columns of a line.
    color : bool
        Whether to write ANSI codes: denser than uniform in cyan, rarer in yellow.

    Returns
    -------
    str
        Without a line break at the end. ``share`` is the probability, ``density`` share per cell
        or volume, ``x uniform`` the density over that of a tree without splits.
    """
    return _density_text(density, tree_table, width, color)


def density_list_text(density: "DensityList", *, width: int = 80, color: bool = False) -> str:
    """Return a density list as a table.

    Parameters
    ----------
    density : DensityList
    width, color
        As in `tree_text`.

    Returns
    -------
    str
        Without a line break at the end; the numbers are those of `tree_text`.
    """
    return _density_text(density, density_list_table, width, color)


def label_list_text(labels: "LabelList", *, width: int = 80, color: bool = False) -> str:
    """Return a list of labels as a table.

    Parameters
    ----------
    labels : LabelList
    width : int >= 60
        Most columns of a line.
    color : bool
        Whether to write ANSI codes.

    Returns
    -------
    str
        Without a line break at the end. ``rows`` are those in each part, probabilities are
        posterior means, intervals hold 95 % of the posterior.
    """
    check_integer("width", width, LEAST_WIDTH)
    return "\n".join(label_list_table(labels, width, Ink(color)))


def learned_text(learned: Any, *, width: int = 80, color: bool = False) -> str:
    """Return what a model learned as a table: `tree_text` or what is alike for lists."""
    from bayescascade.methods.cascades.density import DensityTree
    from bayescascade.methods.rules.density_list import DensityList

    if isinstance(learned, DensityTree):
        return tree_text(learned, width=width, color=color)
    if isinstance(learned, DensityList):
        return density_list_text(learned, width=width, color=color)
    return label_list_text(learned, width=width, color=color)


def model_text(model: "AnyEstimator", *, width: int = 80, color: bool = False) -> str:
    """Return a fitted model: data, search, convergence, columns, what was learned and posterior.

    Parameters
    ----------
    model : estimator
        Fitted, or read from a file.
    width : int >= 60
        Most columns of a line.
    color : bool
        Whether to write ANSI codes.

    Returns
    -------
    str
        Without a line break at the end.
    """
    check_integer("width", width, LEAST_WIDTH)
    ink, summary, learned = Ink(color), model.summary_, model.learned_
    data, *more_data = flow(_data_pieces(model, summary), width, 2)
    lines = [ink("bold", data), *more_data]
    lines += flow([_parameters_words(model)], width, 2)
    lines += flow(_search_pieces(model, summary), width, 2)
    lines += flow(_convergence_pieces(summary), width, 2)
    for warning in summary.warnings:
        lines += [ink("warning", line) for line in flow([f"warning: {warning}"], width, 2)]
    lines += flow(_column_pieces(model), width, 2)
    lines += ["", learned_text(learned, width=width, color=color), ""]
    lines += [ink("dim", line) for line in flow(_legend(model, learned, width), width, 2)]
    lines += posterior_lines(summary.shares, width)
    return "\n".join(lines)


def posterior_lines(shares: Mapping[str, Mapping[str, float]], width: int) -> list[str]:
    """Return what the draws say of sizes, what comes first, and columns; nothing without draws.

    Parameters
    ----------
    shares : mapping of str to mapping of str to float
        Shares of the draws by title and label, largest first.
    width : int
        Most columns of a line.
    """
    lines: list[str] = []
    for title, told in shares.items():
        start = ("posterior" if not lines else "").ljust(12) + title.ljust(14)
        lines += flow(_share_pieces(told), width, len(start), first=start, gap="  ")
    return lines


def _density_text(
    density: Any, table: Callable[[Any, int, Ink], list[str]], width: int, color: bool
) -> str:
    """Return the evidence that a density is given, if any, and its table."""
    check_integer("width", width, LEAST_WIDTH)
    ink = Ink(color)
    lines = table(density, width, ink)
    if density.evidence:
        probability = significant_text(math.log(density.evidence_probability))
        given = f"given {density.evidence_words()} (probability {probability})"
        lines = [*(ink("bold", line) for line in flow([given], width, 2)), "", *lines]
    return "\n".join(lines)


def _legend(model: "AnyEstimator", learned: Any, width: int) -> list[str]:
    """Return what the numbers in the table are."""
    if not model.is_classifier:
        size = "cells" if model.schema_.n_cells is not None else "volume"
        legend = [f"share: {_DENSITIES[model.density]}", f"density: share / {size}"]
        if getattr(learned, "level_probabilities", None) is not None:
            legend.append("mostly: what stands out inside a leaf, and its probability")
        return legend
    if not has_class_columns(learned, width):
        return ["probabilities: posterior means", "intervals: 95 % of the posterior"]
    return ["probabilities of the classes: posterior means", "intervals: see --json or to_dict()"]


def _share_pieces(shares: Mapping[str, float]) -> list[str]:
    """Return shares, largest first, as "6 (0.71)", the negligible ones left out."""
    kept = [f"{name} ({share:.2f})" for name, share in shares.items() if share >= _LEAST_SHARE]
    left_out = len(kept) - _MOST_SHARES
    return [*kept[:_MOST_SHARES], *([f"and {left_out} more"] if left_out > 0 else [])]


def data_pieces(data: "FitSummary | Table", schema: "Schema") -> Iterator[str]:
    """Yield how many rows, distinct ones, columns and cells there are, and of which file."""
    if data.source:
        yield data.source
    yield _counted(data.n_rows, "row")
    if data.total_weight != data.n_rows:
        yield f"weight {count_texts([data.total_weight])[0]}"
    yield f"{data.n_distinct:,} distinct"
    yield _counted(schema.n_columns, "column")
    if schema.n_cells is None:
        yield f"volume {significant_text(schema.log_cells)}"
    else:
        yield f"{cells_text(schema.log_cells)} cells"


def _data_pieces(model: "AnyEstimator", summary: "FitSummary") -> list[str]:
    pieces = list(data_pieces(summary, model.schema_))
    if model.is_classifier:  # cells say little of what is learned from labels
        pieces[-1] = _counted(len(model.classes_), "class", "classes")
    return pieces


def _parameters_words(model: "AnyEstimator") -> str:
    """Return the model's name and parameters, such as "leaf cascade, expected_leaves 8"."""
    words = [model_words(model.model_name), *parameter_words(model.get_params())]
    if model.predictive == "average":
        words.append("predictive average")
    return ", ".join(words)


def _search_pieces(model: "AnyEstimator", summary: "FitSummary") -> Iterator[str]:
    if summary.certificate is not None:
        yield _certainty_words(LEARNED[model.learned_name], summary, summary.certificate)
    else:
        how = _SEARCHES.get(summary.method, "{chains}").format(
            chains=_counted(summary.n_chains, "chain")
        )
        found = "interrupted: best found so far by" if summary.interrupted else "best found by"
        yield f"{found} {how}"
    yield f"log posterior {nats_text(model.log_posterior_)}"
    yield _counted(getattr(model.learned_, model.size_name), *SIZES[model.size_name])


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
        domain = f"{_counted(n_bins, 'bin')} in [{low:g}, {high:g}]"
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


def _counted(count: int, noun: str, nouns: str = "") -> str:
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"
