"""Blocks of levels, packed as `bayescascade.methods.cascades.tree` says, and their widths."""

import numpy as np

from bayescascade.base.jit import inner_kernel

__all__ = [
    "block_size",
    "block_width",
    "blocks_of",
    "full_block",
    "in_block",
    "levels_of",
    "lowest_code",
]


@inner_kernel
def block_size(is_nominal, block):
    """Return the number of codes in a block."""
    if is_nominal:
        size = 0
        while block:
            block &= block - np.uint64(1)
            size += 1
        return size
    return np.int64(block >> np.uint64(32)) - np.int64(block & np.uint64(0xFFFFFFFF))


@inner_kernel
def in_block(is_nominal, block, code):
    """Whether a code is in a block."""
    if is_nominal:
        return (block >> np.uint64(code)) & np.uint64(1) == np.uint64(1)
    return np.uint64(code) >= block & np.uint64(0xFFFFFFFF) and np.uint64(
        code
    ) < block >> np.uint64(32)


@inner_kernel
def levels_of(is_nominal, block, out):
    """Write a block's codes, ascending, and return how many."""
    size = 0
    if is_nominal:
        code = 0
        while block:
            if block & np.uint64(1):
                out[size] = code
                size += 1
            block >>= np.uint64(1)
            code += 1
    else:
        for code in range(
            np.int64(block & np.uint64(0xFFFFFFFF)), np.int64(block >> np.uint64(32))
        ):
            out[size] = code
            size += 1
    return size


@inner_kernel
def block_width(table, j, block):
    """Return the total width of a block of column `j`."""
    width = 0.0
    for code in range(table.n_levels[j]):
        if in_block(table.nominal[j], block, code):
            width += table.widths[table.offsets[j] + code]
    return width


@inner_kernel
def full_block(table, j):
    """Return the block of all codes of column `j`."""
    if table.nominal[j]:
        return np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - table.n_levels[j])
    return np.uint64(table.n_levels[j]) << np.uint64(32)


@inner_kernel
def blocks_of(is_nominal, codes, m, assign, b, out):
    """Write the `b` packed blocks that `assign` makes of `m` ascending codes."""
    for branch in range(b):
        out[branch] = np.uint64(0)
    for i in range(m):
        code = np.uint64(codes[i])
        branch = assign[codes[i]]
        if is_nominal:
            out[branch] |= np.uint64(1) << code
        elif out[branch] == 0:
            out[branch] = code | (code + np.uint64(1)) << np.uint64(32)
        else:
            out[branch] = (out[branch] & np.uint64(0xFFFFFFFF)) | (
                code + np.uint64(1)
            ) << np.uint64(32)


@inner_kernel
def lowest_code(is_nominal, block):
    """Return the lowest code of a block."""
    if not is_nominal:
        return np.int64(block & np.uint64(0xFFFFFFFF))
    code = 0
    while not block & np.uint64(1):
        block >>= np.uint64(1)
        code += 1
    return code
