"""The boxes of a table as kernels read them, and their shapes: what they are without rows."""

from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import cache, cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from bayescascade.methods.cascades.exact.blocks import Blocks, block_shapes, column_blocks
from bayescascade.methods.cascades.exact.kernels import LatticeArrays, TermArrays
from bayescascade.methods.cascades.exact.plan import Plan
from bayescascade.methods.cascades.models import BranchModel

if TYPE_CHECKING:
    from bayescascade.methods.cascades.models import CascadeModel
    from bayescascade.methods.cascades.posterior import CascadePosterior

__all__ = ["Lattice", "term_arrays"]


@dataclass(frozen=True, eq=False)
class Lattice:
    """All boxes of a plan's columns.

    Parameters
    ----------
    plan : Plan
    blocks : (p,) tuple of Blocks
        The columns' blocks, in the plan's order.
    widths : (p,) tuple of (n_levels,) float64
        Widths of the columns' levels.
    closed : frozenset of int
        Columns, in the plan's order, that are never split.
    """

    plan: Plan
    blocks: tuple[Blocks, ...]
    widths: tuple[NDArray[np.float64], ...]
    closed: frozenset[int] = frozenset()

    @classmethod
    def of(cls, plan: Plan, posterior: "CascadePosterior") -> "Lattice":
        """Return the boxes of a posterior's table."""
        columns = [posterior.schema.columns[j] for j in plan.columns]
        blocks = tuple(
            column_blocks(q, nominal, plan.partitions)
            for q, nominal in zip(plan.n_levels, plan.is_nominal, strict=True)
        )
        return cls(plan, blocks, tuple(column.widths for column in columns))

    def shapes(self) -> "Lattice":
        """Return the lattice of the boxes' shapes."""
        blocks = tuple(
            block_shapes(q, nominal, self.plan.partitions)
            for q, nominal in zip(self.plan.n_levels, self.plan.is_nominal, strict=True)
        )
        return Lattice(self.plan, blocks, self.widths, self.closed)

    def without(self, column: int) -> "Lattice":
        """Return the same boxes with one more column never split."""
        return Lattice(self.plan, self.blocks, self.widths, self.closed | {column})

    @property
    def whole(self) -> tuple[int, ...]:
        """The box of everything."""
        return tuple(blocks.n_blocks - 1 for blocks in self.blocks)

    @cached_property
    def arrays(self) -> LatticeArrays:
        """The lattice for kernels."""
        blocks = self.blocks
        pair_sizes = [np.diff(b.pair_start) for b in blocks]
        log_widths = [
            _log_sum(tuple(widths[codes].tolist()))
            for b, widths in zip(blocks, self.widths, strict=True)
            for codes in b.codes
        ]
        return LatticeArrays(
            starts=_starts([b.n_blocks for b in blocks]),
            costs=np.array(self.plan.costs, np.int64),
            splits=np.array([j not in self.closed for j in range(len(blocks))]),
            by_levels=self.plan.partitions == "levels",
            sizes=np.concatenate([b.sizes for b in blocks]),
            log_width=np.array(log_widths),
            shape=np.concatenate([b.shape for b in blocks]).astype(np.int64),
            pair_start=_starts(np.concatenate(pair_sizes)),
            first=np.concatenate([b.first for b in blocks]),
            rest=np.concatenate([b.rest for b in blocks]),
            times=np.concatenate([b.times for b in blocks]),
            code_start=_starts([codes.size for b in blocks for codes in b.codes]),
            codes=np.concatenate([codes for b in blocks for codes in b.codes]).astype(np.int64),
            level_start=_starts([b.single.size for b in blocks]),
            single=np.concatenate([b.single for b in blocks]).astype(np.int64),
        )


def term_arrays(plan: Plan, model: "CascadeModel") -> TermArrays:
    """Return the model for kernels."""
    b = np.arange(plan.most + 1)
    n = np.arange(plan.n_whole)
    is_branch = isinstance(model, BranchModel)
    rate, alpha, leaf_alpha = model.rate, model.concentration, model.leaf_concentration
    log_split = np.full(plan.most + 1, -np.inf)
    log_split[1:] = -rate + b[1:] * np.log(rate) - gammaln(b[1:] + 1) + gammaln(b[1:] * alpha)
    levels = np.arange(max(plan.n_levels) + 1 if plan.is_independent else 1)
    with np.errstate(divide="ignore"):  # lnG(0), of no branch and no level, is not read
        return TermArrays(
            shift=plan.shift,
            is_branch=is_branch,
            per_leaf=-float(rate) if is_branch else 0.0,
            alpha=float(alpha),
            independent=plan.is_independent,
            leaf_alpha=float(leaf_alpha),
            most=plan.most,
            branches=np.array(plan.branches, np.int64),
            log_split=log_split,
            log_gamma=gammaln(b[:, None] * alpha + n),
            leaf_log_gamma=gammaln(levels[:, None] * leaf_alpha + n),
        )


@cache
def _log_sum(widths: tuple[float, ...]) -> tuple[float, float]:
    """Return the log of a sum as two floats, high and low."""
    with localcontext(prec=40):
        exact = sum(map(Decimal, widths), Decimal(0)).ln()
        return float(exact), float(exact - Decimal(float(exact)))


def _starts(sizes: "list[int] | NDArray[np.int64]") -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
