"""Work spaces that blocks of steps left behind, each with the tree in it, for the next block.

Laying a tree of thousands of nodes out anew would take longer than the few steps of a block. What
a work space holds is then what laying out would give, to the last bit, as weights are whole numbers
and their sums are exact; see `kernels.trees.refresh`.
"""

from collections import OrderedDict
from threading import Lock
from typing import Any

from bayescascade.methods.cascades.kernels.layout import Work
from bayescascade.methods.cascades.tree import Tree

_MOST_BYTES = 1 << 28


class WorkSpaces:
    """Work spaces by the trees in them, up to a number of bytes; those unused the longest go first.

    Threads may share it. A copy, as one sent to another process, is empty.
    """

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._kept: OrderedDict[int, tuple[Tree, Work]] = OrderedDict()  # by the id of the tree
        self._n_bytes = 0  # of all that are kept: there may be thousands
        self._lock = Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {"_most_bytes": self._most_bytes}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["_most_bytes"])  # type: ignore[misc] # empty

    def take(self, tree: Tree) -> Work | None:
        """Return the work space that holds this very tree, and forget it; None if there is none."""
        with self._lock:
            return self._forget(id(tree))

    def keep(self, tree: Tree, work: Work) -> None:
        """Keep a work space that holds a tree."""
        with self._lock:
            self._forget(id(tree))
            self._kept[id(tree)] = tree, work
            self._n_bytes += _n_bytes(work)
            while self._n_bytes > self._most_bytes:
                self._forget(next(iter(self._kept)))

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._kept.clear()
            self._n_bytes = 0

    def _forget(self, key: int) -> Work | None:
        if key not in self._kept:
            return None
        _, work = self._kept.pop(key)
        self._n_bytes -= _n_bytes(work)
        return work


def _n_bytes(work: Work) -> int:
    arrays = (*work[:-1], work.dependence.graph, work.dependence.logs, work.dependence.pairs)
    return sum(array.nbytes for array in arrays)
