"""Which leaves the rows speak for: uniform, independent or dependent ones, by evidence.

Cascades that differ in their leaves alone have the same prior over trees, so that the logs of sums
over all trees of ``exp(posterior.log_density(tree))`` differ by as much as log evidences do. Where
trees over one kind of leaves cannot all be summed over, the best trees found are compared instead,
of all kinds: a sum and a single tree of it are not alike.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

import samplers
from bayescascade.data.table import Table
from bayescascade.methods.cascades.parameters import LEAVES
from bayescascade.methods.cascades.posterior import CascadePosterior
from bayescascade.model.search import SCHEDULE

_FEW_STEPS, _FEWEST_STEPS = 20_000, 200
_FEW_ADDITIONS = 2e9  # some seconds


@dataclass(frozen=True, slots=True)
class LeafChoice:
    """The leaves chosen, and by what; both mappings are by the kind of leaves."""

    best: dict[str, float] = field(default_factory=dict)  # of the best tree found, nats
    # logs of sums over all trees, nats, where known
    sums: dict[str, float] = field(default_factory=dict)

    @property
    def is_by_evidence(self) -> bool:
        """Whether all sums are known."""
        return len(self.sums) == len(self.best)

    @property
    def leaf(self) -> str:
        """The leaves of the largest sum, or of the best tree."""
        compared = self._compared
        return max(compared, key=compared.__getitem__)

    @property
    def _compared(self) -> dict[str, float]:
        return self.sums if self.is_by_evidence else self.best

    def words(self) -> str:
        """Return such as "leaf dependent by evidence (nats over uniform 12.3, independent 4.5)"."""
        if len(self.best) == 1:
            return f"leaf {self.leaf}, as no others were compared"
        own = self._compared[self.leaf]
        others = [f"{k} {own - v:,.1f}" for k, v in self._compared.items() if k != self.leaf]
        by = "evidence" if self.is_by_evidence else "the best tree found"
        return f"leaf {self.leaf} by {by}" + (f" (nats over {', '.join(others)})" if others else "")

    def to_record(self) -> dict[str, dict[str, float]]:
        """Return plain data, as `from_record` reads it."""
        return {"best": self.best, "sums": self.sums}

    @classmethod
    def from_record(cls, record: Mapping[str, Mapping[str, Any]]) -> "LeafChoice":
        """Read what `to_record` wrote; ValueError, TypeError or KeyError if it is none."""
        best, sums = (
            {leaf: float(value) for leaf, value in record[name].items()}
            for name in ("best", "sums")
        )
        if not best or set(best) - set(LEAVES) or set(sums) - set(best):
            raise ValueError(f"leaves must be some of {', '.join(LEAVES)}, got {[*best, *sums]}")
        return cls(best, sums)


def steps_within(table: Table, most: int, additions: float) -> int:
    """Return how many steps of a chain over dependent leaves the additions allow, up to `most`.

    A step counts pairs of levels in a box, and weighs the trees that join its columns.
    """
    each = table.n_distinct * table.schema.n_columns**2 / 2 + table.schema.n_columns**3
    return int(min(most, max(_FEWEST_STEPS, additions / each)))


def best_of_few_steps(
    posterior: CascadePosterior, n_steps: int | None, time_limit: float = inf
) -> float:
    """Return the log density, nats, of the best tree of a short annealing, whose seed is fixed.

    It takes at most `n_steps`, and ends after `time_limit` seconds. Raises KeyboardInterrupt if it
    is interrupted, as it has nothing to show then.
    """
    n_steps = _FEW_STEPS if n_steps is None else min(_FEW_STEPS, int(n_steps))
    if posterior.model.leaf == "dependent":
        n_steps = steps_within(posterior.table, n_steps, _FEW_ADDITIONS)
    run = samplers.anneal(
        posterior, n_steps=n_steps, schedule=SCHEDULE, n_chains=1, seed=0, time_limit=time_limit
    )
    if run.interrupted:
        raise KeyboardInterrupt
    return float(run.best_log_density)
