"""Which draws of a cascade are kept: as many as fit, evenly chosen, and how they come from files.

Draws are packed, with what equal leaves have in common once. Where they take more than their share
of memory all the same, every second one is left out, until the others fit.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from bayescascade.base.errors import ModelFileError
from bayescascade.data.schema import Schema
from bayescascade.methods.cascades.counted_tree import CountedTree
from bayescascade.methods.cascades.packed_trees import PackedTrees
from bayescascade.methods.cascades.tree import Tree
from bayescascade.model.kept_draws import MAX_KEPT_DRAWS, Draws, check_times
from bayescascade.model.packing import MOST_BYTES

_SHARE = 1 / 8  # of the memory limit
_MOST_COUNTS = 1 << 21  # of pairs of levels, in all distinct leaves

Item = TypeVar("Item")
Made = TypeVar("Made")


def keep_draws(
    drawn: Sequence[Tree],
    count: Callable[[Tree], CountedTree],
    schema: Schema,
    leaf: str,
    memory_limit: float,
) -> Draws[CountedTree]:
    """Return draws with their weights: all, or every second, fourth, .. one that fits.

    `count` returns a tree with its weights. Draws take an eighth of `memory_limit` > 0, bytes that
    the whole fit may take.
    """
    most_bytes, most_boxes = min(MOST_BYTES, _SHARE * memory_limit), np.inf
    if leaf == "dependent":
        most_boxes = _MOST_COUNTS // int(schema.n_levels.sum()) ** 2
    while drawn:
        times = Counter(drawn)
        if len(drawn) == 1:
            most_bytes = most_boxes = np.inf
        packed = PackedTrees.of(map(count, times), schema, leaf, most_bytes, most_boxes)
        if packed is not None:
            return Draws(packed, list(times.values()))
        drawn = drawn[::2]
    return Draws([], [])


def read_draws(
    record: Mapping[str, Any], total: float, schema: Schema, leaf: str
) -> Draws[CountedTree]:
    """Return draws that a file has; see `PackedTrees.from_record`."""
    of_trees = dict(record)
    times = [check_times(n) for n in of_trees.pop("times")]
    if not 1 <= len(times) <= MAX_KEPT_DRAWS:
        raise ModelFileError(f"draws must be 1 to {MAX_KEPT_DRAWS}, got {len(times)}")
    return Draws(PackedTrees.from_record(of_trees, len(times), total, schema, leaf), times)


def are_large(counted: Sequence[CountedTree], memory_limit: float) -> bool:
    """Whether what users see of the draws would take more than their share of memory."""
    if not isinstance(counted, PackedTrees) or counted.leaf != "independent":
        return False  # dependent leaves are shared
    return 8 * counted.rows.size * counted.n_levels > _SHARE * memory_limit


class MappedSequence(Sequence[Made], Generic[Item, Made]):
    """What `make` returns for each of `items`, computed whenever it is asked for."""

    def __init__(self, make: Callable[[Item], Made], items: Sequence[Item]) -> None:
        self._make, self._items = make, items

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: Any) -> Any:  # Any: one, or a list of them by a slice
        if isinstance(index, slice):
            return [self._make(item) for item in self._items[index]]
        return self._make(self._items[index])
