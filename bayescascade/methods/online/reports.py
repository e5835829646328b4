"""What a user sees of a gate."""

from typing import Any

import numpy as np

from bayescascade.methods.online.experts import Pool
from bayescascade.report.page import BLANK, Heading, Numbers, Page, Pieces, PrintedTable, count_of

_SHOWN = 8  # experts


def gate_page(gate: Any, pool: Pool, n_learned: int) -> Page:
    """Return how often a gate asked, what is proved of it, and the experts that weigh most."""
    names, weights, n = pool.names, gate.probabilities_, max(gate.n_rounds_, 1)
    heading = [f"online gate   {len(names):,} experts   asking costs {gate.cost:g}",
               f"{gate.n_rounds_:,} rounds", f"asked in {gate.n_asked_ / n:.1%}"]  # fmt: skip
    bound = gate.regret_bound(n)
    proved = "no bound on the regret is proved"
    if bound is not None:
        proved = f"expected regret at most {bound / n:.3f} a round"
    learned = [f"models learned from {n_learned:,} labels"] if n_learned else []
    order, losses = np.argsort(-weights, kind="stable")[:_SHOWN], gate.estimated_losses_ / n
    columns = [
        Numbers("weight", [f"{weights[i]:.3f}" for i in order]),
        Numbers("loss a round", [f"{losses[i]:.3f}" for i in order]),
    ]
    table = PrintedTable([names[i] for i in order], columns, header="expert")
    page: Page = (Heading(heading), Pieces([f"rates {gate.rates}", proved, *learned]), BLANK, table)
    if n_more := len(weights) - len(order):
        page += (Pieces([f"and {count_of(n_more, 'expert')} of smaller weight"]),)
    return (*page, BLANK, Pieces([pool.legend], "dim")) if pool.legend else page
