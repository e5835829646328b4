"""A report as one HTML file, which loads nothing from elsewhere.

Its sections have sentences and the blocks of pages. It can be read on wide and narrow screens,
light or dark, and printed on A4 with all folded parts open.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bayescascade.report.chart import CHART_STYLES, UnitChart
from bayescascade.report.html import STYLES, blocks, element, shown_and_more, text
from bayescascade.report.page import Page, count_of

_MOST_ITEMS = 10  # items that are not folded

_STYLES = """
:root{color-scheme:light dark;--paper:#fdfdfc;--ink:#1f2831;--soft:#5d6976;--line:#dde1e6;
--accent:#17708f}
@media (prefers-color-scheme:dark){:root{--paper:#14181c;--ink:#dce2e8;--soft:#9aa6b2;
--line:#2e363e;--accent:#63b8d4}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%}
body{margin:0 auto;max-width:60rem;padding:2.4rem 1.4rem 3rem;background:var(--paper);
color:var(--ink);font:1rem/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,
sans-serif;overflow-wrap:break-word}
header{border-bottom:2px solid var(--accent);padding-bottom:1rem}
h1{font-size:1.8rem;line-height:1.2;font-weight:650;margin:.15rem 0 .4rem}
h2{font-size:1.15rem;font-weight:650;margin:2.3rem 0 .55rem;break-after:avoid}
p{margin:.5rem 0;max-width:46rem}
.kind{color:var(--accent);font-weight:600;font-size:.95rem;margin:0}
.facts{display:flex;flex-wrap:wrap;gap:.3rem 2.2rem;margin:1rem 0 0}
.facts span{white-space:nowrap}
ul{list-style:none;margin:.4rem 0;padding:0;max-width:50rem}
ul.beside{max-width:none}
.beside li{display:flex;gap:.1rem 1.6rem;justify-content:space-between;align-items:baseline}
.beside b{flex:1 1 20rem;font-weight:400}
.beside .told{flex:0 0 13rem;text-align:right}
.beside .told span{display:block}
li{padding:.42rem 0;border-top:1px solid var(--line);break-inside:avoid}
li:first-child{border-top:0}
li b{font-weight:600}
li .told{color:var(--soft)}
.bayescascade .rows{max-width:none;font-size:.94rem}
.bayescascade .row{break-inside:avoid}
.bayescascade summary:focus-visible{outline:2px solid var(--accent);outline-offset:1px}
.bayescascade summary:hover .label{color:var(--accent)}
.close h2{display:inline;margin:0}
.close{margin:2.3rem 0 .55rem}
footer{margin-top:3rem;border-top:1px solid var(--line);padding-top:.7rem;color:var(--soft);
font-size:.88rem}
@media (max-width:38rem){
body{padding:1.2rem .9rem 2rem}
h1{font-size:1.45rem}
.beside li{flex-wrap:wrap}
.beside b{flex-basis:100%}
.beside .told{flex:1 1 auto;text-align:left}
.beside .told span{display:inline;margin-right:1em}
.bayescascade .rows{font-size:.84rem}
.bayescascade .row{flex-wrap:wrap;gap:0 .5em;justify-content:flex-end}
.bayescascade .label{flex-basis:100%}
.bayescascade .row:not(.head) .label{padding-bottom:0}
.bayescascade .number{font-size:.92em}
.bayescascade .bar{padding-left:0;background-image:none!important}
.bayescascade .below{margin-left:.3em;padding-left:.45em}
}
@page{size:A4;margin:16mm 15mm 18mm}
@media print{
:root{color-scheme:light;--paper:#fff;--ink:#111;--soft:#4b5560;--line:#d5dade;--accent:#17708f}
html{font-size:9.6pt}
body{max-width:none;padding:0}
h2{margin-top:1.6rem}
ul,p{max-width:none}
li{padding:.3rem 0}
.beside .told{flex-basis:24rem}
.beside .told span{display:inline;margin-left:1em;white-space:nowrap}
.bayescascade .rows{font-size:8.4pt}
.bayescascade .row{gap:.45em}
.bayescascade .below{margin-left:.2em;padding-left:.5em}
.bayescascade .bar{--room:2.4em}
details::details-content{content-visibility:visible!important;block-size:auto!important;
display:block}
.bayescascade .count,.bayescascade .mark::before{display:none}
.bayescascade .label{padding-left:.2em}
footer{margin-top:1.5rem}
}
"""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a report with a title."""

    title: str
    sentences: Sequence[str] = ()  # paragraphs
    items: Sequence[tuple[str, str]] = ()  # subject or "", text, which may have line breaks
    noun: tuple[str, str] = ("item", "items")  # singular and plural of items, if there are many
    page: Page = ()  # after the items
    charts: Sequence[UnitChart] = ()  # side by side, at the end
    is_beside: bool = False  # texts are to the right of subjects, if there is room
    is_folded: bool = False  # only the title is shown at first


def to_document(
    title: str, kind: str, lede: str, facts: Sequence[str], sections: Sequence[Section], foot: str
) -> str:
    """Return a report as the text of a file; empty sections are left out.

    `kind` is above the title, `lede` below it; `facts` are a few words each; `foot` is at the end.
    """
    spans = "".join(element("span", text(fact)) + " " for fact in facts)
    header = element("p", text(kind), "kind") if kind != title else ""
    header += element("h1", text(title)) + element("p", text(lede))
    header += element("div", spans, "facts bold") if facts else ""
    content = element("main", "".join(map(_section, sections)))
    body = element("header", header) + content + element("footer", text(foot))
    head = (
        '<meta charset="utf-8"/>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>'
        + element("title", text(title))
        + element("style", STYLES + _STYLES + CHART_STYLES)
    )
    page = element("head", head) + element("body", body, "bayescascade")
    return f'<!DOCTYPE html>\n<html lang="en">{page}</html>\n'


def _section(section: Section) -> str:
    content = "".join(element("p", text(sentence)) for sentence in section.sentences)
    content += _items(section) + blocks(section.page)
    if section.charts:
        content += element("div", "".join(c.to_html() for c in section.charts), "charts")
    if not content:
        return ""
    title = element("h2", text(section.title))
    if not section.is_folded:
        return element("section", title + content)
    summary = element("summary", element("span", "", "mark") + title)
    return element("section", element("details", summary + content, "close"))


def _items(section: Section) -> str:
    items = section.items
    shown = items if len(items) <= _MOST_ITEMS + 2 else items[:_MOST_ITEMS]
    more = items[len(shown) :]
    words = count_of(len(more), *(f"more {noun}" for noun in section.noun))
    look = "beside" if section.is_beside else ""
    return shown_and_more(_list(shown, look), _list(more, look), words)


def _list(items: Sequence[tuple[str, str]], look: str) -> str:
    items_html = "".join(element("li", _item(*item)) for item in items)
    return element("ul", items_html, look) if items_html else ""


def _item(about: str, content: str) -> str:
    if not about:
        return text(content)
    lines = " ".join(element("span", text(line)) for line in content.split("\n"))
    return element("b", text(about)) + " " + element("span", lines, "told")
