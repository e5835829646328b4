"""``bayescascade predict``: what a saved model says of each row of a file."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from bayescascade.cli.loading import in_role, load_model
from bayescascade.cli.output import check_outputs, csv_text, write_texts
from bayescascade.cli.rows import open_rows, read_for
from bayescascade.cli.score_labels import told_columns

if TYPE_CHECKING:
    from bayescascade.data.sources import Source
    from bayescascade.model.roles import Predictor

__all__ = ["predict"]


@click.command(short_help="Classify rows.")
@click.argument("model", metavar="MODEL.json")
@click.argument("data")
@click.option("--out", metavar="FILE.csv", help="Write the rows here, not to stdout.")
@click.option("--explain", is_flag=True, help="Add the rule that fires, or the features acquired.")
def predict(model: str, data: str, out: str | None, explain: bool) -> None:
    """Classify the rows of DATA (.csv, .csv.gz, .parquet) by the rules or forest in MODEL.json.

    Prints CSV with a header: for each row its number, the predicted class, the probability of
    every class, and, of a rule list, an interval that holds that of the predicted one with 95 %
    probability; of a budgeted forest, what the features cost that it acquires.
    """
    check_outputs({"--out": out}, {"MODEL.json": model, "DATA": data})
    from bayescascade.model.roles import Predictor

    hint = ": score tells log densities"
    predictor: Predictor = in_role(Predictor, load_model(model), "predict", model, hint)
    write_texts(out, _csv_blocks(predictor, open_rows(data), explain=explain))


def _csv_blocks(model: "Predictor", source: "Source", *, explain: bool) -> Iterator[str]:
    for first_row, cells, _ in read_for(model, source, [], None):
        predicted = model.predict_block(cells, first_row, intervals=True, explain=explain)
        columns = {**told_columns(model, predicted), **predicted.told}
        lines = zip(range(first_row, first_row + len(cells)), *columns.values(), strict=True)
        yield csv_text([*([("row", *columns)] if first_row == 1 else []), *lines])
