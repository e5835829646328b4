"""What a user gets without options: CPU seconds, memory, file and score of each command's default.

    python -m tests.benchmarks.defaults [--tables titanic ...] [--commands fit ...] [--folds 2]
        [--data FOLDER] [--against COMMIT] [--settings] [--cpu SECONDS]

Every command is a process of its own, imports included, of one thread and at most 8 GB, and so are
the baselines of the same run: LightGBM and a logistic regression that also measure themselves in
five folds, and StepMix with six numbers of classes, chosen by a fifth of the rows. They are left
out if they are not installed. A command is given its target, a seed, and nothing else that it does
not ask for. A run that compiled something is repeated. Of each table four fifths are learned from
and the others scored; "budget" is the mean error at 10, 20, 30 and 50 % of what all columns cost.
Of the made worlds of `effect_data`, 2,000 rows are learned from, and "square" is the mean square
error of effects; for `causal` a direction that is not decided is half an error.

Differences are ours minus the others' on the same rows, with their standard errors over rows.
With --against an earlier commit is checked out, and run in turn with this one; with --settings,
the best documented options of the command. The last lines of a command are means over tables of the
differences, with their standard errors between tables.
"""

import json
import os
import resource
import subprocess
import sys
from argparse import ArgumentParser
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import NamedTuple

import numpy as np
import pandas as pd

from tests.benchmarks.baselines import NEEDS
from tests.benchmarks.default_tasks import NAMES, PAIRS, SETTINGS, parts
from tests.benchmarks.figures import ROOT, say

MEMORY = 8_000_000_000
COMMANDS = ("fit", "classify", "boxes", "budget", "compress", "effect", "causal")


class Ran(NamedTuple):
    """What a process took, and scores of held-out rows by measure, unless it failed."""

    cpu: float
    wall: float
    megabytes: float
    kilobytes: float
    rows: dict[str, np.ndarray] | None = None

    def scored(self, command, part, paths):
        """Return the same with the means of what several files say of each row."""
        if not paths or not all(path.exists() for path in paths):
            return self
        said = [scores_of(command, part, path) for path in paths]
        rows = {key: np.mean([of[key] for of in said], axis=0) for key in said[0]}
        return self._replace(rows=rows)


def main():
    """Print a block of lines for each table and command, as soon as it is known."""
    made = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    made.add_argument("--tables", nargs="+", choices=NAMES, default=NAMES, metavar="TABLE")
    made.add_argument("--commands", nargs="+", choices=COMMANDS, default=COMMANDS)
    made.add_argument("--folds", type=int, default=2, choices=range(1, 6))
    made.add_argument("--data", type=Path, default=ROOT / "data", help="folder of more tables")
    made.add_argument("--against", metavar="COMMIT")
    made.add_argument("--settings", action="store_true", help="also options of the commands")
    made.add_argument("--cpu", type=int, default=600, help="most CPU seconds of a process")
    asked = made.parse_args()
    say(f"{'':26}{'CPU s':>8}{'wall s':>8}{'MB':>7}{'kB':>7}   score (ours minus this)")
    with TemporaryDirectory() as folder, checkouts(asked.against, Path(folder)) as sides:
        for command in asked.commands:
            settings = SETTINGS.get(command, {}) if asked.settings else {}
            runs = sides | {title: (ROOT, words.split()) for title, words in settings.items()}
            gains = {}
            for name in asked.tables:
                measure(command, name, asked, runs, Path(folder), gains)
            for title, of_tables in gains.items():
                error = np.std(of_tables) / np.sqrt(max(len(of_tables) - 1, 1))
                words = f"{np.mean(of_tables):+.4f} ± {error:.4f}, {len(of_tables)} table(s)"
                say(f"{command}, ours minus {title}: {words}")


def measure(command, name, asked, sides, folder, gains):
    """Run a command on the parts of a table, in turn with all that it is compared with.

    Mean differences are added to `gains`.
    """
    found = {side: [] for side in sides}
    n_parts = PAIRS if command == "causal" else asked.folds
    for i, part in enumerate(islice(parts(command, name, asked.data), n_parts)):
        part.seen.to_csv(folder / "seen.csv", index=False)
        part.held.to_csv(folder / "held.csv", index=False)
        for side in [*sides][:: -1 if i % 2 else 1]:
            found[side].append(ours(command, part, *sides[side], folder, asked.cpu))
        for peer in peers_of(command):
            out = folder / "rows.csv"
            out.unlink(missing_ok=True)
            learn = ["tests.benchmarks.baselines", peer, part.target]
            ran = process(learn, ROOT, folder, asked.cpu)
            found.setdefault(peer, []).append(ran.scored(command, part, [out]))
    if found["ours"]:
        say(f"\n{command} {name}, {len(found['ours'])} part(s)")
        scores = {title: rows_of(runs) for title, runs in found.items()}
        for title, runs in found.items():
            means = np.mean([ran[:4] for ran in runs], axis=0)
            cells = "{:8.1f}{:8.1f}{:7.0f}{:7.0f}".format(*means)
            texts = [text_of(*each, scores["ours"].get(each[0])) for each in scores[title].items()]
            failed = [ran for ran in runs if ran.rows is None]
            texts += [f"{len(failed)} failed"] if failed else []
            say(f"  {title:24}{cells}   {', '.join(texts)}")
            for key, rows in scores[title].items():
                if title != "ours" and key in scores["ours"]:
                    by = np.nanmean(scores["ours"][key] - rows)
                    gains.setdefault(f"{title}, {key}", []).append(by)


