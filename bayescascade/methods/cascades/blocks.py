"""Blocks: the sets of levels that a branch of a split keeps, each packed into one 64-bit word.

A nominal block is a bit mask over at most 64 level codes. A block of an ordinal or continuous
column is the half-open range of codes ``[low, high)``, packed as ``low + (high << 32)``. Which of
the two a word means follows from its column's kind alone.
"""

from collections.abc import Iterable

__all__ = ["block_codes", "full_block", "pack_block"]

_LOW_BITS = (1 << 32) - 1


def pack_block(is_nominal: bool, codes: Iterable[int]) -> int:
    """Return the word for a nonempty set of level codes; contiguous codes unless nominal."""
    members = sorted(codes)
    if is_nominal:
        return sum(1 << code for code in members)
    if members != list(range(members[0], members[-1] + 1)):
        raise ValueError(f"codes of an ordered column must be contiguous, got {members}")
    return members[0] | (members[-1] + 1) << 32


def block_codes(is_nominal: bool, block: int) -> tuple[int, ...]:
    """Return the level codes of a block, ascending."""
    word = int(block)
    if is_nominal:
        return tuple(code for code in range(word.bit_length()) if word >> code & 1)
    return tuple(range(word & _LOW_BITS, word >> 32))


def full_block(is_nominal: bool, n_levels: int) -> int:
    """Return the block of all `n_levels` codes of a column."""
    return (1 << n_levels) - 1 if is_nominal else n_levels << 32
