"""``bayescascade doctor``: the machine and the installed libraries, with advice on problems."""

import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

import click

from bayescascade import __version__
from bayescascade.cli.output import echo_json, echo_page

IMPORTED = ("bayescascade", "bayescascade.cli", "numpy", "pandas", "numba", "sklearn")
SLOW_IMPORT = 5.0  # seconds
LITTLE_MEMORY = 2.0  # gigabytes, the default limit of exact searches
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS",
                    "NUMBA_NUM_THREADS", "LOKY_MAX_CPU_COUNT")  # fmt: skip


@click.command(short_help="Describe the installation and what is wrong with it.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor(as_json: bool) -> None:
    """Print versions, cores, memory and the folder of compiled code, with advice on problems.

    Include its output in bug reports. It takes some seconds, because it measures imports.
    """
    found = {
        "bayescascade": __version__,
        "folder": str(Path(__file__).parents[1]),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": _packages(),
        "extras": _extras(),
        "cores": _cores(),
        "threads": {name: os.environ[name] for name in THREAD_VARIABLES if name in os.environ},
        "blas": _blas(),
        "kernels": _kernels(),
        "memory": _memory(),
        "import_seconds": {name: _import_seconds(name) for name in IMPORTED},
    }
    found["advice"] = list(_advice(found))
    if as_json:
        echo_json(found)
    else:
        _echo(found)


def _requirements() -> Iterator[tuple[str, str, str]]:
    """Yield package, minimum version ("" for any) and extra ("" for none) of each requirement."""
    try:
        requirements = requires("bayescascade") or []
    except PackageNotFoundError:  # it is not installed
        return
    for requirement in requirements:
        wanted, _, marker = requirement.partition(";")
        name = re.match(r"[\w.-]+", wanted)
        extra = re.search(r"extra == ['\"]([\w-]+)", marker)
        least = re.search(r">=\s*([\d.]+)", wanted)
        if name is not None and name[0] != "bayescascade":
            yield name[0], least[1] if least else "", extra[1] if extra else ""


def _packages() -> dict[str, dict[str, str | None]]:
    return {
        name: {"version": _version(name), "least": least}
        for name, least, extra in sorted(_requirements())
        if not extra
    }


def _extras() -> dict[str, bool]:
    """Return for each extra whether all its requirements are installed."""
    extras: dict[str, bool] = {}
    for name, _, extra in _requirements():
        if extra:
            extras[extra] = extras.get(extra, True) and _version(name) is not None
    return extras


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _cores() -> dict[str, int | None]:
    import joblib

    return {"machine": os.cpu_count(), "usable": joblib.cpu_count()}


def _blas() -> list[dict[str, Any]]:
    import numpy  # noqa: F401 - which registers one
    import scipy.linalg  # noqa: F401 - which registers another
    from threadpoolctl import threadpool_info

    return [
        {key: library.get(key) for key in ("internal_api", "version", "num_threads")}
        for library in threadpool_info()
    ]


def _kernels() -> dict[str, Any]:
    """Return the folder of compiled kernels, what is known of it, and their number."""
    from bayescascade.base.kernel_cache import cache_folder, is_cache_temporary, is_interpreted

    folder = cache_folder()
    existing = folder and next(path for path in (folder, *folder.parents) if path.exists())
    return {
        "folder": folder and str(folder),
        "is_writable": existing is not None and os.access(existing, os.W_OK),
        "is_temporary": is_cache_temporary(),
        "are_interpreted": is_interpreted(),
        "compiled": 0 if folder is None else sum(1 for _ in folder.rglob("*.nbc")),
    }


def _memory() -> dict[str, float | None]:
    """Return gigabytes; None if the system does not report them."""
    try:
        text = Path("/proc/meminfo").read_text(encoding="utf-8")
    except OSError:
        text = ""
    sizes = dict(re.findall(r"^(\w+):\s+(\d+) kB$", text, re.MULTILINE))
    names = {"total": "MemTotal", "available": "MemAvailable"}
    return {name: int(sizes[key]) / 1e6 if key in sizes else None for name, key in names.items()}


def _import_seconds(name: str) -> float | None:
    """Return the seconds of an import in a new interpreter; None if it fails."""
    code = (
        "import sys, time; started = time.perf_counter(); "
        f"import {name}; sys.stdout.write(str(time.perf_counter() - started))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False
    )
    return float(found.stdout) if found.returncode == 0 else None


def _advice(found: dict[str, Any]) -> Iterator[str]:
    """Yield a line for each problem."""
    for name, package in found["packages"].items():
        if package["version"] is None:
            yield f"{name} is not installed: pip install {name}"
        elif _numbers(package["version"]) < _numbers(package["least"]):
            yield (
                f"{name} must be at least {package['least']}, got {package['version']}: "
                f"pip install -U {name}"
            )
    kernels = found["kernels"]
    place = "set NUMBA_CACHE_DIR to a directory that can be written"
    if kernels["are_interpreted"]:
        yield "kernels are interpreted and 100 times slower: unset NUMBA_DISABLE_JIT"
    elif not kernels["is_writable"]:
        folder = kernels["folder"] or "no folder for kernels"
        can = "cannot" if kernels["folder"] else "can"
        yield f"{folder} {can} be written, so every start compiles again: {place}"
    elif kernels["is_temporary"]:
        yield f"kernels are in a temporary folder and compiled again when it is emptied: {place}"
    if found["cores"]["usable"] < found["cores"]["machine"]:
        yield (
            f"{found['cores']['usable']} of {found['cores']['machine']} cores may be used: "
            "see the limits of this container, or LOKY_MAX_CPU_COUNT"
        )
    available = found["memory"]["available"]
    if available is not None and available < LITTLE_MEMORY:
        yield f"{available:.1f} GB of memory are left: give exact searches a lower --memory-limit"
    for name, seconds in found["import_seconds"].items():
        if seconds is None:
            yield f"{name} cannot be imported: python -c 'import {name}' says why"
        elif seconds > SLOW_IMPORT:
            yield f"importing {name} takes {seconds:.0f} s: is it on a slow disk or a network disk?"


def _numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text.partition("+")[0])[:3]]


