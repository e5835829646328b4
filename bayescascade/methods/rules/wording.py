"""Conditions as plain data, in words, and as the labels of a table.

A density ends at the outer edges of a column's bins; labels do not: a classifier takes a value
beyond the range that it learned from for one of the outer bin, and says so.
"""

from collections.abc import Sequence
from typing import Any

from bayescascade.data.column import Column
from bayescascade.data.levels import quoted
from bayescascade.data.schema import Schema
from bayescascade.methods.rules.antecedents import Antecedent
from bayescascade.report.page import Numbers, Pieces, Table

__all__ = ["antecedent_dict", "antecedent_words", "list_table", "part_words"]


def antecedent_dict(
    schema: Schema, antecedent: Antecedent, *, is_open: bool = False
) -> dict[str, Any]:
    """Return an antecedent as plain data: what each column must be, by name.

    A list of levels, neighbors if the column is ordinal; ``{"interval": [low, high]}`` if it is
    continuous; ``[None]`` for the missing level of any. With `is_open` an end of an interval at the
    range's end is None, for there is no end.
    """
    record: dict[str, Any] = {}
    for index, low, high in antecedent:
        column = schema.columns[index]
        if _is_missing(column, low):
            record[column.name] = [None]
        elif column.kind == "continuous":
            ends: list[float | None] = [column.edges[low], column.edges[high]]
            if is_open and low == 0:
                ends[0] = None
            if is_open and high == len(column.edges) - 1:
                ends[1] = None
            record[column.name] = {"interval": ends}
        else:
            record[column.name] = list(column.levels[low:high])
    return record


def antecedent_words(schema: Schema, antecedent: Antecedent, *, is_open: bool = False) -> str:
    """Return an antecedent in words, such as "age is below 25 and sex is male".

    With `is_open` a bin at the end of a column's range has no end there.
    """
    words = []
    for index, low, high in antecedent:
        column = schema.columns[index]
        if is_open and column.kind == "continuous" and not _is_missing(column, low):
            words.append(f"{quoted(column.name)} is {_describe_open_bins(column, low, high)}")
        else:
            words.append(column.condition_words(range(low, high)))
    return " and ".join(words)


def part_words(
    schema: Schema, rules: Sequence[Antecedent], part: int, *, is_open: bool = False
) -> str:
    """Return the conditions of a part's rule; "anything else" for `else` ("any row" if alone).

    That no earlier rule may apply goes without saying: a list is read downward.
    """
    if part < len(rules):
        return antecedent_words(schema, rules[part], is_open=is_open)
    return "anything else" if rules else "any row"


def list_table(
    words: Sequence[str], columns: Sequence[Numbers], below: Sequence[Pieces] = ()
) -> Table:
    """Return the table of a list: "if ..", "else if ..", "else" downward, numbers beside them.

    Parameters
    ----------
    words : sequence of str
        Of every part; see `part_words`.
    columns : sequence of Numbers
    below : sequence of Pieces
        What stands below each part, if anything.
    """
    labels = list(words)
    if len(labels) > 1:
        labels = [f"if {words[0]}", *(f"else if {one}" for one in words[1:-1]), "else"]
    return Table(labels, columns, below=below, hanging=3, least_label=0, stacks=True)


def _describe_open_bins(column: Column, low: int, high: int) -> str:
    n_bins = len(column.edges) - 1
    texts = column.edge_texts()
    if low == 0 and high == n_bins:
        return "not missing"
    if low == 0:
        return f"below {texts[high]}"
    if high == n_bins:
        return f"{texts[low]} or more"
    return f"in [{texts[low]}, {texts[high]})"


def _is_missing(column: Column, low: int) -> bool:
    return column.has_missing_level and low == column.n_levels - 1
