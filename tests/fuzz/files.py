"""Damaged files: saved models, sums of rows, traces, checkpoints, tables.

``python -m tests.fuzz.files --minutes 5 --seed 0``. Whatever reads one must refuse it in a line
of our own, or return what works: never another exception, a hang, or more than a gigabyte.
"""

import gzip
import io
import json
import resource
import signal
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import bayescascade
import samplers
from bayescascade.base.errors import BayesCascadeError, DataError, ModelFileError
from bayescascade.data.table import Table
from tests.commands import invoke
from tests.contracts.listed import CHAINS, ESTIMATORS, fitted, rows
from tests.fuzz.damage import damaged_arrays, damaged_bytes, damaged_json
from tests.fuzz.running import Found, Problem, main

_SECONDS = 30
_BYTES = 1 << 30
_SHARE_OF_COMMANDS = 0.1  # as they begin anew each time


def check_model(problem: Problem) -> None:
    """Load a damaged model, and use what was loaded."""
    rng = problem.rng
    name = list(ESTIMATORS)[rng.integers(len(ESTIMATORS))]
    record = _record(name)
    how = str(rng.choice(["bytes", "json", "arrays"], p=[0.25, 0.5, 0.25]))
    if how == "bytes":
        content = damaged_bytes(rng, json.dumps(record).encode())
    else:
        content = (damaged_json if how == "json" else damaged_arrays)(rng, record)
    problem.note(model=name, damage=how)
    with _file(content, "model.json") as path, _limits():
        outcome = _loaded(path, name)
        if rng.random() < _SHARE_OF_COMMANDS:
            _command("show", path)
        if rng.random() < _SHARE_OF_COMMANDS:
            _command("score" if hasattr(fitted(name), "score_samples") else "predict", path, _csv())
    problem.note(outcome=outcome)


def check_rados(problem: Problem) -> None:
    """Load damaged sums of rows, and print them."""
    rng = problem.rng
    if rng.random() < 0.3:
        content = damaged_bytes(rng, _rados())
    else:
        content = _with_about(damaged_json(rng, _about()))
    with _file(content, "sums.npz") as path, _limits():
        try:
            found = bayescascade.Rados.load(path)
        except ModelFileError as error:
            _one_line(error)
            problem.note(outcome="refused")
            return
        _ = str(found), repr(found), len(found), found.spreads
        found.save(path)
    problem.note(outcome="works")


def check_trace(problem: Problem) -> None:
    """Diagnose a damaged trace."""
    with _file(damaged_bytes(problem.rng, _trace()), "trace.nc") as path, _limits():
        problem.note(outcome=f"diagnose exits with {_command('diagnose', path)}")


def check_checkpoint(problem: Problem) -> None:
    """Resume a run from a damaged checkpoint, damaged within its checksum too."""
    rng = problem.rng
    name = ("rules", "leaf", "labels")[rng.integers(3)]
    text = _checkpoint(name)
    if rng.random() < 0.5:
        content = damaged_bytes(rng, text.encode())
    else:
        from samplers.checkpoint import _file_text

        body = json.loads(text)["body"]
        content = _file_text(damaged_json(rng, body).decode("utf-8", "replace")).encode()
    with _file(content, "run.checkpoint") as path, _limits():
        try:
            model = ESTIMATORS[name].fit(checkpoint=path, resume=True, **_quick(name))
        except (samplers.CheckpointError, BayesCascadeError) as error:
            _one_line(error)
            problem.note(outcome="refused")
            return
        _ = str(model)
    problem.note(outcome="works")


def check_table(problem: Problem) -> None:
    """Read a damaged file of a kind that is read, under its own name or another one."""
    rng = problem.rng
    suffix = ("csv", "parquet", "dta", "zip", "gz")[rng.integers(5)]
    content = damaged_bytes(rng, _table(suffix))
    problem.note(kind=suffix)
    read = {"csv": Table.from_csv, "parquet": Table.from_parquet}.get(suffix, Table.from_files)
    name = suffix if suffix == "parquet" or rng.random() < 0.5 else "csv"
    with _file(content, f"rows.{name}") as path, _limits():
        try:
            table = read(path)
            _ = table.schema, table.weights.sum()
            problem.note(outcome="works")
        except DataError as error:
            _one_line(error)
            problem.note(outcome="refused")
        if rng.random() < _SHARE_OF_COMMANDS:
            with _file(json.dumps(_record("rules")).encode(), "model.json") as model:
                _command("score", model, path)


CHECKS = {
    "models": check_model,
    "more models": check_model,
    "rados": check_rados,
    "traces": check_trace,
    "checkpoints": check_checkpoint,
    "tables": check_table,
}


