"""Attack time limits: each estimator that has one must end in time, however many rows there are.

Each listed estimator that has a `time_limit` learns from a large table, once briefly from few rows,
so that its kernels are compiled, and then within the limit. It may be late by 2 seconds or by half
of the limit, whichever is more. Late seconds are those of the processor: on a machine with other
work, the wall seconds after the limit count by the share of the processor that the fit had.
"""

import argparse
import linecache
import resource
import signal
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from tests.contracts.listed import ESTIMATORS, Case

_KEPT = {
    *("search", "leaf", "partitions", "predictive", "kind", "neighborhood", "learner", "distance"),
    *("selection", "method", "features", "likelihood", "missing", "forest", "estimator"),
}
"""Parameters of a listed estimator that say what it does; the others make its tests quick."""

_WITHIN = ("budget", "full_share", "n_boosted", "tradeoff")
_HOPELESS = 10.0  # a fit is given up after this multiple of the limit
_FEW = 400  # rows of the fit before

VARIANTS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "rules exact": ("rules", {"search": "exact"}),
    "labels exact": ("labels", {"search": "exact"}),
    "boxes exact": ("boxes, pooled", {"search": "exact"}),
    "minibatches": ("neighbors", {"optimizer": "minibatch"}),
    "margins of stumps": ("margins", {"estimator": None}),
    "policies of stumps": ("policies", {"predict_by": "margin"}),
    "cstc of many": ("cstc", {"tradeoff": None}),
    "auto of all": ("auto budget", {"methods": None}),
}
"""Further ways of listed estimators."""


class Late(BaseException):
    """A fit took hopelessly long."""


class Result(NamedTuple):
    """How a fit ended: wall seconds, late seconds of the processor, and where it was when late."""

    seconds: float
    late: float
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
    numbers = frame.select_dtypes("number").to_numpy()
    some = numbers[:, :6]
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
    return case.make(**{**given, "random_state": 0, "time_limit": limit}), case


def run(name: str, frame: pd.DataFrame, limit: float) -> Result:
    """Fit an estimator within a limit, and use what it learned."""
    model, case = made(name, frame, limit)
    beside = targets(frame, case)
    allowed = limit + max(2.0, 0.5 * limit)
    places: list[str] = []
    began, spent = time.perf_counter(), _processor()
    with _noting(places, allowed, _HOPELESS * limit):
        try:
            model.fit(frame, *beside)
        except Late:
            return Result(time.perf_counter() - began, np.inf, places[-1], "given up")
    wall, used = time.perf_counter() - began, _processor() - spent
    late = max(0.0, wall - limit) * min(1.0, used / wall)
    few = frame[:100]
    answered = model.score_samples(few) if hasattr(model, "score_samples") else model.predict(few)
    told = " ".join(str(model).split())
    says = "says so" if "time limit of" in told or "part of" in told else ""
    says = says if len(answered) == len(few) else "has no answers"
    return Result(wall, late, places[0] if places else "", says)


def names_of(only: str | None) -> list[str]:
    """Return the listed estimators that have a time limit, and variants of them."""
    timed = [n for n, case in ESTIMATORS.items()
             if "time_limit" in case.make(**case.parameters).get_params()]  # fmt: skip
    return [name for name in (*timed, *VARIANTS) if only is None or only in name]


def main() -> None:
    """Try all estimators, print a line for each; the exit code is 1 if one is late."""
    parser = argparse.ArgumentParser(description="Attack time limits with large tables")
    parser.add_argument("--rows", type=int, default=60_000, help="rows of the table; 60,000")
    parser.add_argument("--columns", type=int, default=40, help="its columns; 40")
    parser.add_argument("--levels", type=float, default=0.0, help="share of nominal columns; 0")
    parser.add_argument("--limit", type=float, default=4.0, help="seconds; 4")
    parser.add_argument("--only", help="estimators whose name contains this")
    options = parser.parse_args()
    frame = draw(options.rows, options.columns, options.levels)
    names = names_of(options.only)
    if not names:
        parser.error(f"--only must be part of a name, got {options.only}")
    n_late, allowed = 0, max(2.0, 0.5 * options.limit)
    for name in names:
        warnings.simplefilter("ignore")
        run(name, frame[:_FEW], options.limit)
        found = run(name, frame, options.limit)
        if found.late > allowed:  # what was compiled on the way takes longer
            found = min(found, run(name, frame, options.limit), key=lambda one: one.late)
        n_late += found.late > allowed
        verdict = "LATE" if found.late > allowed else "    "
        sys.stdout.write(
            f"{verdict} {name:<20}{found.seconds:7.1f} s of {options.limit:g}, "
            f"late {found.late:5.1f}  {found.says:<8} {found.place}\n"
        )
        sys.stdout.flush()
    sys.stdout.write(f"{len(names)} tried, {n_late} late\n")
    sys.exit(1 if n_late else 0)


def _processor() -> float:
    """Return the processor seconds of this process and of its children that ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


@contextmanager
def _noting(places: list[str], allowed: float, hopeless: float) -> Iterator[None]:
    """Note where the program is when time is up, and raise Late when it takes hopelessly long."""

    def note(_number: int, frame: FrameType | None) -> None:
        places.append(_place(frame))
        if len(places) * allowed >= hopeless:
            raise Late

    before = signal.signal(signal.SIGALRM, note)
    signal.setitimer(signal.ITIMER_REAL, allowed, allowed)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


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