def text_of(name, rows, own):
    """Return the mean of rows, and by how much ours is more, with the standard error of this."""
    text = f"{name} {np.nanmean(rows):.4f}"
    if own is None or own is rows or own.size != rows.size:
        return text
    by = (own - rows)[np.isfinite(own - rows)]
    return f"{text} ({by.mean():+.4f} ± {by.std() / np.sqrt(by.size):.4f})"


def rows_of(runs):
    """Return scores of the held-out rows of all parts, by measure; none if a run has failed."""
    if any(ran.rows is None for ran in runs):
        return {}
    return {key: np.concatenate([ran.rows[key] for ran in runs]) for key in runs[0].rows}


def peers_of(command):
    """Return the baselines of a command that are installed."""
    peers = {"fit": ("LightGBM", "StepMix"), "effect": ("logistic", "constant"), "causal": ()}
    names = peers.get(command, ("LightGBM", "logistic"))
    return [name for name in names if find_spec(NEEDS[name]) is not None]


@contextmanager
def checkouts(commit, folder):
    """Yield folders of the code to run, and more options, by title."""
    git, at = ["git", "-C", str(ROOT), "worktree"], folder / f"at {commit}"
    if commit is not None:
        subprocess.run([*git, "add", "--detach", str(at), commit], check=True, capture_output=True)
    try:
        yield {"ours": (ROOT, [])} | ({} if commit is None else {commit: (at, [])})
    finally:
        if commit is not None:
            subprocess.run([*git, "remove", "--force", str(at)], check=True)


def ours(command, part, code, more, folder, cpu):
    """Run a command of ours, and score what it has saved by the same code."""
    out = folder / "model.json"
    out.unlink(missing_ok=True)
    saved = ["--seed", "0", "--save" if command == "compress" else "--out", str(out)]
    asked = ["bayescascade", command, "seen.csv", *part.options, *more, *saved]
    cache = Path(os.environ.get("NUMBA_CACHE_DIR", folder / "numba")) / code.name
    n_compiled = -1
    while n_compiled < (n_compiled := len([*cache.rglob("*.nbc")])):
        ran = process(asked, code, folder, cpu, cache)
    if not out.exists():
        return ran.scored(command, part, [])
    ran = ran._replace(kilobytes=out.stat().st_size / 1e3)
    if command == "causal":
        said = json.loads(out.read_text())["direction"]
        error = 0.5 if said is None else float((said == "x->y") != part.truth)
        return ran._replace(rows={"error": np.array([error])})
    word = ["predict"] if command == "effect" else ["score"]
    target = [] if command in ("fit", "effect") else ["--target", part.target]
    paths = [folder / f"rows_{i}.csv" for i in range(len(part.budgets or "1"))]
    for i, path in enumerate(paths):
        path.unlink(missing_ok=True)
        budget = ["--budget", part.budgets[i]] if part.budgets else []
        asked = ["bayescascade", *word, str(out), "held.csv", *target, *budget, "--out", str(path)]
        process(asked, code, folder, cpu, cache)
    return ran.scored(command, part, paths)


def process(module, code, folder, cpu, cache=None):
    """Run a module of some code under the limits."""

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu))

    new = {"PYTHONPATH": str(code), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    new["PYTHONDONTWRITEBYTECODE"] = ""  # an installed package has its bytecode
    new |= {} if cache is None else {"NUMBA_CACHE_DIR": str(cache)}
    began = perf_counter()
    with (folder / "said.txt").open("w") as said:
        how = {"cwd": folder, "env": os.environ | new, "stdout": said, "stderr": said}
        running = subprocess.Popen([sys.executable, "-m", *module], preexec_fn=limit, **how)
        _, status, used = os.wait4(running.pid, 0)
    running.returncode = os.waitstatus_to_exitcode(status)
    if running.returncode != 0:
        last = (folder / "said.txt").read_text().splitlines()[-2:]
        say(f"{' '.join(module[:3])} ended with {running.returncode}", *last)
    peak = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6
    return Ran(used.ru_utime + used.ru_stime, perf_counter() - began, peak, np.nan)


def scores_of(command, part, path):
    """Return scores of held-out rows, by measure, from what was written about them."""
    said = pd.read_csv(path, keep_default_na=False, dtype={"label": str, "predicted": str})
    if command == "fit":  # a classifier is a yardstick of seconds alone
        of = said.get("log_density")
        return {} if of is None else {"log density": pd.to_numeric(of, "coerce").to_numpy()}
    if command == "effect":
        return {"square": (said["predicted"].to_numpy(np.float64) - part.truth) ** 2}
    labels = part.held[part.target].to_numpy(str)
    is_wrong = (said["predicted"].to_numpy(str) != labels).astype(float)
    if command != "boxes":
        columns = list(said.filter(regex=r"^P\("))
        at = [columns.index(f"P({label})") for label in labels]
        chances = said[columns].to_numpy(np.float64)[np.arange(len(at)), at]
        logs = {} if part.budgets else {"log loss": -np.log(np.maximum(chances, 1e-15))}
        return logs | {"error": is_wrong}
    classes, counts = np.unique(labels, return_counts=True)
    is_rare = (labels == classes[counts.argmin()]).astype(float)
    hits = 2.0 * is_rare * (1.0 - is_wrong)
    sizes = is_rare + np.abs(is_rare - is_wrong)  # of true and of predicted ones
    f1 = hits.sum() / max(sizes.sum(), 1.0)  # the mean of its linear form, whose rows are returned
    weights = 0.5 / np.where(is_rare, is_rare.mean(), 1.0 - is_rare.mean())
    return {"balanced error": weights * is_wrong, "F1": f1 + (hits - f1 * sizes) / sizes.mean()}


if __name__ == "__main__":
    main()
