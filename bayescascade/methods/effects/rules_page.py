"""The page of rules of effects: a list, associations, and effects with their intervals."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bayescascade.report.numbers import count_texts, share_text
from bayescascade.report.page import BLANK, Numbers, Page, Pieces, PrintedTable, count_of


def rules_page(told: Any) -> Page:
    """Return the rules of an `EffectRules`, with shares of h > 0 and effects, and associations."""
    n_parts = told.rules_.n_rules + 1
    sides = ["h > 0" if mean > 0.0 else "h <= 0" for mean in told.means_.tolist()]
    labels = [f"{one}: {side}" for one, side in zip(told.rules_.labels, sides, strict=True)]
    rows = told.rules_.counts.sum(axis=1)
    shares = (told.rules_.counts[:, 1] / np.maximum(rows, 1.0)).tolist()
    columns = [
        Numbers("rows", count_texts(rows.tolist())),
        Numbers("h > 0", [share_text(share) for share in shares], bars=shares),
        *_effect_columns(told, slice(0, n_parts)),
    ]
    alike = [f"{sides[0]} in all groups"] if len(set(sides)) == 1 < n_parts else []
    agrees = f"agrees with h > 0 on {share_text(told.fidelity_)}"
    blocks: list[Any] = [
        Pieces([_found_words(told), *alike]),
        Pieces([f"{agrees} of {told.n_held_out_:,} held-out rows"]),
        BLANK,
        PrintedTable(labels, columns, hanging=3, least_label=0, stacks=True),
    ]
    for side, words in ((True, "associated with h > 0"), (False, "associated with h <= 0")):
        places = [i for i, one in enumerate(told.associations_) if one.is_positive == side]
        if places:
            chosen = slice(n_parts + places[0], n_parts + places[-1] + 1)
            blocks += [BLANK, _association_table(told, places, words, chosen)]
    return (*blocks, BLANK, Pieces(_key(told), "dim"))


def _found_words(told: Any) -> str:
    if told.gap_ is None:
        return "tree of depth 2: no other explains more of h"
    rules = count_of(told.rules_.n_rules, "rule")
    if told.gap_ == 0.0:
        return f"list of {rules}: no list is more probable"
    gap = f"{told.gap_:.2f} nats"
    return f"list of {rules}: best found, no list is more probable by more than {gap}"


def _association_table(told: Any, places: Sequence[int], words: str, chosen: slice) -> PrintedTable:
    shown = [told.associations_[place] for place in places]
    columns = [
        Numbers("support", [share_text(one.support) for one in shown]),
        Numbers("conf.", [share_text(one.confidence) for one in shown]),
        Numbers("lift", [f"{one.lift:.2f}" for one in shown]),
        *_effect_columns(told, chosen),
    ]
    labels = [one.words for one in shown]
    return PrintedTable(labels, columns, words, hanging=3, least_label=0, stacks=True)


def _effect_columns(told: Any, chosen: slice) -> list[Numbers]:
    if told.effects_ is None:
        return []
    effects, ends = told.effects_.effects[chosen], told.effects_.intervals()[chosen]
    marks = np.where(told.effects_.is_clear[chosen], "*", " ")
    known = np.isfinite(effects).tolist()
    texts = [
        f"{one:+.2f}" if is_known else "" for one, is_known in zip(effects, known, strict=True)
    ]
    between = [
        f"{low:+.2f} {high:+.2f}{mark}" if is_known else "few rows "
        for (low, high), mark, is_known in zip(ends, marks, known, strict=True)
    ]
    return [Numbers("effect", texts), Numbers("95 % interval ", between)]


def _key(told: Any) -> list[str]:
    sign = "h: estimated effect of the treatment"
    if told.effects_ is None:
        return [sign, "no effects measured: pass held-out rows with outcomes (held_out)"]
    return [
        sign,
        "effect: measured on held-out rows",
        "intervals: 95 % for each alone, lower and upper end",
        f"* excludes 0 even after correction for all {len(told.effects_.effects)} intervals",
    ]
