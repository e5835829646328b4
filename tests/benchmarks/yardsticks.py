"""Peers of the defaults, each a process of its own that reads, chooses, learns and predicts.

Arguments are the peer and the label column. It learns from seen.csv in the current folder, and
writes what the command `score` would write of the rows of held.csv to rows.csv. LightGBM and
logistic regression also measure themselves in five folds; of a treatment, logistic regressions, one
an arm, predict the effect. StepMix has the cells of a density of ours, and of six numbers of
classes the one of most likelihood on a fifth; rows of unknown cells have no density.
"""

import sys

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

NEEDS = {"LightGBM": "lightgbm", "logistic": "sklearn", "StepMix": "stepmix"}
CLASSES = (1, 2, 4, 8, 16, 32)


def main(peer, target):
    """Write what a peer says of the rows."""
    if peer == "StepMix":
        said = latent_classes()
    else:
        seen, held = pd.read_csv("seen.csv"), pd.read_csv("held.csv")
        said = effects(seen, held) if "treated" in seen else classified(seen, held, target, peer)
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


def latent_classes():
    """Return log densities, as of a density of ours that knows the rows' bins."""
    from scipy.special import logsumexp
    from stepmix.stepmix import StepMix

    from bayescascade import Table
    from bayescascade.data.unknown import UnknownCells

    table = Table.from_files("seen.csv")
    rows = np.repeat(table.codes.T, table.weights.astype(int), axis=0).astype(float)
    rows = rows[np.random.default_rng(0).permutation(len(rows))]
    names = [column.name for column in table.schema.columns]
    held = table.schema.encode(pd.read_csv("held.csv", dtype=str)[names], unknown=UnknownCells())
    most = int(table.schema.n_levels.max())

    def learned(n_classes, rows):
        how = {"measurement": "categorical", "measurement_params": {"max_n_outcomes": most}}
        model = StepMix(n_classes, n_init=2, max_iter=200, random_state=0, progress_bar=0, **how)
        return model.fit(rows)

    asked, rest = rows[: len(rows) // 5], rows[len(rows) // 5 :]
    best = max(CLASSES, key=lambda n: learned(n, rest).score(asked))
    model = learned(best, rows)
    levels = model.get_parameters()["measurement"]["pis"]  # n_classes x (columns * most)
    joint = np.log(model.weights_) + np.zeros((held.shape[1], best))
    for j, (codes, column) in enumerate(zip(held, table.schema.columns, strict=True)):
        joint += np.log(levels[:, j * most + codes].T / column.widths[codes, np.newaxis])
    log_densities = np.where((held < 0).any(axis=0), np.nan, logsumexp(joint, axis=1))
    return pd.DataFrame({"log_density": log_densities})


if __name__ == "__main__":
    main(*sys.argv[1:])
