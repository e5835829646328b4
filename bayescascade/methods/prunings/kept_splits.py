"""The state of a pruning posterior: which splits of a forest are kept.

A split is kept only where all splits above it are, so that a set of kept splits is a set of cuts:
where a path meets its first split that is not kept, the forest has a leaf.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["KeptSplits"]


@dataclass(frozen=True, slots=True, eq=False)
class KeptSplits:
    """A pruned forest, as the splits that it keeps.

    Parameters
    ----------
    kept : (n_splits,) bool
        Of each split of the whole forest, whether it is kept; never written.
    """

    kept: NDArray[np.bool_]

    @property
    def n_kept(self) -> int:
        """Number of splits kept."""
        return int(np.count_nonzero(self.kept))

    def with_split(self, split: int, is_kept: bool) -> "KeptSplits":
        """Return the pruning that keeps this split, or does not, and is otherwise the same."""
        kept = self.kept.copy()
        kept[split] = is_kept
        return KeptSplits(kept)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types: the number of splits, and 8 of them a byte, in hexadecimal."""
        return {"n_splits": self.kept.size, "kept": np.packbits(self.kept).tobytes().hex()}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> "KeptSplits":
        """Rebuild from what `to_dict` returned.

        Raises
        ------
        KeyError, TypeError, ValueError
            If it returned no such thing.
        """
        n_splits = int(record["n_splits"])
        packed = np.frombuffer(bytes.fromhex(record["kept"]), np.uint8)
        if n_splits < 0 or packed.size != (n_splits + 7) // 8:
            raise ValueError(f"kept must have {n_splits} bits, got {packed.size} bytes")
        return cls(np.unpackbits(packed, count=n_splits).astype(np.bool_))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, KeptSplits):
            return NotImplemented
        return np.array_equal(self.kept, other.kept)

    def __hash__(self) -> int:
        return hash(self.kept.tobytes())
