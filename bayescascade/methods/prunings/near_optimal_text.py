"""Near-optimal prunings as text: what they pay for, and how sure that is."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from bayescascade.model.draws import ESS_FLOOR, RHAT_CEILING
from bayescascade.report.layout import Ink, flow
from bayescascade.report.number_columns import NumberColumns
from bayescascade.report.number_table import number_table
from bayescascade.report.numbers import diagnostic_text, probability_text, share_text

if TYPE_CHECKING:
    from bayescascade.methods.prunings.near_optimal import NearOptimalPrunings

__all__ = ["near_optimal_text"]

_APART = 1.1  # R-hat of chains that were hardly ever in the same place
_GROUPS = (
    "chains are far apart: there may be groups of prunings, say cheap and dear ones, between which "
    "they hardly pass; every draw is near-optimal, but how probable each group is stays unknown"
)


def near_optimal_text(
    prunings: "NearOptimalPrunings", *, width: int = 80, color: bool = False
) -> str:
    """Return a table of what near-optimal prunings pay for.

    Parameters
    ----------
    prunings : NearOptimalPrunings
    width : int >= 60
        Most columns of a line.
    color : bool
        Whether to write ANSI codes.

    Returns
    -------
    str
        Without a line break at the end. R-hat is the largest, and ESS the smallest, of objective,
        cost and number of splits. ``needed`` is the probability that a near-optimal pruning
        makes any row pay, ``rows`` the mean share of the rows that do, ``rows at best`` their share
        in the best pruning.
    """
    return "\n".join(_lines(prunings, width, Ink(color)))


def _lines(prunings: "NearOptimalPrunings", width: int, ink: Ink) -> Iterator[str]:
    told = f"near-optimal prunings: at most {100 * prunings.tolerance:g} % above the best objective"
    yield ink("bold", told)
    diagnostics = prunings.summary_.diagnostics.values()
    r_hat = max(each.r_hat for each in diagnostics)
    n_draws, n_chains = sum(map(len, prunings.run_.draws)), len(prunings.run_.draws)
    pieces = [
        f"best objective {prunings.optimum:.4g}",
        f"temperature {prunings.temperature:.2g}",
        f"{n_draws:,} draws of {n_chains} {'chain' if n_chains == 1 else 'chains'}",
        f"R-hat {diagnostic_text(r_hat, 3)}",
        f"ESS {diagnostic_text(min(each.ess for each in diagnostics), 0)}",
    ]
    yield from flow(pieces, width, 2)
    if not all(each.is_fine for each in diagnostics):
        advice = [
            f"R-hat should be at most {RHAT_CEILING}, ESS at least {ESS_FLOOR:.0f}: "
            "run longer chains (n_steps), keep more draws (n_draws)"
        ]
        if r_hat > _APART:
            advice.append(_GROUPS)
        for text in advice:
            yield from (ink("warning", line) for line in flow([text], width, 2))
    yield ""
    order = np.lexsort([-prunings.shares, -prunings.needed])
    listed = [place for place in order.tolist() if prunings.needed[place] > 0]
    numbers = NumberColumns(
        ("needed", "rows", "rows\nat best"),
        (
            [probability_text(prunings.needed[place]) for place in listed],
            [share_text(prunings.shares[place]) for place in listed],
            [share_text(prunings.best_shares[place]) for place in listed],
        ),
    )
    if listed:
        names = [prunings.items.texts[place] for place in listed]
        yield from number_table(names, numbers, width, ink, "paid for")
    never = [prunings.items.texts[place] for place in np.flatnonzero(prunings.needed == 0)]
    if never:
        text = f"never paid for: {', '.join(never)}"
        yield from (ink("dim", line) for line in flow([text], width, 2))
