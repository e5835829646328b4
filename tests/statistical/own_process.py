"""Scripts that run in a process of their own, with numba set up otherwise."""

import os
import subprocess
import sys
from pathlib import Path


def printed_lines(script: str, directory: Path, **environment: str) -> list[str]:
    """Return what a script prints in a directory, with variables added to the environment."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **environment},
        capture_output=True,
        text=True,
        check=False,
        cwd=directory,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()
