"""What features and groups cost, as a table."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from bayescascade.data.schema import column_text
from bayescascade.report.layout import Ink, flow
from bayescascade.report.number_columns import NumberColumns
from bayescascade.report.number_table import number_table
from bayescascade.report.numbers import cost_texts

if TYPE_CHECKING:
    from bayescascade.costs.items import FeatureCosts

__all__ = ["costs_text"]


def costs_text(costs: "FeatureCosts", *, width: int = 80, color: bool = False) -> str:
    """Return costs as a table: the features that they name, each with its groups, then the groups.

    Parameters
    ----------
    costs : FeatureCosts
    width : int >= 60
        Most columns of a line.
    color : bool
        Whether to write ANSI codes.

    Returns
    -------
    str
        Without a line break at the end.
    """
    return "\n".join(_lines(costs, width, Ink(color)))


def _lines(costs: "FeatureCosts", width: int, ink: Ink) -> Iterator[str]:
    others = f"cost {costs.default:.12g} for each"
    groups: dict[str | int, list[str]] = {key: [] for key in costs.costs if key not in costs.groups}
    for group, members in costs.groups.items():
        for member in members:
            groups.setdefault(member, []).append(group)
    if not groups:
        yield ink("bold", f"{others} feature")
        return
    pieces = [f"costs of {_counted(len(groups), 'feature')}", f"{others} other feature"]
    if costs.groups:
        pieces.insert(1, _counted(len(costs.groups), "group"))
    first, *more = flow(pieces, width, 2)
    yield ink("bold", first)
    yield from more
    yield ""
    amounts = [costs.costs.get(key, 0.0 if of else costs.default) for key, of in groups.items()]
    amounts += [costs.costs.get(group, costs.default) for group in costs.groups]
    labels = [column_text(key) for key in groups] + [f"{group} (group)" for group in costs.groups]
    columns = {"cost": cost_texts(amounts)}
    if costs.groups:
        columns["group"] = [", ".join(of) for of in groups.values()] + [""] * len(costs.groups)
    numbers = NumberColumns(tuple(columns), tuple(columns.values()))
    yield from number_table(labels, numbers, width, ink, "feature")


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
