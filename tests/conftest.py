"""Fixtures that every test may use."""

import gc
import os
import sys
import zlib

import numpy as np
import pytest

from bayescascade.base import jit

os.environ.setdefault("MPLBACKEND", "agg")  # no windows


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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run README and notebooks first: at the end one worker would wait for the other."""
    items.sort(key=lambda item: not item.nodeid.startswith("tests/test_examples"))


def pytest_collection_finish() -> None:
    """Let the garbage collector leave out what was imported: millions of objects that stay."""
    gc.collect()
    gc.freeze()
