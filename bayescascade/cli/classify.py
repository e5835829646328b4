"""``bayescascade classify``: from a data file with labels to a printed and saved classifier."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from bayescascade.cli.learning import (
    COLUMN_OPTIONS,
    POSITIVE,
    PREDICTIVES,
    RUN_OPTIONS,
    declarations,
    given,
    learn,
    search_option,
    take_outputs,
    with_options,
)
from bayescascade.cli.options import Integer, Real
from bayescascade.cli.rows import open_rows, read_labeled

if TYPE_CHECKING:
    from bayescascade.data.labeled_rows import LabeledRows

__all__ = ["classify"]

_KINDS = ("nominal", "ordinal", "continuous", "missing")
_NOT_PARAMETERS = ("target", "columns", "drop", "weights", *_KINDS)


@click.command(short_help="Find the most probable rule list for a table's labels.")
@click.argument("data")
@click.option("--target", metavar="NAME", required=True, help="Column of the labels.")
@click.option("--expected-rules", type=POSITIVE, help="Rules expected (3).")
@click.option("--expected-size", type=POSITIVE, help="Conditions expected of a rule (1).")
@click.option("--concentration", type=POSITIVE, help="Dirichlet parameter of a class (1).")
@click.option("--max-size", type=Integer(1), help="Most conditions of a rule (2).")
@click.option(
    "--min-support",
    type=Real(minimum=0.0, below=1.0),
    help="Least part of the rows that a rule's conditions hold for (0.05).",
)
@click.option(
    "--bins",
    "n_bins",
    type=Integer(2),
    help="Quantiles that numbers are cut at unless declared otherwise (4).",
)
@click.option(
    "--unknown",
    type=click.Choice(["error", "none"]),
    help="A level first seen when predicting is an error (the default), or meets no condition.",
)
@click.option(
    "--memory-limit", type=POSITIVE, help="Gigabytes that all possible rules may take (2)."
)
@click.option(
    "--time-limit", type=POSITIVE, help="Seconds after which an exact search stops (no limit)."
)
@click.option(
    "--predictive",
    type=click.Choice(PREDICTIVES),
    help="Predict by the best list found, or by the average over posterior draws.",
)
@with_options(*COLUMN_OPTIONS, search_option("exact"), *RUN_OPTIONS)
@click.pass_context
def classify(context: click.Context, /, data: str, **options: Any) -> None:
    """Find the most probable list of rules for the labels of the table DATA.

    The file (.csv, .csv.gz, .parquet) holds the labels in the column --target; rules use all
    others. Ctrl-C ends the search early: what was found is printed and saved.
    """
    outputs = take_outputs(options, data)
    declared = declarations(options)
    _check_target(options["target"], declared)
    parameters = {k: v for k, v in given(options).items() if k not in _NOT_PARAMETERS}
    from bayescascade.methods.rules.classifier import RuleListClassifier

    model = RuleListClassifier(**{"n_jobs": -1, **_kinds(declared), **parameters})
    model.check_parameters()  # before any data are read
    rows = _read_rows(data, options["target"], declared, model.n_bins)
    learn(context, model, lambda: model.fit(rows), rows.table.notes, outputs)


def _check_target(target: str, declared: Mapping[str, Any]) -> None:
    """Raise click.UsageError if the column of labels should be something else too."""
    if target == declared.get("weights"):
        raise click.UsageError(f"--weights must be another column than --target, got {target}")
    for name in ("drop", "nominal", "ordinal", "continuous"):
        if target in declared.get(name, ()):
            raise click.UsageError(f"--{name} must not name the column of the labels, got {target}")


def _kinds(declared: Mapping[str, Any]) -> dict[str, Any]:
    return {name: declared[name] for name in _KINDS if name in declared}


def _read_rows(data: str, target: str, declared: Mapping[str, Any], n_bins: int) -> "LabeledRows":
    """Read a data file with labels; the columns are those of `declared` but for the target."""
    from bayescascade.data.labeled_rows import LabeledRows

    kinds: dict[str, Any] = {
        "missing": "error",
        **dict.fromkeys(("nominal", "ordinal", "continuous")),
        **_kinds(declared),
    }
    source = open_rows(data)
    frame, labels, row_weights = read_labeled(
        source,
        target,
        columns=declared.get("columns"),
        drop=declared.get("drop"),
        weights=declared.get("weights"),
        kinds=kinds,
    )
    return LabeledRows.of(
        frame,
        labels,
        row_weights,
        n_bins=n_bins,
        **kinds,
        labels_name=f'column "{target}"',
        source=source.label,
    )
