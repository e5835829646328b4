"""The boxes of a table for the kernels, and their shapes, which are boxes without rows."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import cache, cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from bayescascade.base.arrays import Flags, Floats, Integers
from bayescascade.base.jit import sparing
from bayescascade.methods.density.trees.exact.blocks import Blocks, block_shapes, column_blocks
from bayescascade.methods.density.trees.exact.kernels.layout import (
    UNION,
    LatticeArrays,
    Tables,
    TermArrays,
)
from bayescascade.methods.density.trees.exact.kernels.terms import (
    add_log_of,
    list_factors,
    list_log_gamma,
    list_log_splits,
    list_log_weights,
    list_rises,
)
from bayescascade.methods.density.trees.exact.plan import SearchPlan
from bayescascade.methods.density.trees.models import BranchModel, CascadeModel
from bayescascade.methods.density.trees.split_space import n_splits

if TYPE_CHECKING:
    from bayescascade.methods.density.trees.tree_posterior import CascadePosterior


_WEIGHTS_A_BOX = 8  # most weights a box for which tables are worthwhile
_STEPS_OF_LOG = 10  # steps of the recursion in the time of one lnG


@dataclass(frozen=True, eq=False)
class Lattice:
    """All boxes of a plan's columns, in the plan's order."""

    plan: SearchPlan
    blocks: tuple[Blocks, ...]
    widths: tuple[Floats, ...]  # (n_levels,) for each column: its levels' widths
    power: float = 1.0  # > 0: exponent of trees' densities, also for `term_arrays`

    @classmethod
    def of(cls, plan: SearchPlan, posterior: "CascadePosterior") -> "Lattice":
        """Return the boxes of a posterior's table."""
        columns = [posterior.schema.columns[j] for j in plan.columns]
        blocks = tuple(column_blocks(*kind, plan.partitions) for kind in plan.kinds)
        return cls(plan, blocks, tuple(column.widths for column in columns))

    def shapes(self) -> "Lattice":
        """Return the lattice of the boxes' shapes."""
        blocks = tuple(block_shapes(*kind, self.plan.partitions) for kind in self.plan.kinds)
        return Lattice(self.plan, blocks, self.widths)

    @property
    def whole(self) -> tuple[int, ...]:
        """The box of everything."""
        return tuple(blocks.n_blocks - 1 for blocks in self.blocks)

    @cached_property
    def is_alike(self) -> Flags:
        """Whether a block's levels are exchangeable without data, (N,) bool, by columns."""
        is_symmetric = (
            nominal or self.plan.partitions == "levels" for nominal in self.plan.is_nominal
        )
        flags = [
            (symmetric or codes.size <= 2) and np.ptp(widths[codes]) == 0.0
            for b, widths, symmetric in zip(self.blocks, self.widths, is_symmetric, strict=True)
            for codes in b.codes
        ]
        return np.array(flags, np.bool_)

    @cached_property
    def arrays(self) -> LatticeArrays:
        """The lattice for kernels."""
        blocks, plan = self.blocks, self.plan
        log_widths = [
            _log_sum(tuple(widths[codes].tolist()))
            for b, widths in zip(blocks, self.widths, strict=True)
            for codes in b.codes
        ]
        return LatticeArrays(
            starts=_starts([b.n_blocks for b in blocks]),
            costs=np.array(plan.costs, np.int64),
            splits=np.ones(len(blocks), np.bool_),
            by_levels=plan.partitions == "levels",
            sizes=np.concatenate([b.sizes for b in blocks]),
            log_width=self.power * np.array(log_widths),
            shape=np.concatenate([b.shape for b in blocks]).astype(np.int64),
            pair_start=_starts(np.concatenate([np.diff(b.pair_start) for b in blocks])),
            first=np.concatenate([b.first for b in blocks]),
            rest=np.concatenate([b.rest for b in blocks]),
            times=np.concatenate([b.times for b in blocks]),
            code_start=_starts([codes.size for b in blocks for codes in b.codes]),
            codes=np.concatenate([codes for b in blocks for codes in b.codes]).astype(np.int64),
            level_start=_starts([b.single.size for b in blocks]),
            single=np.concatenate([b.single for b in blocks]).astype(np.int64),
            ways=np.concatenate(
                [
                    _ways(*kind, plan.partitions, plan.max_branches)[b.sizes]
                    for b, kind in zip(blocks, plan.kinds, strict=True)
                ]
            ),
        )


