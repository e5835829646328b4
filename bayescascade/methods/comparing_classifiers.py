"""Comparison of classifiers with their default parameters, given by name, on held-out rows."""

import secrets
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import DataError, ParameterError
from bayescascade.data.given import GivenRows
from bayescascade.data.labels import check_labels, find_classes
from bayescascade.data.splitting import split_by_class
from bayescascade.model.held_out import DEFAULT_FOLDS, aligned, standardized
from bayescascade.model.parameters import RunParameters
from bayescascade.model.standard_errors import best_error, paired_error
from bayescascade.report.numbers import diagnostic_text, with_error
from bayescascade.report.page import BLANK, Heading, Numbers, Page, Pieces, PrintedTable, count_of
from bayescascade.report.printed import Printed

CLASSIFIERS = {
    "rules": ("rule list", "bayescascade", "RuleListClassifier"),
    "boxes": ("boxes of the rarer class", "bayescascade", "BoxClassifier"),
    "compress": ("prototypes", "bayescascade", "NeighborCompressionClassifier"),
    "rados": ("sums of rows (rados)", "bayescascade", "RadoBoostClassifier"),
    "budget": ("on a budget of half", "bayescascade", "AutoBudgetClassifier"),
    "logistic": ("logistic regression", "sklearn.linear_model", "LogisticRegression"),
    "boosted": ("boosted trees", "sklearn.ensemble", "HistGradientBoostingClassifier"),
}
"""Title, module and class, by name; the last two are of scikit-learn."""

_OF_TWO = ("boxes", "rados")  # need two classes


@dataclass(frozen=True)
class ClassifierComparison(Printed):
    """The result of `compare_classifiers`; it prints a line for each classifier.

    Parameters
    ----------
    source : str
        Name of the data.
    n_rows : int
        Number of rows, each held out once.
    table : DataFrame
        A row for each finished classifier, by name: ``title``, ``accuracy``, ``log_loss`` (nats a
        row), ``seconds`` to learn from four folds; and ``less_accurate`` and ``more_loss``, the
        differences from the one with the least log loss, with standard errors (``..._error``).
    seed : int
        The seed of folds and classifiers.
    interrupted : bool
        Whether Ctrl-C ended the comparison.
    """

    source: str
    n_rows: int
    table: pd.DataFrame
    seed: int
    interrupted: bool = False

    def page(self) -> Page:
        """Return a table with a line for each classifier; see `table`."""
        heading, found = Heading([self.source, count_of(self.n_rows, "row")]), self.table
        if found.empty:
            return (heading, Pieces(["nothing has been learned yet"]))
        best = found["log_loss"].idxmin()

        def behind(name: str, scale: float, places: int) -> Numbers:
            pairs = zip(scale * found[name], scale * found[f"{name}_error"], strict=True)
            texts = [with_error(f"{by:.{places}f}", error, places) for by, error in pairs]
            return Numbers("behind", np.where(found.index == best, "", texts).tolist())

        table = PrintedTable(
            found["title"].tolist(),
            [
                Numbers("accuracy", [f"{100 * share:.1f} %" for share in found["accuracy"]]),
                behind("less_accurate", 100, 1),
                Numbers("log loss", [diagnostic_text(loss, 3) for loss in found["log_loss"]]),
                behind("more_loss", 1, 3),
                Numbers("seconds", [f"{mean:,.1f}" for mean in found["seconds"]]),
            ],
            "default parameters",
            styles=["bold" if name == best else "" for name in found.index],
        )
        notes = [
            f"{DEFAULT_FOLDS} folds, each held out once", "log loss: nats a row",
            "behind: the least log loss, on the same rows, in points or nats",
            "±: standard error of the difference",
            "seconds: to learn from four folds",
        ]  # fmt: skip
        return (heading, BLANK, table, BLANK, Pieces(notes, "dim"))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        found = self.table.reset_index(names="name").to_dict("records")
        return {"source": self.source, "n_rows": self.n_rows, "seed": self.seed, "models": found}


