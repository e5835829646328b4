"""Attack time limits: what has one must end in time, however many rows there are.

Each listed estimator that has a `time_limit`, with each word of each parameter, and each command
with --time-limit, with each model and method, learns from a large table, once briefly from few
rows, so that its kernels are compiled, and then within the limit. All are found in declarations, so
none is forgotten; that takes an hour, and `--only` tries some. A fit may be late by 2 seconds or by
half of the limit, whichever is more. As their help says, the limit of commands begins when the rows
are read; printing and saving must end within it.

With `--processor`, one thread is used, and its processor seconds are the clock, for the limit
as well: then other work on the machine has no effect.
"""

import argparse
import linecache
import re
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, chdir, contextmanager
from itertools import product
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any, NamedTuple
from unittest import mock

import click
import numpy as np
import pandas as pd

from bayescascade import ParameterError, TooLargeError
from bayescascade.cli import application as cli_application, learning, rows
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

NEEDED: Mapping[str, tuple[str, ...]] = {
    "budget": ("--budgets", "3,10", "--costs", "costs.csv"),
    "sensors": ("--budgets", "3,10", "--sensors", "costs.csv"),
    "rados make": ("--missing", "error"),
}
"""Options that commands need, beside those that `words_of_command` gives all."""

CHOOSING = ("model", "method", "learner", "search")
"""Options of commands whose words are all tried, together."""

_ALIKE = ("unknown", "missing")  # their words make no fit longer


class Late(BaseException):
    """A fit took hopelessly long."""


class Refused(Exception):
    """A command does not take these options together."""


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
    if "=" in name:
        base, parameter, word = re.fullmatch(r"(.*) (\w+)=(.*)", name).groups()
        changed = {parameter: word}
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
    """Run a command, and save what it learned; its time begins when the rows are read.

    Raises Refused if it does not take the options, and TooLargeError as estimators.
    """
    words = words_of_command(name)
    allowed, places, began = limit + max(2.0, 0.5 * limit), list[str](), list[float]()

    def fail(text: str) -> None:
        if isinstance(sys.exc_info()[1], TooLargeError):
            raise  # which the program has caught
        raise Refused(text)

    with TemporaryDirectory() as folder, chdir(folder):
        write_inputs(frame, "rados.npz" in words)
        with _noting(places, allowed, hopeless * limit) as begin, ExitStack() as stack:
            stack.enter_context(mock.patch.object(cli_application, "_fail", fail))
            for patched in _begun(lambda: began.append(begin())):
                stack.enter_context(patched)
            try:
                says = run_quietly(*words, "--time-limit", limit).stderr
            except Late:
                says = "given up"
    seconds = time.perf_counter() - began[-1]
    return Result(seconds, places[0] if places else "", " ".join(says.split())[:60])


def commands() -> dict[str, click.Command]:
    """Return all commands with --time-limit, by name."""

    def under(group: click.Group, name: str) -> Iterator[tuple[str, click.Command]]:
        for word, command in group.commands.items():
            if isinstance(command, click.Group):
                yield from under(command, f"{name}{word} ")
            elif _options(command, "time_limit"):
                yield f"{name}{word}", command

    return dict(under(cli_application.application, ""))


def _options(command: click.Command, *names: str) -> list[click.Parameter]:
    return [one for one in command.params if one.name in names]


def commands_with_words() -> Iterator[str]:
    """Yield names of commands with the words of options, such as "fit model=leaf search=exact"."""
    for name, command in commands().items():
        of_each = [
            [""] * (one.default is not None or one.name == "search")
            + [f" {one.name}={word}" for word in one.type.choices if word != one.default]
            for one in _options(command, *CHOOSING)
        ]
        yield from (name + "".join(words) for words in product(*of_each))


def words_of_command(name: str) -> list[str]:
    """Return a command line for a name of `commands_with_words`."""
    plain, _, chosen = re.sub(r" (\w+=)", r"\0\1", name, count=1).partition("\0")
    command = commands()[plain]
    options = [word for pair in chosen.split() for word in f"--{pair}".split("=")]
    names = {name for one in command.params for name in one.opts}
    common = {"--target": "y", "--seed": "0", "--out": "rados.npz" if "make" in plain else "m.json"}
    if "method=path" in name:  # which cannot be saved
        del common["--out"]
    given = [word for pair in common.items() if pair[0] in names for word in pair]
    data = "rados.npz" if "files" in names else "rows.csv"
    return [*plain.split(), data, *given, *NEEDED.get(plain, ()), *options]


def write_inputs(frame: pd.DataFrame, with_rados: bool) -> None:
    """Write what commands read: rows with labels, costs, and sums of rows."""
    labels = targets(frame, ESTIMATORS["boxes"])[0].to_numpy()
    frame.assign(y=labels).to_csv("rows.csv", index=False)
    groups = [f"sensor {place % 10}" for place in range(frame.shape[1])]
    costs = pd.DataFrame({"name": frame.columns, "cost": None, "group": groups})
    costs.to_csv("costs.csv", index=False)
    if with_rados:
        run_quietly(*words_of_command("rados make"))


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


def tried(name: str, frame: pd.DataFrame, limit: float) -> tuple[Result, int]:
    """Return how a fit ends, with as many columns as it does not refuse as too large."""
    while True:
        try:
            run(name, frame[:_FEW], limit, np.inf)  # compilation cannot be interrupted
            found = run(name, frame, limit)
            if found.seconds > limit + max(2.0, 0.5 * limit):  # with what was compiled on the way
                found = min(found, run(name, frame, limit))
        except TooLargeError:
            frame = frame.iloc[:, : frame.shape[1] * 2 // 3]
        else:
            return found, frame.shape[1]


def names_of(only: str | None) -> list[str]:
    """Return the listed estimators that have a time limit, variants of them, and commands."""
    timed = [n for n, case in ESTIMATORS.items()
             if "time_limit" in case.make(**case.parameters).get_params()]  # fmt: skip
    names = [*timed, *VARIANTS]
    names += [*words_left(names), *(_COMMAND + name for name in commands_with_words())]
    return [name for name in names if only is None or only in name]


def words_left(names: Sequence[str]) -> Iterator[str]:
    """Yield a name for each declared word of a parameter that no estimator of a name has."""
    few = draw(10, 40, 0.0)
    models = {name: made(name, few, 1.0)[0] for name in names}
    for kind in dict.fromkeys(map(type, models.values())):
        own = {
            name: one.get_params(deep=False) for name, one in models.items() if type(one) is kind
        }
        for parameter in kind.declares.declared().values():
            seen = [given.get(parameter.name) for given in own.values()]
            for word in parameter.words if parameter.name not in _ALIKE else ():
                if word not in seen:
                    yield f"{next(iter(own))} {parameter.name}={word}"


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
        try:
            found, n_columns = tried(name, frame, limit)
        except (ParameterError, Refused) as error:
            sys.stdout.write(f"     {name:<22}refused: {error}\n")
            continue
        is_late = found.seconds > allowed
        n_late += is_late
        sys.stdout.write(
            f"{'LATE' if is_late else '':<5}{name:<22}{found.seconds:6.1f} s of {limit:g}, "
            f"{n_columns} columns  {found.says:<8} {found.place if is_late else ''}\n"
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
