"""Cascades that may suit a table: what each is, what weighing it takes, and what it is worth.

A candidate's log evidence is that of the normalized prior over its trees: the log probability of
the rows before any of them was seen, per cell of nominal and ordinal columns and per unit of
continuous ones. So it can be compared over all candidates, whatever their leaves, splits and
priors.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf, isnan, nan
from time import perf_counter
from typing import Any

import numpy as np

from bayescascade.base.errors import TooLargeError
from bayescascade.data.table import Table
from bayescascade.methods.cascades.cascade import Cascade
from bayescascade.methods.cascades.estimators import BranchCascade, LeafCascade
from bayescascade.methods.cascades.exact import ExactCost, certificate_of, solve_or_tilt
from bayescascade.methods.cascades.shallow_extent import extent_of, fitting_trees, steps_a_row
from bayescascade.methods.cascades.shallow_trees import ShallowTrees

MOST_READ = 30
"""Leaves of the largest tree that a person reads."""

_CLASSES = {"leaf": LeafCascade, "branch": BranchCascade}

# Nanoseconds of one core, as the benchmark `calibration` measures them.
_NS_PAIR_STEP = 0.8  # of a step of dependent leaves
_NS_SCORED = 3.5  # of a step of scoring a row by dependent leaves with all tempers
_NS_SCORED_SUBSET = 4e3  # of a set of fixed columns, for each row that is scored
_NS_LEVEL = 8.0  # of a row and column of other shallow leaves
_NS_SUBSET = 8e5  # of their set of fixed columns
_NS_TERM = {"leaf": 6e3, "branch": 1.2e2}  # of a box's term; sums by numbers of leaves take passes
_NS_PASS = 50.0  # of a box's term in a pass
_MOST_PASSES = {"leaf": 30, "branch": 2}
_NS_NUMBER = {"poisson": 2e3, "size": 2e3, "generative": 4e2}  # of a number of leaves, and a pass
_MOST_NUMBERS = 5e4
_OF_PROCESS = 3.0  # times as many passes do sums by numbers of leaves take without a Poisson
_NS_ANY = 4e6  # of whatever is weighed


@dataclass(frozen=True, slots=True)
class Candidate:
    """A cascade that may suit a table."""

    model: str  # "leaf" or "branch": the prior over trees
    # parameters that are not the defaults
    settings: Mapping[str, Any] = field(default_factory=dict)
    log_evidence: float = nan  # nats; NaN where not all trees can be summed over
    held_out: float = nan  # mean log density of held-out rows, nats a row; NaN if not computed
    n_leaves: int = 0  # of the best tree; 0 if none was looked for
    seconds: float = nan  # that weighing it took; NaN in a model from a file
    expected_seconds: float = 0.0  # by its number of operations

    def cascade(self, **run: Any) -> Cascade:
        """Return the estimator, with parameters of how to run it."""
        return _CLASSES[self.model](**{**self.settings, **run})

    def changed(self, **settings: Any) -> "Candidate":
        """Return a candidate of other settings, of which nothing is known."""
        return Candidate(self.model, {**self.settings, **settings})

    @property
    def untempered(self) -> "Candidate":
        """The same without a temper, of which nothing is known."""
        own = {k: v for k, v in self.settings.items() if k != "temper"}
        return Candidate(self.model, own)

    @property
    def key(self) -> tuple[object, ...]:
        """What tells it from others: model, and settings that are not the defaults."""
        usual = _CLASSES[self.model]
        told = {k: v for k, v in self.settings.items() if v != getattr(usual, k)}
        if self.is_shallow:  # even if of no largest depth
            told["max_depth"] = self.settings["max_depth"]
        return (self.model, *sorted(told.items()))

    @property
    def kind(self) -> tuple[str, str]:
        """Leaves and partitions."""
        own = self.settings
        return str(own.get("leaf", "uniform")), str(own.get("partitions", "subsets"))

    @property
    def is_readable(self) -> bool:
        """Whether its best tree has a few leaves, more than one."""
        return 1 < self.n_leaves <= MOST_READ

    @property
    def is_summed(self) -> bool:
        """Whether all its trees can be summed over."""
        return self.is_shallow or not isnan(self.log_evidence)

    @property
    def is_shallow(self) -> bool:
        """Whether its trees have a largest depth."""
        return "max_depth" in self.settings

    @property
    def words(self) -> str:
        """What it is, such as "branch model, dependent leaves, depth 2, concentration 4"."""
        own = self.settings
        leaf, depth = own.get("leaf", "uniform"), own.get("max_depth")
        told = [f"{self.model} model", f"{leaf} leaves"]
        if own.get("prior") == "generative":
            told[0] += f", generative prior, stop {own.get('stop', 0.5):g}"
        if self.is_shallow and depth == 0:
            told = ["columns independent" if leaf == "independent" else f"one {leaf} leaf"]
        elif self.is_shallow:
            told.append("depth 3 of some columns" if depth is None else f"depth {depth}")
        else:
            told.append(own.get("partitions", "subsets"))
        if leaf != "uniform":
            told.append(f"concentration {own.get('leaf_concentration', 1.0):g}")
        elif "concentration" in own:
            told.append(f"concentration {own['concentration']:g}")
        if own.get("temper") is not None:
            told.append(f"tempered at {own['temper']:g} rows")
        return ", ".join(told)

    def to_record(self) -> dict[str, Any]:
        """Return plain data, None for what is not known, as `from_record` reads it."""
        known = {name: getattr(self, name) for name in _NUMBERS}
        plain = {name: None if value != value else value for name, value in known.items()}
        return {"model": self.model, "settings": dict(self.settings), **plain}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "Candidate":
        """Read what `to_record` wrote; raises as its cascade does if it is none."""
        numbers: dict[str, Any] = {
            k: nan if record[k] is None else float(record[k]) for k in _NUMBERS
        }
        numbers["n_leaves"] = int(numbers["n_leaves"])
        made = cls(str(record["model"]), dict(record["settings"]), **numbers)
        made.cascade().check_parameters()
        return made

    def nanoseconds(self, table: Table, memory_limit: float) -> float:
        """Return about how long weighing it takes one core; infinity if it takes more memory."""
        posterior = self.cascade()._make_posterior(table)
        if self.is_shallow:
            depth = self.settings["max_depth"]
            steps, n_bytes, n_subsets = extent_of(posterior, depth)
            if n_bytes > memory_limit:
                return inf
            if posterior.model.leaf == "dependent":
                return _NS_ANY + _NS_PAIR_STEP * steps
            each = table.n_distinct * table.schema.n_columns * _NS_LEVEL + _NS_SUBSET
            return _NS_ANY + n_subsets * each
        try:
            cost = ExactCost.of(posterior)
        except TooLargeError:
            return inf
        if cost.memory_bytes > memory_limit:
            return inf
        is_process = self.model == "leaf" and self.settings.get("prior") == "generative"
        return _NS_ANY + _NS_TERM[self.model] * cost.n_terms * (_OF_PROCESS if is_process else 1.0)

    def row_nanoseconds(self, table: Table) -> float:
        """Return about how long one core takes to score a row, where that is long; else 0."""
        if not (self.is_shallow and self.kind[0] == "dependent"):
            return 0.0
        posterior = self.cascade()._make_posterior(table)
        _, _, n_subsets = extent_of(posterior, self.settings["max_depth"])
        return _NS_SCORED * steps_a_row(table.schema, n_subsets) + _NS_SCORED_SUBSET * n_subsets


_NUMBERS = ("log_evidence", "held_out", "n_leaves", "expected_seconds")  # equal for equal seeds


def weighed(
    candidate: Candidate,
    table: Table,
    memory_limit: float,
    n_jobs: int | None,
    nanoseconds: float = inf,
) -> tuple[Candidate | None, float]:
    """Return the candidate with its log evidence and its best tree's leaves, and the passes' time.

    The candidate is None where the sum over all trees is not known to two decimals. Sums by numbers
    of leaves begin with few leaves, which is what `Candidate.nanoseconds` counts; if trees of more
    leaves matter, there are passes over all boxes. Their time, in nanoseconds of one core, follows
    from their number of operations. The memory limit is in bytes. Raises TooLargeError if it takes
    more memory or time than was foreseen.
    """
    started = perf_counter()
    posterior, spent = candidate.cascade()._make_posterior(table), 0.0
    if candidate.is_shallow:
        depth, columns = fitting_trees(posterior, candidate.settings["max_depth"], memory_limit)
        exact: Any = ShallowTrees(posterior, depth, columns=columns)
    else:
        work_limit = min(nanoseconds / (_NS_PASS * _MOST_PASSES[candidate.model]), 1e12)
        exact, _ = solve_or_tilt(
            posterior, memory_limit=memory_limit, work_limit=work_limit, rng=0, n_jobs=n_jobs
        )
        n_passes = getattr(exact, "n_passes", 0)
        if n_passes:
            log_numbers = min(np.log(table.schema.n_levels).sum(), np.log(_MOST_NUMBERS))
            of_numbers = _NS_NUMBER[posterior.model.prior] * float(np.exp(log_numbers))
            spent = n_passes * (_NS_PASS * exact.cost.n_terms + of_numbers)
        if certificate_of(exact).log_evidence is None:
            return None, spent
    found = replace(
        candidate,
        log_evidence=exact.log_evidence,
        n_leaves=exact.tree.n_leaves,
        seconds=perf_counter() - started,
    )
    return found, spent


def chain_nanoseconds(table: Table, leaf: str) -> float:
    """Return about how long a step of a chain takes one core."""
    per_row = 0.8 if leaf == "uniform" else 0.8 + 0.3 * table.schema.n_columns
    return 2.5e4 + 1e3 * table.schema.n_columns + per_row * table.n_distinct
