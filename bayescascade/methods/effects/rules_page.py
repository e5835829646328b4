"""The page of rules of effects: sentences, a list, associations, and effects with intervals."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bayescascade.report.numbers import count_texts, share_text
from bayescascade.report.page import BLANK, Numbers, Page, Pieces, PrintedTable, count_of

ANY = "any row"
"""The label of a list without rules."""
MOST_GAP = 3.0
"""The largest printed gap, nats: a list may be 20 times as probable. More says nothing."""


def rules_page(learned: Any) -> Page:
    """Return the rules of an `EffectRules`, with shares of h > 0 and effects, and associations."""
    n_parts = learned.rules_.n_rules + 1
    sides = ["h > 0" if mean > 0.0 else "h <= 0" for mean in learned.means_.tolist()]
    labels = [f"{label}: {side}" for label, side in zip(learned.rules_.labels, sides, strict=True)]
    rows = learned.rules_.counts.sum(axis=1)
    shares = (learned.rules_.counts[:, 1] / np.maximum(rows, 1.0)).tolist()
    columns = [
        Numbers("rows", count_texts(rows.tolist())),
        Numbers("h > 0", [share_text(share) for share in shares], bars=shares),
        *_treated_column(learned, n_parts),
        *_effect_columns(learned, slice(0, n_parts)),
    ]
    alike = [f"{sides[0]} in all groups"] if len(set(sides)) == 1 < n_parts else []
    agrees = f"agrees with h > 0 on {share_text(learned.fidelity_)}"
    blocks: list[Any] = [
        Pieces([_found_words(learned), *alike]),
        Pieces([f"{agrees} of {learned.n_held_out_:,} held-out rows"]),
        BLANK,
        PrintedTable(labels, columns, hanging=3, least_label=0, stacks=True),
    ]
    for side, words in ((True, "associated with h > 0"), (False, "associated with h <= 0")):
        places = [
            i
            for i, association in enumerate(learned.associations_)
            if association.is_positive == side
        ]
        if places:
            chosen = slice(n_parts + places[0], n_parts + places[-1] + 1)
            blocks += [BLANK, _association_table(learned, places, words, chosen)]
    return (*blocks, BLANK, Pieces(_key(learned), "dim"))


def _found_words(learned: Any) -> str:
    if learned.gap_ is None:
        return "tree of depth 2: no other explains more of h"
    rules = count_of(learned.rules_.n_rules, "rule")
    if learned.gap_ == 0.0:
        return f"list of {rules}: no list is more probable"
    if learned.gap_ > MOST_GAP:
        return f"list of {rules}: best found, not proved to be near the best"
    gap = f"{learned.gap_:.2f} nats"
    return f"list of {rules}: best found, no list is more probable by more than {gap}"


def _association_table(
    learned: Any, places: Sequence[int], words: str, chosen: slice
) -> PrintedTable:
    shown = [learned.associations_[place] for place in places]
    columns = [
        Numbers("support", [share_text(association.support) for association in shown]),
        Numbers("conf.", [share_text(association.confidence) for association in shown]),
        Numbers("lift", [f"{association.lift:.2f}" for association in shown]),
        *_effect_columns(learned, chosen),
    ]
    labels = [association.words for association in shown]
    return PrintedTable(labels, columns, words, hanging=3, least_label=0, stacks=True)


def group_names(learned: Any) -> list[str]:
    """Return the parts of the list, and then the associations, in words."""
    return [*learned.rules_.labels, *(association.words for association in learned.associations_)]


def rules_sentences(learned: Any) -> list[str]:
    """Return for whom the treatment works, as measured on held-out rows, for all reports."""
    measured, average = learned.effects_, learned.average_effect_
    if measured is None:
        return ["Effects were not measured: pass held-out rows with outcomes (held_out)."]
    rows, (reason,) = average.n_rows[0], average.reasons
    if reason:
        whole = f"has no interval: {reason}"
    else:
        whole = f"is {effect_words(average.effects[0], *average.intervals()[0])}"
    group_rows = f"{int(rows.sum()):,} held-out rows, {int(rows[1]):,} of them treated"
    return [f"The average effect in {group_rows}, {whole}.", *_clear_sentences(learned)]


def _clear_sentences(learned: Any) -> list[str]:
    """Return which groups have an effect, first of the rules; of associations if no rule has."""
    measured, names = learned.effects_, group_names(learned)
    if len(names) == 1:
        return []  # all rows, whose effect is the average
    n_lines = len(learned.rules_.labels) if learned.rules_.n_rules else 0
    clear = [k for k in np.flatnonzero(measured.is_clear).tolist() if names[k] != ANY]
    shown = [k for k in clear if k < n_lines] or clear
    ends = measured.intervals()
    found = [
        f"The treatment {'helps' if measured.effects[k] > 0.0 else 'harms'} "
        f"{_where(names[k], learned.rules_.labels)}: "
        f"{effect_words(measured.effects[k], *ends[k])}."
        for k in shown
    ]
    if not found and measured.is_measured.any():
        found = ["No group has an interval without 0 after correction for all of them."]
    n_few = int((~measured.is_measured[:n_lines]).sum())
    n_others = n_lines - n_few - sum(k < n_lines for k in clear)
    if n_others and clear:
        lines = count_of(n_others, "other line")
        found.append(f"In {lines} of the list, held-out rows do not show the sign of the effect.")
    if n_few:
        found.append(f"In {count_of(n_few, 'line')} of the list, an arm has too few held-out rows.")
    return found


def _where(name: str, labels: Sequence[str]) -> str:
    if name == "else" and len(labels) == 2:
        return f"unless {labels[0].removeprefix('if ')}"
    if name == "else":
        return "in rows to which no rule applies"
    if name.startswith("else if "):
        return f"in rows to which no earlier rule applies, if {name.removeprefix('else if ')}"
    return name if name.startswith("if ") else f"if {name}"


def effect_words(effect: float, low: float, high: float) -> str:
    """Return an effect, "+0.00" near 0, and its interval."""
    return f"{round(effect, 2) + 0.0:+.2f} (95 % interval {low:+.2f} to {high:+.2f})"


def _treated_column(learned: Any, n_parts: int) -> list[Numbers]:
    if learned.effects_ is None:
        return []
    rows = learned.effects_.n_rows[:n_parts]
    texts = [f"{treated:,} of {both:,}" for treated, both in zip(
        rows[:, 1].tolist(), rows.sum(axis=1).tolist(), strict=True
    )]  # fmt: skip
    return [Numbers("treated", texts)]


def _effect_columns(learned: Any, chosen: slice) -> list[Numbers]:
    if learned.effects_ is None:
        return []
    effects, ends = learned.effects_.effects[chosen], learned.effects_.intervals()[chosen]
    marks = np.where(learned.effects_.is_clear[chosen], "*", " ")
    reasons = learned.effects_.reasons[chosen]
    known = [not reason for reason in reasons]
    texts = [
        f"{effect:+.2f}" if is_known else ""
        for effect, is_known in zip(effects, known, strict=True)
    ]
    between = [
        f"{reason} " if reason else f"{low:+.2f} {high:+.2f}{mark}"
        for (low, high), mark, reason in zip(ends, marks, reasons, strict=True)
    ]
    return [Numbers("effect", texts), Numbers("95 % interval ", between)]


def _key(learned: Any) -> list[str]:
    sign = "h: estimated effect of the treatment"
    if learned.effects_ is None:
        return [sign, "no effects measured: pass held-out rows with outcomes (held_out)"]
    n_measured = int(learned.effects_.is_measured.sum())
    effect = "effect: mean outcome if treated minus if not, on held-out rows"
    key = [sign, effect, "treated: of the held-out rows"]
    if n_measured:
        key.append("intervals: 95 % for each alone, lower and upper end")
    if learned.effects_.is_clear.any():
        together = f" even after correction for all {n_measured} intervals"
        key.append(f"* excludes 0{together if n_measured > 1 else ''}")
    return key
