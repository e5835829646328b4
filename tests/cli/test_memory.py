"""The command on a table whose draws, kept as trees of their own, would take gigabytes."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayescascade

resource = pytest.importorskip("resource")

_BYTES = 3 * 10**9  # of address space: the libraries alone reserve two thirds of it
_LIMITED = f"""
import resource, runpy
resource.setrlimit(resource.RLIMIT_AS, ({_BYTES}, {_BYTES}))
runpy.run_module("bayescascade", run_name="__main__", alter_sys=True)
"""


def patients() -> pd.DataFrame:
    """Return 303 rows of 14 columns, two of them of dozens of levels, in three groups."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 3, 303)
    many = {"age": (41, 20 + 4 * group), "cholesterol": (49, 24 - 5 * group)}
    columns = {
        name: np.clip(rng.normal(middle, 10), 0, n - 1).astype(int)
        for name, (n, middle) in many.items()
    }
    for j, n in enumerate([2, 4, 2, 3, 2, 3, 4, 3, 2, 5, 4, 2]):
        columns[f"x{j}"] = (rng.integers(0, n, 303) + (rng.random(303) < 0.5) * group) % n
    return pd.DataFrame({name: [f"{name} {code}" for code in own] for name, own in columns.items()})


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="address space is not limited elsewhere")
def test_draws_of_large_trees_fit_into_memory_and_files(tmp_path):
    """A few hundred rows must not take gigabytes, nor make a file of hundreds of megabytes."""
    patients().to_csv(tmp_path / "patients.csv", index=False)
    arguments = (
        "fit", "patients.csv", "--model", "leaf", "--leaf", "independent", "--search",
        "anneal+metropolis", "--steps", "2000", "--chains", "2", "--jobs", "1", "--seed", "0",
        "--out", "model.json", "--quiet",
    )  # fmt: skip
    package = Path(bayescascade.__file__).parents[1]
    alone = {"PYTHONPATH": str(package), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    found = subprocess.run(
        [sys.executable, "-c", _LIMITED, *arguments],
        cwd=tmp_path, env={**os.environ, **alone}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    assert (tmp_path / "model.json").stat().st_size < 1e6
    model = bayescascade.load(tmp_path / "model.json")
    model.set_params(predictive="average")
    assert np.isfinite(model.score_samples(patients().head(5))).all()
