"""Peers of the defaults, each a process of its own that reads, chooses, learns and predicts.

Arguments are the peer and the label column. It learns from seen.csv in the current folder, and
writes what the command `score` would write of the rows of held.csv to rows.csv. LightGBM and
logistic regression also measure themselves in five folds; of a treatment, logistic regressions, one
an arm, predict the effect, and their mean is the constant. StepMix has the cells of a density of
ours, and up to six numbers of classes, of which a fifth of the rows chooses; rows of unknown cells
have no density.
"""

import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

NEEDS = {"LightGBM": "lightgbm", "logistic": "sklearn", "constant": "sklearn", "StepMix": "stepmix"}
CLASSES = (1, 2, 4, 8, 16, 32)


def main(peer, target):
    """Write what a peer says of the rows."""
    if peer == "StepMix":
        said = densities()
    else:
        seen, held = pd.read_csv("seen.csv"), pd.read_csv("held.csv")
        is_effect = "treated" in seen
        said = effects(seen, held) if is_effect else classified(seen, held, target, peer)
        said = said * 0.0 + said.mean() if peer == "constant" else said
    said.to_csv("rows.csv", index=False)


def classified(seen, held, target, peer):
    """Return predicted classes and their probabilities."""
    X = pd.concat([seen, held], ignore_index=True).drop(columns=target)
    levels = list(X.select_dtypes(exclude="number"))
    if peer == "LightGBM":
        from lightgbm import LGBMClassifier

        X, model = X.astype(dict.fromkeys(levels, "category")), LGBMClassifier(n_jobs=1, verbose=-1)
    else:
        X = pd.get_dummies(X.fillna(X.median(numeric_only=True)), dtype=float)
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    known, labels = X[: len(seen)], seen[target].astype(str)
    cross_val_score(model, known, labels, cv=5, scoring="neg_log_loss")
    chances = model.fit(known, labels).predict_proba(X[len(seen) :])
    said = pd.DataFrame(chances, columns=[f"P({label})" for label in model.classes_])
    return said.assign(predicted=model.classes_[chances.argmax(axis=1)])


def effects(seen, held):
    """Return the difference of the probabilities of both arms."""
    names = list(held.columns)
    arms = [
        LogisticRegression(max_iter=1000).fit(of[names], of["good"]).predict_proba(held)[:, 1]
        for _, of in seen.groupby("treated")
    ]
    return pd.DataFrame({"predicted": arms[1] - arms[0]})


def densities():
    """Return log densities of latent classes, in the cells of a density of ours."""
    from bayescascade import Table
    from bayescascade.data.cell_policy import UnknownCells
    from tests.benchmarks.latent_classes import StepMixClasses, latent_classes

    table = Table.from_files("seen.csv")
    names, unknown = [column.name for column in table.schema.columns], UnknownCells()
    held = table.schema.encode(pd.read_csv("held.csv", dtype=str)[names], unknown=unknown)
    known = SimpleNamespace(codes=np.maximum(held, 0))
    found = latent_classes(table, StepMixClasses, CLASSES).score_rows(known)
    for codes, column in zip(known.codes, table.schema.columns, strict=True):
        found -= np.log(column.widths)[codes]
    return pd.DataFrame({"log_density": np.where((held < 0).any(axis=0), np.nan, found)})


if __name__ == "__main__":
    main(*sys.argv[1:])
