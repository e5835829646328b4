"""The graph of the states of rule lists, layer by layer; `sums` has formulas and proofs."""

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from bayescascade.base.arrays import Flags, Floats, Integers
from bayescascade.base.errors import TooLargeError
from bayescascade.base.watch import check_time
from bayescascade.methods.lists.exact.bounds import log_lengths, part_model, slack
from bayescascade.methods.lists.exact.points import SearchRounding, listed_cells
from bayescascade.methods.lists.excess import entropies
from bayescascade.methods.lists.kernels.parts import part_value
from bayescascade.methods.lists.kernels.states import Edges, Masks, Room, expand
from bayescascade.methods.lists.posterior import (
    DensityListPosterior,
    LabelListPosterior,
    RuleListPosterior,
)

_OF_EDGES = 1e-3  # of what a layer may leave out, for edges
_MOST_FLAGS = 3e7  # candidates times rows
_EDGE, _POINT = 100.0, 0.3  # operations, nanoseconds about, for an edge, a point and a class
_LEAST_STATES = 10  # for each candidate; every sum that ended within a second had 18 and more
_BYTES_OF_EDGE = 100  # and of states, an eighth of them

Bits = NDArray[np.uint64]
AnyCodes = NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """The states of some number of rules, and the edges to the next layer."""

    keys: Bits  # (S, W + 1)
    log_masses: Floats  # A
    ends: Floats  # C - A
    sources: Integers  # ascending
    targets: Integers
    rules: Integers  # groups of candidates, or IDLE - size
    values: Floats  # v
    times: Floats  # n

    @property
    def weights(self) -> Floats:
        """Log values of all rules of each edge together."""
        return self.values + np.log(self.times)

    def edges_of(self, states: Any) -> tuple[Any, Any]:  # Any: an integer or an array
        """Return the first edge of states, and the first one after them."""
        return tuple(np.searchsorted(self.sources, [states, states + 1]))


