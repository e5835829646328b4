"""Attack time limits: what has one must end in time, however many rows there are.

Each listed estimator that has a `time_limit`, and each command with --time-limit, learns from a
large table, once briefly from few rows, so that its kernels are compiled, and then within the
limit. It may be late by 2 seconds or by half of the limit, whichever is more. As their help says,
the limit of commands begins when the rows are read; printing and saving must end within it.

With `--processor`, one thread is used, and its processor seconds are the clock, for the limit
as well: then other work on the machine has no effect.
"""

import argparse
import linecache
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, chdir, contextmanager
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pandas as pd

from bayescascade import TooLargeError
from bayescascade.cli import learning, rows
from tests.commands import run as run_quietly
from tests.contracts.listed import ESTIMATORS, Case

_KEPT = {
    *("search", "leaf", "partitions", "predictive", "kind", "learner", "distance"),
    *("selection", "method", "features", "likelihood", "missing", "forest", "estimator"),
}
"""Parameters of a listed estimator that say what it does; the others make its tests quick."""

_WITHIN = ("budget", "full_share", "n_boosted", "tradeoff")
_COMMAND = "command "  # begins the names of commands
_HOPELESS = 10.0  # a fit is given up after this multiple of the limit
_FEW = 400  # rows of the fit before

VARIANTS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "rules exact": ("rules", {"search": "exact"}),
    "labels exact": ("labels", {"search": "exact"}),
    "boxes exact": ("boxes, pooled", {"search": "exact", "likelihood": "gibbs", "n_boxes": 1}),
    "gate of a forest": ("gate", {"estimator": None}),
    "prune of a forest": ("prune", {"forest": None}),
    "minibatches": ("neighbors", {"optimizer": "minibatch"}),
    "margins of stumps": ("margins", {"estimator": None}),
    "cstc of many": ("cstc", {"tradeoff": None}),
    "auto of all": ("auto budget", {"methods": None}),
}
"""Further ways of listed estimators."""

COMMANDS: Mapping[str, tuple[str, ...]] = {
    **{f"fit {one}": ("--model", one) for one in ("auto", "leaf", "branch", "rules", "mixture")},
    **{f"boxes {one}": ("--method", one) for one in ("average", "exact", "fast", "path")},
    "classify": (),
    "compress": (),
    "budget": ("--budgets", "3,10"),
    "sensors": ("--budgets", "3,10"),
    "rados make": ("--missing", "error"),
}
"""Options of commands with --time-limit, by the command and a word on its way."""


class Late(BaseException):
    """A fit took hopelessly long."""


class Result(NamedTuple):
    """How a fit ended: its seconds, and where it was when it should have ended."""

    seconds: float
    place: str
    says: str


def draw(n_rows: int, n_columns: int, share: float) -> pd.DataFrame:
    """Return rows of numbers and, for a share of the columns, levels; pairs are correlated."""
    rng = np.random.default_rng(0)
    cells = rng.normal(size=(n_rows, n_columns))
    cells[:, 1::2] = (
        0.7 * cells[:, : n_columns - 1 : 2][:, : cells[:, 1::2].shape[1]] + 0.7 * (cells[:, 1::2])
    )
    frame = pd.DataFrame(cells, columns=[f"c{j}" for j in range(n_columns)])
    for name in frame.columns[: round(share * n_columns)]:
        frame[name] = pd.cut(frame[name], [-np.inf, -1, 0, 1, np.inf], labels=list("abcd"))
        frame[name] = frame[name].astype(str)
    return frame


def targets(frame: pd.DataFrame, case: Case) -> list[Any]:
    """Return what `fit` takes beside the rows: labels, or the numbers of sensors."""
    rng = np.random.default_rng(1)
    some = frame.select_dtypes("number").iloc[:, :6].to_numpy()
    if not some.size:
        some = frame.iloc[:, :6].apply(lambda cells: pd.factorize(cells, sort=True)[0] - 1.5)
        some = some.to_numpy()
    score = some @ np.linspace(1, 0.2, some.shape[1]) + some[:, 0] * some[:, -1]
    score += rng.normal(size=len(frame))
    if case.others is not None:
        return [score]
    cuts = [0.5] if case.is_binary else [-1.5, 1.5]
    return [pd.Series(np.searchsorted(cuts, score)) > 0 if case.is_binary
            else pd.Series(np.searchsorted(cuts, score))] if case.is_labeled else []  # fmt: skip


