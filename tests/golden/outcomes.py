"""What every listed estimator and every command gives in one tree, as JSON.

``python outcomes.py FILE.json WORD,... [damaged]``, run by `tests.golden` for each of two trees:
packages and listed cases are imported from PYTHONPATH.
"""

import copy
import hashlib
import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Container, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import bayescascade
from bayescascade.base.errors import ModelFileError
from bayescascade.cli.application import application
from tests.commands import invoke
from tests.contracts import listed

PROBABLE = ("predict_proba", "score_samples", "decision_function")
ANSWERS = ("predict", *PROBABLE, "explain_rows", "sends")
CHAINS = "--steps 150 --chains 2 --jobs 1 --seed 0"
SENSORS = "name,cost,group\nax,,wrist\nay,,wrist\nbx,,ankle\nby,,ankle\nankle,2,\n"
TABLES = {  # target, columns of densities, two columns of numbers, and a column to predict
    "people.csv": ("label", "--drop label", "age_in_years", "fare", "sex"),
    "liver.csv": (
        "outcome", "--columns sex,steroid,age --continuous age:0,30,50,90", "albumin", "bilirubin",
        "sex",
    ),
    "stream.csv": ("moves", "--columns ax,arm,moves", "ax", "by", "arm"),
}  # fmt: skip
COMMANDS = """\
fit D {columns} --model leaf {chains} --out leaf.json --trace leaf.nc; show leaf.json --full
+show leaf.json --json; show leaf.json --dot; show leaf.json --html leaf.html --held-out D
+score leaf.json D --top 2; score leaf.json D --json; predict leaf.json D --target {first}
+explain leaf.json D --rows 1-3; impute leaf.json D --out full.csv; sample leaf.json -n 4 --seed 0
+diagnose leaf.nc; diagnose leaf.nc --json
fit D {columns} --model branch --leaf dependent {chains} --json; fit D --model leef; fit
fit D {columns} --model rules {chains} --out rules.json; show rules.json
fit D {columns} --model mixture --components 2 --seed 0
fit D {columns} --effort quick --seed 0 --jobs 1
classify D --target {target} --cv 2 --details {chains} --out label.json; show label.json --json
+predict label.json D --explain; score label.json D --json; explain label.json D --rows 1-3
+classify D --target {target} --cv 0 {chains} --json; classify D
budget D --target {target} --budgets 1,3 --method astc --seed 0 --out budgets.json
+show budgets.json; score budgets.json D --budget 3
+budget D --target {target} --budgets 2 --method l1 --seed 0 --json
+budget D --target {target} --budgets 2 --method prune --trees 5 --seed 0 --jobs 1
compress D --target {target} --prototypes 6 --seed 0 --jobs 1 --save near.json; show near.json
+compress D --target {target} --prototypes 6 --seed 0 --jobs 1 --json
boxes D --target {target} --boxes 1 --cv 0 {chains} --out boxes.json; show boxes.json --json
+boxes D --target {target} --method fast --clusters 1 --expansion 1 --seed 0; predict boxes.json D
causal D --x {x} --y {y} --seed 0 --out cause.json; show cause.json --json; causal D --x {x} --y {x}
online D --target {target} --cost .3 --first 60; online D --target {target} --cost .3 --json
rados make D --target {target} --n 50 --seed 0 --out sums.npz
+rados fit sums.npz --rounds 9 --out rado.json; rados fit sums.npz --rounds 9 --json
evidence D {columns}; evidence D {columns} --json; completion bash; doctor --jsn
compare D {columns} --models leaf,mixture --repeats 1 --seed 0 --jobs 1
effect D --outcome {target} --treatment {first} --method kernel --seed 0 --out e.json; show e.json
+predict e.json D; effect D --outcome {target} --treatment {first} --method kernel --seed 0 --json
sensors D --target {target} --sensors sensors.csv --steps 30 --seed 0 --budgets 2 --out s.json
+show s.json --json; predict s.json D --explain
+sensors D --target {target} --sensors sensors.csv --steps 30 --seed 0 --budgets 1,3 --json"""


def write_tables() -> None:
    """Write the tables of the commands into the working directory."""
    labels, rng = listed.ESTIMATORS["labels"].labels(), np.random.default_rng(0)
    years = rng.integers(1, 80, 150)
    listed.rows().assign(age_in_years=years, label=labels).to_csv("people.csv", index=False)
    liver = Path(listed.__file__).parents[2] / "data/liver_clinic.csv"
    Path("liver.csv").write_bytes(liver.read_bytes())
    rows = pd.DataFrame(rng.normal(size=(200, 4)).round(3), columns=["ax", "ay", "bx", "by"])
    rows["arm"] = rng.choice(["drug", "none"], 200)
    rows["moves"] = np.where(np.where(rows["ax"] > 0, rows["ay"], rows["by"]) > 0, "yes", "no")
    rows.to_csv("stream.csv", index=False)
    Path("sensors.csv").write_text(SENSORS)


