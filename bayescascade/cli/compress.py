"""``bayescascade compress``: few prototypes in place of many rows, measured on rows held out."""

from typing import TYPE_CHECKING, Any

import click

from bayescascade.cli.declared import Models, option_of, parameters_of
from bayescascade.cli.learning import CHOICE_OPTIONS, with_options
from bayescascade.cli.output import (
    INTERRUPTED,
    check_outputs,
    csv_texts,
    echo_json,
    echo_page,
    write_texts,
)
from bayescascade.cli.progress_lines import search_progress
from bayescascade.cli.reading import with_reading
from bayescascade.cli.splitting import SPLIT_SEED, read_split, test_share_option
from bayescascade.methods.neighbors.parameters import CompressionParameters

if TYPE_CHECKING:
    from bayescascade.data.splitting import SplitRows
    from bayescascade.methods.neighbors.estimators import NeighborCompressionClassifier
    from bayescascade.report.page import Page

MODELS: Models = {"": CompressionParameters}
_GIVEN = (
    "compression", "n_prototypes", "metric", "prior_scale", "unknown", "missing", "n_jobs",
    "time_limit",
)  # fmt: skip


@click.command(short_help="Replace rows by few prototypes that classify as well.")
@click.argument("data")
@click.option("--target", metavar="NAME", required=True, help="Column of the labels.")
@with_options(*(option_of(name, MODELS) for name in _GIVEN))
@test_share_option("Part of the rows that test; the rest is learned from.")
@with_options(*CHOICE_OPTIONS)
@with_reading(learns=True, labels=True)
@SPLIT_SEED
@click.option("--out", metavar="FILE.csv", help="Write the prototypes, in the data's own units.")
@click.option("--save", metavar="FILE.json", help="Save the model, for predict and score.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON at full precision.")
@click.pass_context
def compress(context: click.Context, /, data: str, **options: Any) -> None:
    """Learn few prototypes whose nearest neighbors are as often right as those of all rows.

    The file (.csv, .csv.gz, .parquet) holds the labels in the column --target. Its rows are split
    at random into those that are learned from and those that test: printed is how often the nearest
    of all rows, and of the prototypes, errs on the latter. Text becomes columns of 0 and 1, of
    which prototypes may have anything between. Missing cells are a level, or the median and a
    column that says so. Ctrl-C or --time-limit ends the search early: what was found is printed and
    written.
    """
    out, save = options["out"], options["save"]
    check_outputs({"--out": out, "--save": save}, {"DATA": data})
    from bayescascade.cli.rows import open_rows
    from bayescascade.methods.neighbors.estimators import NeighborCompressionClassifier

    share = options["test_share"]
    parts = read_split(open_rows(data), options, (1 - share, share), "compress")
    model = NeighborCompressionClassifier(
        **parameters_of({name: options[name] for name in _GIVEN}, CompressionParameters),
        random_state=parts.seed,
    )
    with search_progress("", "") as show:
        model.set_params(progress=show).fit(parts.X[0], parts.y[0])
    if out is not None:
        prototypes = model.prototypes_frame(options["target"])
        write_texts(out, csv_texts([{str(k): column for k, column in prototypes.items()}]))
    if save is not None:
        model.save(save)
    errors = _errors(model, parts)
    if options["as_json"]:
        echo_json(
            {
                "source": parts.source,
                "target": options["target"],
                "seed": parts.seed,
                "n_training_rows": parts.n_rows[0],
                "n_test_rows": parts.n_rows[1],
                "n_prototypes": model.n_kept_,
                **{name: {"kept": n, "error": error} for name, (n, error) in errors.items()},
            }
        )
    else:
        echo_page(_page(model, parts, errors))
    if model.summary_.interrupted:
        click.echo("interrupted: the prototypes are the best found so far", err=True)
        context.exit(INTERRUPTED)


def _errors(
    model: "NeighborCompressionClassifier", parts: "SplitRows"
) -> dict[str, tuple[int, float]]:
    """Return, by name, how many rows are kept and the part of the test rows taken wrong."""
    import numpy as np
    from sklearn.metrics import pairwise_distances_argmin

    learned, tested = (model.transform(X) for X in parts.X)
    nearest = parts.y[0][pairwise_distances_argmin(tested, learned)]
    return {
        "before": (parts.n_rows[0], float(np.mean(nearest != parts.y[1]))),
        "after": (model.n_kept_, float(np.mean(model.predict(parts.X[1]) != parts.y[1]))),
    }


def _page(
    model: "NeighborCompressionClassifier",
    parts: "SplitRows",
    errors: dict[str, tuple[int, float]],
) -> "Page":
    import math

    from bayescascade.report.numbers import share_text
    from bayescascade.report.page import BLANK, Numbers, Pieces, PrintedTable

    learned, tested = (f"{n:,}" for n in parts.n_rows)
    split = f"rows split by seed {parts.seed}: {learned} to learn from, {tested} to test"
    texts = [
        f"{share_text(error)} ± {100 * math.sqrt(error * (1 - error) / parts.n_rows[1]):.1f}"
        for _, error in errors.values()
    ]
    table = PrintedTable(
        ["all rows", "prototypes"],
        [Numbers("kept", [f"{n:,}" for n, _ in errors.values()]), Numbers("error", texts)],
        "nearest of",
    )
    told = Pieces(["error: of the test rows; ±: standard error"], "dim")
    return (*model.page(), BLANK, Pieces([split]), table, told)
