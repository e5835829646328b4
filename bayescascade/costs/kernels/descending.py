"""Block descent: the minimum of a quadratic function plus norms by items."""

from typing import Any, NamedTuple

from numpy.typing import NDArray

from bayescascade.base.jit import inner_kernel, kernel

Array = NDArray[Any]  # the docstrings give dtypes

_MOST_PASSES = 100000
_SAME = 1e-32  # squared change below which a pass is the last


class Layout(NamedTuple):
    """Columns (u,) in blocks that share no item, and the items of each block, smaller first.

    starts (n_blocks + 1,), columns (u,): columns of each block; items (n_blocks + 1,): start of its
    items; members (m + 1,), incurring (n,): columns of each item; limits (m,) float64; lengths
    (n_blocks,) float64 > 0: step of each block; nested: 1 if one pass over the items is exact.
    """

    starts: Array
    columns: Array
    items: Array
    members: Array
    incurring: Array
    limits: Array
    lengths: Array
    nested: int


@inner_kernel
def shrink(values, pulls, layout, block, length):
    """Subtract the pulls of a block's items from its values, by a step of this length."""
    first, last = layout.items[block], layout.items[block + 1]
    n_outputs = values.shape[1]
    for place in range(layout.members[first], layout.members[last]):
        for k in range(n_outputs):
            if layout.nested == 1:
                pulls[place, k] = 0.0
            else:  # starts from the last pulls
                values[layout.incurring[place], k] -= pulls[place, k]
    for _ in range(1 if layout.nested == 1 else _MOST_PASSES):
        moved = 0.0
        for item in range(first, last):
            square = 0.0
            for place in range(layout.members[item], layout.members[item + 1]):
                for k in range(n_outputs):
                    both = values[layout.incurring[place], k] + pulls[place, k]
                    square += both * both
            limit = layout.limits[item] * length
            share = 1.0 if square <= limit * limit else limit / square**0.5
            for place in range(layout.members[item], layout.members[item + 1]):
                column = layout.incurring[place]
                for k in range(n_outputs):
                    both = values[column, k] + pulls[place, k]
                    change = share * both - pulls[place, k]
                    moved = max(moved, change * change)
                    pulls[place, k] = share * both
                    values[column, k] = 0.0 if share == 1.0 else both - share * both
        if moved <= _SAME:
            break


@kernel
def shrink_all(values: Array, pulls: Array, layout: Layout) -> None:
    """Subtract the pulls of items from values (u, c); pulls (n, c) are changed."""
    for block in range(layout.lengths.size):
        shrink(values, pulls, layout, block, layout.lengths[block])


@kernel
def descend(
    curvature: Array,
    slope: Array,
    values: Array,
    before: Array,
    pulls: Array,
    layout: Layout,
    most_sweeps: int,
    tolerance: float,
) -> int:
    """Descend over blocks until no step gains more than the tolerance; return the number of sweeps.

    curvature (1, u c, u c) or, for each output, (c, u, u); slope (u, c), the gradient, and values
    (u, c) are changed; before (u, c) is scratch; so is pulls (n, c), initially 0.
    """
    n_columns, n_outputs = values.shape
    is_whole = curvature.shape[0] == 1
    for sweep in range(most_sweeps):
        most = 0.0
        for block in range(layout.lengths.size):
            length = layout.lengths[block]
            for place in range(layout.starts[block], layout.starts[block + 1]):
                j = layout.columns[place]
                for k in range(n_outputs):
                    before[j, k] = values[j, k]
                    values[j, k] -= length * slope[j, k]
            shrink(values, pulls, layout, block, length)
            gained = 0.0
            for place in range(layout.starts[block], layout.starts[block + 1]):
                j = layout.columns[place]
                for k in range(n_outputs):
                    change = values[j, k] - before[j, k]
                    if change == 0.0:
                        continue
                    gained += change * change / length
                    for i in range(n_columns):
                        if is_whole:
                            for m in range(n_outputs):
                                of = curvature[0, j * n_outputs + k, i * n_outputs + m]
                                slope[i, m] += of * change
                        else:
                            slope[i, k] += curvature[k, j, i] * change
            most = max(most, gained)
        if most <= tolerance:
            return sweep + 1
    return most_sweeps
