"""``python -m tests.golden --against COMMIT``: compare this tree with a commit.

Both run in the same environment and at the same path, one thread each. The first difference of each
case is printed; the exit code is 1 if there is one. ``--damaged`` compares instead what is refused:
a damaged file that the commit refuses must be refused here. ``--only WORD,...`` runs the cases of
families, classes or commands.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
VARIES = re.compile(r"\b[\d.,]+ (s|ms|min)\b|/tmp/\S+")  # times, and folders of one run
LAST = re.compile(r" +[\d.,]+$")
RENAMED: dict[str, str] = {"thrift": "tradeoff"}
"""Keys of records that have another name here."""


def outcomes(tree: Path, home: Path, options: list[str]) -> Any:
    """Return the outcomes of a tree, run where the trees of all runs stand: home / "tree"."""
    home.mkdir(parents=True, exist_ok=True)
    link, out = home / "tree", home / "outcomes.json"
    link.unlink(missing_ok=True)
    link.symlink_to(tree.resolve())
    threads = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    own = {**dict.fromkeys(threads, "1"), "PYTHONHASHSEED": "0", "MPLBACKEND": "agg"}
    given = {"NUMBA_CACHE_DIR": str(home / "numba"), **os.environ, "PYTHONPATH": str(link)}
    script = Path(__file__).with_name("outcomes.py")  # this one for both
    command = [sys.executable, "-P", script, out, *options]
    subprocess.run(command, env={**given, **own}, check=True, cwd=home)
    return json.loads(out.read_text())


def lines_of(value: Any, place: str = "") -> Iterator[str]:
    """Yield a line for each leaf of JSON, texts of JSON included, and for each line of others."""
    if isinstance(value, str) and value.startswith("{"):
        with suppress(ValueError):
            value = json.loads(value)
    if isinstance(value, dict):
        for key in sorted(value):
            yield from lines_of(value[key], f"{place}/{RENAMED.get(key, key)}")
    elif isinstance(value, list):
        yield f"{place}: {len(value)} values"
        for i, part in enumerate(value):
            yield from lines_of(part, f"{place}/{i}")
    else:
        is_timed = False  # whether it is of a table whose last column is of seconds
        for line in value.split("\n") if isinstance(value, str) else [repr(value)]:
            is_timed = bool(line) and (is_timed or line.endswith(" seconds"))
            yield f"{place}: {(LAST if is_timed else VARIES).sub('~', line)}"


def first_difference(old: Any, new: Any) -> tuple[str, str] | None:
    """Return the first two lines that differ, None if there are none."""
    pairs = zip([*lines_of(old), "nothing"], [*lines_of(new), "nothing"], strict=False)
    return next(((before, after) for before, after in pairs if before != after), None)


def first_accepted(old: dict[str, str], new: dict[str, str]) -> tuple[str, str] | None:
    """Return the first damage that the commit refuses, and this tree does not, or crashes of."""
    for place, before in old.items():
        after = new.get(place, "not tried")
        if after not in (before, "refused"):
            return f"{place}: {before}", f"{place}: {after}"
    return None


def main() -> int:
    """Compare, print, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    parser.add_argument("--against", metavar="COMMIT", required=True)
    parser.add_argument("--only", metavar="WORD,...", default="")
    parser.add_argument("--damaged", action="store_true")
    given = parser.parse_args()
    options = [given.only, *["damaged"][: given.damaged]]
    home = ROOT / "build/golden"
    with tempfile.TemporaryDirectory() as folder:
        archive = ["git", "archive", given.against]
        packed = subprocess.run(archive, cwd=ROOT, check=True, capture_output=True)
        subprocess.run(["tar", "-x", "-C", folder], input=packed.stdout, check=True)
        old = outcomes(Path(folder), home, options)
    new = outcomes(ROOT, home, options)
    compare = first_accepted if given.damaged else first_difference
    found = {name: compare(old.get(name, {}), new.get(name, {})) for name in {**old, **new}}
    differing = {name: pair for name, pair in found.items() if pair is not None}
    for name, (before, after) in differing.items():
        lines = f"{name}\n  {given.against}: {before[:2000]}\n  here: {after[:2000]}"
        print(lines)  # noqa: T201
    print(f"{len(found)} cases, {len(differing)} differ")  # noqa: T201
    return 1 if differing or not found else 0


if __name__ == "__main__":
    sys.exit(main())
