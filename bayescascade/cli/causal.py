"""``bayescascade causal``: which of two columns is the cause, published privately if asked for."""

from typing import Any

import click

from bayescascade.cli.options import Bounds, Integer, Real
from bayescascade.cli.output import check_outputs, echo_json, echo_page
from bayescascade.cli.reading import with_reading

_ONLY_PRIVATE = ("delta", "protect", "publish", "x_bounds", "y_bounds")


@click.command(short_help="Find which of two columns is the cause, privately if asked for.")
@click.argument("data")
@click.option("--x", metavar="NAME", required=True, help="A column of numbers.")
@click.option("--y", metavar="NAME", required=True, help="Another.")
@click.option(
    "--score",
    type=click.Choice(["hsic", "spearman", "kendall", "iqr", "variance"]),
    default="hsic",
    show_default=True,
    help="How the dependence of residuals on the cause is measured.",
)
@click.option("--epsilon", type=Real(above=0.0), help="Publish privately, with this budget.")
@click.option(
    "--delta", type=Real(minimum=0.0, below=1.0), help="Of the budget, where stability is tested."
)
@click.option("--x-bounds", type=Bounds(), help="Of column x, known from elsewhere.")
@click.option("--y-bounds", type=Bounds(), help="Of column y.")
@click.option(
    "--protect",
    type=click.Choice(["both", "test", "train"]),
    help="Whose rows are protected: all (default), those that test, or are learned from.",
)
@click.option(
    "--publish",
    type=click.Choice(["scores", "direction"]),
    help="Both scores with noise (default), or the direction alone.",
)
@with_reading(learns=False)
@click.option("--seed", type=Integer(0), help="Deals the rows. No seed is taken for noise.")
@click.option("--out", metavar="FILE.json", help="Save the model: scores, and no rows.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON at full precision.")
def causal(data: str, **options: Any) -> None:
    """Say which of two columns is the cause, by an additive noise model.

    It assumes that one causes the other and that nothing causes both. The file is a .csv, .csv.gz
    or .parquet. With --epsilon the result is differentially private: bounds of both columns have to
    be declared, noise comes from the operating system's randomness, and what is printed may be
    published with its guarantee. Run it once: each release of the same rows spends more of their
    privacy, and the mean of several would take their noise away.
    """
    out = options.pop("out")
    as_json, seed = options.pop("as_json"), options.pop("seed")
    check_outputs({"--out": out}, {"DATA": data})
    from bayescascade.cli.rows import open_rows, read_frame
    from bayescascade.methods.causal.estimators import AdditiveNoiseModel
    from bayescascade.methods.causal.private import PrivateAdditiveNoiseModel

    names = [options.pop("x"), options.pop("y")]
    if names[0] == names[1]:
        raise click.UsageError(f"--x and --y must be two columns, got {names[0]} for both")
    given = {name: value for name, value in options.items() if value is not None}
    if "epsilon" in given:
        model: Any = PrivateAdditiveNoiseModel(**given, random_state=seed)
    else:
        for name in _ONLY_PRIVATE:
            if name in given:
                option = "--" + name.replace("_", "-")
                raise click.UsageError(f"{option} must come with --epsilon, got none")
        model = AdditiveNoiseModel(**given, random_state=seed)
    frame, _ = read_frame(open_rows(data), names, None)
    model.fit(frame[names[0]], frame[names[1]])
    if out is not None:
        model.save(out)
    if as_json:
        echo_json(model.to_dict())
    else:
        echo_page(model.page())
