"""What a mixture was chosen from by rows held out: as it is printed, and as a file holds it."""

import math
from collections.abc import Mapping
from math import nan
from typing import Any

from bayescascade.base.validation import check_choice, check_integer, check_real
from bayescascade.methods.cascade_mixtures.one_cascade import ONE
from bayescascade.methods.mixtures.choosing import Candidate
from bayescascade.methods.mixtures.em import KINDS, Settings
from bayescascade.report.page import BLANK, Numbers, Page, Pieces, Table

_MOST_SHOWN = 6  # candidates
_FAIR = "classes are chosen by these rows: chosen by other folds, they are behind the cascade"


def page_of(candidates: list[Candidate]) -> Page:
    """Return the best of what was weighed, or nothing if nothing was to be chosen."""
    if math.isnan(candidates[0].held_out):
        return ()
    rows = candidates[:_MOST_SHOWN]
    told = f"chosen from {len(candidates):,} candidates by rows held out; the best:"
    columns = [
        Numbers("classes", [str(one.settings.n_components) for one in rows]),
        Numbers(
            "smoothing",
            ["" if one.settings.kind == ONE else f"{one.settings.smoothing:g}" for one in rows],
        ),
        Numbers("held out", [f"{one.held_out:,.4f}" for one in rows]),
    ]
    table = Table([one.settings.kind for one in rows], columns)
    is_behind = candidates[0].held_out < max(one.held_out for one in rows)
    fair = (Pieces([_FAIR]),) if is_behind else ()
    return (BLANK, Pieces([told]), table, *fair)


def records_of(candidates: list[Candidate]) -> list[dict[str, Any]]:
    """Return what a file holds."""
    return [
        {k: known(v) for k, v in {**one.settings._asdict(), "held_out": one.held_out}.items()}
        for one in candidates
    ]


def candidate_of(record: Mapping[str, Any]) -> Candidate:
    """Return what `records_of` wrote of one."""
    held_out, smoothing = record["held_out"], record["smoothing"]
    kind = check_choice("kind", record["kind"], (*KINDS, ONE))
    settings = Settings(
        kind,
        nan if kind == ONE else check_real("smoothing", smoothing, above=0.0),
        check_integer("n_components", record["n_components"], minimum=1),
    )
    return Candidate(settings, nan if held_out is None else check_real("held_out", held_out))


def known(value: object) -> object:
    """Return a value for plain data, None if it is not known."""
    return None if value != value else value
