"""Linear gates on features that an L1 penalty chose: the thesis's baseline for Adapt-Lin (A.2.3).

Absolute coefficients of L1-penalized logistic regressions order the features; thresholds give
sets of any size. On each set, one logistic regression classifies and another one, the gate, says
where the first is wrong. The gate's class weights decide how many rows go to the full model, which
reads every feature.
"""

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from tests.benchmarks.budget_validation import Judged

STRENGTHS = np.logspace(-3, 1, 20)
WEIGHTS = np.linspace(0.05, 0.95, 19)


def greedy_gates(rows, full, items):
    """Yield what the gates of every set and weight cost and err; `full` is fitted."""
    scaler = StandardScaler().fit(rows.train.features)
    train, *others = (scaler.transform(part.features) for part in rows)
    labels = rows.train.labels.to_numpy()
    truths = [part.labels.to_numpy() for part in rows[1:]]
    full_wrong = [
        full.predict(part.features) != truth for part, truth in zip(rows[1:], truths, strict=True)
    ]
    total = float(items.costs.sum())
    for used in _sets(train, labels):
        local = LogisticRegression().fit(train[:, used], labels)
        is_wrong = local.predict(train[:, used]) != labels
        paid = float(items.total(items.paid(used[np.newaxis]))[0])
        wrongs = [
            local.predict(part[:, used]) != truth
            for part, truth in zip(others, truths, strict=True)
        ]
        for weight in WEIGHTS if is_wrong.any() else ():
            gate = LogisticRegression(class_weight={True: weight, False: 1 - weight})
            gate.fit(train[:, used], is_wrong)
            figures = []
            for part, wrong, at_full in zip(others, wrongs, full_wrong, strict=True):
                sent = gate.predict(part[:, used])
                figures.append(float(np.where(sent, total, paid).mean()))
                figures.append(float(np.where(sent, at_full, wrong).mean()))
            yield Judged(*figures)


def _sets(train, labels):
    """Return the sets of features that the penalties lead to, each once."""
    found = {}
    for strength in STRENGTHS:
        model = LogisticRegression(C=strength, l1_ratio=1.0, solver="liblinear")
        sizes = np.abs(model.fit(train, labels).coef_[0])
        for threshold in np.unique(sizes[sizes > 0]):
            used = sizes >= threshold
            found[used.tobytes()] = used
    return [*found.values()]
