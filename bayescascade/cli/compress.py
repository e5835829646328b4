"""``bayescascade compress``: a few prototypes instead of many rows, measured on held-out rows."""

from typing import TYPE_CHECKING, Any

import click

from bayescascade.cli.declared import Models, option_of
from bayescascade.cli.learning import Task, TrainingData, learning, set_up
from bayescascade.cli.options import CHOICE_OPTIONS, TARGET_OPTION, with_options
from bayescascade.cli.output import csv_texts, write_texts
from bayescascade.cli.reading import with_reading
from bayescascade.cli.splitting import SPLIT_SEED, read_split, test_share_option
from bayescascade.methods.compress.parameters import CompressionParameters

if TYPE_CHECKING:
    from bayescascade.data.splitting import SplitRows
    from bayescascade.report.page import Page

MODELS: Models = {"": CompressionParameters}
_GIVEN = (
    "compression", "n_prototypes", "metric", "prior_scale", "rule", "unknown", "missing",
    "n_jobs", "effort", "time_limit",
)  # fmt: skip


@click.command(short_help="Learn prototypes for nearest neighbors.")
@click.argument("data")
@TARGET_OPTION
@with_options(*(option_of(name, MODELS) for name in _GIVEN))
@test_share_option("Share of the rows for the test; the rest is for learning.")
@with_options(*CHOICE_OPTIONS)
@with_reading(learns=True, labels=True)
@SPLIT_SEED
@click.option(
    "--out",
    "prototypes",
    metavar="FILE.csv",
    help="Write the prototypes, in the units of the data.",
)
@click.option("--save", "out", metavar="FILE.json", help="Save the model, for predict and score.")
@learning
def compress(data: str, **options: Any) -> tuple[Task, TrainingData]:
    """Learn a few prototypes that classify by nearest neighbors, in place of all rows.

    DATA has the labels in the column --target. Its rows are split at random into training rows and
    test rows. The test errors of the prototypes and of the nearest training row are printed.
    Text becomes columns of 0 and 1, and prototypes may have values between 0 and 1. Ctrl-C or
    --time-limit ends the search early; the best prototypes so far are printed and saved.
    """
    path, target, share = options["prototypes"], options["target"], options["test_share"]
    files = {"--out": "prototypes", "--save": "out"}
    task = set_up(
        "NeighborCompressionClassifier", {"DATA": data}, options, CompressionParameters, files=files
    )
    from bayescascade.cli.rows import open_rows

    parts = read_split(open_rows(data), options, (1 - share, share), "compress")
    task.model.set_params(random_state=parts.seed)

    def write(model: Any) -> None:
        if path is not None:
            found = model.prototypes_frame(target)
            write_texts(path, csv_texts([{str(k): column for k, column in found.items()}]))

    return task, TrainingData(
        (parts.X[0], parts.y[0]),
        shown=lambda model: _Compressed(model, parts, target),
        write=write,
        words="the prototypes are",
    )


_MANY_PAIRS = 50_000_000  # of a training and a test row: a second or so


class _Compressed:
    """A compression with the test errors of the nearest rows and of the prototypes.

    The former is the work of all pairs of rows, so a time limit leaves it out where they are many.
    """

    def __init__(self, model: Any, parts: "SplitRows", target: str) -> None:
        import numpy as np
        from sklearn.metrics import pairwise_distances_argmin

        self._model, self._parts, self._target = model, parts, target
        error = float(np.mean(model.predict(parts.X[1]) != parts.y[1]))
        # by name, the number of rows kept and the test error
        self._errors = {"after": (model.n_kept_, error)}
        if model.time_limit is None or np.prod(parts.n_rows) <= _MANY_PAIRS:
            learned, tested = (model.transform(X) for X in parts.X)
            nearest = parts.y[0][pairwise_distances_argmin(tested, learned)]
            error = float(np.mean(nearest != parts.y[1]))
            self._errors = {"before": (parts.n_rows[0], error), **self._errors}

    def to_dict(self) -> dict[str, Any]:
        parts = self._parts
        return {
            "source": parts.source,
            "target": self._target,
            "seed": parts.seed,
            "n_training_rows": parts.n_rows[0],
            "n_test_rows": parts.n_rows[1],
            "n_prototypes": self._model.n_kept_,
            **{name: {"kept": n, "error": error} for name, (n, error) in self._errors.items()},
        }

    def page(self) -> "Page":
        from bayescascade.model.standard_errors import share_error
        from bayescascade.report.numbers import share_with_error
        from bayescascade.report.page import BLANK, Numbers, Pieces, PrintedTable

        parts, errors = self._parts, self._errors.values()
        learned, tested = (f"{n:,}" for n in parts.n_rows)
        split = f"rows split by seed {parts.seed}: {learned} to learn from, {tested} to test"
        n_tested = parts.n_rows[1]
        texts = [share_with_error(error, share_error(error, n_tested)) for _, error in errors]
        table = PrintedTable(
            [{"before": "nearest row", "after": "prototypes"}[name] for name in self._errors],
            [Numbers("kept", [f"{n:,}" for n, _ in errors]), Numbers("error", texts)],
            "classified by",
        )
        notes = ["error: of the test rows; ±: standard error"]
        if "before" not in self._errors:
            notes.append("nearest row: not measured, because there is a --time-limit")
        return (*self._model.page(), BLANK, Pieces([split]), table, Pieces(notes, "dim"))
