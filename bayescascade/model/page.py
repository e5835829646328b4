"""Shared parts of pages: the data, its columns, and the posterior's shares."""

from collections.abc import Mapping
from typing import Any

from bayescascade.data.column import Column
from bayescascade.data.levels import are_numbers, level_text, quoted, shortened
from bayescascade.data.schema import Schema
from bayescascade.report.numbers import cells_text, count_texts, significant_text
from bayescascade.report.page import Page, Pieces, count_of

_MOST_ORDERED = 12  # an ordinal column with at most this number of levels lists them all
_LETTERS = 36  # characters of listed levels of a nominal column, if there are more
_LEAST_SHARE = 0.005  # shares printed as 0.00 are left out
_MOST_SHARES = 10
_SAME = {"every part": "the same groups", "every word": "the same list"}
_MUCH_LARGER = 1.5  # ratio of sizes of draws and shown state from which a note explains it


def data_pieces(data: Any, schema: Schema) -> list[str]:  # Any: a Table or a FitSummary
    """Return the file and its numbers of rows, distinct rows, columns and cells, in words."""
    is_weighted = data.total_weight != data.n_rows
    return [
        *([data.source] if data.source else []),
        count_of(data.n_rows, "row"),
        *([f"weight {count_texts([data.total_weight])[0]}"] if is_weighted else []),
        f"{data.n_distinct:,} distinct",
        count_of(schema.n_columns, "column"),
        f"volume {significant_text(schema.log_cells)}"
        if schema.n_cells is None
        else f"{cells_text(schema.log_cells)} cells",
    ]


def column_words(column: Column, *, is_open: bool = False) -> str:
    """Return a column's name and domain, such as "sex: female, male" or "age: child < adult".

    The outer bins of a column that `is_open` have no ends.
    """
    texts = [quoted(level_text(level)) for level in column.levels]
    if column.kind == "continuous":
        n_bins = len(column.edges) - 1
        low, high = column.edges[0], column.edges[-1]
        ends = column.bin_words(0, n_bins - 1) if column.is_whole else f"[{low:g}, {high:g}]"
        domain = f"{count_of(n_bins, 'bin')} {'from' if column.is_whole else 'in'} {ends}"
        if is_open and column.is_whole and n_bins > 1:
            begin = [column.whole_ends(i, i)[0] for i in range(1, n_bins)]
            domain = f"{n_bins:,} bins: below {begin[0]}, from {', from '.join(map(str, begin))}"
        elif is_open and n_bins > 1:
            domain = f"{n_bins:,} bins cut at {', '.join(column.edge_texts()[1:-1])}"
    elif column.kind == "ordinal" and len(texts) > _MOST_ORDERED:
        domain = f"{texts[0]} < {texts[1]} < ... < {texts[-1]} ({len(texts):,} levels)"
    elif column.kind == "ordinal":
        domain = " < ".join(texts)
    elif len(texts) > _MOST_ORDERED:
        end = f"{texts[-1]} " * are_numbers(column.levels)
        domain = ", ".join(shortened(texts, f"{end}({len(texts):,} levels)", _LETTERS))
    else:
        domain = ", ".join(texts)
    if column.has_missing_level:
        domain = f"{domain} or missing" if domain else "missing"
        if column.missing_codes:
            domain += f" ({', '.join(map(level_text, column.missing_codes))})"
    return f"{column.name}: {domain}" + (" (constant)" if column.n_levels == 1 else "")


def shares_page(
    shares: Mapping[str, Mapping[str, float]],
    as_best: Mapping[str, float] | None = None,
    word: str = "posterior",
) -> Page:
    """Return the draws' shares of sizes, first splits or rules, and columns; nothing without draws.

    `as_best` are shares of draws that agree with the shown state, in part or completely; `word`
    names the distribution of the draws.
    """
    record = {title: _share_pieces(each) for title, each in shares.items()}
    if as_best:
        record["draws with"] = [
            f"{_SAME.get(name, name)} ({_least_text(share)})" for name, share in as_best.items()
        ]
    record = {title: pieces for title, pieces in record.items() if pieces}
    starts = [
        ("" if place else word).ljust(12) + title.ljust(14) for place, title in enumerate(record)
    ]
    return tuple(
        Pieces(pieces, indent=len(start), first=start, gap="  ")
        for start, pieces in zip(starts, record.values(), strict=True)
    )


def larger_draws(sizes: Mapping[str, float], learned: str, plural: str, own: int) -> Page:
    """Return why draws are larger than the shown state, such as a "tree" of `own` "leaves"."""
    total = sum(sizes.values()) or 1.0
    mean = sum(int(size) * share for size, share in sizes.items()) / total
    if mean <= _MUCH_LARGER * max(own, 1):
        return ()
    text = f"drawn {learned}s have {mean:.3g} {plural} on average"
    return (Pieces([f"{text}; {plural} beyond those shown differ between draws"], "dim"),)


def _share_pieces(shares: Mapping[str, float]) -> list[str]:
    """Return shares as "6 (0.71)", largest first, without negligible ones."""
    kept = [f"{name} ({share:.2f})" for name, share in shares.items() if share >= _LEAST_SHARE]
    left_out = len(kept) - _MOST_SHARES
    return [*kept[:_MOST_SHARES], *([f"and {left_out} more"] if left_out > 0 else [])]


def _least_text(share: float) -> str:
    return "under 0.01" if 0 < share < _LEAST_SHARE else f"{share:.2f}"
