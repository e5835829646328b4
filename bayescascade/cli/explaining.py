"""``bayescascade explain``: a model's predictions for rows of a file, with reasons."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from bayescascade.cli.deciding import decision_options, with_decision
from bayescascade.cli.loading import BUDGET_OPTION, UNKNOWN_OPTION, in_role, load_model, open_for
from bayescascade.cli.options import JSON_OPTION
from bayescascade.cli.output import echo_json, echo_page
from bayescascade.cli.reading import with_reading

if TYPE_CHECKING:
    import pandas as pd

    from bayescascade.data.sources import Source
    from bayescascade.report.page import Page

_WIDEST = 20  # characters for the prediction, to the left of the reasons


class _Span(click.ParamType):  # type: ignore[type-arg] # before click 8.4
    """FIRST-LAST, numbers of rows from 1; also FIRST for one row, or FIRST- for all from there."""

    name = "rows"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, float]:
        """Return the first and the last number."""
        del param
        if isinstance(value, tuple):
            return value
        found = re.fullmatch(r"([1-9]\d*)(-([1-9]\d*)?)?", value)
        first = int(found[1]) if found else 0
        last = (
            int(found[3]) if found and found[3] else float("inf") if found and found[2] else first
        )
        if found is None or last < first:
            raise click.UsageError(
                f"--rows must be FIRST-LAST, numbers from 1 as in 1-10, 7 or 7-, got {value!r}", ctx
            )
        return first, last


@click.command(short_help="Explain in words what is predicted for rows.")
@click.argument("model", metavar="MODEL.json")
@click.argument("data")
@click.option(
    "--rows",
    type=_Span(),
    metavar="FIRST-LAST",
    default="1-10",
    show_default=True,
    help="Rows of the file: 7 is one row, 7- is all rows from the 7th.",
)
@with_decision
@BUDGET_OPTION
@UNKNOWN_OPTION
@with_reading(learns=False)
@JSON_OPTION
def explain(
    model: str,
    data: str,
    rows: tuple[int, float],
    threshold: float | None,
    class_costs: str | None,
    unknown: str | None,
    budget: float | None,
    as_json: bool,
) -> None:
    """Explain what the model in MODEL.json predicts for rows of DATA.

    A classifier gives the class, its probability and the reason: the rule that applies, the path
    through a tree, the features read, the nearest prototype, or the largest terms of a sum. A
    density gives the log density of the row in nats, and the leaf, rule or class that contains it.
    """
    fitted = load_model(model, unknown, budget)
    from bayescascade.model.roles import Explaining

    explaining: Explaining = in_role(Explaining, fitted, "explain", model)
    decision = decision_options(fitted, model, threshold, class_costs)
    source = open_for(fitted, data)
    explained = list(_explained_rows(explaining, source, rows, decision))
    if as_json:
        echo_json({"source": source.label, "rows": explained})
    else:
        echo_page(_page(explained))


def _explained_rows(
    model: Any, source: "Source", rows: tuple[int, float], decision: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yield a record for each of the rows."""
    from bayescascade.base.errors import DataError
    from bayescascade.cli.rows import read_blocks, read_for
    from bayescascade.model.roles import Density

    first, last = rows
    is_density, end = isinstance(model, Density), 0
    blocks = (
        read_blocks(source, model.schema_.names, None)
        if is_density
        else read_for(model, source, [], None)
    )
    for first_row, cells, _ in blocks:
        end = first_row + len(cells) - 1
        low = max(first, first_row)
        of_block = cells.iloc[low - first_row : max(0, int(min(last, end)) - first_row + 1)]
        if len(of_block):
            frame: pd.DataFrame = model.explain_rows(of_block, first_row=low, **decision)
            for number, record in enumerate(frame.to_dict("records"), low):
                yield {"row": number, **{str(name): value for name, value in record.items()}}
        if end >= last:
            return
    if end < first:
        raise DataError(
            f"--rows must begin with a row of {source.label}, 1 to {end:,}, got {first}"
        )


def _page(records: list[dict[str, Any]]) -> "Page":
    """Return a page with one record below the other, and reasons to the right of predictions."""
    from bayescascade.base.texts import printable
    from bayescascade.data.levels import level_text
    from bayescascade.report.layout import ljust, longest, rjust
    from bayescascade.report.numbers import nats_text, probability_text
    from bayescascade.report.page import Pieces

    heads, cells = ["row"], [[f"{record['row']:,}" for record in records]]
    if "predicted" in records[0]:
        heads += ["predicted", "P"]
        cells.append([printable(level_text(record["predicted"])) for record in records])
        cells.append([probability_text(record["probability"]) for record in records])
    else:
        heads.append("log density")
        cells.append([nats_text(record["log_density"]) for record in records])
    widths = [longest([head, *texts]) for head, texts in zip(heads, cells, strict=True)]
    is_beside = max(widths) <= _WIDEST

    def line(texts: list[str]) -> str:
        put = (ljust if head == "predicted" else rjust for head in heads)
        return "".join(f"{column(t, w)}  " for column, t, w in zip(put, texts, widths, strict=True))

    indent = sum(widths) + 2 * len(widths) if is_beside else widths[0] + 2
    page: Page = (Pieces(["because"], "dim", indent, line(heads)),) if is_beside else ()
    for own, record in zip(zip(*cells, strict=True), records, strict=True):
        first, *others = record["because"].splitlines()
        if is_beside:
            page += (Pieces([first], "", indent, line(list(own))),)
        else:
            number = f"{rjust(own[0], widths[0])}  "
            page += (Pieces([own[1], f"P {own[2]}", f"because {first}"], "", indent, number),)
        page += tuple(Pieces([other], "", indent, " " * indent) for other in others)
    return page
