"""Mine 100,000 candidates for rules over 100,000 rows, and print what it took as JSON.

A process of its own, so that its peak memory is that of this work: `test_rule_lists` runs it.
"""

import json
import resource
import sys
from time import perf_counter

import numpy as np

from bayescascade.methods.lists.posterior import LabelListPosterior
from bayescascade.methods.lists.rule_list import RuleList
from tests.benchmarks.workloads import distinct_table

N_ROWS = 100_000
N_COLUMNS = 23  # four levels each; of 22 there are 102,344 conjunctions of up to three
LABEL = "c19"  # a column that depends on others
N_STEPS = 20_000


def posterior_of(table):
    """Return the posterior with all conjunctions of up to three that some rows satisfy."""
    return LabelListPosterior(table, LABEL, max_size=3, min_support=1e-3)


def main():
    """Compile on a few rows, mine, and run a chain for as long as it takes to touch all memory."""
    posterior_of(distinct_table(1_000, N_COLUMNS)).advance(
        np.random.default_rng(0), RuleList(), 1_000, 1.0
    )
    table = distinct_table(N_ROWS, N_COLUMNS)
    before = _peak()
    started = perf_counter()
    posterior = posterior_of(table)
    mined = perf_counter() - started
    rng = np.random.default_rng(0)
    state, _ = posterior.advance(rng, RuleList(), N_STEPS, 1.0)
    started = perf_counter()
    posterior.advance(rng, state, N_STEPS, 1.0)
    stepped = perf_counter() - started
    by_name = {
        "n_rows": table.n_distinct,
        "n_candidates": len(posterior.antecedents),
        "n_rules": state.n_rules,
        "seconds": mined,
        "steps_per_second": N_STEPS / stepped,
        "gigabytes_before": before,
        "gigabytes": _peak(),
    }
    sys.stdout.write(json.dumps(by_name))


def _peak():
    """Return the most memory that this process has held, GB."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


if __name__ == "__main__":
    main()