def _loaded(path: Path, name: str) -> str:
    """Load a model and use it; return what came of it."""
    try:
        model = bayescascade.load(path)
    except ModelFileError as error:
        _one_line(error)
        return "refused"
    _ = str(model), json.dumps(model.to_record(), default=lambda value: value.tolist())
    use = getattr(model, "score_samples", None) or model.predict
    try:
        found = np.asarray(use(rows()))
    except BayesCascadeError as error:  # of other columns or levels
        _one_line(error)
        return "works, but not on the rows"
    if found.shape[0] != len(rows()):
        raise Found(f"{name}: {found.shape} answers")
    return "works"


def _command(*arguments: object) -> int:
    """Run a command; return its exit code, 0 or 2."""
    found = invoke(*arguments)
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    if found.exit_code not in (0, 2):
        raise Found(f"{arguments[0]} exits with {found.exit_code}: {found.stderr[-300:]}")
    # notes and warnings, and their further lines
    others = ("warning: ", "note: ", "  ")
    errors = [line for line in found.stderr.splitlines() if not line.startswith(others)]
    if len(errors) != (found.exit_code == 2) or "Traceback" in found.output:
        raise Found(f"{arguments[0]} says {found.stderr[-600:]!r}")
    return found.exit_code


def _one_line(error: Exception) -> None:
    text = str(error)
    most = 20_000 if isinstance(error, DataError) else 2_000  # names of columns may be long
    if not text or "\n" in text or len(text) > most:
        raise Found(f"{type(error).__name__} of {len(text)} characters: {text[:300]!r}")


@contextmanager
def _file(content: bytes, name: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        yield path


@contextmanager
def _limits() -> Iterator[None]:
    """Limit seconds and added memory; what a destructor prints is a find, too."""

    def stop(*_: object) -> None:
        raise Found(f"more than {_SECONDS} s")

    unraisable: list[str] = []
    before = sys.unraisablehook
    sys.unraisablehook = lambda one: unraisable.append(repr(one.exc_value))
    handler = signal.signal(signal.SIGALRM, stop)
    signal.alarm(_SECONDS)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, handler)
        sys.unraisablehook = before
    grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - most)
    if grown > _BYTES:
        raise Found(f"{grown:,} bytes more")
    if unraisable:
        raise Found(f"a destructor prints {unraisable[0]}")


@cache
def _record(name: str) -> Any:
    return json.loads(json.dumps(fitted(name).to_record(), default=lambda value: value.tolist()))


@cache
def _rados() -> bytes:
    case = ESTIMATORS["rado"]
    return _written(bayescascade.Rados.sample(rows(), case.labels(), random_state=0).save, "s.npz")


@cache
def _about() -> Any:
    with np.load(io.BytesIO(_rados())) as arrays:
        return json.loads(str(arrays["about"]))


def _with_about(text: bytes) -> bytes:
    with np.load(io.BytesIO(_rados())) as arrays:
        values = arrays["values"]
    file = io.BytesIO()
    np.savez(file, values=values, about=np.array(text.decode("utf-8", "replace")))
    return file.getvalue()


@cache
def _trace() -> bytes:
    data = fitted("rules").run_.to_inference_data()
    return _written(lambda path: data.to_netcdf(str(path), engine="h5netcdf"), "trace.nc")


def _quick(name: str) -> dict[str, Any]:
    return {**CHAINS, "search": "exact"} if name == "labels" else dict(CHAINS)


@cache
def _checkpoint(name: str) -> str:
    def save(path: Path) -> None:
        ESTIMATORS[name].fit(checkpoint=path, **_quick(name))

    return _written(save, "run.checkpoint").decode()


@cache
def _csv() -> Path:
    folder = Path(tempfile.mkdtemp())
    rows().to_csv(folder / "rows.csv", index=False)
    return folder / "rows.csv"


@cache
def _table(suffix: str) -> bytes:
    text = rows().to_csv(index=False).encode()
    if suffix == "csv":
        return text
    if suffix == "gz":
        return gzip.compress(text)
    if suffix == "dta":
        return _written(lambda path: rows().to_stata(path, write_index=False), "rows.dta")
    if suffix == "zip":
        return _written(lambda path: _zipped(path, text), "rows.zip")
    return _written(lambda path: rows().to_parquet(path), "rows.parquet")


def _zipped(path: Path, text: bytes) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("rows.csv", text)


def _written(save: Callable[[Path], object], name: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        save(Path(folder) / name)
        return (Path(folder) / name).read_bytes()


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))
    main(CHECKS, "Damaged files")
