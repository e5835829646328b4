"""A figure that a benchmark measured, beside its target, and the machine it was measured on."""

import os
import platform
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

__all__ = ["ROOT", "Figure", "figures_table", "machine"]

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure.

    Parameters
    ----------
    name : str
    value : float
    unit : str
    at_least, at_most : float or None
        The target, in the same unit; None where there is none.
    baseline : float or None
        The same figure of the named baseline, measured in the same run.
    """

    name: str
    value: float
    unit: str
    at_least: float | None = None
    at_most: float | None = None
    baseline: float | None = None

    def cells(self) -> tuple[str, str, str, str]:
        """Return name, value, target with a verdict, and the ratio to the baseline."""
        target = ""
        if self.at_least is not None:
            target = f">= {_text(self.at_least)} {_verdict(self.value >= self.at_least)}"
        if self.at_most is not None:
            target = f"<= {_text(self.at_most)} {_verdict(self.value <= self.at_most)}"
        ratio = "" if self.baseline is None else f"{self.value / self.baseline:,.0f} x"
        return self.name, f"{_text(self.value)} {self.unit}", target, ratio


def figures_table(figures: Sequence[Figure]) -> list[str]:
    """Return the lines of a table of figures."""
    rows = [
        ("figure", "measured", "target", "x baseline"),
        *(figure.cells() for figure in figures),
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    lines = []
    for name, *others in rows:
        cells = [text.rjust(width) for text, width in zip(others, widths[1:], strict=True)]
        lines.append("  ".join([name.ljust(widths[0]), *cells]).rstrip())
    return lines


def machine() -> Iterator[str]:
    """Yield, line by line, what a reader must know to judge the figures."""
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    yield f"commit {described.stdout.strip() or 'unknown'}"
    yield f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {platform.platform()}"
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numba", "numpy", "pandas"))
    yield f"Python {platform.python_version()}, {libraries}"


def _text(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.4g}"


def _verdict(is_met: bool) -> str:
    return "met   " if is_met else "MISSED"
