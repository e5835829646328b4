"""A figure that a benchmark measured, beside its target, and the machine it was measured on."""

import os
import platform
import subprocess
from argparse import ArgumentParser
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import TypeVar

ROOT = Path(__file__).parents[2]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure, its target in the same unit, and that of a baseline in the same run."""

    name: str
    value: float
    unit: str
    at_least: float | None = None
    at_most: float | None = None
    baseline: float | None = None

    def cells(self):
        """Return name, value, target with a verdict, and the ratio to the baseline."""
        target = ""
        if self.at_least is not None:
            target = f">= {_text(self.at_least)} {_verdict(self.value >= self.at_least)}"
        if self.at_most is not None:
            target = f"<= {_text(self.at_most)} {_verdict(self.value <= self.at_most)}"
        ratio = "" if self.baseline is None else f"{self.value / self.baseline:,.0f} x"
        return self.name, f"{_text(self.value)} {self.unit}", target, ratio


def figures_table(figures):
    """Return the lines of a table of figures."""
    rows = [("figure", "measured", "target", "x baseline"), *(figure.cells() for figure in figures)]
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    lines = []
    for name, *others in rows:
        cells = [text.rjust(width) for text, width in zip(others, widths[1:], strict=True)]
        lines.append("  ".join([name.ljust(widths[0]), *cells]).rstrip())
    return lines


def machine():
    """Yield, line by line, what a reader must know to judge the figures."""
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    yield f"commit {described.stdout.strip() or 'unknown'}"
    yield f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {platform.platform()}"
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numba", "numpy", "pandas"))
    yield f"Python {platform.python_version()}, {libraries}"


def timed(function, n_rounds=1, clock=perf_counter):
    """Return what a function returns, and the least seconds of some calls."""
    seconds = []
    for _ in range(n_rounds):
        started = clock()
        result = function()
        seconds.append(clock() - started)
    return result, min(seconds)


def parser(document, data_sets, default):
    """Return the parser of a script's command line: data sets, and the folder that they are in."""
    made = ArgumentParser(description=(document or "").splitlines()[0])
    folder = os.environ.get("BAYESCASCADE_DATA", ".")
    made.add_argument("--data", type=Path, default=folder, help="folder of the data")
    made.add_argument("--data-sets", nargs="+", choices=[*data_sets], default=[*default])
    return made


def say(*lines):
    """Print lines as soon as they are known; before the first, what a reader must know."""
    if not _SAID:
        _SAID.extend(machine())
        print("\n".join(_SAID))  # noqa: T201 - of a script
    print("\n".join(lines), flush=True)  # noqa: T201


_SAID = []


def _text(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.4g}"


def _verdict(is_met):
    return "met   " if is_met else "MISSED"
