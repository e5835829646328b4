"""What the rules of neighbors that validation rows choose cost and err on test rows."""

import numpy as np

from bayescascade.methods.budget.neighbors.nearest_fitting import ValidationRoutes, best_within
from bayescascade.methods.budget.neighbors.rule import NEVER
from tests.benchmarks.budget_validation import Judged, commonest_label


def rules_within(model, rows, budgets, **asked):
    """Return what is best within each budget by validation rows, of rules that are as asked.

    Test rows are led to their ends once for each neighborhood and tradeoff that is chosen.
    """
    found, nothing = model._trial.found, commonest_label(rows)
    cells = model._matrix(rows.test.features)
    labels = np.searchsorted(model.classes_, rows.test.labels.to_numpy())
    known = {}
    rules = [
        one
        for one in found.tried
        if all(getattr(one.rule, name) == value for name, value in asked.items())
    ]
    judged = []
    for budget in budgets:
        chosen = best_within(rules, budget)
        if chosen is None or chosen.error >= nothing.validation_error:
            judged.append(nothing)
            continue
        key = chosen.ways.rule
        if key not in known:
            routes = found.around[key.margins].routes(cells, key, NEVER)
            known[key] = ValidationRoutes.of(key, routes, labels)
        costs, wrong = known[key].at_ends(chosen.rule)
        means = float(costs.mean()), float(wrong.mean())
        judged.append(Judged(chosen.cost, chosen.error, *means))
    return judged
