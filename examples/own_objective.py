"""Bring your own objective: explore it, and see how sure one can be of what was found.

Which few of some hospital sites should test a new drug? They must be cheap, and far apart. There is
no likelihood, only something to minimize; `GibbsPosterior` weighs selections by how nearly they do,
and `explore` does the rest: a search, diagnostics, a page, ArviZ's object and a trace file.
"""

import math
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import samplers
from bayescascade import GibbsPosterior, explore

SITES = np.random.default_rng(0).uniform(0, 100, (40, 2))  # km
PRICES = np.random.default_rng(1).uniform(1, 5, 40)  # million
N_CHOSEN = 5


class Exchange:
    """Give up one site for another; the way back is as probable."""

    def propose(self, rng, state):
        """Return another selection, and 0: the log ratio of the ways there and back."""
        given_up = int(rng.integers(N_CHOSEN))
        taken = int(rng.integers(len(SITES)))
        if taken in state:
            return samplers.Proposal(state, -math.inf)
        rest = [site for place, site in enumerate(state) if place != given_up]
        return samplers.Proposal(tuple(sorted([*rest, taken])), 0.0)


def price(state):
    return float(PRICES[list(state)].sum())


def nearest(state):
    chosen = SITES[list(state)]
    apart = np.hypot(*(chosen[:, None] - chosen[None]).T)
    return float(apart[np.triu_indices(N_CHOSEN, 1)].min())


posterior = GibbsPosterior(
    objective=lambda state: price(state) - 0.2 * nearest(state),
    start=lambda rng: tuple(sorted(rng.choice(len(SITES), N_CHOSEN, replace=False).tolist())),
    proposals={"exchange": Exchange()},
    temperature=1.0,  # a selection that is worse by that is e times less probable
    summary=lambda state: {"price": price(state), "nearest": nearest(state)},
)

found = explore(posterior, n_steps=20_000, n_chains=4, random_state=0)
print(found)
print()
draws = [state for chain in found.run_.draws for state in chain]
for site, times in zip(*np.unique(np.array(draws), return_counts=True), strict=True):
    if times > len(draws) / 2:
        print(f"site {site} is in {times / len(draws):.0%} of the good selections")

with TemporaryDirectory() as folder:
    found.save_trace(Path(folder) / "sites.nc")  # `bayescascade diagnose sites.nc` reads it
