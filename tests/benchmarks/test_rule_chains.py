"""Steps a second of rule-list chains, and whether they converge, beside imodels' chain.

Both chains draw from the same lists of the same rows and start from the same list, where the
compiled chain came to rest. Needs the packages in `requirements.txt`.
"""

import numpy as np
import pandas as pd
import pytest

from bayescascade import RuleListClassifier
from bayescascade.methods.lists.rule_list import RuleList
from bayescascade.model.draws import diagnose_array
from tests.benchmarks.figures import ROOT, Figure, timed
from tests.benchmarks.workloads import binary_posterior, tic_tac_toe_posterior

pytest.importorskip("imodels", reason="needs tests/benchmarks/requirements.txt")

from tests.benchmarks.imodels_chain import ImodelsChain

LEAST_RATIO = 200.0
N_CHAINS = 4
IMODELS_STEPS = 50_000  # per chain, half of them burn-in: its defaults


@pytest.mark.parametrize(
    ("name", "make_posterior", "n_steps", "imodels_warmup", "imodels_steps", "sbrl_speed"),
    [
        ("tic-tac-toe", tic_tac_toe_posterior, 500_000, 3_000, 2_000, 182_000),
        ("200,000 rows", lambda: binary_posterior(200_000), 20_000, 50, 50, 6_200),
    ],
    ids=["tic-tac-toe", "200000-rows"],
)
def test_steps_a_second(
    name, make_posterior, n_steps, imodels_warmup, imodels_steps, sbrl_speed, benchmark, report
):
    """Same rows, candidates and start; the best of several rounds of each, on one core.

    The speeds of sbrl, a C program, are not measured here: they were, once, by its own clock.
    """
    posterior = make_posterior()
    rng = np.random.default_rng(0)
    # compiles, and takes the chain to lists of typical length
    start, _ = posterior.advance(rng, RuleList(), 2 * n_steps, 1.0)
    benchmark.pedantic(
        lambda: posterior.advance(rng, start, n_steps, 1.0), rounds=5, warmup_rounds=1
    )
    speed = n_steps / benchmark.stats.stats.min
    baseline = ImodelsChain(posterior)
    baseline.run(start, imodels_warmup, seed=1)
    imodels_speed = max(baseline.run(start, imodels_steps, seed)[1] for seed in (2, 3, 4))
    where = f"list steps, {name} ({start.n_rules} rules, {len(posterior.antecedents):,} candidates)"
    report(Figure(where, speed, "/s", at_least=sbrl_speed, baseline=imodels_speed))
    report(Figure("  the baseline: imodels' chain", imodels_speed, "/s"))
    report(Figure("  ours / imodels", speed / imodels_speed, "x", at_least=LEAST_RATIO))
    report(Figure(f"  ours / sbrl's {sbrl_speed:,} steps a second", speed / sbrl_speed, "x"))


def test_convergence(report):
    """R-hat of four chains on tic-tac-toe, each program as it comes but for the candidates."""
    frame = pd.read_csv(ROOT / "data" / "tic_tac_toe.csv")
    model = RuleListClassifier(max_size=3, n_chains=N_CHAINS, random_state=0)
    _, seconds = timed(lambda: model.fit(frame.drop(columns="outcome"), frame["outcome"]))
    report(Figure("tic-tac-toe, four chains: seconds", seconds, "s"))
    for trace, diagnostic in model.run_.diagnostics().items():
        report(Figure(f"  R-hat of {trace}", diagnostic.r_hat, "", at_most=1.01))
    chain = ImodelsChain(tic_tac_toe_posterior())
    (traces, r_hat), seconds = timed(lambda: chain.traces(N_CHAINS, IMODELS_STEPS, seed=42))
    report(Figure("imodels' four chains: seconds", seconds, "s"))
    report(Figure("  steps a second", N_CHAINS * IMODELS_STEPS / seconds, "/s"))
    report(Figure("  R-hat by its own formula", r_hat, ""))
    for trace, draws in traces.items():
        report(Figure(f"  R-hat of {trace}", diagnose_array(draws).r_hat, ""))
