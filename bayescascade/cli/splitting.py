"""Rows with labels, split into training rows and test rows."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from bayescascade.cli.options import IntegerType, RealType, listed

if TYPE_CHECKING:
    from bayescascade.data.sources import Source
    from bayescascade.data.splitting import SplitRows

SPLIT_SEED = click.option(
    "--seed", type=IntegerType(0), help="Same seed, same rows in each part, same result."
)
_SEED_BITS = 32  # the limit of scikit-learn


def test_share_option(about: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the option ``--test-share``."""
    share = RealType(above=0.0, below=0.5)
    return click.option("--test-share", type=share, default=0.25, show_default=True, help=about)


def read_split(
    source: "Source", options: Mapping[str, Any], shares: Sequence[float], owner: str
) -> "SplitRows":
    """Read a file and split its rows into parts with these shares, stratified by class.

    `options` are the command's: target, columns, drop, seed (None: one at random), test_share;
    `owner` is its name. Raises DataError as `read_labeled`, or if labels are no classes or there is
    only one; click.UsageError if a part would be empty.
    """
    import numpy as np

    from bayescascade.cli.rows import read_labeled
    from bayescascade.data.labels import check_labels, find_classes
    from bayescascade.data.splitting import SplitRows, split_by_class

    target = options["target"]
    X, y, _ = read_labeled(
        source, target, columns=listed(options["columns"]), drop=listed(options["drop"])
    )
    labels = check_labels(y, f'column "{target}"', owner=owner)
    find_classes(labels, f'column "{target}"')  # refuses a single class
    seed = secrets.randbits(_SEED_BITS) if options["seed"] is None else options["seed"]
    part_of = split_by_class(labels, shares, np.random.default_rng(seed))
    chosen = [part_of == part for part in range(len(shares))]
    if not all(rows.any() for rows in chosen):
        raise click.UsageError(
            "--test-share must leave rows for each part, "
            f"got {options['test_share']:g} of {len(X):,} rows"
        )
    return SplitRows(
        source.label,
        tuple(X[rows].reset_index(drop=True) for rows in chosen),
        tuple(labels[rows] for rows in chosen),
        seed,
    )
