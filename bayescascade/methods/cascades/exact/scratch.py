"""Arrays of all boxes in files, where they do not fit into memory.

The boxes of a lattice are evaluated in order, and of those that keep less of a column one after the
other is needed: files are read and written nearly as they lie on the disk. They have no name and
are gone as soon as the arrays are, however the process ends.
"""

import mmap
import os
from pathlib import Path
from shutil import disk_usage
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from bayescascade.base.errors import ParameterError, TooLargeError


class Scratch:
    """A directory for arrays; ParameterError if nothing can be written there."""

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory)
        self._maps: list[mmap.mmap] = []
        if not (self.directory.is_dir() and os.access(self.directory, os.W_OK)):
            raise ParameterError(
                f"scratch must be a directory in which files can be made, got {str(directory)!r}"
            )

    @property
    def n_free(self) -> int:
        """Bytes that are free there."""
        return disk_usage(self.directory).free

    def zeros(self, n: int, dtype: DTypeLike) -> NDArray[Any]:
        """Return an array of zeros in a file; TooLargeError if the directory has no room."""
        n_bytes = n * np.dtype(dtype).itemsize
        with TemporaryFile(dir=self.directory) as file:
            try:
                os.truncate(file.fileno(), n_bytes)
                if hasattr(os, "posix_fallocate"):  # else a full disk ends the process, later
                    os.posix_fallocate(file.fileno(), 0, n_bytes)
            except OSError as error:
                needed = f"{n_bytes:,} bytes in {str(self.directory)!r}"
                raise TooLargeError(
                    f"scratch must have {needed} free, got {self.n_free:,}: {error.strerror}",
                    needed,
                ) from error
            self._maps.append(mmap.mmap(file.fileno(), n_bytes))
        return np.frombuffer(self._maps[-1], dtype)

    def release(self) -> None:
        """Take what has been read and written out of the process's memory; the files keep it."""
        if hasattr(mmap, "MADV_DONTNEED"):
            for pages in self._maps:
                pages.madvise(mmap.MADV_DONTNEED)
