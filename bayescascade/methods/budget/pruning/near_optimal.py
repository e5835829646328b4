"""The features that nearly optimal prunings need.

The best pruning pays for some features, but another one may pay for other features and be
practically as good. Chains start at the best pruning and move among the prunings with an objective
within a tolerance of the best. All of these are sampled, better ones more often: if all had the
same probability, nearly all draws would be as bad as allowed.
"""

from dataclasses import dataclass, fields

import numpy as np

from bayescascade.base.arrays import Flags, Floats
from bayescascade.base.errors import ParameterError
from bayescascade.base.validation import check_real
from bayescascade.costs.items import CostItems
from bayescascade.methods.budget.pruning.posterior import KeptSplits, PruningPosterior
from bayescascade.methods.budget.pruning.program import PruningProgram
from bayescascade.model.diagnostics import ESS_FLOOR, RHAT_CEILING
from bayescascade.model.explore import SearchResult, explore_by
from bayescascade.model.search import Search
from bayescascade.report.numbers import diagnostic_text, probability_text, share_text
from bayescascade.report.page import (
    BLANK,
    Heading,
    Numbers,
    Page,
    Pieces,
    PrintedTable,
    count_of,
    warning,
)

_STEPS, _STEPS_PER_SPLIT, _MOST_STEPS = 300_000, 200, 2_000_000
_LEAST_STEPS = 20_000
_HEATING_STEPS_PER_SPLIT, _HEATING_BLOCKS = 4, 10  # at each tried temperature
_N_BISECTIONS = 3
_HOTTEST = 1000.0  # times the tolerance: hot enough for all prunings

_APART = 1.1  # R-hat of chains that were hardly ever in the same region
_GROUPS = (
    "chains do not agree: there may be groups of prunings, such as cheap and expensive ones, and "
    "chains rarely move between groups; every draw is near-optimal, but the probability of each "
    "group is not known"
)


