"""Commands on saved files: show, score, predict and sample for a model, diagnose for a trace."""

from collections import deque
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import click

from bayescascade.cli.deciding import decision_of, with_decision
from bayescascade.cli.file_types import INPUT
from bayescascade.cli.loading import (
    BUDGET_OPTION,
    ROWS_OPTION,
    UNKNOWN_OPTION,
    in_role,
    load_model,
    open_for,
    without_dash,
)
from bayescascade.cli.near_best import WithNearBest, check_top, lister, with_near_best
from bayescascade.cli.options import FULL_OPTION, JSON_OPTION, IntegerType, parse_given
from bayescascade.cli.output import check_outputs, echo, put, save_figure, save_plot, write_texts
from bayescascade.cli.reading import with_reading

_DEFAULT_TOP = 10
_FIRST_ROWS = 100  # which a reader of few rows gets at once
_BLOCK_ROWS = 100_000


@click.command(short_help="Print or draw a saved model.")
@click.argument("model", metavar="MODEL.json")
@click.option(
    "--given",
    "conditions",
    multiple=True,
    metavar="NAME=LEVEL,...",
    help="Show the density given this: sex=male, class=1st,2nd, income=0,10 (from edge to edge).",
)
@FULL_OPTION
@JSON_OPTION
@click.option("--dot", is_flag=True, help="Print a tree as Graphviz source.")
@click.option(
    "--png",
    metavar="FILE.png",
    help="Draw the tree or list into a file; for a forest, a bar chart of the costs of each "
    "feature.",
)
@click.option(
    "--joined",
    is_flag=True,
    help="With --png and dependent leaves: draw which columns are joined in each leaf.",
)
@click.option(
    "--tree",
    type=IntegerType(0, other="typical"),
    metavar="NUMBER|typical",
    help="For a forest: number of the tree that --dot and --png draw, from 0. For a density: "
    "typical shows the posterior draw that is nearest to all others, in place of the best "
    "tree.",
)
@click.option(
    "--html", metavar="FILE.html", help="Write a report for readers who do not know the method."
)
@click.option(
    "--held-out",
    type=INPUT,
    metavar="DATA",
    help="Held-out rows, with labels if the model is a classifier. The report of --html then says "
    "how well the model does on them.",
)
@click.option(
    "--target",
    metavar="NAME",
    help="Column of labels in --held-out. Default: its name when the model was learned.",
)
@with_near_best
@BUDGET_OPTION
def show(
    model: str,
    conditions: tuple[str, ...],
    full: bool,
    as_json: bool,
    dot: bool,
    png: str | None,
    joined: bool,
    tree: int | str | None,
    html: str | None,
    held_out: str | None,
    target: str | None,
    near_best: float | None,
    top: int | None,
    budget: float | None,
) -> None:
    """Print the model saved in MODEL.json."""
    if as_json + dot + (png is not None) + (html is not None) > 1:
        raise click.UsageError("--json, --dot, --png and --html exclude each other")
    if conditions and html is not None:
        raise click.UsageError(
            "--html must not come with --given, got both: a report describes the whole model"
        )
    if tree not in (None, "typical") and not dot and png is None:
        raise click.UsageError("--tree needs --dot or --png, got neither")
    if joined and (png is None or tree is not None):
        raise click.UsageError("--joined needs --png, and no --tree")
    if (held_out or target) and html is None:
        raise click.UsageError(f"{'--held-out' if held_out else '--target'} needs --html, got none")
    n_shown = check_top(near_best, top)
    if near_best is not None and (conditions or dot or png is not None):
        raise click.UsageError("--near-best must not come with --given, --dot or --png")
    if png is not None and not png.lower().endswith(".png"):
        raise click.UsageError(f"--png must end in .png, got {png}")
    check_outputs({"--png": png, "--html": html}, {"MODEL.json": model, "--held-out": held_out})
    from bayescascade.model.record import load

    fitted = load(model) if budget is None else load_model(model, budget=budget)
    from bayescascade.model.roles import (
        Conditional,
        Graphed,
        HasPicture,
        HasTrees,
        Joining,
        Reporting,
        Typical,
    )

    if tree == "typical":
        in_role(Typical, fitted, "--tree typical", model).set_params(tree=tree)
        tree = None
    if html is not None:
        reporting: Reporting = in_role(Reporting, fitted, "--html", model)
        tried = None
        if held_out is not None:
            from bayescascade.cli.scoring import read_held_out

            tried = read_held_out(fitted, held_out, target)
        near = None if near_best is None else lister(fitted, model).near_best(near_best)
        reporting.report(html, held_out=tried, near_best=near)
        return
    shown: Any = fitted
    if near_best is not None:
        shown = WithNearBest(fitted, lister(fitted, model).near_best(near_best), n_shown)
    if conditions:
        density: Conditional = in_role(Conditional, fitted, "--given", model)
        columns = density.schema_.columns
        continuous = [column.name for column in columns if column.kind == "continuous"]
        shown = density.condition(parse_given(conditions, continuous))
    which: dict[str, Any] = {}
    if tree is not None:
        in_role(HasTrees, fitted, "--tree", model)
        which["tree"] = tree
    if png is not None and joined:
        learned = shown if isinstance(shown, Joining) else getattr(shown, "learned_", shown)
        joining: Joining = in_role(Joining, learned, "--joined", model)
        save_plot(joining.plot_joined, png)
    elif png is not None:
        drawn: HasPicture = in_role(HasPicture, shown, "--png", model)
        save_plot(partial(drawn.plot, **which), png)
    elif dot:
        graphed: Graphed = in_role(Graphed, shown, "--dot", model)
        put(graphed.to_dot(**which))
    else:
        echo(shown, as_json, full=full)


