"""Reports of any fitted estimator, as one file for other readers.

The hooks of `ReadableModel` give all content: the purpose of the model, how to read it, and its
limits. So a loaded model makes the same report as after its fit.
"""

from typing import TYPE_CHECKING, Any

from bayescascade.model.sentences import held_out_sentences
from bayescascade.report.chart import UnitChart
from bayescascade.report.document import Section, to_document
from bayescascade.report.page import named

if TYPE_CHECKING:
    from bayescascade.model.near_best import NearBest

AS_COMMON = "Groups are compared with rows that are spread evenly over all possible combinations."
"""The sentence before the groups of a density."""

OF_ROWS = (
    "It describes the rows that it was learned from. Rows from another place or time, or "
    "collected in another way, may be different.",
    "It describes associations, not causes. The cause of a pattern may be in no column.",
)
"""Limits of all models that are learned from rows."""

OF_DENSITIES = (
    "Groups of few rows are uncertain, and may be due to chance. A group of one row may reveal "
    "one person. Consider who may read this report.",
    "Combinations that never occurred are still possible. The model gives them a small "
    "probability.",
)
"""Limits of all densities."""

_FOOT = (
    "Made with bayescascade {version}. This report contains the model and counts, but none of the "
    "rows. It loads nothing from other places."
)


def report_document(
    model: Any,  # a `ReadableModel`
    title: str | None,
    held_out: Any,
    near_best: "NearBest[Any] | None" = None,
) -> str:
    """Return the report of a fitted model as HTML.

    If given, it has results on held-out rows, and a section on other models that are as good.
    """
    from bayescascade import __version__

    summary = getattr(model, "summary_", None)
    source = getattr(summary, "source", "")
    measured = getattr(summary, "held_out", None)
    tried: list[str] = []
    tables = () if measured is None else measured.page()
    charts: tuple[UnitChart, ...] = ()
    if held_out is not None:
        tried, tables, charts = held_out_sentences(model, held_out)
    kind = model.title[0].upper() + model.title[1:]
    columns, names = model._column_items(), model._column_names()
    sections = (
        Section(
            "In words",
            model._words_lead(),
            items=model._in_words(),
            noun=("group", "groups"),
            is_beside=True,
        ),
        Section("What was learned", page=model._shown()),
        Section("How to read it", items=model._how_to_read()),
        Section("How sure it is", model._doubt()),
        Section("Other models that are as good", page=near_best.page() if near_best else ()),
        Section("How it does on other rows", tried, page=tables, charts=charts),
        Section("What it cannot tell", items=[("", words) for words in model._cannot_tell()]),
        Section(
            "What it was learned from",
            model._learned_from(),
            columns,
            ("column", "columns"),
            () if columns or not names else (named(names, "column", "columns: "),),
        ),
        Section("For analysts", page=model._details(), is_folded=True),
    )
    return to_document(
        title or source or kind,
        kind,
        model.purpose,
        model._facts(),
        sections,
        _FOOT.format(version=__version__),
    )