def term_arrays(
    plan: SearchPlan, model: CascadeModel, power: float = 1.0, listed: Integers | None = None
) -> TermArrays:
    """Return the model for kernels, with a power if all weights, or those `listed`, have tables."""
    is_branch = isinstance(model, BranchModel)
    rate, alpha, leaf_alpha = (
        float(number) for number in (model.rate, model.concentration, model.leaf_concentration)
    )
    log_split, log_stop = np.zeros((plan.most + 1, 2)), np.zeros((1, 2))
    with sparing(_STEPS_OF_LOG * plan.most):
        if is_branch:
            list_log_splits(0.0 if model.is_generative else rate, alpha, power, log_split)
        if model.is_generative:
            add_log_of(model.stop, 0.0, power, log_stop)
            go = 1.0 - model.stop
            add_log_of(go, 1.0 - go - model.stop, power, log_split)
    multiples = {1, *plan.branches} if is_branch else {1}
    levels = range(1, max(plan.n_levels) + 1 if plan.is_independent else 1)
    return TermArrays(
        shift=plan.shift,
        is_branch=is_branch,
        is_generative=model.is_generative,
        has_factors=is_branch or model.is_generative,
        power=power,
        log_stop=log_stop[0],
        per_leaf=-power * rate if is_branch and not model.is_generative else 0.0,
        alpha=alpha,
        independent=plan.is_independent,
        leaf_alpha=leaf_alpha,
        most=plan.most,
        branches=np.array(plan.branches, np.int64),
        log_split=log_split,
        log_gamma=_log_gammas(alpha, multiples, power, plan.n_whole, plan.most, listed),
        leaf_log_gamma=_log_gammas(
            leaf_alpha, levels, power, plan.n_whole, max(levels, default=0), listed
        ),
    )


def weights_of(plan: SearchPlan, counts: NDArray[np.floating[Any]]) -> Integers:
    """Return the integer weights for tables, from 0 on: all, unless there are few counted boxes."""
    if counts.size * _WEIGHTS_A_BOX < plan.n_whole:
        return np.union1d(counts[counts < plan.n_whole], 0).astype(np.int64)
    return np.arange(max(plan.n_whole, 1))


def _log_gammas(
    alpha: float,
    multiples: Iterable[int],
    power: float,
    n_whole: int,
    most: int,
    listed: Integers | None,
) -> Floats:
    """Return power * lnG(multiple alpha + n) for n < n_whole or 1, (most + 1, .., 2) float64."""
    n_whole = max(n_whole, 1)
    listed = np.arange(n_whole) if listed is None else listed
    found = np.full((most + 1, n_whole, 2), np.nan)
    for multiple in multiples:
        if listed.size < n_whole:
            found[multiple, listed] = _log_gamma_of(alpha, multiple, power, listed.tobytes())
        elif power == 1.0:  # cached for the tables of many boxes
            n = 1 << n_whole.bit_length()
            every = np.arange(n).tobytes()
            found[multiple] = _log_gamma_of(alpha, multiple, power, every)[:n_whole]
        else:
            found[multiple] = _list_log_gamma(alpha, multiple, power, listed)
    return found


@lru_cache(64)
def _log_gamma_of(alpha: float, multiple: int, power: float, listed: bytes) -> Floats:
    return _list_log_gamma(alpha, multiple, power, np.frombuffer(listed, np.int64))


def _list_log_gamma(alpha: float, multiple: int, power: float, listed: Integers) -> Floats:
    """Return power * lnG(multiple alpha + n) for the listed n, (.., 2) float64."""
    found = np.empty((listed.size, 2))
    with sparing(_STEPS_OF_LOG * listed.size):
        list_log_gamma(alpha, multiple, power, listed, found)
    return found


