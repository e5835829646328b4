"""``bayescascade compare``: densities beside each other on halves of the rows they did not see."""

import secrets
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from bayescascade.cli.cluster import with_cluster
from bayescascade.cli.learning import COLUMN_OPTIONS, declarations, with_options
from bayescascade.cli.options import JOBS, Integer, split_commas
from bayescascade.cli.output import (
    INTERRUPTED,
    check_outputs,
    check_picture,
    echo_json,
    echo_page,
    note,
    save_figure,
    shown_count,
)
from bayescascade.cli.reading import with_reading

if TYPE_CHECKING:
    from bayescascade.data.read_as import ReadAs
    from bayescascade.data.table import Table
    from bayescascade.model.comparison import Comparison

MODELS = ("auto", "leaf", "branch", "rules", "mixture", "histogram", "det")
QUICK = ("auto", "mixture", "histogram", "det")
"""What takes seconds a halving; others choose their settings by searches, again and again."""


@click.command(short_help="Compare densities by the rows that they have not seen.")
@click.argument("data", nargs=-1, required=True)
@click.option(
    "--models",
    default=",".join(QUICK),
    show_default=True,
    metavar="MODEL,...",
    help="The cascade that suits, mixture of classes, smoothed histogram, density estimation tree; "
    "also leaf, branch, rules: cascades of each prior and density rule list, which take minutes.",
)
@click.option(
    "--repeats", type=Integer(1), default=5, show_default=True, help="Random halvings of the rows."
)
@with_options(*COLUMN_OPTIONS)
@with_reading(learns=True)
@click.option(
    "--jobs",
    "n_jobs",
    type=JOBS,
    default=-1,
    help="Densities learned at the same time; -1, the default: one per core.",
)
@with_cluster
@click.option("--seed", type=Integer(0), help="Same seed, same result.")
@click.option("--plot", metavar="FILE", help="Draw score by size: .png, .svg or .pdf.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON at full precision.")
@click.pass_context
def compare(context: click.Context, /, data: tuple[str, ...], **options: Any) -> None:
    """Learn densities on a random half of each table DATA, and score them on the other half.

    Smaller densities with a higher score are better. The halves are the same for all densities.
    Of several tables, each takes the columns named by options that it has. Ctrl-C ends the
    comparison early: what was finished is printed.
    """
    models = _models(options["models"])
    plot = options["plot"]
    check_picture("--plot", plot)
    check_outputs({"--plot": plot}, {f"DATA {path}": path for path in data})
    tables = _read_tables(data, declarations(options))
    seed = secrets.randbits(64) if options["seed"] is None else options["seed"]
    finished: list[Comparison] = []
    interrupted = False
    for table in tables:
        comparison, interrupted = _compared(
            table, models, repeats=options["repeats"], seed=seed, n_jobs=options["n_jobs"]
        )
        finished.append(comparison)
        if not options["as_json"]:
            if len(finished) > 1:
                click.echo()
            echo_page(comparison.page())
        if interrupted:
            break
    if options["as_json"]:
        echo_json({"seed": seed, "tables": [comparison.to_dict() for comparison in finished]})
    if plot is not None:
        from bayescascade.model.pictures import plot_comparisons

        save_figure(plot_comparisons(finished), plot)
    if interrupted:
        n_done = sum(len(comparison.outcomes) for comparison in finished)
        n_all = len(tables) * options["repeats"] * len(models)
        click.echo(f"interrupted: {n_done} of {n_all} fits were finished", err=True)
        context.exit(INTERRUPTED)


def _models(text: str) -> tuple[str, ...]:
    models = tuple(dict.fromkeys(split_commas(text)))
    for model in models:
        if model not in MODELS:
            raise click.UsageError(f"--models must be some of {', '.join(MODELS)}, got {model!r}")
    return models


def _read_tables(paths: "Sequence[str | ReadAs]", declared: Mapping[str, Any]) -> "list[Table]":
    """Read all tables before anything is learned."""
    from bayescascade.cli.rows import read_table
    from bayescascade.data.files import open_files
    from bayescascade.data.read_as import ReadAs

    if len(paths) == 1:
        tables = [read_table(paths[0], **declared)]
    else:
        plain = [path.unchanged if isinstance(path, ReadAs) else path for path in paths]
        names = [open_files(path).names for path in plain]
        pairs = zip(paths, names, strict=True)
        paths = [p.among(known) if isinstance(p, ReadAs) else p for p, known in pairs]
        names = [open_files(path).names for path in paths]  # with parts of dates
        known = {name for columns in names for name in columns}
        tables = []
        for path, columns in zip(paths, names, strict=True):
            concerning = _concerning(declared, known - set(columns))
            if "columns" in declared and not concerning["columns"]:
                raise click.UsageError(
                    f"--columns must name a column of every table, got none of {path}"
                )
            tables.append(read_table(path, **concerning))
    for table in tables:
        for text in table.notes:
            note(f"{table.source}: {text}" if len(tables) > 1 else text)
    return tables


def _concerning(declared: Mapping[str, Any], elsewhere: set[str]) -> dict[str, Any]:
    """Return declarations without the columns that only other tables have."""
    kept: dict[str, Any] = {}
    for name, value in declared.items():
        if isinstance(value, dict):
            kept[name] = {column: kind for column, kind in value.items() if column not in elsewhere}
        elif isinstance(value, list):
            kept[name] = [column for column in value if column not in elsewhere]
        elif value not in elsewhere:
            kept[name] = value
    return kept


def _compared(table: "Table", models: tuple[str, ...], **options: Any) -> "tuple[Comparison, bool]":
    """Return what was finished, and whether Ctrl-C ended it."""
    from bayescascade.methods.contenders import CONTENDERS, TITLES
    from bayescascade.model.comparison import Comparison, compare as outcomes_of

    contenders = {model: CONTENDERS[model] for model in models}
    outcomes = []
    interrupted = False
    try:
        with shown_count(f"{table.source}, fits", len(models) * options["repeats"]) as show:
            for outcome in outcomes_of(table, contenders, **options):
                outcomes.append(outcome)
                show(len(outcomes))
    except KeyboardInterrupt:
        interrupted = True
    return Comparison(table, models, tuple(outcomes), TITLES), interrupted
