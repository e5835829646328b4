"""Rows in partitions of Dask, which are counted and predicted by its workers.

Each partition sends only its distinct rows with their counts. These are merged as a tree, and
levels are found at the end, so the result is that of one process, to the last bit. No task changes
the result of another, so a task may run again after a worker is lost.
"""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import wraps
from types import MappingProxyType
from typing import Any, TypeVar, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayescascade.base.errors import DataError
from bayescascade.data.arrow_frames import is_partitioned
from bayescascade.data.counting import RawRows
from bayescascade.data.files import FilesSource, Paths, are_paths, open_each
from bayescascade.data.levels import Level, level_text
from bayescascade.data.sources import NO_UNITS, Batch, FrameSource, Source

_MERGED = 8  # parts per task

Method = TypeVar("Method", bound=Callable[..., Any])


def are_partitions(rows: object) -> bool:
    """Return whether rows are a DataFrame of Dask's."""
    return is_partitioned(rows) and hasattr(rows, "to_delayed") and hasattr(rows, "npartitions")


def open_partitions(rows: Any) -> "PartitionedSource":
    """Return a Dask DataFrame, or files as partitions, as a source."""
    try:
        from dask.delayed import delayed
    except ImportError:
        raise DataError(
            "partitions need Dask, which is not installed: pip install 'bayescascade[dask]'"
        ) from None
    if are_paths(rows):
        return _of_files(rows, delayed)
    if not are_partitions(rows) or not hasattr(rows, "columns"):
        raise DataError(f"rows must be a Dask DataFrame or files, got {type(rows).__name__}")

    def chosen(names: Sequence[str]) -> list[Any]:
        known = [str(name) for name in rows.columns]
        parts: list[Any] = rows[[rows.columns[known.index(name)] for name in names]].to_delayed()
        return parts

    return PartitionedSource([str(name) for name in rows.columns], chosen)


class PartitionedSource:
    """Rows in partitions; `parts` takes names of columns and returns one task per partition."""

    categorical: frozenset[str] = frozenset()
    units = NO_UNITS

    def __init__(
        self,
        names: list[str],
        parts: Callable[[Sequence[str]], list[Any]],
        label: str = "",
        is_text: bool = False,
        notes: Sequence[str] = (),
        missing_codes: Mapping[str, tuple[Level, ...]] = MappingProxyType({}),
    ) -> None:
        self.missing_codes = missing_codes
        self.names, self.label, self.is_text, self.notes = names, label, is_text, notes
        self._parts = parts

    def blocks(self, names: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Yield the rows' cells in the columns `names`, some rows at a time."""
        for part in self._parts(names):
            yield from _source(part.compute()).blocks(names)

    def batches(self, names: Sequence[str]) -> Generator[Batch, None, None]:
        """Yield the same as `blocks`."""
        yield from self.blocks(names)

    def count(self, room: RawRows, names: Sequence[str], weights: str | None) -> RawRows:
        """Return the distinct rows of all partitions, counted by Dask in copies of `room`."""
        from dask.base import compute
        from dask.delayed import delayed

        counted = [delayed(_count)(part, room, names, weights) for part in self._parts(names)]
        while len(counted) > 1:
            counted = [
                delayed(_merge)(counted[start : start + _MERGED])
                for start in range(0, len(counted), _MERGED)
            ]
        (merged,) = compute(*counted)  # type: ignore[no-untyped-call]
        return cast(RawRows, merged)


def by_partitions(method: Method) -> Method:
    """Let a method with one result per row also take a Dask DataFrame.

    It then returns a lazy Series of Dask, or a DataFrame with a column for each class, with the
    rows' index.
    """

    @wraps(method)
    def wrapped(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        if not are_partitions(X):
            return method(self, X, *args, **kwargs)

        def tell(part: pd.DataFrame) -> Any:
            if not len(part):
                return meta
            return _labeled(method(self, part, *args, **kwargs), part.index, classes)

        classes: Any = getattr(self, "classes_", None)
        sample = X._meta_nonempty.index[:0]
        if method.__name__ == "predict_proba":
            meta = _labeled(np.zeros((0, len(classes))), sample, classes)
        else:
            dtype = classes.dtype if method.__name__ == "predict" else np.float64
            meta = _labeled(np.zeros(0, dtype), sample, classes)
        return X.map_partitions(tell, meta=meta)

    return cast(Method, wrapped)


def _labeled(values: NDArray[Any], index: pd.Index, classes: Any) -> pd.Series | pd.DataFrame:
    if values.ndim == 1:
        return pd.Series(values, index)
    return pd.DataFrame(values, index, [level_text(label) for label in classes.tolist()])


def _of_files(paths: Paths, delayed: Callable[[Any], Any]) -> PartitionedSource:
    label, sources = open_each(paths)
    whole = FilesSource(sources, label)
    tasks = [delayed(each) for each in sources]
    codes = whole.missing_codes
    read = PartitionedSource(whole.names, lambda _: tasks, label, whole.is_text, whole.notes, codes)
    read.units = whole.units
    return read


def _source(part: Any) -> Source:
    return FrameSource(part) if isinstance(part, pd.DataFrame) else cast(Source, part)


def _count(part: Any, room: RawRows, names: Sequence[str], weights: str | None) -> RawRows:
    source = _source(part)
    counted = deepcopy(room)
    for batch in source.batches(names):
        counted.add(batch, weights, source.categorical)
    return counted


def _merge(parts: Sequence[RawRows]) -> RawRows:
    merged = deepcopy(parts[0])
    for part in parts[1:]:
        merged.merge(part)
    return merged