def made(name: str, frame: pd.DataFrame, limit: float) -> tuple[Any, Case]:
    """Return an estimator of usual size, with costs of the columns."""
    base, changed = VARIANTS.get(name, (name, {}))
    case = ESTIMATORS[base]
    given = {k: v for k, v in case.parameters.items() if k in (*_KEPT, *_WITHIN)} | {**changed}
    names = case.make(**case.parameters).get_params()
    if "costs" in names:
        costs = np.random.default_rng(2).integers(1, 10, frame.shape[1]).astype(float)
        given["costs"] = dict(zip(frame.columns, costs.tolist(), strict=True))
        if "budget" in given:
            given["budget"] = float(costs.sum() / 4)
    if "n_jobs" in names:
        given["n_jobs"] = 1
    return case.make(**{**given, "random_state": 0, "time_limit": limit}), case


def run(name: str, frame: pd.DataFrame, limit: float, hopeless: float = _HOPELESS) -> Result:
    """Fit an estimator within a limit, and use what it learned; or run a command."""
    if name.startswith(_COMMAND):
        return run_command(name.removeprefix(_COMMAND), frame, limit, hopeless)
    model, case = made(name, frame, limit)
    beside = targets(frame, case)
    allowed = limit + max(2.0, 0.5 * limit)
    places: list[str] = []
    with _noting(places, allowed, hopeless * limit) as begin:
        began = begin()
        try:
            model.fit(frame, *beside)
        except Late:
            return Result(time.perf_counter() - began, places[0], "given up")
    seconds = time.perf_counter() - began
    few = frame[:100]
    answered = model.score_samples(few) if hasattr(model, "score_samples") else model.predict(few)
    told = " ".join(str(model).split())
    says = "says so" if "time limit of" in told or "part of" in told else ""
    says = says if len(answered) == len(few) else "has no answers"
    return Result(seconds, places[0] if places else "", says)


def run_command(name: str, frame: pd.DataFrame, limit: float, hopeless: float) -> Result:
    """Run a command, and save what it learned; its time begins when the rows are read."""
    words = name.split()
    words = [*(words if words[0] == "rados" else words[:1]), "rows.csv"]
    labels = targets(frame, ESTIMATORS["boxes"])[0].to_numpy()
    options = [*COMMANDS[name], "--time-limit", limit]
    if words[0] != "fit":
        options += ["--target", "y", "--seed", 0]
    allowed, places, began = limit + max(2.0, 0.5 * limit), list[str](), list[float]()
    with TemporaryDirectory() as folder, chdir(folder):
        frame.assign(y=labels).to_csv("rows.csv", index=False)
        groups = [f"sensor {place % 10}" for place in range(frame.shape[1])]
        costs = pd.DataFrame({"name": frame.columns, "cost": None, "group": groups})
        costs.to_csv("costs.csv", index=False)
        options += {"budget": ["--costs", "costs.csv"], "sensors": ["--sensors", "costs.csv"]}.get(
            words[0], []
        )
        options += ["--out", "rados.npz" if words[0] == "rados" else "model.json"]
        with _noting(places, allowed, hopeless * limit) as begin, ExitStack() as stack:
            for patched in _begun(lambda: began.append(begin())):
                stack.enter_context(patched)
            try:
                says = run_quietly(*words, *options).stderr
            except Late:
                says = "given up"
    seconds = time.perf_counter() - began[-1]
    return Result(seconds, places[0] if places else "", " ".join(says.split())[:60])


def _begun(begin: Callable[[], object]) -> Iterator[Any]:
    """Yield patches that call a function when a command has read rows, or begins to fit."""
    fit, read = learning._fit, rows.read_labeled  # which `rados make` calls in its fit

    def fitted(*given: Any) -> Any:
        begin()
        return fit(*given)

    def read_then_begun(*given: Any, **named: Any) -> Any:
        found = read(*given, **named)
        begin()
        return found

    yield mock.patch.object(learning, "_fit", fitted)
    yield mock.patch.object(rows, "read_labeled", read_then_begun)


