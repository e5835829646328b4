"""``bayescascade score``: log densities of the rows of a file, and its rarest rows."""

import math
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import click

from bayescascade.cli.options import Integer
from bayescascade.cli.output import check_outputs, echo_json, layout_options
from bayescascade.cli.rows import open_rows, read_blocks

if TYPE_CHECKING:
    from typing import TypeAlias

    import numpy as np
    from numpy.typing import NDArray

    from bayescascade.cascades.base import Cascade
    from bayescascade.report.rarest import RarestRows
    from bayescascade.sources import Source

    Floats: TypeAlias = NDArray[np.float64]

__all__ = ["score"]

_DEFAULT_TOP = 10


@click.command(short_help="Score rows; the rarest, and why.")
@click.argument("model", metavar="MODEL.json")
@click.argument("data")
@click.option("--top", type=Integer(0), help="Rarest rows to explain (10, or 0 with --out).")
@click.option("--out", metavar="FILE.csv", help="Write the log density of every row.")
@click.option("--weights", metavar="NAME", help="Column of how many rows each row stands for.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON at full precision.")
def score(
    model: str, data: str, top: int | None, out: str | None, weights: str | None, as_json: bool
) -> None:
    """Score the rows of DATA (.csv, .csv.gz, .parquet) by the model in MODEL.json.

    A row's log density is in nats; empty cells are integrated out.
    """
    check_outputs({"--out": out}, {"MODEL.json": model, "DATA": data})
    if top is None:
        top = _DEFAULT_TOP if out is None else 0
    from bayescascade.files import replaced_file
    from bayescascade.models import load
    from bayescascade.report.rarest import RarestRows

    fitted = load(model)
    source = open_rows(data)
    rarest = RarestRows(fitted.tree_, top)
    totals = _Totals()
    with ExitStack() as stack:
        file = None
        if out is not None:
            temporary = stack.enter_context(replaced_file(out))
            file = stack.enter_context(temporary.open("w", encoding="utf-8"))
            file.write("row,log_density\n")
        for first_row, scores, row_weights in _scored(fitted, source, weights, rarest):
            totals.add(scores, row_weights)
            if file is not None:
                values = scores.tolist()
                file.writelines(f"{n},{value!r}\n" for n, value in enumerate(values, first_row))
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
    model: "Cascade", source: "Source", weights: str | None, rarest: "RarestRows"
) -> "Iterator[tuple[int, Floats, Floats | None]]":
    """Yield each block's first row, log densities and weights, and show it to `rarest`."""
    density, schema = model.tree_, model.schema_
    for first_row, cells, row_weights in read_blocks(source, schema.names, weights):
        codes = schema.encode(cells, first_row=first_row)
        is_map = model.predictive == "map"
        scores = density.score_codes(codes) if is_map else model.score_samples(cells)
        rarest.add(cells, codes, scores, first_row, row_weights)
        yield first_row, scores, row_weights


def _record(label: str, totals: _Totals, rarest: "RarestRows") -> Any:
    from bayescascade.report.records import json_ready

    return json_ready(
        {
            "source": label,
            "rows": totals.n_rows,
            "weight": totals.weight,
            "log_density": {"sum": totals.log_density, "mean": totals.mean},
            "rarest": [
                {**asdict(row), "explanation": rarest.density.explain(row.values).splitlines()}
                for row in rarest.rows
            ],
        }
    )


def _print(label: str, totals: _Totals, rarest: "RarestRows") -> None:
    from bayescascade.report.layout import Ink, flow
    from bayescascade.report.numbers import count_texts, nats_text
    from bayescascade.report.rarest import rare_row_lines

    options = layout_options()
    width, ink = options["width"], Ink(options["color"])
    pieces = [label, "1 row" if totals.n_rows == 1 else f"{totals.n_rows:,} rows"]
    if totals.weight != totals.n_rows:
        pieces.append(f"weight {count_texts([totals.weight])[0]}")
    pieces.append(
        f"log density: mean {nats_text(totals.mean)}, sum {nats_text(totals.log_density)} nats"
    )
    lines = flow(pieces, width, 2)
    for row in rarest.rows:
        lines += ["", *rare_row_lines(rarest.density, row, width, ink)]
    click.echo("\n".join(lines))
