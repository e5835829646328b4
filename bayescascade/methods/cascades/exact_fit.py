"""Fitting a cascade exactly: when that is cheap enough, and what is told of it.

`exact` has the recursion over all trees. Here its answer becomes a `Solution`: the most probable
tree, independent draws, and shares that are exact where they cost little.
"""

from collections.abc import Callable
from time import perf_counter

import samplers
from bayescascade.methods.cascades.exact import ExactPosterior, solve
from bayescascade.methods.cascades.models import LeafModel
from bayescascade.methods.cascades.posterior import CascadePosterior
from bayescascade.methods.cascades.tree import Tree
from bayescascade.model.search import Search, most_blocks
from bayescascade.model.solution import Certificate, Solution
from bayescascade.model.trace import COLUMNS_USED

__all__ = ["solve_cascade"]

AUTO_TERMS = 2e8
"""Terms of the recursion up to which search "auto" is exact: some ten seconds on one core."""

_MOST_TERMS = 1e12  # hours
_CHEAP_TERMS = 2e8  # up to which the shares of columns are exact, too


def solve_cascade(
    posterior: CascadePosterior, search: Search, memory_limit: float
) -> Solution[Tree]:
    """Return the most probable of all trees, and what the posterior over all of them says.

    Parameters
    ----------
    posterior : CascadePosterior
    search : Search
        "exact", or "auto" to refuse what takes long, too.
    memory_limit : float > 0
        Gigabytes.

    Raises
    ------
    TooLargeError
        If it would take more memory or work than allowed.
    """
    is_auto = search.search == "auto"
    started = perf_counter()
    exact = solve(
        posterior,
        memory_limit=memory_limit * 1e9,
        work_limit=AUTO_TERMS if is_auto else _MOST_TERMS,
        progress=_reporter(search.progress),
    )
    n_chains = int(search.n_chains)
    n_draws = max(1, most_blocks(posterior.table.n_distinct) // n_chains)
    drawn = exact.sample(n_chains * n_draws, search.rng())
    return Solution(
        result=exact,
        state=exact.tree,
        log_density=exact.log_density,
        certificate=Certificate(
            gap=0.0,
            extent=f"{exact.cost.n_boxes:,} boxes",
            log_evidence=exact.log_evidence,
        ),
        seconds=perf_counter() - started,
        draws=[drawn[i : i + n_draws] for i in range(0, len(drawn), n_draws)],
        shares=_shares(exact),
    )


def _shares(exact: ExactPosterior) -> dict[str, dict[str, float]]:
    """Return exact posterior shares, largest first, as far as they cost little."""
    shares: dict[str, dict[str, float]] = {}
    model = exact.posterior.model
    if isinstance(model, LeafModel):
        counts = enumerate(exact.leaf_count_probabilities.tolist(), start=1)
        shares["leaves"] = _sorted({str(k): p for k, p in counts})
    if exact.cost.n_terms * exact.posterior.schema.n_columns <= _CHEAP_TERMS:
        split = exact.split_probabilities
        shares["first split"] = _sorted({**split.first, "none": split.none})
        shares[COLUMNS_USED] = dict(sorted(split.used.items(), key=lambda item: -item[1]))
    return shares


def _sorted(shares: dict[str, float]) -> dict[str, float]:
    return dict(sorted(((k, p) for k, p in shares.items() if p > 0), key=lambda item: -item[1]))


def _reporter(
    progress: Callable[[samplers.Progress], object] | None,
) -> Callable[[float], None] | None:
    """Return what tells `progress`, which hears of samplers, which share is done."""
    if progress is None:
        return None
    nan = float("nan")

    def report(share: float) -> None:
        progress(samplers.Progress("all trees", round(1000 * share), 1000, nan, nan, nan, {}))

    return report