@dataclass(frozen=True, kw_only=True, eq=False)
class NearOptimalPrunings(SearchResult[KeptSplits]):
    """Draws of prunings with an objective of at most ``(1 + tolerance) * optimum``.

    It is also a `SearchResult`. `run_` has the draws, and traces of objective, error, cost, number
    of splits, and number of trees with a split. `posterior` is the Gibbs posterior that was
    sampled.

    Parameters
    ----------
    items : CostItems
        The items that have a cost: features and groups.
    needed : (n_items,) float64
        Probability that at least one row pays for the item in a near-optimal pruning.
    shares : (n_items,) float64
        Mean share of the rows that pay for the item.
    best_shares : (n_items,) float64
        Share of the rows that pay for the item in the best pruning.
    optimum : float
        Objective of the best pruning.
    tolerance : float > 0
        Relative to `optimum`.
    """

    items: CostItems
    needed: Floats
    shares: Floats
    best_shares: Floats
    optimum: float
    tolerance: float

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each item."""
        return self.items.names

    @property
    def temperature(self) -> float:
        """Temperature of the Gibbs posterior that was sampled; see `PruningPosterior`."""
        return float(self.posterior.temperature)

    def page(self) -> Page:
        """Return a table of the items for which near-optimal prunings pay, with diagnostics.

        R-hat is the largest, and ESS the smallest, among objective, cost and number of splits.
        ``needed`` is the probability that at least one row pays for the item, ``rows`` the mean
        share of the rows that pay, and ``rows at best`` this share in the best pruning.
        """
        diagnostics = self.summary_.diagnostics.values()
        r_hat = max(each.r_hat for each in diagnostics)
        text = f"near-optimal prunings: at most {100 * self.tolerance:g} % above the best objective"
        n_draws, n_chains = sum(map(len, self.run_.draws)), len(self.run_.draws)
        pieces = [
            f"best objective {self.optimum:.4g}",
            f"temperature {self.temperature:.2g}",
            f"{n_draws:,} draws of {count_of(n_chains, 'chain')}{self.summary_.of_rounds}",
            f"R-hat {diagnostic_text(r_hat, 3)}",
            f"ESS {diagnostic_text(min(each.ess for each in diagnostics), 0)}",
        ]
        page: Page = (Heading([text]), Pieces(pieces))
        if not all(each.is_fine for each in diagnostics):
            advice = (
                f"R-hat should be at most {RHAT_CEILING}, ESS at least {ESS_FLOOR:.0f}: "
                "run longer chains (n_steps), keep more draws (n_draws)"
            )
            page += (warning(advice), *((warning(_GROUPS),) if r_hat > _APART else ()))
        page += (BLANK,)
        order = np.lexsort([-self.shares, -self.needed])
        listed = order[self.needed[order] > 0]
        if listed.size:
            columns = [
                Numbers("needed", list(map(probability_text, self.needed[listed].tolist()))),
                Numbers("rows", list(map(share_text, self.shares[listed].tolist()))),
                Numbers("rows\nat best", list(map(share_text, self.best_shares[listed].tolist()))),
            ]
            page += (
                PrintedTable([self.items.texts[item] for item in listed], columns, "paid for"),
            )
        never = [self.items.texts[item] for item in np.flatnonzero(self.needed == 0)]
        return (*page, Pieces([f"never paid for: {', '.join(never)}"], "dim")) if never else page


def near_optimal(
    program: PruningProgram,
    items: CostItems,
    best: Flags,
    tradeoff: float,
    search: Search,
    *,
    tolerance: float,
    n_draws: int,
    temperature: float | None = None,
) -> NearOptimalPrunings:
    """Sample prunings nearly as good as the best; see `BudgetPruneClassifier.near_optimal`.

    best (n_splits,) bool is the best pruning at tradeoff >= 0; each chain starts there, is heated,
    cooled, and then sampled. temperature > 0 is by default that of `_temperature`.
    """
    check_real("tolerance", tolerance, above=0.0)
    optimum = program.objective(best, tradeoff)
    if optimum <= 0.0:
        raise ParameterError(f"the best objective must be > 0 for a tolerance, got {optimum:g}")
    worst = (1.0 + tolerance) * optimum
    if temperature is None:
        temperature = _temperature(program, best, tradeoff, worst)
    found: SearchResult[KeptSplits] = explore_by(
        search,
        PruningPosterior(program, tradeoff, temperature, worst, best, items),
        default_steps=min(_STEPS + _STEPS_PER_SPLIT * program.n_splits, _MOST_STEPS),
        n_blocks=n_draws,
        title="near-optimal prunings",
        settings={"model": "near-optimal prunings", "tolerance": tolerance},
    )
    draws = [state.kept for chain in found.run_.draws for state in chain]
    if not draws:
        raise KeyboardInterrupt
    shares = np.array([_shares(program, items, kept) for kept in draws])
    return NearOptimalPrunings(
        **{part.name: getattr(found, part.name) for part in fields(found)},
        items=items,
        needed=(shares > 0).mean(axis=0),
        shares=shares.mean(axis=0),
        best_shares=_shares(program, items, best),
        optimum=optimum,
        tolerance=tolerance,
    )


def _temperature(program: PruningProgram, best: Flags, tradeoff: float, worst: float) -> float:
    """Return the highest temperature with a median excess of at most half the tolerance.

    It is doubled, starting from the best pruning, then bisected, always with the same generator, so
    that a forest always has the same temperature.
    """
    rng = np.random.default_rng(0)
    tolerance = worst - program.objective(best, tradeoff)
    posterior = PruningPosterior(program, tradeoff, tolerance, worst)
    n_steps = max(_LEAST_STEPS, _HEATING_STEPS_PER_SPLIT * program.n_splits) // _HEATING_BLOCKS

    def heated(state: KeptSplits, temperature: float) -> tuple[KeptSplits, bool]:
        left = []
        for _ in range(_HEATING_BLOCKS):
            state, counts = posterior.advance(rng, state, n_steps, tolerance / temperature)
            left.append(worst + counts.log_density * tolerance)
        return state, float(np.median(left[_HEATING_BLOCKS // 2 :])) >= tolerance / 2

    state = KeptSplits(best)
    temperature = tolerance / max(1, program.n_splits)
    while temperature < _HOTTEST * tolerance:
        hotter, is_near = heated(state, 2.0 * temperature)
        if not is_near:
            break
        state, temperature = hotter, 2.0 * temperature
    for halving in range(1, _N_BISECTIONS + 1):
        factor = 2.0**0.5**halving
        hotter, is_near = heated(state, factor * temperature)
        if is_near:
            state, temperature = hotter, factor * temperature
    return temperature


def _shares(program: PruningProgram, items: CostItems, kept: Flags) -> Floats:
    """Return the share of the rows that pay for each item, (n_items,) float64."""
    used = program.used(kept)
    paid = np.bincount(program.use_item[used], program.use_cost[used], items.n_items)
    return paid / items.costs
