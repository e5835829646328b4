"""Sums over all trees of a posterior, as the search of a cascade makes and keeps them."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bayescascade.base.errors import TooLargeError
from bayescascade.methods.cascades.posterior import CascadePosterior
from bayescascade.methods.cascades.tree import Tree
from bayescascade.model.search import Search, most_blocks
from bayescascade.model.solution import Certificate
from bayescascade.model.trace import COLUMNS_USED

if TYPE_CHECKING:
    from bayescascade.methods.cascades.exact import (
        StoppedPosterior,
        SummedPosterior,
        TiltedPosterior,
    )
    from bayescascade.methods.cascades.exact.hull import BestTree
    from bayescascade.methods.cascades.shallow_trees import ShallowTrees

_AUTO_TERMS = 5e8  # of a pass up to which search "auto" is exact: half a minute
_MOST_TERMS = 1e12  # hours
_CHEAP_TERMS = 2e8  # up to which the shares of columns are exact, too


class Summed(NamedTuple):
    """All trees of a posterior, as an exact search sums over them."""

    exact: "SummedPosterior | StoppedPosterior | TiltedPosterior | ShallowTrees"
    certificate: Certificate
    shares: Mapping[str, Mapping[str, float]]
    log_sum: float | None  # over all trees, nats, if that is known
    draws: list[Tree]
    is_interrupted: bool = False
    timed_out: bool = False  # which is what interrupted it
    n_bytes: int = 0  # of what is kept, where others may follow


def sum_up(
    posterior: CascadePosterior, search: Search, memory_limit: float, scratch: str | Path | None
) -> Summed:
    """Sum over all trees, in `memory_limit` bytes and perhaps a directory.

    Raises TooLargeError if it would take more or, for search "auto", too much time.
    """
    from bayescascade.methods.cascades.exact import SummedPosterior, certificate_of, solve_or_tilt

    if posterior.model.leaf == "dependent":
        needed = 'a branch cascade with partitions "levels" and no feature_inclusion'
        raise TooLargeError(f'search "exact" with leaf "dependent" takes {needed}', needed)

    def report_pass(n_passes: int, share: float, best: "BestTree | None") -> None:
        gap = {} if best is None else {"gap": best.gap}
        search.report(f"pass {n_passes + 1}", share, **gap)

    search.report("counting boxes")
    exact, drawn = solve_or_tilt(
        posterior,
        memory_limit=max(1.0, memory_limit),
        work_limit=_AUTO_TERMS if search.search == "auto" else _MOST_TERMS,
        rng=search.rng(),
        progress=lambda share: search.report("summing over trees", share),
        pass_progress=report_pass,
        draw_progress=lambda: search.report("drawing trees"),
        n_jobs=search.n_jobs,
        n_draws=n_draws_of(search, posterior),
        scratch=scratch,
        checkpoint=search.checkpoint,
        resume=search.resume,
    )
    certificate = certificate_of(exact)
    shares, is_interrupted = dict[str, dict[str, float]](), exact.is_interrupted
    if isinstance(exact, SummedPosterior) and not is_interrupted:
        try:
            search.report("adding up splits")
            shares = _shares(exact)
        except KeyboardInterrupt:
            is_interrupted = True
    log_sum = None if certificate.log_evidence is None else exact.log_normalizer
    n_bytes = exact.cost.memory_bytes
    return Summed(exact, certificate, shares, log_sum, drawn, is_interrupted, n_bytes=n_bytes)


def n_draws_of(search: Search, posterior: CascadePosterior) -> int:
    """Return as many draws as chains would keep, a multiple of their number."""
    n_chains = int(search.n_chains)
    return n_chains * max(1, most_blocks(posterior.table.n_distinct) // n_chains)


def _shares(exact: "SummedPosterior") -> dict[str, dict[str, float]]:
    """Return exact posterior shares, largest first, as far as they cost little."""
    shares: dict[str, dict[str, float]] = {}
    if exact.max_leaves is not None:
        counts = enumerate(exact.leaf_count_probabilities.tolist(), start=1)
        shares["leaves"] = shares_of({str(k): p for k, p in counts})
    if exact.cost.n_terms * exact.posterior.schema.n_columns <= _CHEAP_TERMS:
        split = exact.split_probabilities
        shares["first split"] = shares_of({**split.first, "none": split.none})
        shares[COLUMNS_USED] = dict(sorted(split.used.items(), key=lambda item: -item[1]))
    return shares


def shares_of(probabilities: Mapping[str, float]) -> dict[str, float]:
    """Return the probabilities that are not 0, largest first."""
    possible = ((word, p) for word, p in probabilities.items() if p > 0)
    return dict(sorted(possible, key=lambda item: -item[1]))
