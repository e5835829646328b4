"""Walking over the boxes of a lattice line by line, and where their entries are."""

from bayescascade.base.jit import inner_kernel

__all__ = ["enter_box", "find_children", "find_line", "find_shape", "first_line", "next_line"]


@inner_kernel
def first_line(lattice, index, is_open, work):
    """Go to the first line of the open boxes that have entries."""
    work.cost[0] = 0
    _lowest_from(lattice, index, is_open, work, 0)


@inner_kernel
def enter_box(lattice, index, work):
    """Go to the line of the box of `work.digits`, all columns' included."""
    work.cost[0] = 0
    for j in range(work.digits.shape[0] - 1):
        whole = lattice.starts[j + 1] - lattice.starts[j] - 1
        work.cost[j + 1] = _raised(lattice, index, work.cost[j], j, work.digits[j] < whole)


@inner_kernel
def next_line(lattice, index, is_open, work):
    """Go to the next line; False behind the last."""
    for back in range(work.digits.shape[0] - 1):
        j = work.digits.shape[0] - 2 - back
        start, whole = lattice.starts[j], lattice.starts[j + 1] - lattice.starts[j] - 1
        if work.digits[j] < whole:
            digit = work.digits[j] + 1
            while not is_open[start + digit]:
                digit += 1
            work.digits[j] = digit
            work.cost[j + 1] = _raised(lattice, index, work.cost[j], j, digit < whole)
            _lowest_from(lattice, index, is_open, work, j + 1)
            return True
    return False


@inner_kernel
def _lowest_from(lattice, index, is_open, work, column):
    """Give the outer columns from `column` on the smallest digits that lead to entries."""
    last = work.digits.shape[0] - 1
    for j in range(column, last):
        start, whole = lattice.starts[j], lattice.starts[j + 1] - lattice.starts[j] - 1
        digit = 0 if index.step[j, work.cost[j]] > 0 else whole
        while not is_open[start + digit]:
            digit += 1
        work.digits[j] = digit
        work.cost[j + 1] = _raised(lattice, index, work.cost[j], j, digit < whole)


@inner_kernel
def _raised(lattice, index, cost, j, is_narrowed):
    if not is_narrowed:
        return cost
    return min(cost + lattice.costs[j], index.size.shape[0] - 1)


@inner_kernel
def find_line(index, work, base, stride):
    """Write to the last place of base and stride where the line's own entries are."""
    last = work.digits.shape[0] - 1
    stride[last] = index.step[last, work.cost[last]]
    base[last] = -index.lowest[last] * stride[last]
    for j in range(last):
        base[last] += (work.digits[j] - index.lowest[j]) * index.step[j, work.cost[j]]


@inner_kernel
def find_shape(lattice, index, work):
    """Return base and stride of the shapes of the line's boxes."""
    last = work.digits.shape[0] - 1
    stride = index.step[last, work.cost[last]]
    base = -index.lowest[last] * stride
    for j in range(last):
        shape = lattice.shape[lattice.starts[j] + work.digits[j]]
        base += (shape - index.lowest[j]) * index.step[j, work.cost[j]]
    return base, stride


@inner_kernel
def find_children(lattice, index, work, base, stride, step):
    """Write where the line's entries are, for its boxes and for those narrower in one column.

    With block x of column j, and digit y of the last column, a child's entries start at
    ``base[j] + x * stride[j] + y * step[j]``.
    """
    last = work.digits.shape[0] - 1
    before = 0
    behind = 0
    for j in range(last):
        behind += (work.digits[j] - index.lowest[j]) * index.step[j, work.cost[j]]
    own_step = index.step[last, work.cost[last]]
    for j in range(last):
        stride[j] = index.step[j, work.cost[j]]
        own = (work.digits[j] - index.lowest[j]) * stride[j]
        behind -= own
        whole = lattice.starts[j + 1] - lattice.starts[j] - 1
        if lattice.costs[j] == 0 or work.digits[j] < whole:
            base[j] = before + behind
            step[j] = own_step
        else:  # a child costs more, and so do the columns behind it
            base[j] = before
            cost = _raised(lattice, index, work.cost[j], j, True)
            for i in range(j + 1, last):
                base[j] += (work.digits[i] - index.lowest[i]) * index.step[i, cost]
                is_narrowed = work.digits[i] < lattice.starts[i + 1] - lattice.starts[i] - 1
                cost = _raised(lattice, index, cost, i, is_narrowed)
            step[j] = index.step[last, cost]
        base[j] -= index.lowest[j] * stride[j] + index.lowest[last] * step[j]
        before += own
    stride[last] = own_step
    step[last] = 0
    base[last] = before - index.lowest[last] * own_step