def _echo(found: dict[str, Any]) -> None:
    from bayescascade.report.page import BLANK, Heading, Pieces

    kernels, memory, cores = found["kernels"], found["memory"], found["cores"]
    by_state = {
        state: [name for name, is_there in found["extras"].items() if is_there == state]
        for state in (True, False)
    }
    usable = "" if cores["usable"] == cores["machine"] else f"{cores['usable']} usable"
    can = "can be written" if kernels["is_writable"] else "cannot be written"
    lines = {
        "folder": [found["folder"]],
        "platform": [found["platform"]],
        "packages": [f"{n} {p['version'] or 'missing'}" for n, p in found["packages"].items()],
        "extras": by_state[True] or ["none"],
        "not installed": by_state[False] or ["none"],
        "cores": [str(cores["machine"]), *filter(None, [usable])],
        "threads": [f"{name}={value}" for name, value in found["threads"].items()] or ["not set"],
        "BLAS, OpenMP": [
            " ".join(filter(None, [b["internal_api"], b["version"], f"({b['num_threads']})"]))
            for b in found["blas"]
        ],
        "kernels": [f"{kernels['compiled']} compiled", f"in {kernels['folder'] or 'none'}", can],
        "memory": [f"{name} {size:.1f} GB" for name, size in memory.items() if size is not None],
        "imports": [
            f"{name} {'fails' if seconds is None else f'{seconds:.2f} s'}"
            for name, seconds in found["import_seconds"].items()
        ],
    }
    width = max(map(len, lines)) + 3
    texts = [
        Pieces(
            [" ".join(piece.split()) for piece in pieces], indent=width, first=label.ljust(width)
        )
        for label, pieces in lines.items()
    ]
    advice = [Pieces([text], "warning", indent=2) for text in found["advice"]]
    python = f"Python {found['python']}"
    everything_is_well = Pieces(["nothing is wrong"])
    echo_page(
        (
            Heading([f"bayescascade {found['bayescascade']}", python]),
            *texts,
            BLANK,
            *(advice or [everything_is_well]),
        )
    )
