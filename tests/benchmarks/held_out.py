"""Held-out log densities of cascades beside networks, latent classes and a histogram.

    python -m tests.benchmarks.held_out [--data FOLDER] [--data-sets titanic ...] [--out FILE.jsonl]
    python -m tests.benchmarks.held_out --draw FILE.jsonl PICTURE.svg

Columns of more than 12 levels are left out; missing cells are a level. nltcs, plants and baudio are
learned on their training file and scored on their test file, other tables in five folds, of which
tables of more than 5,000 rows take the first. "defaults" is the best tree of `LeafCascade`, of four
annealings of 100,000 steps, as its own search may take an hour; "auto" is `AutoCascade` without
options, which `fit` is; "mixture" is `CascadeMixture` without any, and "hidden trees" and
"continuous mixture" are kinds of it; "by evidence" is `BranchCascade` with ``leaf="auto"``, scored
by the average over all trees, its leaf_concentration that of most evidence with dependent leaves
and one split; "tempered" has dependent leaves and ``temper="auto"``, which is not Bayes. Hill
climbing, for at most 30 columns, and StepMix need the packages in `requirements-networks.txt`.
"""

import json
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter

import numpy as np
import pandas as pd

from bayescascade import (
    AutoCascade,
    BranchCascade,
    CascadeMixture,
    LeafCascade,
    SmoothedHistogram,
    Table,
)
from bayescascade.data.splitting import split_rows, with_weights
from tests.benchmarks.figures import ROOT, parser, say
from tests.benchmarks.latent_classes import StepMixClasses, latent_classes
from tests.benchmarks.networks import NETWORKS

N_FOLDS, MANY_ROWS, MOST_LEVELS, MOST_CLIMBED = 5, 5_000, 12, 30
CONCENTRATIONS = (1.0, 4.0, 16.0, 64.0)
FILES = {
    "titanic": "titanic.csv", "tic_tac_toe": "tic_tac_toe.csv", "car": "car_evaluation.csv",
    "nursery": "nursery.csv.gz", "german": "german_credit.csv", "mushroom": "mushroom.csv",
    "compas": "compas_two_years.csv", "hepatitis": "hepatitis.csv",
    "breast_cancer": "breast_cancer_wisconsin.csv", "nltcs": "nltcs_train.csv",
    "plants": "plants_train.csv.gz", "baudio": "baudio_train.csv.gz",
}  # fmt: skip

BASELINE = "Chow-Liu tree"
SHOWN = {
    "mixture": ("C4", "P"), "auto": ("C2", "*"),
    "tempered": ("C3", "D"), "by evidence": ("C1", "s"), "defaults": ("C0", "o"),
    "latent classes": ("0.4", "^"), "StepMix": ("0.5", "<"),
    "hill-climbed network": ("0.6", "v"),
}  # fmt: skip
"""Colors and markers in the picture."""


def main():
    """Print a line for each data set and contender as soon as it is known, or draw what was."""
    made = parser(__doc__, FILES, ["titanic", "tic_tac_toe"])
    made.add_argument("--only", nargs="+", help="contenders whose names contain one of these")
    made.add_argument("--out", type=Path, help="file to add lines of JSON to")
    made.add_argument("--draw", type=Path, nargs=2, help="results and the picture made of them")
    arguments = made.parse_args()
    if arguments.draw:
        draw(*arguments.draw)
        return
    for name in arguments.data_sets:
        folds = list(_folds(name, arguments.data))
        say(f"\n{name}: {folds[0][0].schema.n_columns} columns, {len(folds)} fold(s)")
        for title, contender in _contenders(folds[0][0].schema.n_columns).items():
            if arguments.only and not any(word in title for word in arguments.only):
                continue
            started = perf_counter()
            rows = np.concatenate([_scores(contender, *fold) for fold in folds])
            seconds = (perf_counter() - started) / len(folds)
            mean, error = float(rows.mean()), float(rows.std() / np.sqrt(rows.size))
            say(f"  {title:<24}{mean:>10.4f} +- {error:.4f}{seconds:>9.1f} s a fold")
            if arguments.out:
                with arguments.out.open("a") as file:
                    line = {"data": name, "contender": title, "seconds": seconds}
                    line["rows"] = rows.round(6).tolist()  # in the folds' order, of all contenders
                    file.write(json.dumps(line) + "\n")


def _scores(contender, seen, held_out):
    return np.repeat(contender(seen, held_out), held_out.weights.astype(np.int64))


def _folds(name, folder):
    own = ROOT / "data" / FILES[name]
    path = own if own.exists() else folder / FILES[name]
    frame = pd.read_csv(path, dtype=str, keep_default_na=False, na_values=[""])
    frame = frame[[c for c in frame if frame[c].nunique() <= MOST_LEVELS]]
    nominal = list(frame.columns)
    table = Table.from_frame(frame, nominal=nominal, missing="level")
    if "train" in path.name:
        test = pd.read_csv(folder / f"{name}_test.csv", dtype=str)
        yield table, Table.from_frame(test, schema=table.schema)
        return
    split = split_rows(table.weights, N_FOLDS, np.random.default_rng(0))
    for held_out in split[: 1 if table.total_weight > MANY_ROWS else N_FOLDS]:
        yield with_weights(table, table.weights - held_out), with_weights(table, held_out)


