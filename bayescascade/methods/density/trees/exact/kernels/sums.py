"""Sums, or maxima, of products of entries over the ways to split one column of a box.

The sum over partitions of a block R into b blocks obeys ``Q_b(R) = sum over first parts F, which
hold the lowest level, of f(F) Q_(b-1)(R - F)`` with ``Q_1 = f``, the entries of the boxes below.
"""

from bayescascade.base.jit import inner_kernel
from bayescascade.methods.density.trees.exact.kernels.layout import UNION
from bayescascade.methods.density.trees.exact.kernels.terms import ZERO, added, normalized


@inner_kernel
def _clear(out, out_exponent, at, n):
    for k in range(at, at + n):
        out[k], out_exponent[k] = 0.0, ZERO


@inner_kernel
def _normalize(out, out_exponent, at, n):
    for k in range(at, at + n):
        out[k], out_exponent[k] = normalized(out[k], out_exponent[k])


@inner_kernel
def _join(
    shift, left, left_exponent, i0, n_left, right, right_exponent, k0, n_right, times, maximize,
    out, out_exponent, at, limit,
):  # fmt: skip
    """Add to out[at : at + limit] the products of two parts' entries."""
    while n_left > 0 and left[i0 + n_left - 1] == 0.0:  # parts may have fewer cells than leaves
        n_left -= 1
    while n_right > 0 and right[k0 + n_right - 1] == 0.0:
        n_right -= 1
    for i in range(n_left):
        mantissa = left[i0 + i] * times
        if mantissa == 0.0:
            continue
        exponent = left_exponent[i0 + i]
        n = n_right if shift == UNION else min(n_right, limit - shift - i)
        for k in range(n):
            product = mantissa * right[k0 + k]
            if product == 0.0:
                continue
            target = at + (i | k if shift == UNION else i + k + shift)
            power = exponent + right_exponent[k0 + k]
            if power == out_exponent[target] and not maximize:
                out[target] += product
            else:
                out[target], out_exponent[target] = added(
                    out[target], out_exponent[target], product, power, maximize
                )


@inner_kernel
def block_sums(lattice, terms, values, work, column, block, base, stride, limit, maximize, region):
    """Write sums over a block's partitions into 2 .. branches to `row_of`; its rests' are there."""
    start = lattice.starts[column]
    most = min(terms.most, lattice.sizes[start + block])
    n = limit if terms.shift == UNION else limit - terms.shift
    for b in range(2, most + 1):
        _clear(work.sums, work.sums_exponent, row_of(terms, work, region, block, b), limit)
    for pair in range(lattice.pair_start[start + block], lattice.pair_start[start + block + 1]):
        left = base + lattice.first[pair] * stride
        rest = lattice.rest[pair]
        times = 1.0 if maximize else lattice.times[pair]
        _join(
            terms.shift, values.mantissa, values.exponent, left, n,
            values.mantissa, values.exponent, base + rest * stride, n, times, maximize,
            work.sums, work.sums_exponent, row_of(terms, work, region, block, 2), limit,
        )  # fmt: skip
        for b in range(3, min(most, lattice.sizes[start + rest] + 1) + 1):
            _join(
                terms.shift, values.mantissa, values.exponent, left, n,
                work.sums, work.sums_exponent, row_of(terms, work, region, rest, b - 1), n,
                times, maximize,
                work.sums, work.sums_exponent, row_of(terms, work, region, block, b), limit,
            )  # fmt: skip
    for b in range(2, most + 1):
        _normalize(work.sums, work.sums_exponent, row_of(terms, work, region, block, b), limit)


@inner_kernel
def all_sums(lattice, terms, values, work, column, block, base, stride, limit, maximize, region):
    """Write the sums of a block as in `block_sums`, after those of all its rests."""
    start = lattice.starts[column]
    first, last = lattice.pair_start[start + block], lattice.pair_start[start + block + 1]
    if terms.most == 2:  # only the block's own sum is needed
        first = last
    inner = limit if terms.shift == UNION else limit - terms.shift
    for pair in range(first, last + 1):
        part, n = (lattice.rest[pair], inner) if pair < last else (block, limit)
        block_sums(lattice, terms, values, work, column, part, base, stride, n, maximize, region)


@inner_kernel
def row_of(terms, work, region, block, b):
    """Return the position in `sums` of the entries of a block's partitions into b blocks."""
    if terms.most == 2:
        block = 0
    return (region + block * (terms.most + 1) + b) * work.total.shape[0]


@inner_kernel
def level_products(lattice, terms, values, work, column, base, stride, limit, maximize):
    """Write the product of the column's last b levels to row b of the side, b = 2 .. q."""
    start, stop = lattice.level_start[column], lattice.level_start[column + 1]
    q = stop - start
    for b in range(2, q + 1):
        inner = limit if terms.shift == UNION else limit - terms.shift * (q - b)
        at = row_of(terms, work, work.side[0], 0, b)
        _clear(work.sums, work.sums_exponent, at, inner)
        n = inner if terms.shift == UNION else inner - terms.shift
        left = base + lattice.single[stop - b] * stride
        n_left = n if terms.shift == UNION else n - terms.shift * (b - 2)
        if b == 2:
            _join(
                terms.shift, values.mantissa, values.exponent, left, n_left,
                values.mantissa, values.exponent, base + lattice.single[stop - 1] * stride, n,
                1.0, maximize, work.sums, work.sums_exponent, at, inner,
            )  # fmt: skip
        else:
            _join(
                terms.shift, values.mantissa, values.exponent, left, n_left,
                work.sums, work.sums_exponent, row_of(terms, work, work.side[0], 0, b - 1), n,
                1.0, maximize, work.sums, work.sums_exponent, at, inner,
            )  # fmt: skip
        _normalize(work.sums, work.sums_exponent, at, inner)


@inner_kernel
def add_scaled(terms, work, at, b, limit, bit, maximize):
    """Add sums[at : at + limit], times the factor of b branches, to the box's entries."""
    for k in range(limit):
        mantissa, exponent = work.sums[at + k], work.sums_exponent[at + k]
        if mantissa == 0.0:
            continue
        if terms.has_factors:
            mantissa *= work.factor[b]
            exponent += work.factor_exponent[b]
        work.total[k | bit], work.total_exponent[k | bit] = added(
            work.total[k | bit], work.total_exponent[k | bit], mantissa, exponent, maximize
        )


@inner_kernel
def pair_sum(lattice, values, block, base, stride, maximize, mantissa, exponent):
    """Add the products over two-way splits of a block to a number, for boxes with one entry."""
    for pair in range(lattice.pair_start[block], lattice.pair_start[block + 1]):
        left = base + lattice.first[pair] * stride
        right = base + lattice.rest[pair] * stride
        product = values.mantissa[left] * values.mantissa[right]
        power = values.exponent[left] + values.exponent[right]
        if not maximize:
            product *= lattice.times[pair]
            if power == exponent:
                mantissa += product
                continue
        mantissa, exponent = added(mantissa, exponent, product, power, maximize)
    return mantissa, exponent