def narrowed(name: str, frame: pd.DataFrame, limit: float) -> pd.DataFrame:
    """Return as many columns as an estimator does not refuse as too large; tried with few rows."""
    while True:
        try:
            run(name, frame[:_FEW], limit, np.inf)  # compilation cannot be interrupted
        except TooLargeError:
            frame = frame.iloc[:, : frame.shape[1] * 2 // 3]
        else:
            return frame


def names_of(only: str | None) -> list[str]:
    """Return the listed estimators that have a time limit, and variants of them."""
    timed = [n for n, case in ESTIMATORS.items()
             if "time_limit" in case.make(**case.parameters).get_params()]  # fmt: skip
    commands = [_COMMAND + name for name in COMMANDS]
    return [name for name in (*timed, *VARIANTS, *commands) if only is None or only in name]


def main() -> None:
    """Try all estimators, print a line for each; the exit code is 1 if one is late."""
    parser = argparse.ArgumentParser(description="Attack time limits with large tables")
    parser.add_argument("--rows", type=int, default=60_000, help="rows of the table; 60,000")
    parser.add_argument("--columns", type=int, default=40, help="its columns; 40")
    parser.add_argument("--levels", type=float, default=0.0, help="share of nominal columns; 0")
    parser.add_argument("--limit", type=float, default=4.0, help="seconds; 4")
    parser.add_argument("--processor", action="store_true", help="by the clock of the processor")
    parser.add_argument("--only", help="estimators whose name contains this")
    options = parser.parse_args()
    if options.processor:
        use_processor()
    frame = draw(options.rows, options.columns, options.levels)
    names = names_of(options.only)
    if not names:
        parser.error(f"--only must be part of a name, got {options.only}")
    n_late, limit = 0, options.limit
    allowed = limit + max(2.0, 0.5 * limit)
    for name in names:
        warnings.simplefilter("ignore")
        given = narrowed(name, frame, limit)
        found = run(name, given, limit)
        if found.seconds > allowed:  # what was compiled on the way takes longer
            found = min(found, run(name, given, limit))
        is_late = found.seconds > allowed
        n_late += is_late
        sys.stdout.write(
            f"{'LATE' if is_late else '':<5}{name:<22}{found.seconds:6.1f} s of {limit:g}, "
            f"{given.shape[1]} columns  {found.says:<8} {found.place if is_late else ''}\n"
        )
        sys.stdout.flush()
    sys.stdout.write(f"{len(names)} tried, {n_late} late\n")
    sys.exit(1 if n_late else 0)


def use_processor() -> None:
    """Let all modules take the processor seconds of this process for the time."""
    wall = time.perf_counter
    for name, module in list(sys.modules.items()):
        is_ours = name.startswith(("bayescascade", "samplers"))
        if is_ours and getattr(module, "perf_counter", None) is wall:
            module.perf_counter = time.process_time  # type: ignore[attr-defined]
    time.perf_counter = time.process_time


@contextmanager
def _noting(places: list[str], allowed: float, hopeless: float) -> Iterator[Callable[[], float]]:
    """Note where the program is when time is up, and raise Late when it takes hopelessly long.

    The time begins when the given function is called, which returns the time of the clock.
    """

    def note(_number: int, frame: FrameType | None) -> None:
        places.append(_place(frame))
        if len(places) * allowed >= hopeless:
            raise Late

    is_real = time.perf_counter is not time.process_time
    clock, number = (
        (signal.ITIMER_REAL, signal.SIGALRM) if is_real else (signal.ITIMER_PROF, signal.SIGPROF)
    )

    def begin() -> float:
        signal.setitimer(clock, allowed, allowed)
        return time.perf_counter()

    before = signal.signal(number, note)
    try:
        yield begin
    finally:
        signal.setitimer(clock, 0.0)
        signal.signal(number, before)


def _place(frame: FrameType | None) -> str:
    """Return the innermost lines of the package, the deepest first."""
    lines: list[str] = []
    while frame is not None and len(lines) < 3:
        file = frame.f_code.co_filename
        if "/bayescascade/" in file and "/tests/" not in file:
            text = linecache.getline(file, frame.f_lineno).strip()
            short = file.rsplit("/bayescascade/", 1)[1]
            lines.append(f"{short}:{frame.f_lineno} {text}" if not lines
                         else f"{short}:{frame.f_lineno}")  # fmt: skip
        frame = frame.f_back
    return " < ".join(lines)


if __name__ == "__main__":
    main()
