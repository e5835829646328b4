"""Random tables, neighbors that differ in one row, and all that a call says of them."""

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

from bayescascade import Rados
from bayescascade.base.store import stored
from tests.fuzz.running import Found, Problem

PAIRS: list[tuple[Any, Any]] = [
    (0, 1), (-1, 1), (0.0, 1.0), (2, 7.5), (False, True), ("no", "yes"), ("a", "long text"),
    ("01", "x"), ("1", "true"), (3, -5),
]  # fmt: skip
"""Two values of a feature or of labels."""

FORMS = ("frame", "frame", "categorical", "array", "list", "csv", "arrow")


def _column(rng: np.random.Generator, n: int, kind: str) -> pd.Series:
    if kind == "text":
        return pd.Series(rng.choice(["u", "v", "w"][: 1 + int(rng.integers(3))], n))
    if kind == "category":
        return pd.Series(pd.Categorical(rng.choice(["u", "v", "w"], n), ["u", "v", "w", "z"]))
    if kind == "bool":
        return pd.Series(rng.random(n) < 0.5)
    if kind == "int":
        return pd.Series(rng.integers(-3, 4, n))
    if kind == "constant":
        return pd.Series(np.full(n, 0.1))
    size = 10.0 ** rng.choice([0, 0, 0, -9, 9, 300, 308])
    return pd.Series(rng.normal(size=n).clip(-1.5, 1.5) * size)


def feature_neighbors(problem: Problem) -> tuple[list[pd.DataFrame], Any, tuple[Any, Any]]:
    """Return two frames that differ in column "f" of one row, the labels, and the two values."""
    rng, n = problem.rng, int(problem.rng.choice([2, 3, 5, 12, 60, 200]))
    values = PAIRS[int(rng.integers(len(PAIRS)))]
    share = float(rng.choice([0.0, 0.0, 0.5, 1.0, 1.0, rng.random()]))
    codes = (rng.random(n) < share).astype(int)
    kinds = rng.choice(["text", "category", "bool", "int", "constant", "float"], rng.integers(4))
    others = {f"x{k}": _column(rng, n, kind) for k, kind in enumerate(kinds)}
    labels = np.array(["ill", "well"])[np.arange(n) % 2]
    row = int(rng.integers(n))
    frames = []
    for flipped in (False, True):
        codes = codes.copy()
        codes[row] ^= flipped
        cells = pd.Series([values[code] for code in codes])
        frames.append(pd.DataFrame({"f": cells, **others}))
    problem.note(rows=n, values=repr(values), share=share)
    return frames, labels, values


def row_neighbors(problem: Problem) -> tuple[list[pd.DataFrame], list[Any], tuple[Any, Any]]:
    """Return two frames and their labels, one row of which differs in all that it may."""
    rng, n = problem.rng, int(problem.rng.choice([2, 3, 5, 12, 60, 200]))
    pairs = [pair for pair in PAIRS if not any(isinstance(one, float) for one in pair)]
    classes = pairs[int(rng.integers(len(pairs)))]
    share = float(rng.choice([0.0, 0.0, 0.5, 1.0, 1.0, rng.random()]))
    kinds = rng.choice(["category", "bool", "int", "constant", "float"], 1 + rng.integers(4))
    frame = pd.DataFrame({f"x{k}": _column(rng, n, kind) for k, kind in enumerate(kinds)})
    codes = (rng.random(n) < share).astype(int)
    row = int(rng.integers(n))
    other, others = frame.copy(), codes.copy()
    others[row] ^= int(rng.integers(2))
    for name, kind in zip(frame.columns, kinds, strict=True):
        if kind == "category":
            other.loc[row, name] = str(rng.choice(["u", "v", "w", "z"]))
        elif kind == "bool":
            other.loc[row, name] = not frame.loc[row, name]
        else:
            value = rng.choice([0.0, 1.0, -2.0, 0.5, 1e9, -1e300])
            whole = int(value) if kind == "int" and value.is_integer() and abs(value) < 1e18 else 0
            other[name] = other[name].astype(frame[name].dtype)
            other.loc[row, name] = whole if kind == "int" else value
    labels = [[classes[code] for code in each] for each in (codes, others)]
    problem.note(rows=n, classes=repr(classes), share=share)
    return [frame, other], labels, classes


def in_form(form: str, frame: pd.DataFrame, labels: Any, folder: Path) -> tuple[Any, Any]:
    """Return rows and labels in a form that people have."""
    if form == "array":
        return frame.astype(object).to_numpy(), np.array(labels)
    if form == "list":
        return frame.astype(object).to_numpy().tolist(), list(labels)
    if form == "arrow":
        import pyarrow

        return pyarrow.Table.from_pandas(frame, preserve_index=False), list(labels)
    if form == "csv":
        path = folder / "rows.csv"
        frame.assign(label=list(labels)).to_csv(path, index=False)
        return str(path), "label"
    return frame, labels


def revealed(call: Callable[[], Rados]) -> dict[str, Any]:
    """Return what a call says of its rows, but for the sums: prints, a saved file, or an error."""
    with warnings.catch_warnings(record=True) as caught, TemporaryDirectory() as folder:
        warnings.simplefilter("always")
        said: dict[str, Any] = {}
        try:
            rados = call()
        except Exception as error:
            said["error"] = (type(error).__name__, str(error).replace(folder, ""))
        else:
            rados.save(Path(folder) / "r.npz")
            with np.load(Path(folder) / "r.npz") as arrays:
                said["file"] = json.loads(str(arrays["about"]))
            said |= {
                "print": str(rados), "repr": repr(rados), "shape": rados.values.shape,
                "reading": stored(rados.reading), "rows": rados.n_rows,
                "promise": str(rados.promise), "html": rados._repr_html_(),
            }  # fmt: skip
            Rados.load(Path(folder) / "r.npz")
        said["warnings"] = [(one.category.__name__, str(one.message)) for one in caught]
    return said


def check_alike(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Raise `Found` if two neighbors were told apart."""
    for name in sorted(one.keys() | other.keys()):
        if one.get(name) != other.get(name):
            raise Found(f"{name} tells neighbors apart:\n  {one.get(name)}\n  {other.get(name)}")
