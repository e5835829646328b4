"""Searches for broken promises of privacy: ``python -m tests.fuzz.privacy --minutes 5 --seed 0``.

Neighbors that differ in one row must be alike in all that is not paid for; no statistic may move
farther than its proved sensitivity; budgets must hold by every route; laws must be as promised.
"""

from tests.fuzz.budgets import ledger_routes, model_routes
from tests.fuzz.private_directions import direction_release
from tests.fuzz.private_rados import feature_release, merged_promises, row_release
from tests.fuzz.release_distributions import released_laws
from tests.fuzz.running import Check, main
from tests.fuzz.sensitivities import changes_by_test_row, grids, rado_laws, stability_distances

CHECKS: dict[str, Check] = {
    "a feature of a row": feature_release,
    "a row of sums": row_release,
    "a row of a direction": direction_release,
    "scores by a test row": changes_by_test_row,
    "distances to instability": stability_distances,
    "grids of mechanisms": grids,
    "laws of coordinates": rado_laws,
    "laws of releases": released_laws,
    "ledgers": ledger_routes,
    "budgets of models": model_routes,
    "merged sums": merged_promises,
}

if __name__ == "__main__":
    main(CHECKS, "Search for broken promises of privacy.")
