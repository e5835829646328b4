"""Files that ``score`` and ``predict`` write: their format, and what is left of them early."""

import json
import signal
import subprocess
import time
from collections.abc import Generator

import numpy as np
import pandas as pd
import pytest

from bayescascade.base.errors import DataError
from bayescascade.cli import progress, progress_lines, rows, scoring, streaming
from tests.cli.conftest import CLINIC, TIC_TAC_TOE, TITANIC, run
from tests.cli.test_processes import COMMAND, environment
from tests.commands import read_written


def test_parquet_has_what_csv_has(fitted, classified, tmp_path, monkeypatch):
    """Millions of rows are read in no time, with types, by whoever reads them next."""
    monkeypatch.setattr(rows, "_CHUNK_ROWS", 500)  # several blocks
    for number, command in enumerate(
        [("score", fitted.model, TITANIC), ("predict", classified.model, TIC_TAC_TOE, "--explain")]
    ):
        parquet, text = tmp_path / f"{number}.parquet", tmp_path / f"{number}.csv"
        for path in (parquet, text):
            assert run(*command, "--out", path).exit_code == 0
        found = pd.read_parquet(parquet)
        pd.testing.assert_frame_equal(found, pd.read_csv(text))
        pd.testing.assert_frame_equal(
            found, read_written(text), check_dtype=False, check_exact=True
        )
        assert found["row"].tolist() == list(range(1, len(found) + 1))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["scores.parquet", "scores.csv"])
def test_ctrl_c_keeps_the_rows_that_are_done(name, fitted, tmp_path):
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
    found = pd.read_parquet(out) if out.suffix == ".parquet" else read_written(out)
    assert 0 < len(found) < 3_000 * len(frame)
    assert stderr == f"interrupted: {out} has the first {len(found):,} rows\n"
    run("score", fitted.model, TITANIC, "--out", tmp_path / "once.csv")
    once = read_written(tmp_path / "once.csv")["log_density"].to_numpy()
    np.testing.assert_array_equal(found["log_density"], np.resize(once, len(found)))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        ["rows.parquet", "once.csv", name]
    )


def test_a_terminal_shows_rows_speed_and_time_left(monkeypatch):
    now = [100.0]
    bar = progress.Progress(progress._RowSpeed(), progress._TimeLeft(), get_time=lambda: now[0])
    task = bar.add_task("rows.csv", total=1_000_000)
    for done in (100_000, 200_000, 300_000):
        now[0] += 10.0
        bar.update(task, completed=done)
    (text,) = bar.tasks
    texts = [str(column.render(text)) for column in (progress._RowSpeed(), progress._TimeLeft())]
    assert texts == ["300,000 rows  10,000 rows/s", "1:10 left"]
    text.total = None  # as of a compressed file
    assert str(progress._TimeLeft().render(text)) == ""
    monkeypatch.setattr(progress_lines.sys.stderr, "isatty", lambda: True)
    with progress_lines.rows_progress("rows.csv", None) as show:
        show(5)


@pytest.mark.parametrize("name", ["costs.csv", "costs.parquet"])
def test_large_costs_are_written_with_all_digits(name, tmp_path):
    """Costs in cents, or of what must never be asked for, are no reason to round or to fail."""
    costs = [1234567890124.0, 1234567890123.25, 1e16, 1e20, 0.1 + 0.2, 7.0]
    kept = [scoring._tidy(cost) for cost in costs]
    assert [str(cost) for cost in kept] == [
        "1234567890124",
        "1234567890123.25",
        "10000000000000000",
        "100000000000000000000",
        "0.3",
        "7",
    ]
    path = tmp_path / name
    blocks = ({"row": range(at, at + 6), "cost": kept} for at in (1, 7))
    streaming.write_blocks(str(path), blocks)
    found = pd.read_parquet(path) if path.suffix == ".parquet" else read_written(path)
    assert found["cost"].tolist() == [float(cost) for cost in kept] * 2


@pytest.mark.parametrize("presses", [1, 2])
@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
def test_ctrl_c_in_the_last_block_leaves_a_complete_file(name, presses, tmp_path):
    """A script that asks for the exit code would score all rows again."""

    def blocks():
        yield {"row": range(1, 3)}
        for _ in range(presses):  # ``timeout`` sends two
            signal.raise_signal(signal.SIGINT)
        yield {"row": range(3, 5)}

    path = tmp_path / name
    streaming.write_blocks(str(path), blocks())
    found = pd.read_parquet(path) if path.suffix == ".parquet" else read_written(path)
    assert found["row"].tolist() == [1, 2, 3, 4]


def test_parquet_refuses_a_block_of_another_type(tmp_path):
    """Whoever reads the message must know which column, and what to do."""
    path = tmp_path / "rows.parquet"
    first = {"row": range(1, 3), "rule": [1.0, None]}
    for later, message in (
        ({"row": range(3, 4), "rule": ["else"]}, '"rule" must hold double .* got string: CSV'),
        ({"row": range(3, 4)}, "must have the columns row, rule of the first, got row"),
    ):
        with pytest.raises(DataError, match=message):
            streaming.write_blocks(str(path), iter_of(first, later))
        assert not path.exists()


def iter_of(*blocks: streaming.Columns) -> Generator[streaming.Columns, None, None]:
    yield from blocks


@pytest.mark.slow
def test_text_files_are_predicted_in_blocks_of_their_columns_types(forest, tmp_path, monkeypatch):
    """Ctrl-C and the count of rows would else wait for all; 1 must not differ from 1.0 by block."""
    whole = tmp_path / "whole.csv"
    assert run("predict", forest, CLINIC, "--out", whole).exit_code == 0
    scored = json.loads(run("score", forest, CLINIC, "--target", "outcome", "--json").stdout)
    lengths = []

    def counted(_, blocks):
        for columns in blocks:
            lengths.append(len(columns["row"]))
            yield columns

    monkeypatch.setattr(rows, "_CHUNK_ROWS", 50)
    monkeypatch.setattr(streaming, "tell_blocks", counted)
    parts = tmp_path / "parts.csv"
    assert run("predict", forest, CLINIC, "--out", parts).exit_code == 0
    assert max(lengths) == 50
    assert parts.read_text() == whole.read_text()
    again = json.loads(run("score", forest, CLINIC, "--target", "outcome", "--json").stdout)
    assert again.pop("confusion") == scored.pop("confusion")
    assert again.pop("classes") == scored.pop("classes")
    assert again == pytest.approx(scored)
