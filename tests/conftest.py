"""Fixtures that every test may use."""

import fcntl
import gc
import os
import signal
import sys
import zlib

# threads of BLAS and OpenMP cost small problems more than they save; NumPy reads this when imported
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "agg")  # no windows

import numpy as np
import pytest
from numba.core.compiler_lock import global_compiler_lock

from bayescascade.base import jit
from bayescascade.base.kernel_cache import FolderCache


@pytest.fixture(autouse=True)
def _figures_closed():
    """Close what a test has drawn: pyplot keeps figures."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Return a generator seeded by the test's own id: independent tests, repeatable failures."""
    return np.random.default_rng(zlib.crc32(request.node.nodeid.encode()))


@pytest.fixture(autouse=True, scope="session")
def compiled():
    """Test what is compiled, however small the problem; `test_jit` holds the rest to that."""
    jit.MOST_INTERPRETED = 0


@pytest.fixture(autouse=True, scope="session")
def compiled_once(tmp_path_factory: pytest.TempPathFactory):
    """Let one worker compile a kernel: another that needs it waits, and reads it from the cache."""
    folder, compile_here = tmp_path_factory.getbasetemp().parent, jit._Kernel.compile

    def compile_alone(kernel, signature):
        # helpers are part of the kernel that calls them, and have no cache
        if not isinstance(kernel._cache, FolderCache) or global_compiler_lock.is_locked():
            return compile_here(kernel, signature)
        with (folder / f"{kernel.__module__}.{kernel.__name__}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return compile_here(kernel, signature)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jit._Kernel, "compile", compile_alone)
        yield


def pytest_configure(config: pytest.Config) -> None:
    """Let tests press Ctrl-C; import once what writes files at its first import.

    A shell that runs tests in the background has them ignore Ctrl-C. Two workers would write the
    files at once.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if getattr(config.option, "numprocesses", None):
        import arviz  # noqa: F401 - its stamp of the day, and Matplotlib's list of fonts


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run README and notebooks first: at the end one worker would wait for the other.

    Of two workers one begins at the front, with cascades, whose kernels take longest to compile,
    and contracts, which share what they fit; the other in the middle, with all other families.
    Both have as much to do, and commands come when all kernels are compiled.
    """
    first = ("test_examples", "methods/density/trees/", "contracts/", "methods/", "cli/", "")

    def place(item: pytest.Item) -> int:
        starts = (item.nodeid.startswith(f"tests/{name}") for name in first)
        return next((n for n, is_here in enumerate(starts) if is_here), len(first))

    items.sort(key=place)


def pytest_collection_finish() -> None:
    """Let the garbage collector leave out what was imported: millions of objects that stay."""
    gc.collect()
    gc.freeze()
