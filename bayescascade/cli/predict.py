"""``bayescascade predict``: the classes of the rows of a file, by a saved classifier."""

import csv
import io
from collections.abc import Iterator
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bayescascade.cli.loading import load_classifier
from bayescascade.cli.output import check_outputs
from bayescascade.cli.rows import open_rows, read_blocks, read_frame
from bayescascade.cli.score_labels import cost_cells, probability_headers

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from bayescascade.data.sources import Source
    from bayescascade.methods.forests.base import BudgetedClassifier
    from bayescascade.methods.rules.classifier import RuleListClassifier

__all__ = ["predict"]

_LEVEL = 0.95


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
    classifier = load_classifier(model, "predict")
    if classifier.learned_name == "forest":
        blocks = _forest_blocks(classifier, open_rows(data), explain=explain)
    else:
        blocks = _csv_blocks(classifier, open_rows(data), explain=explain)
    if out is None:
        for text in blocks:
            click.echo(text, nl=False)
        return
    from bayescascade.base.files import replaced_file

    with (
        replaced_file(out) as temporary,
        Path(temporary).open("w", encoding="utf-8", newline="") as file,
    ):
        file.writelines(blocks)


def _csv_blocks(model: "RuleListClassifier", source: "Source", *, explain: bool) -> Iterator[str]:
    rules = model.rules_
    names = rules.class_texts
    header = ["row", "predicted", *probability_headers(names), "low_95", "high_95"]
    words = [rules.part_words(part) for part in range(rules.n_rules + 1)]
    for first_row, cells, _ in read_blocks(source, model.schema_.names, None):
        codes = model.encode(cells, first_row=first_row)
        columns = _columns(model, codes, names)
        if explain:
            columns.append([words[part] for part in rules.part_of_codes(codes).tolist()])
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        if first_row == 1:
            writer.writerow([*header, *(["rule"] if explain else [])])
        numbers = range(first_row, first_row + len(cells))
        writer.writerows(zip(numbers, *columns, strict=True))
        yield text.getvalue()


def _forest_blocks(
    model: "BudgetedClassifier", source: "Source", *, explain: bool
) -> Iterator[str]:
    from bayescascade.data.levels import level_text

    names = [level_text(label) for label in model.classes_.tolist()]
    features = model.feature_texts
    frame, _ = read_frame(source, features, None)
    probabilities = model.predict_proba(frame)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    header = ["row", "predicted", *probability_headers(names), "cost"]
    writer.writerow([*header, *(["acquired"] if explain else [])])
    columns = [
        [names[best] for best in probabilities.argmax(axis=1).tolist()],
        *probabilities.T.tolist(),
        cost_cells(model.acquisition_cost(frame)),
    ]
    if explain:
        columns.append(_acquired(model, frame))
    writer.writerows(zip(range(1, len(frame) + 1), *columns, strict=True))
    yield text.getvalue()


def _acquired(model: "BudgetedClassifier", frame: "pd.DataFrame") -> list[str]:
    """Return the features acquired for each row, in the order of the columns."""
    import numpy as np

    used = np.asarray(model.features_used(frame)).tolist()
    features = model.feature_texts
    return [", ".join(compress(features, row)) for row in used]


def _columns(
    model: "RuleListClassifier", codes: "NDArray[np.int32]", names: list[str]
) -> list[list[object]]:
    """Return the columns of the CSV after the row's number: class, probabilities, interval."""
    probabilities = model.predict_proba_codes(codes)
    best = probabilities.argmax(axis=1)
    intervals = model.credible_interval_codes(codes, _LEVEL)[range(len(best)), best]
    return [
        [names[c] for c in best.tolist()],
        *probabilities.T.tolist(),
        *intervals.T.tolist(),
    ]
