"""``bayescascade show``: print or draw a saved model, or its density given evidence."""

from typing import Any

import click

from bayescascade.cli.loading import in_role, load_model
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
    fitted = load_model(model)
    from bayescascade.model.roles import Conditional, Drawn

    shown: Any = fitted
    if given:
        density: Conditional = in_role(Conditional, fitted, "--given", model)
        columns = density.schema_.columns
        continuous = [column.name for column in columns if column.kind == "continuous"]
        shown = density.condition(parse_given(given, continuous))
    if dot or png is not None:
        learned = shown if given else getattr(fitted, "learned_", None)
        drawn: Drawn = in_role(Drawn, learned, "--dot" if dot else "--png", model)
        if png is not None:
            drawn.draw(png)
        else:
            click.echo(drawn.dot(), nl=False)
    elif as_json:
        echo_json(shown.record())
    else:
        echo_page(shown.page())
