"""``bayescascade doctor``: the machine and the installed libraries, with advice on problems."""

import os
import platform
import re
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

import click

from bayescascade import __version__
from bayescascade.cli.output import echo_json, echo_page

LITTLE_MEMORY = 2.0  # gigabytes, the default limit of exact searches
_REQUIREMENT = re.compile(r"([\w.-]+)[^;]*?(?:>=\s*([\d.]+)[^;]*)?(?:;.*extra == ['\"]([\w-]+).*)?")
_PLACE = "set NUMBA_CACHE_DIR to a directory that can be written"


@click.command(short_help="Describe the installation and what is wrong with it.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor(as_json: bool) -> None:
    """Print versions, cores, memory and the folder of compiled code, with advice on problems.

    Include its output in bug reports.
    """
    packages, extras = _packages()
    found = {
        "bayescascade": __version__,
        "folder": str(Path(__file__).parents[1]),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": packages,
        "extras": extras,
        "cores": _cores(),
        "kernels": _kernels(),
        "memory": _memory(),
    }
    found["advice"] = list(_advice(found))
    if as_json:
        echo_json(found)
    else:
        _echo(found)


def _packages() -> tuple[dict[str, dict[str, str | None]], dict[str, bool]]:
    """Return version and least version of each required package, and which extras are complete."""
    packages: dict[str, dict[str, str | None]] = {}
    extras: dict[str, bool] = {}
    try:
        requirements = requires("bayescascade") or []
    except PackageNotFoundError:  # it is not installed
        requirements = []
    for requirement in sorted(requirements):
        match = _REQUIREMENT.fullmatch(requirement)
        if match is None or match[1] == "bayescascade":
            continue
        try:
            installed = version(match[1])
        except PackageNotFoundError:
            installed = None
        if match[3]:
            extras[match[3]] = extras.get(match[3], True) and installed is not None
        else:
            packages[match[1]] = {"version": installed, "least": match[2] or ""}
    return packages, extras


def _cores() -> dict[str, int | None]:
    import joblib

    return {"machine": os.cpu_count(), "usable": joblib.cpu_count()}


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


def _advice(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each problem."""
    for name, package in found["packages"].items():
        if package["version"] is None:
            yield f"{name} is not installed: pip install {name}"
        elif _numbers(package["version"]) < _numbers(package["least"]):
            least, got = package["least"], package["version"]
            yield f"{name} must be at least {least}, got {got}: pip install -U {name}"
    kernels, cores = found["kernels"], found["cores"]
    if kernels["are_interpreted"]:
        yield "kernels are interpreted and 100 times slower: unset NUMBA_DISABLE_JIT"
    elif not kernels["is_writable"]:
        folder = kernels["folder"] or "no folder for kernels"
        can = "cannot" if kernels["folder"] else "can"
        yield f"{folder} {can} be written, so every start compiles again: {_PLACE}"
    elif kernels["is_temporary"]:
        yield f"kernels are in a temporary folder and compiled again when it is emptied: {_PLACE}"
    if cores["usable"] < cores["machine"]:
        usable = f"{cores['usable']} of {cores['machine']} cores may be used"
        yield f"{usable}: see the limits of this container, or LOKY_MAX_CPU_COUNT"
    available = found["memory"]["available"]
    if available is not None and available < LITTLE_MEMORY:
        yield f"{available:.1f} GB of memory are left: give exact searches a lower --memory-limit"


def _numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text.partition("+")[0])[:3]]


def _echo(found: Mapping[str, Any]) -> None:
    from bayescascade.report.page import BLANK, Heading, Pieces

    kernels, extras, memory = found["kernels"], found["extras"], found["memory"]
    can = "can be written" if kernels["is_writable"] else "cannot be written"
    lines = {
        "folder": [found["folder"]],
        "platform": [found["platform"]],
        "packages": [f"{n} {p['version'] or 'missing'}" for n, p in found["packages"].items()],
        "extras": [name for name, is_there in extras.items() if is_there] or ["none"],
        "not installed": [name for name, is_there in extras.items() if not is_there] or ["none"],
        "cores": [f"{found['cores']['machine']}, of which {found['cores']['usable']} usable"],
        "kernels": [f"{kernels['compiled']} compiled", f"in {kernels['folder'] or 'none'}", can],
        "memory": [f"{name} {size:.1f} GB" for name, size in memory.items() if size is not None],
    }
    width = max(map(len, lines)) + 3
    texts = [
        Pieces([" ".join(text.split()) for text in texts], indent=width, first=label.ljust(width))
        for label, texts in lines.items()
    ]
    advice = [Pieces([text], "warning", indent=2) for text in found["advice"]]
    heading = Heading([f"bayescascade {found['bayescascade']}", f"Python {found['python']}"])
    echo_page((heading, *texts, BLANK, *(advice or [Pieces(["nothing is wrong"])])))