def short_tables(lattice: Lattice, terms: TermArrays, listed: Integers) -> Tables:
    """Return the tables of the short way, for the listed integer weights."""
    plan = lattice.plan
    n_blocks = sum(blocks.n_blocks for blocks in lattice.blocks)
    begin, end = np.zeros((2, plan.most + 1, n_blocks), np.int64)
    children: list[int] = []
    at = 0
    for blocks, step in zip(lattice.blocks, plan.index().arrays.step[:, 0].tolist(), strict=True):
        for block, ways in enumerate(blocks.partitions(plan.most, plan.partitions == "levels")):
            for b in range(2, plan.most + 1):
                begin[b, at] = len(children)
                of_size = [parts for parts, _ in ways if len(parts) == b]
                children += [(part - block) * step for parts in of_size for part in parts]
                end[b, at] = len(children)
            at += 1
    log_gamma = terms.log_gamma[1]
    n_counts = len(log_gamma) if terms.is_branch else 1
    factor, exponent = np.ones((plan.most + 1, n_counts)), np.zeros((plan.most + 1, n_counts), int)
    leaf = np.empty_like(log_gamma)
    with sparing(_STEPS_OF_LOG * listed.size):
        list_rises(log_gamma, listed, leaf)
        if terms.has_factors:
            list_factors(terms, listed[:n_counts], factor, exponent)
    return Tables(begin, end, np.array(children, np.int64), leaf, factor, exponent)


@cache
def _ways(n_levels: int, is_nominal: bool, partitions: str, max_branches: int) -> Floats:
    """Return the number of splits of 0 .. n_levels remaining levels, at most 2**900; read-only."""
    numbers = (n_splits(m, is_nominal, partitions, max_branches) for m in range(n_levels + 1))
    found = np.array([float(min(number, 1 << 900)) for number in numbers])
    found.flags.writeable = False
    return found


@cache
def _log_sum(widths: tuple[float, ...]) -> tuple[float, float]:
    """Return the log of a sum as two floats, high and low."""
    with localcontext(prec=40):
        exact = sum(map(Decimal, widths), Decimal(0)).ln()
        return float(exact), float(exact - Decimal(float(exact)))


def _starts(sizes: "list[int] | Integers") -> Integers:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


@dataclass(frozen=True)
class Root:
    """The factors of a tree's density that do not belong to its parts."""

    plan: SearchPlan
    model: CascadeModel

    @classmethod
    def of(cls, posterior: "CascadePosterior", plan: SearchPlan) -> "Root":
        """Return these factors for a posterior's trees."""
        return cls(plan, posterior.model)

    def log_densities(self, log_values: Floats, total: float) -> Floats:
        """Return, for every entry of the root, the log of the sum of its trees' densities.

        log_values (n_entries,) float64: logs of the root's entries, up to a constant; total >= 0.
        `log_common` is subtracted, because it would leave no digits for the differences.
        """
        if isinstance(self.model, BranchModel):  # the root is not a branch, so it has no share
            weighted: Floats = log_values + gammaln(self.model.concentration)
            return weighted + self._log_inclusion()
        return log_values + self.log_weights(np.arange(1, log_values.size + 1), total)

    def log_weights(self, k: Integers, total: float) -> Floats:
        """Return the logs, minus `log_common`, of the weights of trees of `k` leaves without rows.

        Their error is at most one rounding of the result, plus 1e-16.
        """
        weights = np.empty(k.size)
        rate, alpha = float(self.model.rate), float(self.model.concentration)
        rate = 0.0 if self.model.is_generative else rate
        with sparing(6 * _STEPS_OF_LOG * k.size):
            list_log_weights(rate, alpha, total, k, weights)
        return weights

    def log_most_rise(self, k: int) -> float:
        """Return a bound on the increase of ``ln w_K`` by one more leaf, from k leaves on; nats.

        ``lnG(x + alpha) - lnG(x)`` increases with x, so that the Dirichlet's part is at most 0.
        """
        if self.model.is_generative:
            return 0.0
        return float(np.log(self.model.rate / k))

    def log_common(self, total: float) -> float:
        """Return the common log factor of all trees' densities, given the weight of all rows."""
        return -float(gammaln(total + self.model.concentration))

    def log_sum(self, log_values: Floats, total: float) -> float:
        """Return the log of the sum over all trees, minus `log_common`."""
        return float(logsumexp(self.log_densities(log_values, total)))

    def _log_inclusion(self) -> Floats:
        if self.plan.shift != UNION:
            return np.zeros(1)
        p = len(self.plan.columns)
        used = np.array([u.bit_count() for u in range(1 << p)])
        inclusion: Floats = self.model.log_inclusion(p)[used]
        return inclusion
