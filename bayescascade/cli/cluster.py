"""The option ``--cluster``: a command sends joblib's tasks to a Dask cluster."""

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar

import click

from bayescascade import __version__

Result = TypeVar("Result")

PATIENCE = 10.0  # maximum seconds until a cluster answers


def with_cluster(command: Callable[..., Result]) -> Callable[..., Result]:
    """Give a command the option ``--cluster``, and run it there."""

    @click.option(
        "--cluster",
        metavar="ADDRESS",
        help=(
            "Use the workers of a Dask cluster; the address of its scheduler, such as "
            "tcp://host:8786."
        ),
    )
    @wraps(command)
    def run(*arguments: Any, cluster: str | None, **options: Any) -> Result:
        if cluster is None:
            return command(*arguments, **options)
        if options.get("n_jobs") == 1:
            raise click.UsageError("--jobs must be other than 1 with --cluster, got 1")
        with _joblib_on(cluster):
            return command(*arguments, **options)

    return run


@contextmanager
def _joblib_on(address: str) -> Iterator[None]:
    """Make joblib use a cluster while the block runs.

    Raises click.ClickException if distributed is not installed, the cluster does not answer, its
    workers do not have this version, or it is lost while it is used.
    """
    try:
        from distributed import Client, KilledWorker
        from distributed.comm.core import CommClosedError
    except ImportError:
        raise click.ClickException(
            "--cluster needs distributed, which is not installed: pip install 'bayescascade[dask]'"
        ) from None
    from joblib import parallel_config

    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # the error is raised below
    try:
        client = Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError, TypeError):
        raise click.ClickException(
            f"--cluster must be the address of a Dask scheduler, got {address}, "
            f"where none answers within {PATIENCE:.0f} seconds"
        ) from None
    with client:
        _check_workers(client, address)
        try:
            with parallel_config("dask", client=client):
                yield
        except (KilledWorker, CommClosedError, CancelledError, TimeoutError) as error:
            # a running scheduler cancels calls whose data were lost with their workers,
            # or the calls find no worker in time
            if isinstance(error, KilledWorker) or client.status == "running":
                raise click.ClickException(
                    f"the cluster at {address} lost all workers that tried a part of the work: "
                    "they may need more memory"
                ) from None
            raise click.ClickException(
                f"the cluster at {address} stopped answering; use --resume to continue from "
                "--checkpoint"
            ) from None


def _check_workers(client: Any, address: str) -> None:
    """Raise click.ClickException if there are no workers, or if they have another version."""
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError:
        raise click.ClickException(
            f"the cluster at {address} must have a worker, got none within {PATIENCE:.0f} seconds"
        ) from None
    for found in client.run(_version, on_error="return").values():
        if found != __version__:
            raise click.ClickException(
                f"the workers of {address} must have bayescascade {__version__}, "
                f"got {found if isinstance(found, str) else 'one without it'}"
            )


def _version() -> str:
    return __version__
