"""The best possible gate between two models, which knows which of them errs (Nan, 5.2).

A row goes to the full model where its excess loss per cost saved, ``(l_1 - l_0) / (c_0 - c_1)``, is
above a price. For each price, this gate has exactly the least loss at its mean cost, because ``loss
+ price cost`` is minimized row by row. Between two such costs, the line through their losses is a
lower bound.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.arrays import Flags, Floats
from bayescascade.costs.items import CostItems
from bayescascade.data.cell_policy import Matrix
from bayescascade.methods.budget.gated.gated import Gated
from bayescascade.report.numbers import cost_texts
from bayescascade.report.page import BLANK, Heading, Numbers, Page, Pieces, PrintedTable
from bayescascade.report.printed import Printed

_MOST_LINES = 12


@dataclass(frozen=True, slots=True, eq=False)
class GateOracle(Printed):
    """The least error rate of any gate between two models, at each mean cost.

    Attributes
    ----------
    costs : (m,) float64
        Mean costs of a row, ascending.
    errors : (m,) float64
        The least error rate at each cost, descending.
    sent_shares : (m,) float64
        Shares of the rows that go to the full model.
    gate_cost, gate_error : float
        Mean cost and error rate of the learned gate.
    local_error, full_error : float
        Error rates if no row, or each row, goes to the full model.
    """

    costs: Floats
    errors: Floats
    sent_shares: Floats
    gate_cost: float
    gate_error: float
    local_error: float
    full_error: float

    def error_at(self, cost: float) -> float:
        """Return the smallest error rate of any gate at a mean cost; infinite below all costs.

        Between costs that can be reached, it is interpolated linearly.
        """
        if cost < self.costs[0]:
            return np.inf
        return float(np.interp(cost, self.costs, self.errors))

    @property
    def lost_to_gate(self) -> float:
        """Error rate of the learned gate, minus that of the best gate at the same cost."""
        return self.gate_error - self.error_at(self.gate_cost)

    def page(self) -> Page:
        """Return a table of at most a dozen costs with their errors."""
        shown = np.unique(np.linspace(0, len(self.costs) - 1, _MOST_LINES).round().astype(int))
        cost, *_ = cost_texts([self.gate_cost])
        columns = [
            Numbers("error", [f"{100 * error:.1f} %" for error in self.errors[shown]]),
            Numbers(
                "sent", [f"{100 * sent_share:.1f} %" for sent_share in self.sent_shares[shown]]
            ),
        ]
        text = f"error of the gate {100 * self.gate_error:.1f} % at cost {cost}"
        best = self.error_at(self.gate_cost)
        return (
            Heading(["best gate between both models", "it knows which model is wrong"]),
            Pieces([text, f"of the best gate {100 * best:.1f} %"]),
            BLANK,
            PrintedTable(cost_texts(self.costs[shown].tolist()), columns, "cost"),
        )


def oracle_between(
    model: Gated, rows: Matrix, labels: NDArray[Any], classes: NDArray[Any], items: CostItems
) -> GateOracle:
    """Return the oracle of labeled rows for a gate, its local model and its full model."""
    kept, sent = model.kept_used(rows), model.full.used(rows) | model.gate_used(rows)
    local_says, full_says = (
        classes[chances.argmax(axis=1)]
        for chances in (model.local_chances(rows), model.full.probabilities(rows))
    )
    return oracle_of(
        local_says != labels, full_says != labels, items.total(items.paid(kept)),
        items.total(items.paid(sent)), model.sent(rows),
    )  # fmt: skip


def oracle_of(
    local_wrong: Flags, full_wrong: Flags, local_costs: Floats, full_costs: Floats, sent: Flags
) -> GateOracle:
    """Return the oracle from errors and costs of both models and the rows sent, (n,) each."""
    gains = local_wrong.astype(np.float64) - full_wrong
    dearer = full_costs - local_costs
    is_free = (dearer <= 0) & ((gains > 0) | ((gains == 0) & (dearer < 0)))  # sent at any price
    may = (dearer > 0) & (gains > 0)
    saves = (dearer < 0) & (gains < 0)  # sent at high prices, because the full model is cheaper
    base = is_free | saves
    changes = np.flatnonzero(may | saves)
    prices = gains[changes] / dearer[changes]
    order = changes[np.argsort(-prices, kind="stable")]
    signs = np.where(saves[order], -1.0, 1.0)  # rows newly sent, or no longer sent
    n = len(gains)
    start_cost = np.where(base, full_costs, local_costs).sum()
    start_error = np.where(base, full_wrong, local_wrong).sum()
    costs = (start_cost + np.cumsum([0.0, *(signs * dearer[order])])) / n
    errors = (start_error - np.cumsum([0.0, *(signs * gains[order])])) / n
    shares = (base.sum() + np.cumsum([0.0, *signs])) / n
    gate_cost = float(np.where(sent, full_costs, local_costs).mean())
    gate_error = float(np.where(sent, full_wrong, local_wrong).mean())
    return GateOracle(
        costs, errors, shares, gate_cost, gate_error, float(local_wrong.mean()),
        float(full_wrong.mean()),
    )  # fmt: skip
