"""``bayescascade online``: the cost of buying labels only where that pays."""

from typing import TYPE_CHECKING, Any, NamedTuple

import click

from bayescascade.cli.learning import Task, TrainingData, learning, outputs_of
from bayescascade.cli.options import (
    CHOICE_OPTIONS,
    TARGET_OPTION,
    IntegerType,
    RealType,
    listed as listed_names,
    with_options,
)
from bayescascade.cli.reading import with_reading

if TYPE_CHECKING:
    from bayescascade.methods.online.gate import OnlineGate
    from bayescascade.report.page import Page


@click.command(short_help="Classify a stream, and buy labels that are worth their price.")
@click.argument("data")
@TARGET_OPTION
@click.option(
    "--cost",
    type=RealType(above=0.0, maximum=1.0),
    default=0.2,
    show_default=True,
    help="Cost of asking for a label, if an error costs 1.",
)
@click.option(
    "--first",
    type=IntegerType(2),
    default=500,
    show_default=True,
    help="Number of first rows, whose labels are free.",
)
@with_options(*CHOICE_OPTIONS)
@with_reading(learns=True, labels=True)
@click.option(
    "--seed", type=IntegerType(0), default=0, show_default=True, help="Same seed, same result."
)
@learning
def online(data: str, **options: Any) -> tuple[Task, TrainingData]:
    """Classify the rows of DATA one by one, in order, as if each label had to be bought.

    DATA has the labels in the column --target. A logistic regression, a tree and a forest learn
    from the first rows and from every label that is bought. If they are not sure enough, the label
    is bought. The other labels are only used to measure the loss at the end. Ctrl-C ends it early;
    the results for the rows so far are printed.
    """
    task = outputs_of(options, {"DATA": data})
    from bayescascade.cli.rows import open_rows, read_labeled

    source = open_rows(data)
    X, y, _ = read_labeled(
        source,
        options["target"],
        columns=listed_names(options["columns"]),
        drop=listed_names(options["drop"]),
    )
    first = options["first"]
    if first >= len(X):
        raise click.UsageError(f"--first must be less than the {len(X):,} rows, got {first:,}")

    if len(set(y[:first])) < 2:
        raise click.UsageError(
            f"the first {first:,} rows must have at least two classes, got {y[0]!r} alone: "
            "shuffle the rows, or increase --first"
        )

    def play() -> _Stream:
        gate = _gate(options["cost"], options["seed"]).start(X[:first], y[:first])
        gate.partial_fit(X[first:], y[first:])
        return _Stream(gate, source.label, y[first:], y[:first])

    return task, TrainingData(fit=play, ended=_ended)


def _gate(cost: float, seed: int) -> "OnlineGate":
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.tree import DecisionTreeClassifier

    from bayescascade.methods.online.gate import OnlineGate

    models = [
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
        DecisionTreeClassifier(min_samples_leaf=5, random_state=0),
        RandomForestClassifier(200, random_state=0),
    ]
    return OnlineGate.of_models(models, cost=cost, random_state=seed)


def _ended(stream: "_Stream") -> str:
    if not stream.gate.played_.is_interrupted:
        return ""
    return f"{stream.gate.n_rounds_:,} rounds were played"


class _Stream(NamedTuple):
    """A gate after its rounds, with the labels of all rows, which give its loss."""

    gate: "OnlineGate"
    source: str
    labels: Any
    first_labels: Any

    @property
    def _losses(self) -> dict[str, float]:
        """Mean losses per round."""
        import numpy as np

        played = self.gate.played_
        labels = np.asarray(self.labels)[: len(played.asked)]
        values, counts = np.unique(np.asarray(self.first_labels), return_counts=True)
        return {
            "this gate": float(played.losses(labels).mean()),
            "asks always": self.gate.cost,
            "most common class": float(np.mean(labels != values[np.argmax(counts)])),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the losses and the gate as plain data."""
        return {"source": self.source, "losses": self._losses, **self.gate.to_dict()}

    def page(self) -> "Page":
        """Return the loss, that of always asking, and the gate's page."""
        from bayescascade.report.page import BLANK, Numbers, PrintedTable

        if not self.gate.n_rounds_:
            return self.gate.page()
        losses = self._losses
        table = PrintedTable(
            list(losses), [Numbers("loss a round", [f"{loss:.4f}" for loss in losses.values()])]
        )
        return (*self.gate.page()[:2], BLANK, table, *self.gate.page()[2:])
