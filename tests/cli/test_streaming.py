"""Files that ``score`` and ``predict`` write: their format, and what is left of them early."""

import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bayescascade.cli import output, progress, rows
from tests.cli.conftest import TIC_TAC_TOE, TITANIC, Fitted, run
from tests.cli.test_processes import COMMAND, environment


def test_parquet_has_what_csv_has(
    fitted: Fitted, classified: Fitted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Millions of rows are read in no time, with types, by whoever reads them next."""
    monkeypatch.setattr(rows, "_CHUNK_ROWS", 500)  # several blocks
    for number, command in enumerate(
        [("score", fitted.model, TITANIC), ("predict", classified.model, TIC_TAC_TOE, "--explain")]
    ):
        parquet, text = tmp_path / f"{number}.parquet", tmp_path / f"{number}.csv"
        for path in (parquet, text):
            assert run(*command, "--out", path).exit_code == 0
        found = pd.read_parquet(parquet)
        pd.testing.assert_frame_equal(found, pd.read_csv(text), check_exact=True)
        assert found["row"].tolist() == list(range(1, len(found) + 1))


@pytest.mark.parametrize("name", ["scores.parquet", "scores.csv"])
def test_ctrl_c_keeps_the_rows_that_are_done(name: str, fitted: Fitted, tmp_path: Path) -> None:
    """Hours of scoring must not be lost, nor a broken file pass for a whole one."""
    data, out = tmp_path / "rows.parquet", tmp_path / name
    frame = pd.read_csv(TITANIC)
    pd.concat([frame] * 3_000, ignore_index=True).to_parquet(data)
    process = subprocess.Popen(
        [*COMMAND, "score", fitted.model, str(data), "--out", str(out)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not any(path.stat().st_size > 100_000 for path in tmp_path.glob(f".{name}.*")):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout) == (130, "")
    found = pd.read_parquet(out) if out.suffix == ".parquet" else pd.read_csv(out)
    assert 0 < len(found) < 3_000 * len(frame)
    assert stderr == f"interrupted: {out} has the first {len(found):,} rows\n"
    run("score", fitted.model, TITANIC, "--out", tmp_path / "once.csv")
    once = pd.read_csv(tmp_path / "once.csv")["log_density"].to_numpy()
    np.testing.assert_array_equal(found["log_density"], np.resize(once, len(found)))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        ["rows.parquet", "once.csv", name]
    )


def test_a_terminal_shows_rows_speed_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits wants to know for how long."""
    now = [100.0]
    bar = progress.Progress(progress._Rows(), progress._Left(), get_time=lambda: now[0])
    task = bar.add_task("rows.csv", total=1_000_000)
    for done in (100_000, 200_000, 300_000):
        now[0] += 10.0
        bar.update(task, completed=done)
    (told,) = bar.tasks
    texts = [str(column.render(told)) for column in (progress._Rows(), progress._Left())]
    assert texts == ["300,000 rows  10,000 rows/s", "1:10 left"]
    told.total = None  # as of a compressed file
    assert str(progress._Left().render(told)) == ""
    monkeypatch.setattr(output.sys.stderr, "isatty", lambda: True)
    with output.shown_rows("rows.csv", None) as show:
        show(5)