def compare_classifiers(
    X: Any,
    y: Any,
    *,
    models: Iterable[str] | None = None,
    random_state: int | None = None,
    source: str = "",
    done: Callable[[str], object] | None = None,
) -> ClassifierComparison:
    """Compare classifiers with their default parameters on the same held-out rows.

    Rows are split into five folds, stratified by class; each is predicted by what learned from the
    others. "budget" may use half of the columns for a mean row. Boosted trees show how much
    accuracy a model costs that people can read.

    Parameters
    ----------
    X : DataFrame, array, list of rows or mapping
        The rows.
    y : (n_rows,) labels
        Text, whole numbers or truth values, of at least two classes.
    models : sequence of str, optional
        Some of "rules", "boxes", "compress", "rados", "budget", "logistic" and "boosted"; by
        default all, but for more than two classes not "boxes" and "rados", which need two.
    random_state : int >= 0 or None
        Same seed, same result.
    source : str
        Name of the data, for the print.
    done : function, optional
        Called with the name of a classifier after each fold.

    Returns
    -------
    ClassifierComparison
        The result. After Ctrl-C, it has the finished classifiers.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.
    DataError
        If rows or labels cannot be used.
    """
    if random_state is not None:
        random_state = RunParameters.random_state.check(random_state, "random_state")
    seed = secrets.randbits(32) if random_state is None else random_state
    frame = GivenRows.of(X).frame()
    classes, codes = find_classes(check_labels(y, "y", "compare_classifiers"), "y")
    suiting = [name for name in CLASSIFIERS if len(classes) == 2 or name not in _OF_TWO]
    names = suiting if models is None else list(dict.fromkeys(models))
    for name in names or [""]:
        if name not in suiting:
            known = f"{', '.join(suiting)} for {count_of(len(classes), 'class', 'classes')}"
            raise ParameterError(f"models must be some of {known}, got {name!r}")
    n_often = int((np.bincount(codes) > 1).sum())
    if n_often < 2:  # other rows of a fold would be of one class
        raise DataError(f"y must have two rows of each of two classes, got {n_often}")
    parts = split_by_class(codes, [1 / DEFAULT_FOLDS] * DEFAULT_FOLDS, np.random.default_rng(seed))
    numbers = pd.DataFrame(standardized(frame))
    measured: dict[str, tuple[Floats, Floats, float]] = {}
    interrupted = False
    try:
        for name in names:
            _, module, called = CLASSIFIERS[name]
            given = {"budget": frame.shape[1] / 2} if name == "budget" else {}
            made = getattr(import_module(module), called)(random_state=seed, **given)
            is_ours, began = module == "bayescascade", perf_counter()
            rows = frame if is_ours else numbers
            right, losses = np.zeros(len(codes)), np.zeros(len(codes))
            for part in np.unique(parts):
                is_held = parts == part
                learned, held = (
                    rows[those].reset_index(drop=True) for those in (~is_held, is_held)
                )
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # on chains and iterations, of single folds
                    model = made.fit(learned, classes[codes[~is_held]])
                    found = model.predict_proba(held)
                seen = np.searchsorted(classes, model.classes_)
                has_rule = hasattr(model, "decision")
                chosen = model.decision().choose(found) if has_rule else found.argmax(axis=1)
                right[is_held] = seen[chosen] == codes[is_held]
                counts = np.bincount(codes[~is_held], minlength=len(classes)).astype(np.float64)
                of_all = aligned(found, seen, counts)
                losses[is_held] = -np.log(of_all[np.arange(len(held)), codes[is_held]])
                if done is not None:
                    done(name)
            measured[name] = right, losses, (perf_counter() - began) / DEFAULT_FOLDS
    except KeyboardInterrupt:
        interrupted = True
    return ClassifierComparison(source, len(codes), _table(measured), seed, interrupted)


def _table(measured: dict[str, tuple[Floats, Floats, float]]) -> pd.DataFrame:
    """Return the table of a comparison, given what is right, log losses and seconds by name."""
    best = min(measured, key=lambda name: measured[name][1].mean(), default="")

    def error_of(differences: Floats) -> float:
        return best_error(paired_error(differences, DEFAULT_FOLDS), len(measured))

    rows = {}
    for name, (right, losses, seconds) in measured.items():
        less, more = measured[best][0] - right, losses - measured[best][1]
        rows[name] = {
            "title": CLASSIFIERS[name][0], "accuracy": right.mean(), "log_loss": losses.mean(),
            "seconds": seconds,
            "less_accurate": less.mean(), "less_accurate_error": error_of(less),
            "more_loss": more.mean(), "more_loss_error": error_of(more),
        }  # fmt: skip
    return pd.DataFrame.from_dict(rows, orient="index")
