"""Distinct rows of long files: ours beside pyarrow, DuckDB, polars and Dask, in the same run.

    python -m tests.benchmarks.counting --rows 5000000 [--before CHECKOUT] [--distinct 20000]

makes a Parquet and a CSV file of 14 text and 6 integer columns, and counts their distinct rows by
each program in a process of its own. Printed are rows a second of the clock and of CPU time, and
the peak of resident memory; pyarrow and Dask hold the rows, the others stream them. `--before` runs
an earlier checkout of this repository, too.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.csv
import pyarrow.parquet

ROOT = Path(__file__).parents[2]
CHUNK = 500_000

OURS = """
from bayescascade.data.table import Table
table = (Table.from_csv if is_text else Table.from_parquet)(path)
found = table.n_distinct, int(table.total_weight), table.fingerprint()
"""

PROGRAMS = {
    "ours": OURS,
    "pyarrow": """
import pyarrow.csv, pyarrow.parquet
table = pyarrow.csv.read_csv(path) if is_text else pyarrow.parquet.read_table(path)
counts = table.group_by(table.column_names).aggregate([([], "count_all")])
found = counts.num_rows, sum(counts["count_all"].to_pylist())
""",
    "duckdb": """
import duckdb
counts = duckdb.sql(f"select *, count(*) as n from '{path}' group by all").fetchnumpy()["n"]
found = len(counts), int(counts.sum())
""",
    "polars": """
import polars
rows = (polars.scan_csv if is_text else polars.scan_parquet)(path)
counts = rows.group_by(rows.collect_schema().names()).len().collect(engine="streaming")["len"]
found = len(counts), int(counts.sum())
""",
    "dask": """
import dask, dask.dataframe
dask.config.set(scheduler="threads", num_workers=os.cpu_count())
frame = dask.dataframe.read_csv(path) if is_text else dask.dataframe.read_parquet(path)
names = list(frame.columns)
counts = frame.groupby(names, sort=False, observed=True).size().compute()
found = len(counts), int(counts.sum())
""",
}

HARNESS = """
import json, os, pathlib, re, resource, sys, time
path, is_text = sys.argv[1], sys.argv[1].endswith("csv")
{imports}
start, spent = time.perf_counter(), os.times()
{program}
seconds, now = time.perf_counter() - start, os.times()
status = pathlib.Path("/proc/self/status").read_text()
peak = int(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1]) / 1024
cpu = now.user - spent.user + now.system - spent.system
print()
print(json.dumps([seconds, cpu, peak, found]))
"""


def main():
    """Make the files, count them by each program, and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--distinct", type=int, default=20_000)
    parser.add_argument("--before", type=Path, help="an earlier checkout of this repository")
    parser.add_argument("--only", nargs="*", help="names of programs")
    arguments = parser.parse_args()
    programs = {"ours now": (OURS, ROOT)}
    if arguments.before is not None:
        programs["ours before"] = (OURS, arguments.before)
    programs |= {name: (text, ROOT) for name, text in PROGRAMS.items() if name != "ours"}
    with tempfile.TemporaryDirectory() as folder:
        files = make_files(Path(folder), arguments.rows, arguments.distinct)
        for path in files:
            report(f"\n{path.name}, {path.stat().st_size / 1e6:,.0f} MB, {arguments.rows:,} rows")
            report(f"{'':14}{'seconds':>9}{'rows/s':>13}{'CPU s':>8}{'peak MB':>9}  distinct")
            for name, (program, checkout) in programs.items():
                if arguments.only is None or name in arguments.only:
                    report(outcome(name, run(program, checkout, path), arguments.rows))


def report(line):
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def make_files(folder, n_rows, n_distinct):
    """Write the same rows as Parquet and as CSV, and return the paths."""
    rng = np.random.default_rng(1)
    cells = {}
    for column in range(14):
        levels = np.array([f"level {level}" for level in range(rng.integers(2, 12))])
        cells[f"text{column}"] = levels[rng.integers(0, len(levels), n_distinct)]
    for column in range(6):
        cells[f"whole{column}"] = rng.integers(0, rng.integers(2, 30), n_distinct)
    schema = pyarrow.table({name: values[:0] for name, values in cells.items()}).schema
    paths = [folder / "rows.parquet", folder / "rows.csv"]
    with (
        pyarrow.parquet.ParquetWriter(paths[0], schema) as parquet,
        pyarrow.csv.CSVWriter(paths[1], schema) as text,
    ):
        for start in range(0, n_rows, CHUNK):
            rows = rng.integers(0, n_distinct, min(CHUNK, n_rows - start))
            chunk = pyarrow.table({name: values[rows] for name, values in cells.items()})
            parquet.write_table(chunk)
            text.write_table(chunk)
    return paths


def run(program, checkout, path):
    """Run a program in a process of its own; return seconds, CPU seconds, megabytes, counts."""
    imports = "\n".join(
        line for line in program.splitlines() if line.startswith(("import", "from"))
    )
    script = HARNESS.format(imports=imports, program=program)
    environment = os.environ | {"PYTHONPATH": str(checkout), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", script, str(path)]
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=path.parent, check=False
    )
    if done.returncode:
        return [done.stderr.strip().splitlines()[-1] if done.stderr else f"exit {done.returncode}"]
    return json.loads(done.stdout.splitlines()[-1])


def outcome(name, result, n_rows):
    """Return a line of the printed table."""
    if len(result) == 1:
        return f"{name:14}{result[0]}"
    seconds, cpu, peak, found = result
    told_found = " ".join(f"{value:,}" if isinstance(value, int) else value[:8] for value in found)
    return f"{name:14}{seconds:9.1f}{n_rows / seconds:13,.0f}{cpu:8.1f}{peak:9,.0f}  {told_found}"


if __name__ == "__main__":
    main()
