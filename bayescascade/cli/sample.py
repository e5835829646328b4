"""``bayescascade sample``: draw rows from a saved model."""

from collections.abc import Iterator

import click

from bayescascade.cli.loading import in_role, load_model
from bayescascade.cli.options import Integer
from bayescascade.cli.output import check_outputs, write_texts

__all__ = ["sample"]

_BLOCK_ROWS = 100_000


@click.command(short_help="Draw rows.")
@click.argument("model", metavar="MODEL.json")
@click.option("-n", "--rows", "n_rows", type=Integer(1), required=True, help="Rows to draw.")
@click.option("--seed", type=Integer(0), help="Same seed, same rows.")
@click.option("--out", metavar="FILE.csv", help="Write the rows here, not to stdout.")
def sample(model: str, n_rows: int, seed: int | None, out: str | None) -> None:
    """Draw rows from the density saved in MODEL.json, as CSV with a header."""
    check_outputs({"--out": out}, {"MODEL.json": model})
    write_texts(out, _csv_blocks(model, n_rows, seed))


def _csv_blocks(path: str, n_rows: int, seed: int | None) -> Iterator[str]:
    import numpy as np

    from bayescascade.model.roles import Density

    density: Density = in_role(Density, load_model(path), "sample", path)
    rng = np.random.default_rng(seed)
    for start in range(0, n_rows, _BLOCK_ROWS):
        rows = density.sample(min(_BLOCK_ROWS, n_rows - start), random_state=rng)
        yield rows.to_csv(index=False, header=start == 0, lineterminator="\n")
