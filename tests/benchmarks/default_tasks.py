"""What `defaults` learns from: tables with their splits, made worlds, and pairs of columns."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import pandas as pd
from sklearn.model_selection import StratifiedKFold

from tests.benchmarks.causal_data import MECHANISMS, cause_effect_pairs, made_pairs
from tests.benchmarks.effect_data import world
from tests.benchmarks.figures import ROOT

SHARES, PAIRS = (0.1, 0.2, 0.3, 0.5), 8
TABLES = {  # the label column, and commands that suit the table
    "titanic": ("survived", "fit classify budget"),
    "tic_tac_toe": ("outcome", "fit classify compress"),
    "liver_clinic": ("outcome", "fit classify boxes compress budget"),
    "housebreak": ("ransacked", "fit"),
    "german_credit": ("target", "fit classify compress budget"),
    "pima": ("target", "fit classify boxes compress budget"),
    "transfusion": ("target", "fit classify boxes"),
    "breast_cancer_wisconsin": ("target", "fit classify compress budget"),
    "hepatitis": ("target", "fit boxes budget"),
    "keel_ecoli3": ("target", "boxes"),
    "keel_yeast3": ("target", "boxes compress"),
    "car_evaluation": ("target", "fit classify compress"),
    "keel_glass0": ("target", "boxes compress"),
    "haberman": ("target", "boxes classify"),
}
SETTINGS = {  # options to compare with none
    "fit": {
        "mixture": "--model mixture",
        "hidden": "--model mixture --kind hidden",
        "branch": "--model branch --predictive average",
    },
    "classify": {"list": "--predictive map", "size 3": "--max-size 3", "8 bins": "--bins 8"},
    "boxes": {"exact": "--method exact", "fast": "--method fast", "gibbs": "--likelihood gibbs"},
    "compress": {
        "nearest": "--rule nearest",
        "diagonal": "--metric diagonal",
        "linear": "--metric linear",
    },
    "budget": {"l1": "--method l1", "prune": "--method prune", "miser": "--method miser"},
    "effect": {"kernel": "--method kernel", "forest": "--method forest"},
}
WORLDS = {f"{truth} effect": (truth, False) for truth in ("linear", "rules", "none")}
WORLDS |= {f"{truth} effect, confounded": (truth, True) for truth in ("linear", "rules")}
MEASURED = "measured pairs"
NAMES = (*TABLES, *WORLDS, *MECHANISMS, MEASURED)


class Part(NamedTuple):
    """Rows to learn from and to score, what a command needs to be told, and what is true."""

    seen: pd.DataFrame
    held: pd.DataFrame
    options: Sequence[str]
    target: str = ""
    truth: Any = None  # effects, or whether x is the cause
    budgets: Sequence[str] = ()


def parts(command, name, folder):
    """Yield the parts of a table, if the command suits it."""
    if command == "causal" and name in (*MECHANISMS, MEASURED):
        made = [pair for pair in made_pairs() if pair.name.startswith(f"{name},")]
        for pair in made or measured_pairs(folder / "cause_effect_pairs"):
            rows = pd.DataFrame({"x": pair.x, "y": pair.y})
            yield Part(rows, rows, ("--x", "x", "--y", "y"), truth=pair.is_forward)
    elif command == "effect" and name in WORLDS:
        for seed in range(5):
            known = world(*WORLDS[name], seed)
            rows = pd.DataFrame(known.X).add_prefix("x")
            seen = rows.assign(treated=known.treatment * 1, good=known.y * 1)[:2000]
            options = ("--outcome", "good", "--treatment", "treated")
            yield Part(seen, rows[2000:], options, "good", known.effect[2000:])
    elif name in TABLES and command in TABLES[name][1].split():
        target = TABLES[name][0]
        found = [path for at in (ROOT / "data", folder) for path in at.glob(f"{name}.csv*")]
        if found:
            frame = pd.read_csv(found[0], dtype=str, keep_default_na=False)
            how = [] if command == "fit" else ["--target", target]
            costs = found[0].with_name(f"{name}_costs.csv")
            total = pd.read_csv(costs)["cost"].sum() if costs.exists() else frame.shape[1] - 1
            budgets = [f"{share * total:.3f}" for share in SHARES if command == "budget"]
            if budgets:
                how += ["--budgets", ",".join(budgets)]
                how += ["--costs", str(costs)] if costs.exists() else []
            split = StratifiedKFold(5, shuffle=True, random_state=0)
            for seen, held in split.split(frame, frame[target]):
                yield Part(frame.iloc[seen], frame.iloc[held], how, target, budgets=budgets)


def measured_pairs(folder):
    """Return some of the measured pairs, if the folder has them."""
    pairs = list(cause_effect_pairs(folder)) if folder.exists() else []
    return pairs[:: max(1, len(pairs) // PAIRS)]
