"""What a user sees of a gate."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bayescascade.report.page import (
    BLANK,
    Heading,
    Numbers,
    Page,
    Pieces,
    PrintedTable,
    count_of,
)

_SHOWN = 8  # experts


def heading_of(n_experts: int, cost: float, n_rounds: int, n_asked: int) -> Heading:
    """Return how many experts there are, and how often the gate asked."""
    return Heading(
        [f"online gate   {n_experts:,} experts   asking costs {cost:g}",
         f"{n_rounds:,} rounds", f"asked in {n_asked / max(n_rounds, 1):.1%}"]
    )  # fmt: skip


def notes_of(rates: str, n_rounds: int, bound: float | None, n_learned: int) -> Pieces:
    """Return what is proved of the gate, and what its models learned from."""
    proved = "no bound on the regret is proved"
    if bound is not None:
        proved = f"expected regret at most {bound / max(n_rounds, 1):.3f} a round"
    learned = [f"models learned from {n_learned:,} labels"] if n_learned else []
    return Pieces([f"rates {rates}", proved, *learned])


def expert_table(
    names: Sequence[str], weights: NDArray[np.float64], losses: NDArray[np.float64]
) -> Page:
    """Return the experts that weigh most, with their estimated losses a round."""
    order = np.argsort(-weights, kind="stable")[:_SHOWN]
    table = PrintedTable(
        [names[i] for i in order],
        [
            Numbers("weight", [f"{weights[i]:.3f}" for i in order]),
            Numbers("loss a round", [f"{losses[i]:.3f}" for i in order]),
        ],
        header="expert",
    )
    n_more = len(weights) - len(order)
    more = (Pieces([f"and {count_of(n_more, 'expert')} of smaller weight"]),) if n_more else ()
    return (BLANK, table, *more)


def legend_of(text: str) -> Page:
    """Return how names of experts are read, or nothing."""
    return (BLANK, Pieces([text], "dim")) if text else ()
