"""Lists at several temperatures, whose neighbors exchange temperatures every few steps."""

from math import exp

import numpy as np

from bayescascade.base.jit import inner_kernel, kernel
from bayescascade.methods.rules.kernels import layout
from bayescascade.methods.rules.kernels.layout import Array
from bayescascade.methods.rules.kernels.sweep import begin, run_steps

PROBABILITY, TRIED, ACCEPTED = range(3)  # rows of `swaps`


_workspace_of = inner_kernel(layout.workspace_of)


@kernel
def exchange(
    rng: np.random.Generator,
    candidates: layout.CandidateArrays,
    rows: layout.RowArrays,
    model: layout.ModelArrays,
    works: layout.Workspace,
    n_steps: int,
    between: int,
    betas: Array,
    n_rounds: int,
    levels: Array,
    holders: Array,
    move_cdf: Array,
    counts: Array,
    swaps: Array,
) -> None:
    """Run steps of K lists, each at its temperature, and swap every `between` steps.

    works: of K lists, `layout.new_workspaces`; betas (K,) float64, coldest first; n_rounds: rounds
    of swaps before, which decide whose turn it is; levels (K, 3) float64: those of `sweep`; holders
    (K,) int64: written, which list is at each temperature; counts (2, 2, 6) int64: steps proposed
    and accepted, of the coldest and of all others, added to; swaps (3, K - 1) float64: for each
    pair of neighbors the sum of probabilities of a swap over all rounds, and how often it was tried
    and accepted, added to.
    """
    n_lists = betas.shape[0]
    for k in range(n_lists):
        holders[k] = k
        begin(candidates, model, _workspace_of(works, k), levels[k, 0], levels[k])
    done = 0
    while done < n_steps:
        n_now = min(between, n_steps - done)
        done += n_now
        for k in range(n_lists):
            one = holders[k]
            work, tried = _workspace_of(works, one), counts[0 if k == 0 else 1]
            run_steps(
                rng, candidates, rows, model, work, n_now, betas[k], levels[one], move_cdf, tried
            )
        for pair in range(n_lists - 1):
            cold, hot = holders[pair], holders[pair + 1]
            gain = levels[hot, 0] - levels[cold, 0]
            gain -= layout.PRIOR_KEPT * (levels[hot, 1] - levels[cold, 1])
            probability = exp(min(0.0, (betas[pair] - betas[pair + 1]) * gain))
            swaps[PROBABILITY, pair] += probability
            if pair % 2 == n_rounds % 2:
                swaps[TRIED, pair] += 1.0
                if rng.random() < probability:
                    swaps[ACCEPTED, pair] += 1.0
                    holders[pair], holders[pair + 1] = hot, cold
        n_rounds += 1