def plain(value: Any) -> Any:
    """Return JSON that is equal only if a value is, with its types; floats in hex."""
    if isinstance(value, pd.DataFrame):
        return {str(name): plain(value[name].tolist()) for name in value}
    if isinstance(value, np.ndarray | pd.Series):
        return plain(value.tolist())
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, float):
        return value.hex()
    return value if value is None or isinstance(value, str | int) else repr(value)


def attempt(function: Callable[..., Any], *given: Any) -> Any:
    """Return what a function returns or raises, and what it warns of."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            found = plain(function(*given))
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
    texts = [f"{one.category.__name__}: {one.message}" for one in warned]
    return {"value": found, "warnings": texts} if texts else found


def record_of(model: Any) -> Any:
    """Return the record of a model as a file has it."""
    return json.loads(json.dumps(model.to_record(), default=lambda value: value.tolist()))


def answers(model: Any) -> dict[str, Any]:
    """Return what a model answers to 20 rows, also with a missing cell and an unknown level."""
    beside = ("sex",) if hasattr(model, "score_samples") else ()
    rows = listed.rows().head(20)
    missing, unknown = rows.copy(), rows.copy()
    missing.loc[0, "fare"], missing.loc[1, "sex"], unknown.loc[2, "sex"] = np.nan, None, "other"
    return {
        f"{name}, {kind}": attempt(getattr(model, name), X, *beside * name.startswith("predict"))
        for name in ANSWERS
        if hasattr(model, name)
        for kind, X in {"rows": rows, "missing": missing, "unknown": unknown}.items()
    }


def of_estimator(case: Any) -> dict[str, Any]:
    """Return whatever a listed estimator gives."""
    parameters = case.make(**case.parameters).get_params()
    found: dict[str, Any] = {"parameters": {k: repr(v) for k, v in parameters.items()}}
    fits: list[Any] = []
    found["fit"] = attempt(lambda: fits.append(case.fit()))
    model = fits[0]
    found["print"], found["full print"] = str(model), attempt(lambda: model.to_text(full=True))
    names = [n for n in dir(model) if n.endswith("_") and not n.startswith("_")]
    values = {name: getattr(model, name, None) for name in names}
    kinds = (bool, int, float, str, np.number, np.ndarray)
    found["attributes"] = {k: plain(v) for k, v in values.items() if isinstance(v, kinds)}
    found["answers"] = answers(model)
    for part in ("to_dict", "to_sql", "to_dot", "_repr_html_"):
        if hasattr(model, part):
            found[part] = attempt(getattr(model, part))
    if hasattr(model, "within"):
        other = attempt(lambda: fits.append(model.within((model.budget or 4.0) / 2)))
        found["within"] = [other, [(str(one), answers(one)) for one in fits[1:]]]
    if hasattr(getattr(model, "run_", None), "traces"):
        traces = model.run_.traces
        found["traces"] = {k: hashlib.sha256(v.tobytes()).hexdigest() for k, v in traces.items()}
    if hasattr(model, "report"):
        model.report("report.html")
        found["report"] = Path("report.html").read_text()
    if hasattr(model, "save"):
        model.save("model.json")
        loaded = bayescascade.load("model.json")
        found["record"] = record_of(model)
        found["loaded"] = [str(loaded), answers(loaded), record_of(loaded)]
    return found


def of_lines(lines: list[str]) -> dict[str, Any]:
    """Return what command lines print and write."""
    write_tables()
    found = {}
    for line in lines:
        before = {path: path.read_bytes() for path in Path().iterdir()}
        done = invoke(*line.split())
        said = {"code": done.exit_code, "output": done.stdout, "errors": done.stderr}
        if not isinstance(done.exception, SystemExit | None):
            said["raises"] = repr(done.exception)
        for path in sorted(Path().iterdir()):
            content = path.read_bytes()
            if content != before.get(path):
                is_text = path.suffix in (".csv", ".json", ".html")
                said[path.name] = (
                    content.decode() if is_text else hashlib.sha256(content).hexdigest()
                )
        found[line] = said
    return found


def of_help() -> dict[str, str]:
    """Return the help of every command."""
    names = ["", *application.commands, *(f"rados {one}" for one in ("make", "fit"))]
    return {name: invoke(*name.split(), "--help").stdout for name in names}


def places(record: Any, general: str = "", path: tuple[Any, ...] = ()) -> Iterator[Any]:
    """Yield the general and the full place of every value; of a list the first two and the last."""
    items = record.items() if isinstance(record, dict) else enumerate(record)
    for i, (key, value) in enumerate(items):
        if isinstance(record, dict) or i < 2 or i == len(record) - 1:
            place = f"{general}/{key if isinstance(record, dict) else '*'}"
            yield place, (*path, key)
            if isinstance(value, dict | list):
                yield from places(value, place, (*path, key))


def damages(value: Any) -> dict[str, Any]:
    """Return what takes the place of a value, by the kind of damage."""
    if isinstance(value, dict):
        return {"none": None, "list": [], "extra": {**value, "extra": 1}}
    if isinstance(value, list):
        longer, shorter = [*value, *value[-1:]], value[:-1]
        return {"none": None, "mapping": {}, "number": 1, "longer": longer, "shorter": shorter}
    if isinstance(value, str):
        return {"none": None, "number": 7, "list": [value], "other": value + "?"}
    if isinstance(value, bool) or value is None:
        return {"none": None, "number": 7, "text": "x", "list": [value], "other": value is False}
    numbers = {"negative": -abs(value) - 1, "huge": 10**30, "half": value + 0.5, "nan": np.nan}
    return {"none": None, "flag": True, "text": "x", "list": [value], **numbers}


def of_damage(record: Any, n_alike: int = 2, *, skipped: Container[str] = ()) -> dict[str, str]:
    """Return for each damage of a record whether it is refused; of places alike some are tried.

    skipped: keys of the record that are left out.
    """
    seen: dict[str, int] = {}
    found = {}
    damaged = copy.deepcopy(record)
    for general, path in list(places(damaged)):
        seen[general] = seen.get(general, 0) + 1
        if seen[general] > n_alike or path[0] in skipped:
            continue
        holder, last = damaged, path[-1]
        for key in path[:-1]:
            holder = holder[key]
        kept = copy.copy(holder)
        for kind, value in {**damages(holder[last]), "missing": None}.items():
            holder[last] = value
            if kind == "missing":
                del holder[last]
            found[f"{'/'.join(map(str, path))} {kind}"] = _outcome(damaged)
            if isinstance(holder, dict):  # as it was, in the same order
                holder.clear()
                holder.update(kept)
            else:
                holder[:] = kept
    return found


def _outcome(record: Any) -> str:
    Path("damaged.json").write_text(json.dumps(record))
    try:
        str(bayescascade.load("damaged.json"))
    except ModelFileError:
        return "refused"
    except Exception as error:
        return f"raises {type(error).__name__}"
    return "loads"


def cases(is_damaged: bool) -> Iterator[tuple[str, str, Callable[[], Any]]]:
    """Yield the name of each case, words by which `--only` finds it, and what gives its outcome."""
    for name, case in listed.ESTIMATORS.items():
        words = f"{name} {getattr(case.make, '__module__', '')} {case.make.__name__}"
        if not is_damaged:
            yield name, words, lambda case=case: of_estimator(case)
        elif hasattr(case.make, "save"):
            yield name, words, lambda case=case: of_damage(record_of(case.fit()))
    if is_damaged:
        return
    yield "help", "help commands", of_help
    for data, (target, columns, x, y, first) in TABLES.items():
        given = {"target": target, "columns": columns, "x": x, "y": y, "first": first}
        for group in COMMANDS.replace("\n+", "; ").split("\n"):
            text = group.replace(" D", f" {data}").format(**given, chains=CHAINS)
            yield text, f"commands {text}", lambda text=text: of_lines(text.split("; "))


def main(out: str, only: str, *damaged: str) -> None:
    """Write the outcomes of the chosen cases, each in a folder of its own."""
    warnings.simplefilter("ignore")
    found: dict[str, Any] = {}
    for name, words, outcome in cases(bool(damaged)):
        if any(word in words for word in only.split(",")):
            started = time.process_time()
            with tempfile.TemporaryDirectory() as folder:
                os.chdir(folder)
                try:
                    found[name] = outcome()
                except Exception as error:
                    found[name] = f"raises {error!r}"
                os.chdir("/")
            print(f"{time.process_time() - started:6.1f} s  {name[:80]}", flush=True)  # noqa: T201
    Path(out).write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
