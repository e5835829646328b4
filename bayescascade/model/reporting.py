"""Reports of any fitted estimator, as one file for other readers.

A model's view gives all content, so a loaded model makes the same report as after its fit.
"""

from typing import TYPE_CHECKING, Any

from bayescascade.model.sentences import held_out_sentences
from bayescascade.report.chart import UnitChart
from bayescascade.report.document import Section, to_document
from bayescascade.report.page import named

if TYPE_CHECKING:
    from bayescascade.model.near_best import NearBest

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
    view = model.view()
    split = (words.partition(": ") for words in view.columns)
    columns = [(name, domain) for name, _, domain in split]
    sections = (
        Section(
            "In words", view.lead, items=view.words(), noun=("group", "groups"), is_beside=True
        ),
        Section("What was learned", page=(*view.shown, *view.beside)),
        Section("How to read it", items=view.terms),
        Section("How sure it is", view.doubts),
        Section("Other models that are as good", page=near_best.page() if near_best else ()),
        Section("How it does on other rows", tried, page=tables, charts=charts),
        Section("What it cannot tell", items=[("", words) for words in view.limits]),
        Section(
            "What it was learned from",
            view.source,
            columns,
            ("column", "columns"),
            () if columns or not view.names else (named(view.names, "column", "columns: "),),
        ),
        Section("For analysts", page=view.details, is_folded=True),
    )
    return to_document(
        title or source or kind,
        kind,
        model.purpose,
        view.facts,
        sections,
        _FOOT.format(version=__version__),
    )
