"""Rows that Dask holds are counted and predicted where they are, with the result of one process."""

import itertools
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayescascade
from bayescascade.base.errors import DataError
from bayescascade.data.table import Table

dask = pytest.importorskip("dask")
dataframe = pytest.importorskip("dask.dataframe")

TITANIC = Path(__file__).parents[1] / "data" / "titanic.csv"


def clinic(n_rows: int, seed: int) -> pd.DataFrame:
    """Return rows of text, numbers, categories, missing cells and counts."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "ward": rng.choice(["north", "south", None], n_rows),
            "visits": rng.integers(0, 5, n_rows),
            "pain": pd.Categorical(
                rng.choice(["no", "much"], n_rows), ["no", "some", "much"], ordered=True
            ),
            "income": rng.normal(size=n_rows),
            "n": rng.random(n_rows),
        }
    )


def parted(frame: pd.DataFrame, n_parts: int) -> Any:
    cuts = np.linspace(0, len(frame), n_parts + 1).astype(int)
    parts = [dask.delayed(frame[low:high]) for low, high in itertools.pairwise(cuts)]
    return dataframe.from_delayed(parts, meta=frame[:0])


def test_errors_name_the_row():
    """Where a cluster only knows that something is wrong, rows are looked through for it."""
    frame = clinic(100, 1).drop(columns="income").assign(n=1)
    with pytest.raises(DataError, match=r'column "ward" has \d+ missing cells, the first in row'):
        Table.from_dask(parted(frame, 4), missing="error")
    frame.loc[70, "n"] = -1
    with pytest.raises(DataError, match=r"must be finite and >= 0, got -1 in row 71"):
        Table.from_dask(parted(frame, 4), weights="n", missing="level")
    schema = Table.from_frame(frame[["visits"]]).schema
    frame.loc[50, "visits"] = 9
    with pytest.raises(DataError, match=r'column "visits" has the unknown level "9" in row 51'):
        Table.from_dask(parted(frame, 4), schema=schema)
    with pytest.raises(DataError, match="rows must be a Dask DataFrame or files, got ndarray"):
        Table.from_dask(np.zeros((2, 2)))


@pytest.mark.slow
def test_models_take_partitions_and_tell_them_lazily():
    """Fitting counts at once; predictions wait until Dask is asked, and keep the rows' index."""
    frame = pd.read_csv(TITANIC)
    rows = parted(frame, 4)
    settings: dict[str, Any] = {"n_steps": 100, "n_chains": 1, "random_state": 1}
    density = bayescascade.LeafCascade(search="anneal", **settings)
    expected = density.fit(frame).score_samples(frame)
    scores = density.fit(rows).score_samples(rows)
    assert isinstance(scores, dataframe.Series)
    assert scores.npartitions == 4
    np.testing.assert_array_equal(scores.compute().to_numpy(), expected)
    assert scores.compute().index.equals(frame.index)
    assert density.score(rows) == density.score(frame)
    X, y = frame.drop(columns="survived"), frame["survived"]
    lazy_X, lazy_y = parted(X, 4), dataframe.from_pandas(y, npartitions=4)
    for model in (
        bayescascade.RuleListClassifier(search="anneal", **settings),
        bayescascade.BudgetedForestClassifier(max_trees=2, random_state=1),
        bayescascade.NeighborCompressionClassifier(n_prototypes=4, random_state=1),
        bayescascade.RadoBoostClassifier(n_rados=20, random_state=1),
    ):
        probabilities, labels = model.fit(X, y).predict_proba(X), model.predict(X)
        result = model.fit(lazy_X, lazy_y).predict_proba(lazy_X)
        assert list(result.columns) == ["no", "yes"]
        np.testing.assert_array_equal(result.compute().to_numpy(), probabilities)
        assert model.predict(lazy_X).compute().tolist() == labels.tolist()
        empty = lazy_X[lazy_X["age"] == "nobody"]
        assert model.predict_proba(empty).compute().shape == (0, 2)


def slow_part(part: int) -> pd.DataFrame:
    time.sleep(0.3)
    return clinic(200, part)


KILLED = """
import os, signal, sys, threading, time
sys.path.insert(0, {folder!r})
from test_partitions import clinic, dataframe, slow_part
from bayescascade.data.table import Table
from distributed import Client, LocalCluster

if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with Client(cluster) as client:
            workers = client.run(os.getpid)
            rows = dataframe.from_map(slow_part, range(16), meta=clinic(1, 0)[:0])
            killer = threading.Timer(1.5, os.kill, (sorted(workers.values())[0], signal.SIGKILL))
            killer.start()
            table = Table.from_dask(rows[["ward", "visits", "pain"]], missing="level")
            was_killed_before = not killer.is_alive()
            killer.join()
            gone = set(workers.values()) - set(client.run(os.getpid).values())
            print(table.fingerprint(), was_killed_before, len(gone))
"""


@pytest.mark.slow
def test_a_worker_that_is_killed_changes_nothing(tmp_path):
    """On a cluster some machine always fails; its partitions are counted by another."""
    pytest.importorskip("distributed")
    script = tmp_path / "killed.py"
    script.write_text(KILLED.format(folder=str(Path(__file__).parent)))
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    whole = pd.concat([clinic(200, part) for part in range(16)])[["ward", "visits", "pain"]]
    fingerprint, was_killed_before, n_gone = done.stdout.split()[-3:]
    assert fingerprint == Table.from_frame(whole, missing="level").fingerprint()
    assert (was_killed_before, n_gone) == ("True", "1")