@click.command(short_help="Score rows, explain the rarest, or measure a classifier.")
@click.argument("model", metavar="MODEL.json")
@click.argument("data")
@click.option(
    "--top", type=IntegerType(0), help="Number of rarest rows to explain (10, or 0 with --out)."
)
@click.option(
    "--out",
    metavar="FILE",
    help="Write the log density, or the prediction, of every row: Parquet if the name ends in "
    ".parquet or .pq, otherwise CSV.",
)
@click.option(
    "--target",
    metavar="NAME",
    help="Column of the labels. Default: its name when the model was learned.",
)
@click.option(
    "--weights",
    metavar="NAME",
    help="Column of weights: the number of rows that each row counts as.",
)
@click.option(
    "--by",
    metavar="NAME",
    help="Column whose values are groups: prints a classifier's accuracy, error rates and "
    "calibration in each.",
)
@with_decision
@BUDGET_OPTION
@UNKNOWN_OPTION
@with_reading(learns=False, labels=True)
@JSON_OPTION
def score(
    model: str,
    data: str,
    top: int | None,
    out: str | None,
    target: str | None,
    weights: str | None,
    by: str | None,
    threshold: float | None,
    class_costs: str | None,
    unknown: str | None,
    budget: float | None,
    as_json: bool,
) -> None:
    """Score the rows of DATA by the model in MODEL.json.

    A density gives each row its log density in nats. Missing cells are integrated out. For a
    classifier, DATA must also have the labels. The command prints accuracy, log loss in nats and,
    for budgeted classifiers, the cost of features. Use --target if the model does not know the name
    of the label column.
    """
    check_outputs({"--out": out}, {"MODEL.json": model, "DATA": data})
    fitted = load_model(model, unknown, budget)
    from bayescascade.cli.scoring import ScoredLabels, ScoredRows
    from bayescascade.cli.streaming import tell_blocks, write_blocks
    from bayescascade.model.roles import Classifier, Density

    scored: ScoredLabels | ScoredRows
    if isinstance(fitted, Classifier):
        if top is not None:
            in_role(Density, fitted, "--top", model)
        decision = decision_of(fitted, model, threshold, class_costs)
        scored = ScoredLabels(fitted, open_for(fitted, data), target, weights, decision, by)
    else:
        for option, value in (("--target", target), ("--by", by)):
            if value is not None:
                in_role(Classifier, fitted, option, model)
        top = (_DEFAULT_TOP if out is None else 0) if top is None else top
        density: Density = in_role(Density, fitted, "score", model)
        decision_of(fitted, model, threshold, class_costs)
        scored = ScoredRows(density, open_for(fitted, data), top, weights)
    blocks = tell_blocks(data, scored.blocks())
    if out is None:
        deque(blocks, maxlen=0)
    else:
        write_blocks(out, blocks)
    echo(scored, as_json)


