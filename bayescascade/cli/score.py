"""``bayescascade score``: log densities of the rows of a file, and its rarest rows.

`score_labels` does what there is to do for a classifier.
"""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import click

from bayescascade.cli.loading import in_role, load_model
from bayescascade.cli.options import Integer
from bayescascade.cli.output import check_outputs, echo_json, echo_page, write_texts
from bayescascade.cli.rows import open_rows, read_blocks
from bayescascade.cli.score_labels import score_labels

if TYPE_CHECKING:
    from typing import TypeAlias

    import numpy as np
    from numpy.typing import NDArray

    from bayescascade.data.sources import Source
    from bayescascade.model.rarest import RarestRows
    from bayescascade.model.roles import Density

    Floats: TypeAlias = NDArray[np.float64]

__all__ = ["score"]

_DEFAULT_TOP = 10


@click.command(short_help="Score rows: the rarest, and why; or how well labels are predicted.")
@click.argument("model", metavar="MODEL.json")
@click.argument("data")
@click.option("--top", type=Integer(0), help="Rarest rows to explain (10, or 0 with --out).")
@click.option(
    "--out", metavar="FILE.csv", help="Write the log density, or the prediction, of every row."
)
@click.option(
    "--target",
    metavar="NAME",
    help="Column of the labels (by default that which rules were learned from).",
)
@click.option("--weights", metavar="NAME", help="Column of how many rows each row stands for.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON at full precision.")
def score(
    model: str,
    data: str,
    top: int | None,
    out: str | None,
    target: str | None,
    weights: str | None,
    as_json: bool,
) -> None:
    """Score the rows of DATA (.csv, .csv.gz, .parquet) by the model in MODEL.json.

    Of a tree or a density rule list, a row's log density is in nats; empty cells are integrated
    out. Of a classifier, DATA must have the labels too: the log loss is in nats. Of a budgeted
    forest, --target must name them, and what its features cost is told.
    """
    check_outputs({"--out": out}, {"MODEL.json": model, "DATA": data})
    fitted = load_model(model)
    from bayescascade.model.roles import Classifier, Density

    if isinstance(fitted, Classifier):
        if top is not None:
            in_role(Density, fitted, "--top", model)
        score_labels(fitted, data, target=target, out=out, weights=weights, as_json=as_json)
        return
    if target is not None:
        in_role(Classifier, fitted, "--target", model)
    if top is None:
        top = _DEFAULT_TOP if out is None else 0
    density: Density = in_role(Density, fitted, "score", model)
    _score_densities(density, data, top=top, out=out, weights=weights, as_json=as_json)


def _score_densities(
    model: "Density", data: str, *, top: int, out: str | None, weights: str | None, as_json: bool
) -> None:
    from bayescascade.model.rarest import RarestRows

    source = open_rows(data)
    rarest, totals = RarestRows(model.learned_, top), _Totals()
    write_texts(out, _scored(model, source, weights, rarest, totals, is_told=out is not None))
    if as_json:
        echo_json(_record(source.label, totals, rarest))
    else:
        _print(source.label, totals, rarest)


@dataclass
class _Totals:
    """Sums over the rows."""

    n_rows: int = 0
    weight: float = 0.0
    log_density: float = 0.0  # nats

    def add(self, scores: "Floats", weights: "Floats | None") -> None:
        """Add a block; a row of weight zero counts nothing, whatever its density."""
        self.n_rows += len(scores)
        if weights is None:
            self.weight += len(scores)
            self.log_density += float(scores.sum())
        else:
            counts = weights > 0
            self.weight += float(weights.sum())
            self.log_density += float((weights[counts] * scores[counts]).sum())

    @property
    def mean(self) -> float:
        """Log density of a row on average, nats; NaN without weight."""
        return self.log_density / self.weight if self.weight else math.nan


def _scored(
    model: "Density",
    source: "Source",
    weights: str | None,
    rarest: "RarestRows",
    totals: _Totals,
    *,
    is_told: bool,
) -> Iterator[str]:
    """Add each block to `rarest` and `totals`, and yield its lines of CSV if these are told."""
    if is_told:
        yield "row,log_density\n"
    schema = model.schema_
    for first_row, cells, row_weights in read_blocks(source, schema.names, weights):
        codes = schema.encode(cells, first_row=first_row)
        scores = model.score_codes(codes)
        rarest.add(cells, codes, scores, first_row, row_weights)
        totals.add(scores, row_weights)
        if is_told:
            numbered = enumerate(scores.tolist(), first_row)
            yield "".join(f"{row},{value!r}\n" for row, value in numbered)


def _record(label: str, totals: _Totals, rarest: "RarestRows") -> Any:
    return {
        "source": label,
        "rows": totals.n_rows,
        "weight": totals.weight,
        "log_density": {"sum": totals.log_density, "mean": totals.mean},
        "rarest": [
            {**asdict(row), "explanation": rarest.density.explain(row.values).splitlines()}
            for row in rarest.rows
        ],
    }


def _print(label: str, totals: _Totals, rarest: "RarestRows") -> None:
    from bayescascade.model.rarest import rare_row_page
    from bayescascade.report.numbers import count_texts, nats_text
    from bayescascade.report.page import BLANK, Page, Pieces, counted

    pieces = [label, counted(totals.n_rows, "row")]
    if totals.weight != totals.n_rows:
        pieces.append(f"weight {count_texts([totals.weight])[0]}")
    pieces.append(
        f"log density: mean {nats_text(totals.mean)}, sum {nats_text(totals.log_density)} nats"
    )
    page: Page = (Pieces(pieces),)
    for row in rarest.rows:
        page += (BLANK, *rare_row_page(rarest.density, row))
    echo_page(page)
