"""Sums, or maxima, of products of entries over the ways to split one column of a box.

The sum over partitions of a block R into b blocks obeys ``Q_b(R) = sum over first parts F, which
hold the lowest level, of f(F) Q_(b-1)(R - F)`` with ``Q_1 = f``, the entries of the boxes below.
"""

from bayescascade._jit import inner_kernel
from bayescascade.cascades.exact.kernels.layout import UNION
from bayescascade.cascades.exact.kernels.scaled import ZERO, added, normalized

__all__ = ["add_scaled", "block_sums", "level_products", "side_sums"]


@inner_kernel
def _clear(out, out_exponent, at, n):
    for k in range(at, at + n):
        out[k] = 0.0
        out_exponent[k] = ZERO


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
def block_sums(
    lattice, terms, values, column, block, base, stride, limit, maximize,
    out, out_exponent, n_entries, keeps,
):  # fmt: skip
    """Write the sums over partitions of a block into 2 .. branches; return the most branches.

    Row b of a block goes to out[(block * (most + 1) + b) * n_entries :], where the rows of its
    rests must stand already; without `keeps`, of two-way splits, to the rows of block 0.
    """
    start = lattice.starts[column]
    most = min(terms.most, lattice.sizes[start + block])
    n_rows = terms.most + 1
    row = block * n_rows * n_entries if keeps else 0
    n = limit if terms.shift == UNION else limit - terms.shift
    for b in range(2, most + 1):
        _clear(out, out_exponent, row + b * n_entries, limit)
    for pair in range(lattice.pair_start[start + block], lattice.pair_start[start + block + 1]):
        left = base + lattice.first[pair] * stride
        rest = lattice.rest[pair]
        times = 1.0 if maximize else lattice.times[pair]
        _join(
            terms.shift, values.mantissa, values.exponent, left, n,
            values.mantissa, values.exponent, base + rest * stride, n, times, maximize,
            out, out_exponent, row + 2 * n_entries, limit,
        )  # fmt: skip
        for b in range(3, min(most, lattice.sizes[start + rest] + 1) + 1):
            _join(
                terms.shift, values.mantissa, values.exponent, left, n,
                out, out_exponent, (rest * n_rows + b - 1) * n_entries, n, times, maximize,
                out, out_exponent, row + b * n_entries, limit,
            )  # fmt: skip
    for b in range(2, most + 1):
        _normalize(out, out_exponent, row + b * n_entries, limit)
    return most


@inner_kernel
def side_sums(
    lattice, terms, values, column, block, base, stride, limit, maximize,
    out, out_exponent, n_entries, keeps,
):  # fmt: skip
    """Write the sums of a block as `block_sums` does, those of all its rests first."""
    start = lattice.starts[column]
    if keeps:
        inner = limit if terms.shift == UNION else limit - terms.shift
        for pair in range(lattice.pair_start[start + block], lattice.pair_start[start + block + 1]):
            block_sums(
                lattice, terms, values, column, lattice.rest[pair], base, stride, inner, maximize,
                out, out_exponent, n_entries, keeps,
            )  # fmt: skip
    return block_sums(
        lattice, terms, values, column, block, base, stride, limit, maximize,
        out, out_exponent, n_entries, keeps,
    )  # fmt: skip


@inner_kernel
def level_products(
    lattice, terms, values, column, base, stride, limit, maximize, out, out_exponent, n_entries
):
    """Write to row b the product of the column's last b levels, b = 2 .. q; return q."""
    start, stop = lattice.level_start[column], lattice.level_start[column + 1]
    q = stop - start
    right, right_exponent = values.mantissa, values.exponent
    k0 = base + lattice.single[stop - 1] * stride
    for b in range(2, q + 1):
        inner = limit if terms.shift == UNION else limit - terms.shift * (q - b)
        _clear(out, out_exponent, b * n_entries, inner)
        n = inner if terms.shift == UNION else inner - terms.shift
        left = base + lattice.single[stop - b] * stride
        n_left = n if terms.shift == UNION else n - terms.shift * (b - 2)
        _join(
            terms.shift, values.mantissa, values.exponent, left, n_left,
            right, right_exponent, k0, n, 1.0, maximize,
            out, out_exponent, b * n_entries, inner,
        )  # fmt: skip
        _normalize(out, out_exponent, b * n_entries, inner)
        right, right_exponent, k0 = out, out_exponent, b * n_entries
    return q


@inner_kernel
def add_scaled(terms, work, row, row_exponent, at, b, limit, bit, maximize):
    """Add row[at : at + limit], times what b branches are worth, to the box's entries."""
    for k in range(limit):
        mantissa, exponent = row[at + k], row_exponent[at + k]
        if mantissa == 0.0:
            continue
        if terms.is_branch:
            mantissa *= work.factor[b]
            exponent += work.factor_exponent[b]
        work.total[k | bit], work.total_exponent[k | bit] = added(
            work.total[k | bit], work.total_exponent[k | bit], mantissa, exponent, maximize
        )
