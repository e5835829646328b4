"""Fixtures that every test may use."""

import zlib

import numpy as np
import pytest


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Return a generator seeded by the test's own id: independent tests, repeatable failures."""
    return np.random.default_rng(zlib.crc32(request.node.nodeid.encode()))