def _contenders(n_columns):
    contenders = {"histogram": _rows_of(SmoothedHistogram())}
    for name, learn in NETWORKS.items():
        can_climb = find_spec("pgmpy") is not None and n_columns <= MOST_CLIMBED
        if name == BASELINE or can_climb:
            contenders[name] = lambda seen, held, learn=learn: learn(seen).score_rows(held)
    if find_spec("stepmix") is not None:
        contenders["StepMix"] = lambda seen, held: latent_classes(seen, StepMixClasses).score_rows(
            held
        )
    return contenders | {
        "latent classes": lambda seen, held: latent_classes(seen).score_rows(held),
        "mixture": _mixture,
        "hidden trees": _rows_of(CascadeMixture(kind="hidden", random_state=0)),
        "continuous mixture": _rows_of(CascadeMixture(kind="continuous", random_state=0)),
        "auto": _auto,
        "by evidence": _by_evidence(leaf="auto"),
        "tempered": _by_evidence(leaf="dependent", temper="auto"),
        "defaults": _rows_of(
            LeafCascade(search="anneal", n_steps=100_000, random_state=0, n_jobs=-1)
        ),
    }


def _rows_of(model):
    def score(seen, held_out):
        return model.fit(seen).score_codes(held_out.codes.astype(np.int32))

    return score


def _mixture(seen, held_out):
    model = CascadeMixture(random_state=0).fit(seen)
    say(f"    {model.n_components_} classes, {model.kind_}, smoothing {model.smoothing_:g}")
    return model.score_codes(held_out.codes.astype(np.int32))


def _auto(seen, held_out):
    model = AutoCascade(random_state=0, n_jobs=-1).fit(seen)
    say(f"    {model.candidates_.settings[0]}")
    return model.score_codes(held_out.codes.astype(np.int32))


def _by_evidence(**settings):
    def score(seen, held_out):
        def fitted(**more):
            common = {"partitions": "levels", "predictive": "average", "random_state": 0}
            return BranchCascade(**common, **more, n_jobs=-1).fit(seen)

        quick = {"leaf": "dependent", "max_depth": 1}
        evidences = [
            fitted(**quick, leaf_concentration=a).exact_.log_evidence for a in CONCENTRATIONS
        ]
        chosen = CONCENTRATIONS[int(np.argmax(evidences))]
        model = fitted(**settings, leaf_concentration=chosen)
        say(f"    {settings} leaf {model.leaf_}, concentration {chosen:g}, {_temper(model)}")
        return model.score_codes(held_out.codes.astype(np.int32))

    return score


def _temper(model):
    return f"temper {getattr(model.exact_, 'temper', None)}"


def draw(results, picture):
    """Draw nats a row over the Chow-Liu tree, with the standard errors of the differences.

    Of each data set and contender the last result counts. Prints the means as a Markdown table.
    """
    from matplotlib.figure import Figure

    scores = {}
    seconds = {}
    for line in results.read_text().splitlines():
        one = json.loads(line)
        scores.setdefault(one["data"], {})[one["contender"]] = np.array(one["rows"])
        seconds.setdefault(one["data"], {})[one["contender"]] = one["seconds"]
    names = [name for name in FILES if name in scores]
    _print_table({name: scores[name] for name in names}, seconds)
    figure = Figure(figsize=(8.0, 0.9 + 0.5 * len(names)), layout="constrained")
    axes = figure.subplots()
    shown = [title for title in SHOWN if any(title in scores[name] for name in names)]
    for i, title in enumerate(shown):
        color, marker = SHOWN[title]
        have = [name for name in names if title in scores[name]]
        over = [scores[name][title] - scores[name][BASELINE] for name in have]
        axes.errorbar(
            [one.mean() for one in over],
            [names.index(name) + 0.13 * (i - (len(shown) - 1) / 2) for name in have],
            xerr=[one.std() / np.sqrt(one.size) for one in over],
            fmt=marker, color=color, markersize=4, linewidth=1, label=title,
        )  # fmt: skip
    axes.axvline(0.0, color="black", linewidth=0.8)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xscale("symlog", linthresh=0.1, linscale=0.7)
    axes.set_xticks([-10, -1, -0.1, 0, 0.1, 1, 5], ["-10", "-1", "-0.1", "0", "0.1", "1", "5"])
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel(
        "nats a row over a Chow-Liu tree, held-out rows; standard errors of differences"
    )
    figure.legend(loc="outside upper center", ncols=5, frameon=False, fontsize=9)
    figure.savefig(picture, metadata={"Date": None} if picture.suffix == ".svg" else None)


def _print_table(scores, seconds):
    """Print means, and the seconds a fold of what is fitted without options."""
    known = {title for of_name in scores.values() for title in of_name}
    titles = [title for title in (BASELINE, *reversed(SHOWN)) if title in known]
    say("", f"| | {' | '.join(titles)} | seconds |", f"|---|{'--:|' * (len(titles) + 1)}")
    for name, of_name in scores.items():
        cells = [f"{of_name[t].mean():.4f}" if t in of_name else "" for t in titles]
        ours = [f"{seconds[name][t]:.0f}" if t in of_name else "-" for t in ("mixture", "auto")]
        say(f"| {name} | {' | '.join(cells)} | {', '.join(ours)} |")


if __name__ == "__main__":
    main()
