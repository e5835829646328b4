"""``bayescascade show``: print or draw a saved model, or its density given evidence."""

from typing import Any

import click

from bayescascade.cli.loading import wrong_model
from bayescascade.cli.options import parse_given
from bayescascade.cli.output import check_outputs, echo_json, echo_page

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
    shown: Any = fitted
    if given:
        columns = fitted.schema_.columns
        continuous = [column.name for column in columns if column.kind == "continuous"]
        shown = fitted.learned_.condition(parse_given(given, continuous))
    if png is not None or dot:
        from bayescascade.methods.cascades.tree_picture import draw_tree, tree_dot

        tree = shown if given else fitted.learned_
        if png is not None:
            draw_tree(tree, png)
        else:
            click.echo(tree_dot(tree), nl=False)
    elif as_json:
        echo_json(shown.record())
    else:
        echo_page(shown.page())
