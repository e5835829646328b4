"""Proposals a second: the compiled sweep beside the plain engine on the same posterior.

What a proposal costs depends on the tree: nodes of large trees hold few rows. So the speed is taken
at the two ends of a fit, while sampling (inverse temperature 1) and when annealing is nearly done
(10), and the leaves of the tree where the clock started stand beside it.
"""

import numpy as np
import pytest

from bayescascade import LeafPosterior
from bayescascade.methods.density.trees.tree import Tree
from tests.benchmarks.figures import Figure
from tests.benchmarks.workloads import distinct_table

WARMUP_STEPS = 20_000  # compiles, and takes the chain to trees of typical size
N_STEPS = {2_000: 200_000, 200_000: 20_000}
TARGETS = {2_000: 300_000, 200_000: 20_000}


@pytest.mark.parametrize("inverse_temperature", [1.0, 10.0], ids=["sampling", "annealed"])
@pytest.mark.parametrize("n_distinct", [2_000, 200_000])
def test_proposals_a_second(n_distinct, inverse_temperature, benchmark, report):
    """Ten four-level nominal columns, eight expected leaves, one core."""
    posterior = LeafPosterior(distinct_table(n_distinct), expected_leaves=8.0)
    assert posterior.table.n_distinct == n_distinct
    rng = np.random.default_rng(0)
    state, _ = posterior.advance(rng, Tree.root(), WARMUP_STEPS, inverse_temperature)
    n_steps = N_STEPS[n_distinct]
    benchmark.pedantic(
        lambda: posterior.advance(rng, state, n_steps, inverse_temperature),
        rounds=5,
        warmup_rounds=1,
    )
    speed = n_steps / benchmark.stats.stats.min
    phase = "sampling" if inverse_temperature == 1.0 else "annealed"
    where = f"proposals, {n_distinct:,} rows, {phase} ({state.n_leaves} leaves)"
    report(Figure(where, speed, "/s", at_least=TARGETS[n_distinct]))
