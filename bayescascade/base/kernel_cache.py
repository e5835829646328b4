"""Where compiled kernels are kept on disk, and when they are fresh.

A kernel may call helpers from other modules of its folder. Numba's disk cache watches only the file
of the called function. After a change of a helper in another file, it would still return the old
code. So a cache entry is stamped with the contents of all modules of the folder, and of those that
all folders share.

The cache is where numba puts it: under NUMBA_CACHE_DIR, beside the sources, or in the home of the
user. A user of a container or of a web server may be allowed to write none of these. Then it is a
folder of this user among the temporary files, or there is none. A full disk ends no fit either.
"""

import hashlib
import os
import pickle
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

from numba import config
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, NullCache

from bayescascade.base.errors import warn_user

_SHARED = tuple(
    Path(__file__).with_name(f"{name}.py") for name in ("jit", "kernel_cache", "chain_kernels")
)


def cache_of(function: Callable[..., object]) -> "FolderCache | _NoCache":
    """Return the cache of a kernel."""
    try:
        return FolderCache(function)
    except (OSError, RuntimeError):  # numba's error if no place can be written
        return _NoCache()


def cache_folder() -> Path | None:
    """Return the folder of compiled kernels; None if they are not kept, or nothing is compiled."""
    if is_interpreted():
        return None
    package, own = Path(__file__).parents[1], cache_of(cache_of).cache_path
    if own is None:
        return None
    return package if Path(own).is_relative_to(package) else Path(own).parent


def is_cache_temporary() -> bool:
    """Return whether compiled kernels are kept among temporary files."""
    own = cache_of(cache_of)
    return isinstance(own, FolderCache) and isinstance(own.locator, _TemporaryLocator)


def is_interpreted() -> bool:
    """Return whether nothing is compiled, because NUMBA_DISABLE_JIT is set."""
    return bool(config.DISABLE_JIT)  # type: ignore[attr-defined] # set from the environment


@cache
def _temporary_folder() -> Path:
    """Make and return the folder of compiled kernels that are kept nowhere else.

    Loading compiled code runs it. So raises PermissionError if others can write to the folder, and
    OSError if there is none.
    """
    is_posix = hasattr(os, "getuid")  # elsewhere each user has a folder of temporary files
    name = f"bayescascade-{os.getuid()}" if is_posix else "bayescascade"
    folder = Path(tempfile.gettempdir(), name)
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    is_own = stat.S_ISDIR(found.st_mode)
    if is_posix:
        is_own = is_own and found.st_uid == os.getuid() and not found.st_mode & 0o022
    if not is_own:
        raise PermissionError(f"{folder} must be a folder that only its owner can write")
    return folder


_PLACES = list(CompileResultCacheImpl._locator_classes)

# numba 0.60 has another name for it
_HomeLocator: Any = next(
    place for place in _PLACES if place.__name__.endswith("UserWideCacheLocator")
)


class _TemporaryLocator(_HomeLocator):  # type: ignore[misc]
    """A place in the temporary folder."""

    _cache_path: str

    def __init__(self, py_func: Any, py_file: str) -> None:
        super().__init__(py_func, py_file)
        self._cache_path = str(_temporary_folder() / Path(self._cache_path).name)


class _CachePlaces(CompileResultCacheImpl):
    """Numba's places of compiled code, and the temporary folder if it has none."""

    _locator_classes = [*_PLACES, _TemporaryLocator]  # noqa: RUF012 - as numba's


class FolderCache(FunctionCache):
    """Numba's cache of one function, fresh as long as no module of its folder has changed."""

    _impl_class = _CachePlaces

    def __init__(self, py_func: Callable[..., object]) -> None:
        super().__init__(py_func)  # type: ignore[no-untyped-call]
        folder = Path(py_func.__code__.co_filename).parent
        self._cache_file = _FolderIndex(  # type: ignore[no-untyped-call]
            cache_path=self._cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=_digest(folder),
        )

    @property
    def locator(self) -> Any:
        """Numba's choice of a place."""
        return self._impl.locator

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save compiled code; warn once if it cannot be saved where other starts find it."""
        folder = Path(self._cache_path).parent
        try:
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]
        except OSError as error:
            _warn_once(f"compiled code cannot be saved in {folder}: {error.strerror or error}")
        else:
            if isinstance(self.locator, _TemporaryLocator):
                _warn_once(
                    f"compiled code is saved in the temporary folder {folder}: no other folder "
                    "for it can be written"
                )


class _NoCache(NullCache):
    """Compiled code is not kept."""

    def save_overload(self, sig: Any, cres: Any) -> None:
        """Warn once."""
        del sig, cres
        _warn_once("compiled code cannot be saved: no folder for it can be written")


class _FolderIndex(IndexDataCacheFile):
    """Numba's index of compiled code; empty if it cannot be read, or names types that are gone."""

    def save(self, key: Any, data: Any) -> None:
        """Save code before its entry: if the disk is full, no entry leads to former code."""
        entries = self._load_index()
        taken = set(entries.values())
        free = next(name for i in count(1) if (name := self._data_name(i)) not in taken)  # type: ignore[no-untyped-call]
        name = entries.setdefault(key, free)
        self._save_data(name, data)  # type: ignore[no-untyped-call]
        self._save_index(entries)  # type: ignore[no-untyped-call]

    def _load_index(self) -> Any:
        try:
            return super()._load_index()  # type: ignore[no-untyped-call]
        except (AttributeError, ImportError, *_UNREADABLE):  # or renamed since, as by an upgrade
            return {}

    def _load_data(self, name: str) -> Any:
        try:
            return super()._load_data(name)  # type: ignore[no-untyped-call]
        except _UNREADABLE:
            return None


_UNREADABLE = (OSError, EOFError, pickle.UnpicklingError)
"""Errors of files that are cut short, or that others may not read."""


@cache
def _warn_once(what: str) -> None:
    """Warn that code is compiled again and again."""
    advice = "set NUMBA_CACHE_DIR to a directory that can be written"
    warn_user(UserWarning(f"{what}. Other starts may compile it again: {advice}"))


@cache
def _digest(folder: Path) -> str:
    """Return a digest of the sources in a folder and of those that all folders share."""
    contents = hashlib.sha256()
    for path in (*_SHARED, *sorted(folder.glob("*.py"))):
        contents.update(path.name.encode() + path.read_bytes())
    return contents.hexdigest()
