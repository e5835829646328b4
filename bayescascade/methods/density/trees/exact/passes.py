"""Tilted passes over the boxes of a leaf model, made once and remembered.

The density of a tree with K leaves is ``w_K exp(sum_l g_l)``: ``ln w_K`` is `Root.log_weights`, and
``g_l`` is the log value of leaf l. A pass with another factor ``exp(s)`` for each leaf, a *tilt*,
finds ``G(s) = sum_K S_K exp(s K)``, where ``S_K`` sums over the trees of K leaves, or the best
tree's ``U(s) = max_T sum_l (g_l + s)``, with one entry a box. `tilted` finds the most probable tree
by a few tilts, `expansion` the sum over all trees, and draws.

K ends at the number of cells. If there are too many, ``w_(K+1) / w_K <= rate / (K + 1)`` bounds the
rest, as in `tail`.

**Rounding.** All passes are divided by a power of two, from the first pass, before logs are taken:
for a million rows ``G`` is exp(-2e6), and the last digit of its log is 2e-10. The errors of ``ln
w_K`` and ``s K`` are u times their sizes, and `Passes.lost` has the error of sums of a few of them.
The error of a pass is a tilt of h, see `rounding`.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import samplers
from bayescascade.base.arrays import Floats, Integers
from bayescascade.base.validation import check_integer, check_real
from bayescascade.methods.density.trees.exact.kernels.terms import UNIT as UNIT_OF_EXPONENTS
from bayescascade.methods.density.trees.exact.lattice import Root
from bayescascade.methods.density.trees.exact.pieces import Progress
from bayescascade.methods.density.trees.exact.rounding import PassRounding
from bayescascade.methods.density.trees.exact.shared import Boxes
from bayescascade.methods.density.trees.exact.tree_choices import choose_trees
from bayescascade.methods.density.trees.tree import Tree
from bayescascade.model.guard import EVALUATED, UNIT, certified, log_gamma_sizes

if TYPE_CHECKING:
    from bayescascade.methods.density.trees.tree_posterior import CascadePosterior


_MOST_LISTED = 1 << 16  # numbers of leaves

_real = partial(check_real, "a pass's numbers")


class PassLog:
    """Results of tilted passes, saved in a section of a checkpoint if there is one.

    `origin` is the exponent of the first pass, to which other logs are relative; `maxima` has, by
    tilt, the best tree and its log worth, nats; `sums` the log of the sum, and drawn trees' leaves.
    """

    def __init__(
        self, section: samplers.CheckpointSection | None = None, fingerprint: str = ""
    ) -> None:
        self.maxima: dict[float, tuple[float, Tree]] = {}
        self.sums: dict[float, tuple[float, list[int]]] = {}
        self.origin: int | None = None
        self._section, self._fingerprint = section, fingerprint
        stored: Any = None if section is None else section.stored()
        if section is None or stored is None:
            return
        try:
            is_ours = stored["fingerprint"] == fingerprint
            self.maxima = {
                _real(t): (_real(worth), Tree.from_flat(flat))
                for t, worth, flat in stored["maxima"]
            }
            self.sums = {
                _real(t): (_real(log_sum), [check_integer("leaves", k, 1) for k in sizes])
                for t, log_sum, sizes in stored["sums"]
            }
            if self.n_passes > 0:
                self.origin = check_integer("origin", stored["origin"])
        except (KeyError, TypeError, ValueError) as error:
            raise section.checkpoint.error(f"is damaged: {error!r}") from error
        if not is_ours:
            raise section.checkpoint.error("is of another model or other data")

    @property
    def n_passes(self) -> int:
        """Number of passes kept."""
        return len(self.maxima) + len(self.sums)

    def save(self) -> None:
        """Write the results so far."""
        if self._section is not None:
            content = {
                "fingerprint": self._fingerprint,
                "origin": self.origin,
                "maxima": [[t, worth, tree.to_flat()] for t, (worth, tree) in self.maxima.items()],
                "sums": [[t, log_sum, sizes] for t, (log_sum, sizes) in self.sums.items()],
            }
            self._section.write(json.dumps(content), is_finished=False)

    def finish(self) -> None:
        """Record that no pass will follow."""
        if self._section is not None:
            self._section.checkpoint.finish()


@dataclass
class Passes:
    """Tilted passes.

    `k` (n,) int64 are numbers of leaves, `log_w` (n,) float64 their ``ln w_K``, and `sums`, by
    tilt, the logs of the sums over all trees; from the last two, `Root.log_common` and the origin
    are subtracted.
    """

    posterior: "CascadePosterior"
    boxes: Boxes  # from a plan with one entry a box
    most: int  # no tree has more leaves
    n_jobs: int | None = 1
    progress: Progress | None = None  # called with the finished share of each pass
    n_kept: int = 0  # trees to draw from each tilt near the posterior after its sum
    log: PassLog = field(default_factory=PassLog)  # logged passes are repeated only to draw trees
    n_passes: int = 0  # passes so far, including those of the log
    sums: dict[float, float] = field(default_factory=dict)
    _kept: dict[float, list[Tree]] = field(default_factory=dict)
    _later: dict[float, np.random.Generator] = field(default_factory=dict)
    _at: float | None = None  # tilt of the boxes' current sums

    def __post_init__(self) -> None:
        plan = self.boxes.lattice.plan
        self.n_passes = self.log.n_passes
        self.root = Root.of(self.posterior, plan)
        self.bounds = PassRounding.of(self.posterior, plan)
        self.total = float(self.posterior.table.weights.sum())
        self.k = np.arange(1, min(self.most, _MOST_LISTED) + 1)
        self.log_w = self.root.log_weights(self.k, self.total)

    @property
    def has_more(self) -> bool:
        """Whether trees may have more leaves than are listed."""
        return self.k.size < self.most

    @property
    def log_common(self) -> float:
        """The constant to add to logs of densities and of their sum, nats."""
        return self.root.log_common(self.total) + (self.log.origin or 0) * UNIT_OF_EXPONENTS

    @property
    def rounding_of_common(self) -> float:
        """Bound on the error of `log_common` and of its addition, nats."""
        sizes = float(log_gamma_sizes(self.total + self.posterior.model.concentration))
        return EVALUATED * UNIT * (sizes + 2 * abs((self.log.origin or 0) * UNIT_OF_EXPONENTS))

    def lost(
        self, tilt: float, worth: float, k: Integers | None = None, log_w: Floats | None = None
    ) -> Floats:
        """Return a bound on the error of ``ln w_K + worth - tilt K``, nats; for listed K or `k`."""
        k, log_w = self.k if k is None else k, self.log_w if log_w is None else log_w
        sizes: Floats = EVALUATED * UNIT * (abs(worth) + np.abs(log_w) + abs(tilt) * k)
        return sizes + self.bounds.fixed + self.bounds.of_best * k

    def run(self, tilt: float, maximize: bool) -> float:
        """Make a pass; return its sum or maximum over all trees, nats."""
        self.boxes.run(maximize, tilt=tilt, progress=self.progress, n_jobs=self.n_jobs)
        if self.log.origin is None:
            self.log.origin = self.boxes.origin
        self.n_passes += 1
        self._at = None if maximize else tilt
        return float(self.boxes.log_values(self.log.origin)[0])

    def best_of(self, tilt: float) -> tuple[float, Tree, float, float]:
        """Return the best tree's worth, it, its log density without `log_common`, its rounding."""
        if tilt not in self.log.maxima:
            worth = self.run(tilt, maximize=True)
            (tree,) = choose_trees(self.boxes, [0], np.random.default_rng(0))  # nothing is drawn
            self.log.maxima[tilt] = worth, tree
            self.log.save()
        worth, tree = self.log.maxima[tilt]
        n_leaves = np.array([tree.n_leaves])
        log_w = self.root.log_weights(n_leaves, self.total)
        log_density = float(log_w[0]) + worth - tilt * tree.n_leaves
        own = float(self.lost(tilt, worth, n_leaves, log_w)[0])
        rounding = own + self.posterior.rounding(tree) + self.rounding_of_common
        certified(self.posterior.log_density, tree, log_density + self.log_common, rounding)
        return worth, tree, log_density, own

    def sum_of(self, tilt: float, rng: np.random.Generator, n_drawn: int = 0) -> list[int]:
        """Sum over all trees; return the numbers of leaves of some draws."""
        own = _child(rng)  # the same whether the pass is made or read from the log
        if tilt not in self.log.sums:
            log_sum = self.run(tilt, maximize=False)
            sizes = [tree.n_leaves for tree in choose_trees(self.boxes, [0] * n_drawn, own)]
            self.log.sums[tilt] = log_sum, sizes
            self.log.save()
        self.sums[tilt], sizes = self.log.sums[tilt]
        return sizes

    def keep(self, tilt: float, rng: np.random.Generator) -> None:
        """Draw trees from the last summed tilt; for logged passes only on demand."""
        own = _child(rng)
        if self._at == tilt:
            self._kept[tilt] = choose_trees(self.boxes, [0] * self.n_kept, own)
        else:
            self._later[tilt] = own

    def draws_of(self, tilt: float, n: int, rng: np.random.Generator) -> Sequence[Tree]:
        """Return trees drawn from a tilt: the kept ones, and others by a pass."""
        if tilt in self._later:
            self.run(tilt, maximize=False)
            own = self._later.pop(tilt)
            self._kept[tilt] = choose_trees(self.boxes, [0] * self.n_kept, own)
        kept = self._kept.get(tilt, [])
        drawn = kept[:n]
        del kept[:n]
        if len(drawn) < n:
            self.run(tilt, maximize=False)
            drawn = drawn + choose_trees(self.boxes, [0] * (n - len(drawn)), rng)
        return drawn

    def drop_kept(self) -> None:
        """Forget the kept trees, so that later draws depend only on their own seed."""
        self._kept.clear()
        self._later.clear()

    def slope(self, n_leaves: int) -> float:
        """Return the change of ``ln w_K`` by one more leaf."""
        at = min(max(n_leaves, 1), self.k.size - 1)
        return float(self.log_w[at] - self.log_w[at - 1]) if at > 0 else 0.0


def _child(rng: np.random.Generator) -> np.random.Generator:
    return np.random.default_rng(rng.integers(1 << 63, size=2))
