"""Compiled functions are cached on disk, and never stale."""

import os
import subprocess
import sys

import pytest

HELPER = """
from bayescascade.base.jit import inner_kernel

@inner_kernel
def helper(x):
    return x + {constant}
"""

CALLER = """
from bayescascade.base.jit import kernel
from {package}.helper import helper

@kernel
def caller(x):
    return 2.0 * helper(x)
"""

RUN = """
from {package}.caller import caller
print(caller(1.0), sum(caller.stats.cache_hits.values()))
"""


@pytest.fixture
def package(tmp_path):
    """Return a function that runs a two-file package: its answer and the cache's hits."""
    folder = tmp_path / "twofiles"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "caller.py").write_text(CALLER.format(package="twofiles"))

    def run(constant=None):
        if constant is not None:
            (folder / "helper.py").write_text(HELPER.format(constant=constant))
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)]),
            "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
        }
        done = subprocess.run(
            [sys.executable, "-c", RUN.format(package="twofiles")],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        answer, hits = done.stdout.split()
        return float(answer), int(hits)

    return run


def test_editing_a_helper_in_another_file_recompiles_its_callers(package):
    """Numba's own cache would go on with the old helper: a fixed bug would stay."""
    assert package(constant=10.0) == (22.0, 0)
    assert package() == (22.0, 1)
    assert package(constant=20.0) == (42.0, 0)


def test_kernels_release_the_interpreter():
    """Chains in threads would otherwise wait for each other."""
    from bayescascade.methods.cascades import kernels

    for name in ("sweep", "load", "export", "score_rows"):
        function = getattr(kernels, name)
        if hasattr(function, "py_func"):  # not when the JIT is disabled
            assert function.targetoptions["nogil"]
            assert function.targetoptions["error_model"] == "numpy"
            assert not function.targetoptions.get("fastmath")