class Separated:
    """The points that no candidate separates, and groups of equal candidates."""

    def __init__(self, posterior: RuleListPosterior, memory_limit: float) -> None:
        self.posterior, found = posterior, posterior.antecedents
        table, is_density = posterior.table, isinstance(posterior, DensityListPosterior)
        n_rows = prod(table.schema.n_levels.tolist()) if is_density else table.n_distinct
        if len(found) * n_rows > _MOST_FLAGS:
            raise too_large(f"{len(found):,} candidates on {n_rows:,} rows or cells")
        if isinstance(posterior, DensityListPosterior):
            codes, volumes, rates = listed_cells(posterior, memory_limit)
            sums = np.column_stack([rates * volumes, volumes])
        else:
            assert isinstance(posterior, LabelListPosterior), "there are two likelihoods"
            target = table.schema.names.index(posterior.target)
            codes = np.delete(table.codes, target, axis=0)
            sums = np.zeros((n_rows, posterior.class_weights.size))
            sums[np.arange(n_rows), table.codes[target]] = table.weights
        holds = self.captured(codes)
        self.points, first, point_of = distinct_flags(holds.T)
        merged = np.zeros((first.size, sums.shape[1]))
        np.add.at(merged, point_of, sums)
        sizes = found.sizes[:, np.newaxis] == np.arange(1, found.max_size + 1)
        _, one, group = distinct_flags(np.column_stack([holds[:, first], sizes]))
        self.members = [np.flatnonzero(group == k) for k in range(one.size)]
        n_parts = log_lengths(posterior).size
        shape = (first.size, 3 if is_density else sums.shape[1] + 4)
        self.rounding = SearchRounding.of(posterior, n_rows, shape, n_parts)
        self.model = part_model(posterior, is_whole=self.rounding.is_whole)
        if is_density:
            saturated = xlogy(merged[:, 0], merged[:, 0] / (merged[:, 1] * self.model.total))
        else:
            saturated = -entropies(merged)
        self.n_words = -(-first.size // 64)
        features = np.zeros((64 * self.n_words, merged.shape[1] + 1))
        features[: first.size] = np.column_stack([merged, saturated])
        if float(n_parts) ** found.max_size >= 2.0**63:
            raise too_large(f"rules of up to {found.max_size} conditions")
        units = [0, *(n_parts**k for k in range(found.max_size))]  # n_parts: more than all rules
        self.masks = Masks(
            bits=_packed(holds[one][:, first], self.n_words),
            sizes=found.sizes[one],
            times=np.array([each.size for each in self.members], np.float64),
            features=features,
            units=np.array(units, np.uint64),
        )
        everything = _packed(np.ones((1, first.size), np.bool_), self.n_words)
        self.root: Bits = np.pad(everything, ((0, 0), (0, 1)))
        self.lengths = log_lengths(posterior)
        more = slack(n_parts, self.model.total, self.model.alphas[0]) * is_density
        self.tails = np.array(
            [np.logaddexp.reduce(self.lengths[m:] + more[: n_parts - m]) for m in range(n_parts)]
        )
        self._log_sizes = posterior.prior.log_sizes(found.max_size)

    def captured(self, codes: AnyCodes) -> Flags:
        """Return the rows that each candidate captures, (n_candidates, n_rows)."""
        items, members = self.posterior.antecedents.items, self.posterior.antecedents.members
        columns = codes[items[:, 0]]
        holds = (columns >= items[:, 1:2]) & (columns < items[:, 2:3])
        holds = np.concatenate([holds, np.ones((1, codes.shape[1]), np.bool_)])  # for padding, -1
        captured = np.ones((len(members), codes.shape[1]), np.bool_)
        for each in members.T:
            captured &= holds[each]
        return captured

    def used(self, keys: Bits) -> Integers:
        """Return the numbers of rules of 0 (none), 1, .. conditions of states, (S, H + 1)."""
        units = self.masks.units[1:]
        used = keys[:, -1:] // units % np.uint64(self.lengths.size)
        return np.pad(used.astype(np.int64), ((0, 0), (1, 0)))

    def next_rule(self, used: Integers) -> Floats:
        """Return the log prior of a single next rule of each size, (S, H + 1)."""
        left = self.posterior.antecedents.n_of_size - used
        weights = np.where(left > 0, self._log_sizes, -np.inf)
        with np.errstate(divide="ignore", invalid="ignore"):  # if no candidate is left
            log_norm = np.logaddexp.reduce(weights, axis=1, keepdims=True)
            return np.where(left > 0, weights - log_norm - np.log(left), -np.inf)


def layers_of(
    problem: Separated,
    *,
    most_work: float,
    memory_limit: float,
    most_lost: float = 0.0,
    log_least: float = -np.inf,
    beam: int | None = None,
) -> tuple[list[Layer], float, float]:
    """Return the layers, the log of their sum, and a bound on what is left out, as its share.

    `log_least` is a lower bound on the log of the sum. With a beam, only this number of states of
    each layer is kept, without edges, and there is no bound. TooLargeError beyond the limits,
    operations and bytes.
    """
    masks, model, lengths = problem.masks, problem.model, problem.lengths
    n_rules, n_groups = lengths.size - 1, masks.sizes.size + masks.units.size
    share = most_lost / (2 * n_rules + 2)
    an_edge = _EDGE + _POINT * len(problem.points) * masks.features.shape[1]
    if an_edge * _LEAST_STATES * n_groups**2 > most_work:
        raise too_large("more work than is allowed")
    keys, log_masses = problem.root, np.zeros(1)
    saturated = masks.features[:, -1].sum(keepdims=True)
    values = np.array([part_value(model, masks.features.sum(axis=0))])
    sums = np.zeros((2, max(masks.features.shape[1], masks.units.size)))
    log_total, lost, layers, work, n_kept = -np.inf, 0.0, list[Layer](), 0.0, 0
    for m in range(n_rules + 1):
        if not len(keys):
            break
        check_time()
        ends = lengths[m] + values
        log_total = float(np.logaddexp.reduce(log_masses + ends, initial=log_total))
        n_most = len(keys) * n_groups if m < n_rules else 0
        work += an_edge * n_most
        if work > most_work:
            raise too_large("more work than is allowed")
        log_floor = max(log_least, log_total)
        with np.errstate(divide="ignore"):  # a beam leaves out no edges
            least = log_floor + np.log(share * _OF_EDGES / max(n_most, 1))
        tail = problem.tails[min(m + 1, n_rules)] + 2.0 * problem.rounding.bound
        most = max(1, int(memory_limit / _BYTES_OF_EDGE) - n_kept)
        room, edges = _room(min(n_most, most), min(n_most, most // 8), keys.shape[1])
        left_out, used = np.zeros(1), problem.used(keys)
        n_states, n_edges = 0, 0
        if n_most:
            n_states, n_edges = expand(
                model, masks, keys, log_masses, saturated, problem.next_rule(used), used, tail,
                least, edges, room, sums, left_out,
            )  # fmt: skip
        if n_states < 0:
            raise too_large("more memory than is allowed")
        edges = Edges(*(each[:n_edges].copy() for each in edges))
        room = Room(*(each[:n_states] for each in room))
        reached = log_masses[edges.sources] + edges.values + np.log(edges.times)
        after = log_sums(np.full(n_states, -np.inf), edges.targets, reached)
        if beam is not None:
            kept = np.sort(np.argsort(-(after + room.closed), kind="stable")[:beam])
        else:
            with np.errstate(over="ignore"):  # a bound may be far above the sum
                bounds = np.exp(after + tail + room.saturated - log_floor)
                order = np.argsort(bounds)
                totals = np.cumsum(np.append(0.0, bounds[order]))
            n_out = int(np.searchsorted(totals, share, side="right")) - 1
            lost += float(left_out[0] * np.exp(least - log_floor) + totals[n_out])
            kept = np.sort(order[n_out:])
            positions = np.full(n_states, -1)
            positions[kept] = np.arange(kept.size)
            edges = Edges(*(each[positions[edges.targets] >= 0] for each in edges))
            edges = edges._replace(targets=positions[edges.targets])
            n_kept += edges.sources.size
            layers.append(Layer(keys, log_masses, ends, *edges))
        keys, log_masses = room.keys[kept], after[kept]
        saturated, values = room.saturated[kept], room.closed[kept]
    return layers, log_total, lost


def _room(n_edges: int, n_states: int, n_words: int) -> tuple[Room, Edges]:
    """Allocate room for edges and states; pages that are not used cost nothing."""
    places = np.full(1 << (2 * n_states).bit_length(), -1, np.int32)
    keys = np.empty((n_states + 1, n_words), np.uint64)
    closed, saturated = np.empty((2, n_states + 1))
    room = Room(keys, closed, saturated, places)
    return room, Edges(*np.empty((3, n_edges), np.int32), *np.empty((2, n_edges)))


def log_sums(start: Floats, places: Integers, values: Floats) -> Floats:
    """Return ``ln [exp(start) + sum exp(values)]``, with each value added at its place."""
    most = maxima(start, places, values)
    base = np.where(np.isfinite(most), most, 0.0)
    total = np.exp(start - base) + np.bincount(places, np.exp(values - base[places]), start.size)
    with np.errstate(divide="ignore"):
        found: Floats = base + np.log(total)
    return found


def maxima(start: Floats, places: Integers, values: Floats) -> Floats:
    """Return the maximum of `start`, and of the values at each place."""
    most = start.copy()
    np.maximum.at(most, places, values)
    return most


def distinct_flags(flags: Flags) -> tuple[Any, Integers, Integers]:
    """Return distinct rows of truth values, packed, the first row of each, and the one of each."""
    packed = np.ascontiguousarray(np.packbits(flags, axis=1))
    whole = packed.view(np.dtype((np.void, packed.shape[1]))).reshape(-1)
    keys, first, place = np.unique(whole, return_index=True, return_inverse=True)
    return keys, first, place.reshape(-1)


def _packed(flags: Flags, n_words: int) -> Bits:
    flags = np.pad(flags, ((0, 0), (0, 64 * n_words - flags.shape[1])))
    packed = np.ascontiguousarray(np.packbits(flags, axis=1, bitorder="little"))
    return packed.view("<u8").astype(np.uint64)


def too_large(needed: str) -> TooLargeError:
    """Return the error of a sum over too many lists."""
    return TooLargeError(f"a sum over all lists needs {needed}", needed)
