"""The blocks of a column's levels that splits can make; parts have lower numbers than wholes."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.arrays import Codes, Floats, Integers
from bayescascade.methods.density.trees.tree import pack_block


@dataclass(frozen=True, eq=False)
class Blocks:
    """The blocks of one column's levels, the whole last; `first` and `rest` part them in two."""

    codes: Sequence[Integers]  # levels of each block, ascending; for shapes, only sizes are valid
    words: NDArray[np.uint64]  # (n_blocks,): the blocks as in `Tree`; zeros for shapes
    single: Integers  # (n_levels,) int64: the block of each level alone
    pair_start: Integers  # (n_blocks + 1,) int64
    first: Codes  # (n_pairs,): the part with the lowest level, of each split in two
    rest: Codes  # (n_pairs,), ascending: the other part
    times: Floats  # (n_pairs,): number of partitions per pair; 1 except in shapes
    shape: Integers  # (n_blocks,) int64: the block's id among the column's shapes

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return len(self.codes)

    @property
    def sizes(self) -> Integers:
        """Number of levels of every block, (n_blocks,) int64."""
        return np.array([codes.size for codes in self.codes], np.int64)

    def partitions(self, most: int, by_levels: bool) -> list[list[tuple[tuple[int, ...], float]]]:
        """Return the partitions of each block into 2 to `most` blocks, and their `times`."""
        if by_levels:
            whole = [(tuple(self.single.tolist()), 1.0)] if self.n_blocks > 1 else []
            return [[]] * (self.n_blocks - 1) + [whole]
        found: list[list[tuple[tuple[int, ...], float]]] = []
        for block in range(self.n_blocks):  # parts come before wholes
            ways = []
            for pair in range(self.pair_start[block], self.pair_start[block + 1]):
                first, rest, times = int(self.first[pair]), int(self.rest[pair]), self.times[pair]
                ways += [
                    ((first, *parts), float(times * more))
                    for parts, more in [((rest,), 1.0), *found[rest]]
                    if len(parts) < most
                ]
            found.append(ways)
        return found


def column_blocks(n_levels: int, is_nominal: bool, partitions: str) -> Blocks:
    """Return the blocks of a column: all, contiguous ones, or single levels and the whole."""
    if partitions == "levels":
        codes = [np.array([code]) for code in range(n_levels)]
        if n_levels > 1:
            codes.append(np.arange(n_levels))
        pairs = [_NO_PAIRS] * len(codes)
        if n_levels == 2:
            pairs[-1] = np.array([0]), np.array([1])
        single = np.arange(n_levels)
        shape = (np.arange(len(codes)) == n_levels).astype(np.int64)
    elif is_nominal:
        masks = np.arange(1, 1 << n_levels)
        levels = np.arange(n_levels)
        codes = [levels[mask >> levels & 1 == 1] for mask in masks]
        pairs = [_subset_pairs(int(mask)) for mask in masks]
        single = (1 << np.arange(n_levels)) - 1
        shape = np.array([c.size - 1 for c in codes])
    else:
        ranges = [(low, low + m) for m in range(1, n_levels + 1) for low in range(n_levels - m + 1)]
        ids = {bounds: block for block, bounds in enumerate(ranges)}
        codes = [np.arange(low, high) for low, high in ranges]
        pairs = [_range_pairs(low, high, ids) for low, high in ranges]
        single = np.arange(n_levels)
        shape = np.array([c.size - 1 for c in codes])
    words = [pack_block(is_nominal, c.tolist()) for c in codes]
    return _joined(codes, words, single, pairs, shape)


def block_shapes(n_levels: int, is_nominal: bool, partitions: str) -> Blocks:
    """Return the blocks of a column without data: numbers of levels, with multiplicities."""
    if partitions == "levels":
        sizes = [1, n_levels] if n_levels > 1 else [1]
        pairs, times = [_NO_PAIRS] * len(sizes), np.ones(int(n_levels == 2))
        if n_levels == 2:
            pairs[-1] = np.array([0]), np.array([0])
    else:
        sizes = list(range(1, n_levels + 1))
        pairs = [(np.arange(m - 1, 0, -1) - 1, np.arange(1, m) - 1) for m in sizes]
        ways = [comb(m - 1, rest) if is_nominal else 1 for m in sizes for rest in range(1, m)]
        times = np.array(ways, np.float64)
    codes = [np.zeros(m, np.int64) for m in sizes]
    nothing = np.zeros(len(sizes), np.int64)
    return _joined(codes, [0] * len(sizes), np.zeros(n_levels, np.int64), pairs, nothing, times)


_NO_PAIRS = (np.empty(0, np.int64), np.empty(0, np.int64))


def _subset_pairs(mask: int) -> tuple[Integers, Integers]:
    """Return the ids, mask - 1, of the first parts and the rests of a set of levels."""
    rests = np.zeros(1, np.int64)
    others = mask & (mask - 1)
    while others:
        bit = others & -others
        rests = np.concatenate([rests, rests | bit])
        others ^= bit
    return (mask ^ rests[1:]) - 1, rests[1:] - 1


def _range_pairs(low: int, high: int, ids: dict[tuple[int, int], int]) -> tuple[Integers, Integers]:
    cuts = range(high - 1, low, -1)
    return np.array([ids[low, cut] for cut in cuts], np.int64), np.array(
        [ids[cut, high] for cut in cuts], np.int64
    )


def _joined(
    codes: Sequence[Integers],
    words: Sequence[int],
    single: Integers,
    pairs: Sequence[tuple[Integers, Integers]],
    shape: Integers,
    times: Floats | None = None,
) -> Blocks:
    sizes = [first.size for first, _ in pairs]
    return Blocks(
        codes=codes,
        words=np.array(words, np.uint64),
        single=single,
        pair_start=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        first=np.concatenate([first for first, _ in pairs]).astype(np.int32),
        rest=np.concatenate([rest for _, rest in pairs]).astype(np.int32),
        times=np.ones(sum(sizes)) if times is None else times,
        shape=shape,
    )
