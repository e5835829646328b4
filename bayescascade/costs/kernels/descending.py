"""Block descent: the least of a quadratic function plus norms of what items pay for."""

from typing import Any, NamedTuple

from numpy.typing import NDArray

from bayescascade.base.jit import inner_kernel, kernel

Array = NDArray[Any]  # the docstrings give dtypes

_MOST_PASSES = 100000
_SAME = 1e-32  # of squares: a pass that changes less is the last


class Layout(NamedTuple):
    """Columns (u,) in blocks that share no item; items of a block, the smaller ones first.

    starts (n_blocks + 1,), columns (u,): of each block; items (n_blocks + 1,): where its items
    begin; members (m + 1,), incurring (n,): the columns of each item; limits (m,) float64; lengths
    (n_blocks,) float64 > 0: the step of each block; nested: 1 if one pass over the items is exact.
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
    """Take from the values of a block what its items pull, by a step of this length."""
    first, last = layout.items[block], layout.items[block + 1]
    n_outputs = values.shape[1]
    for place in range(layout.members[first], layout.members[last]):
        for k in range(n_outputs):
            if layout.nested == 1:
                pulls[place, k] = 0.0
            else:  # begun where the last ended
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
    """Take from values (u, c) what items pull; pulls (n, c) are changed."""
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
    """Descend over blocks until no step gains more than the tolerance; return the sweeps done.

    curvature (1, u c, u c) or, of each output, (c, u, u); slope (u, c), the gradient, and values
    (u, c) are changed; before (u, c) is work, pulls (n, c), 0 at first, too.
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
