"""``bayescascade show``: print or draw a saved model, or its density given evidence."""

from typing import Any

import click

from bayescascade.cli.loading import wrong_model
from bayescascade.cli.options import parse_given
from bayescascade.cli.output import check_outputs, echo_json, layout_options

__all__ = ["show"]


@click.command(short_help="Print or draw a saved model.")
@click.argument("model", metavar="MODEL.json")
@click.option(
    "--given",
    multiple=True,
    metavar="NAME=LEVEL,...",
    help="Show the density given this: sex=male, class=1st,2nd, income=0,10 (from edge to edge).",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON at full precision.")
@click.option("--dot", is_flag=True, help="Print Graphviz source.")
@click.option("--png", metavar="FILE.png", help="Draw the tree into a file.")
def show(model: str, given: tuple[str, ...], as_json: bool, dot: bool, png: str | None) -> None:
    """Print the model saved in MODEL.json."""
    if as_json + dot + (png is not None) > 1:
        raise click.UsageError("--json, --dot and --png exclude each other")
    check_outputs({"--png": png}, {"MODEL.json": model})
    from bayescascade.model.registry import load

    fitted = load(model)
    if given and fitted.is_classifier:
        raise wrong_model("--given needs a density", model, fitted)
    if (dot or png is not None) and fitted.learned_name != "tree":
        raise wrong_model(f"{'--dot' if dot else '--png'} needs a tree", model, fitted)
    learned: Any = None if fitted.learned_name == "forest" else fitted.learned_
    if given:
        columns = fitted.schema_.columns
        continuous = [column.name for column in columns if column.kind == "continuous"]
        learned = learned.condition(parse_given(given, continuous))
    if png is not None or dot:
        from bayescascade.methods.cascades.tree_picture import draw_tree, tree_dot

        if png is not None:
            draw_tree(learned, png)
        else:
            click.echo(tree_dot(learned), nl=False)
    elif as_json:
        _echo_record(fitted, learned if given else None)
    else:
        _echo_text(fitted, learned if given else None)


def _echo_record(model: Any, learned: Any) -> None:
    """Print a model, or what it learned given evidence, as JSON."""
    if model.learned_name == "forest":
        echo_json(model.to_record())
        return
    from bayescascade.model.records import learned_record, model_record

    echo_json(model_record(model) if learned is None else learned_record(learned))


def _echo_text(model: Any, learned: Any) -> None:
    options = layout_options()
    if model.learned_name == "forest":
        from bayescascade.methods.forests.page import budgeted_text

        click.echo(budgeted_text(model, **options))
        return
    from bayescascade.model.page import learned_text, model_text

    text = model_text(model, **options) if learned is None else learned_text(learned, **options)
    click.echo(text)