@click.command(short_help="Classify rows, or predict a column.")
@click.argument("model", metavar="MODEL.json")
@click.argument("data")
@click.option(
    "--target", metavar="NAME", help="Column that a density predicts: any of its columns."
)
@click.option(
    "--how",
    type=click.Choice(["mode", "mean"]),
    help="Predict the most probable value (the default), or the mean of a column of numbers.",
)
@ROWS_OPTION
@click.option(
    "--explain", is_flag=True, help="Add the rule that applies, or the acquired features."
)
@with_decision
@BUDGET_OPTION
@UNKNOWN_OPTION
@with_reading(learns=False)
def predict(
    model: str,
    data: str,
    target: str | None,
    how: str | None,
    out: str | None,
    explain: bool,
    threshold: float | None,
    class_costs: str | None,
    unknown: str | None,
    budget: float | None,
) -> None:
    """Predict the rows of DATA by the model in MODEL.json.

    Prints CSV with a header. A classifier writes for each row its number, the predicted class and
    the probability of each class. A rule list with posterior draws adds a 95 % interval for the
    probability of the predicted class; a budgeted classifier adds the cost of the features
    acquired.

    A density predicts the column --target, given the other cells of each row, with the probability
    of each level. DATA need not have that column; missing cells are integrated out.
    """
    check_outputs({"--out": out}, {"MODEL.json": model, "DATA": data})
    fitted = load_model(model, unknown, budget)
    from bayescascade.cli.scoring import predicted_blocks, predicted_column_blocks
    from bayescascade.cli.streaming import write_rows
    from bayescascade.model.roles import Classifier, Density, Predictor

    decision = decision_of(fitted, model, threshold, class_costs)
    if isinstance(fitted, Density):
        if target is None:
            raise click.UsageError(
                "--target must name the column that a density is to predict, got none: "
                "score prints log densities"
            )
        if explain:
            in_role(Classifier, fitted, "--explain", model)
        blocks = predicted_column_blocks(fitted, open_for(fitted, data), target, how or "mode")
    else:
        predictor: Predictor = in_role(Predictor, fitted, "predict", model)
        for option, value in (("--target", target), ("--how", how)):
            if value is not None:
                in_role(Density, fitted, option, model)
        blocks = predicted_blocks(predictor, open_for(predictor, data), decision, explain=explain)
    write_rows(out, data, blocks)


@click.command(short_help="Draw rows.")
@click.argument("model", metavar="MODEL.json")
@click.option(
    "-n", "--rows", "n_rows", type=IntegerType(1), required=True, help="Number of rows to draw."
)
@click.option("--seed", type=IntegerType(0), help="Same seed, same rows.")
@click.option(
    "--out",
    metavar="FILE.csv",
    callback=without_dash,
    help="Write the rows to this file, not to standard output.",
)
def sample(model: str, n_rows: int, seed: int | None, out: str | None) -> None:
    """Draw rows from the density saved in MODEL.json, as CSV with a header."""
    check_outputs({"--out": out}, {"MODEL.json": model})
    write_texts(out, _drawn_rows(model, n_rows, seed))


def _drawn_rows(path: str, n_rows: int, seed: int | None) -> Iterator[str]:
    import numpy as np

    from bayescascade.model.record import load

    loaded = load(path)
    from bayescascade.model.roles import Density

    density: Density = in_role(Density, loaded, "sample", path)
    rng = np.random.default_rng(seed)
    start, size = 0, _FIRST_ROWS
    while start < n_rows:
        rows = density.sample(min(size, n_rows - start), random_state=rng)
        yield rows.to_csv(index=False, header=start == 0, lineterminator="\n")
        start, size = start + size, min(10 * size, _BLOCK_ROWS)


@click.command(short_help="Check how well chains explored the posterior.")
@click.argument("trace", metavar="TRACE.nc")
@click.option(
    "--plots", metavar="DIR", help="Write pictures of traces, sizes and ranks into this directory."
)
@JSON_OPTION
def diagnose(trace: str, plots: str | None, as_json: bool) -> None:
    """Check how well chains explored the posterior in TRACE.nc, which --trace wrote."""
    if plots is not None:
        Path(plots).mkdir(parents=True, exist_ok=True)
    from bayescascade.model.trace import read_trace

    found = read_trace(trace)
    if plots is not None:
        from bayescascade.model.pictures import plot_ranks, plot_sizes, plot_traces

        pictures = {"traces": plot_traces, "ranks": plot_ranks}
        if found.size is not None:
            pictures["sizes"] = plot_sizes
        for name, plot in pictures.items():
            save_figure(plot(found), Path(plots) / f"{name}.png")
    echo(found, as_json)
