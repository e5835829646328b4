"""``bayescascade boxes``: a rare class as a few boxes, averaged, exact or fast."""

from typing import TYPE_CHECKING, Any

import click

from bayescascade.cli.declared import Models, option_of, parameters_of
from bayescascade.cli.options import CHOICE_OPTIONS, listed, with_options
from bayescascade.cli.output import INTERRUPTED, check_outputs, echo_json, echo_page
from bayescascade.cli.progress_lines import search_progress
from bayescascade.cli.reading import with_reading
from bayescascade.methods.boxes.parameters import BoxParameters, FastBoxParameters

if TYPE_CHECKING:
    from bayescascade.methods.boxes.path import BoxPath
    from bayescascade.report.page import Page

MODELS: Models = {"": BoxParameters}
_BOTH = ("positive", "missing", "unknown", "random_state")
_GIVEN = (
    *_BOTH, "n_boxes", "likelihood", "negative_weight", "box_cost", "side_cost", "n_steps",
    "n_chains", "n_jobs", "time_limit", "memory_limit",
)  # fmt: skip


@click.command(short_help="Find a rare class as a few boxes.")
@click.argument("data")
@click.option("--target", metavar="NAME", required=True, help="Column of the labels.")
@click.option(
    "--method",
    type=click.Choice(["average", "exact", "fast"]),
    default="average",
    show_default=True,
    help="The average over a posterior, the best union with a proof, or boxes around clusters.",
)
@with_options(*(option_of(name, MODELS) for name in _GIVEN))
@click.option("--path", "as_path", is_flag=True, help="The best union for each of ten weights.")
@with_options(*CHOICE_OPTIONS)
@with_reading(learns=True, labels=True)
@click.option("--out", metavar="FILE.json", help="Save the model, for predict and score.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON at full precision.")
@click.pass_context
def boxes(context: click.Context, /, data: str, **options: Any) -> None:
    """Learn a few axis-parallel boxes that hold most rows of a rare class, and few others.

    The file (.csv, .csv.gz, .parquet) holds the labels, of two classes, in the column --target.
    --path prints the best union for each of ten weights of the others, with what was proved of it.
    Ctrl-C or --time-limit ends the search early: what was found is printed and written.
    """
    check_outputs({"--out": options["out"]}, {"DATA": data})
    if options["as_path"] and (options["out"] is not None or options["method"] != "exact"):
        raise click.UsageError("--path goes with --method exact, and without --out")
    from bayescascade.cli.rows import open_rows, read_labeled
    from bayescascade.methods.boxes.estimators import BoxClassifier, FastBoxes

    X, y, _ = read_labeled(
        open_rows(data), options["target"], columns=listed(options["columns"]),
        drop=listed(options["drop"]),
    )  # fmt: skip
    options["positive"] = _label(options["positive"], y)
    if options["method"] == "fast":
        given = {name: options[name] for name in _BOTH}
        fast = FastBoxes(**parameters_of(given, FastBoxParameters)).fit(X, y)
        _tell(context, fast, options)
        return
    given = {name: options[name] for name in _GIVEN}
    if options["method"] == "exact":
        given["likelihood"] = "gibbs"
    model = BoxClassifier(**parameters_of(given, BoxParameters))
    if options["method"] == "exact":
        model.set_params(search="exact")
    if options["as_path"]:
        echo_page(_path_page(model.path(X, y)))
        return
    with search_progress("", "") as show:
        model.set_params(progress=show).fit(X, y)
    _tell(context, model, options)


def _label(text: str | None, labels: Any) -> Any:
    """Return the label that a text stands for; click.UsageError if there is none."""
    if text is None:
        return None
    from bayescascade.data.levels import level_text

    known = {level_text(label): label for label in dict.fromkeys(labels.tolist())}
    if text not in known:
        raise click.UsageError(f"--positive must be {' or '.join(known)}, got {text}")
    return known[text]


def _tell(context: click.Context, model: Any, options: dict[str, Any]) -> None:
    """Save and print a model."""
    if options["out"] is not None:
        model.save(options["out"])
    if options["as_json"]:
        echo_json(model.to_dict())
    else:
        echo_page(model.page())
    if getattr(getattr(model, "summary_", None), "interrupted", False):
        click.echo("interrupted: the boxes are the best found so far", err=True)
        context.exit(INTERRUPTED)


def _path_page(path: "BoxPath") -> "Page":
    from bayescascade.report.page import Numbers, PrintedTable

    found = path.found
    columns = [
        Numbers("boxes", [str(one.union.n_boxes) for one in found]),
        Numbers("sides", [str(union.n_sides) for union in path.unions]),
        Numbers("objective", [f"{one.objective:.2f}" for one in found]),
        Numbers("gap", [f"{one.gap:.2f}" for one in found]),
    ]
    return (PrintedTable([f"{weight:.3g}" for weight in path.weights], columns, "negative weight"),)
