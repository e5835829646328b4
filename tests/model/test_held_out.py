"""How a classifier does on held-out rows: nothing may leak, and the figures are the rows' own."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayescascade.base.errors import DataError
from bayescascade.base.store import restored
from bayescascade.model.decisions import Decision
from bayescascade.model.held_out import Figures, HeldOut, default_folds, measure
from bayescascade.report.page import render


class Memory:
    """A classifier that knows the rows that it saw by heart, and guesses the first class else."""

    summary_ = SimpleNamespace(is_partial=False)
    decision = Decision

    def __init__(self, X: pd.DataFrame, y: Any) -> None:
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.known = dict(zip(X["key"], codes, strict=True))

    def set_params(self, **parameters: int) -> "Memory":
        self.of_others = parameters.get("of_others", 0)
        return self

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        return np.eye(len(self.classes_))[[self.known.get(key, self.of_others) for key in X["key"]]]


def rows(n_rows: int = 120) -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"key": np.arange(n_rows), "x": rng.normal(size=n_rows)})
    frame["word"] = rng.choice(["a", "b", None], n_rows)
    return frame, pd.Series(np.where(frame["x"] > 0.3, "yes", "no"), name="label")


def measured(X: pd.DataFrame, y: Any, weights: Any = None, **options: Any) -> HeldOut:
    seeds = np.random.SeedSequence(1)
    given = {"name": "list", "effort": "by heart", "n_folds": 5, **options}
    return measure(lambda X, y, *_: Memory(X, y), X, y, weights, seeds, **given)


def test_no_row_is_predicted_by_what_learned_from_it():
    """What knows its rows by heart is no better than a guess on others; the twin saw copies."""
    X, y = rows()
    held = measured(X, y)
    found, logistic, usual = held.figures
    share = (y == "no").mean()
    assert found.accuracy == pytest.approx(share)
    assert usual.accuracy == pytest.approx(share)
    text = "   ".join(held.of_class(0))
    assert f"on 120 held-out rows: precision {100 * share:.1f} ±" in text
    assert "recall 100.0 ±" in text
    assert logistic.accuracy > 0.95
    losses = np.where(y == "no", np.log(share), np.log(1 - share))
    assert usual.log_loss == pytest.approx(-losses.mean(), abs=0.01)
    variants = {"the first": {"of_others": 0}, "the second": {"of_others": 1}}
    both = measured(X, y, variants=variants).figures
    assert [one.name for one in both[:3]] == [*variants, "logistic regression"]
    assert [one.accuracy for one in both[:2]] == pytest.approx([share, 1 - share])
    twin = measured(pd.concat([X] * 12), pd.concat([y] * 12))
    assert twin.figures[0].accuracy > 0.99


def test_weights_and_rows_of_weight_zero():
    """A weighted accuracy is that of the rows that weights stand for; others are not counted."""
    X, y = rows()
    weights = np.where(y == "no", 3.0, 1.0)
    weights[:20] = 0.0
    found = measured(X, y, weights)
    assert found.n_rows == 100
    assert found.figures[2].accuracy == pytest.approx(weights @ (y == "no") / weights.sum())


def test_a_class_of_one_row_leaves_the_log_loss_finite():
    X, y = rows()
    y[0] = "maybe"
    for one in measured(X, y).figures:
        assert 0 < one.log_loss < 40


def test_one_fold_reasons_and_records():
    """One fold predicts a fifth of the rows; a fold that cannot be fitted is a reason, no error."""
    X, y = rows()
    once = measured(X, y, is_once=True)
    assert once.n_rows == pytest.approx(24, abs=1)
    assert "1 of 5 folds" in render(once.page())
    assert restored(HeldOut, once.to_dict(), {}).to_dict() == once.to_dict()
    for width in (60, 80):
        assert max(map(len, render(once.page(), width=width).splitlines())) <= width

    def refuse(*_):
        raise DataError("no rule")

    refused = measure(refuse, X, y, None, np.random.SeedSequence(1), name="", effort="", n_folds=2)
    shown = " ".join(render(refused.page()).split())
    assert "not measured, because a fold cannot be fitted: no rule" in shown
    assert default_folds(X, 2) == (5, False)
    assert default_folds(pd.concat([X] * 600), 2) == (5, True)  # five folds would take minutes
    with pytest.raises(ValueError, match="accuracy must be"):
        restored(HeldOut, HeldOut(figures=(Figures("x", 2.0, 0.0, 0.0),)).to_dict(), {})
