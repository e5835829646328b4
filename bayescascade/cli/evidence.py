"""``bayescascade evidence``: log evidences of models and parameters, without cross-validation."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from bayescascade.cli.cluster import with_cluster
from bayescascade.cli.declared import Models, option_of, parameters_of
from bayescascade.cli.learning import Task, TrainingData, learning, outputs_of
from bayescascade.cli.options import COLUMN_OPTIONS, split_commas, with_options
from bayescascade.cli.output import interrupted
from bayescascade.cli.reading import with_reading
from bayescascade.methods.density.trees.parameters import EVIDENCE_MODELS
from bayescascade.model.parameters import MemoryParameters

if TYPE_CHECKING:
    from bayescascade.methods.density.trees.evidence_grid import EvidenceGrid

LIMITS: Models = {"": MemoryParameters}
_ENDED = "only finished models are listed"


@click.command(short_help="Compare models and parameters by their evidence.")
@click.argument("data")
@click.option(
    "--model",
    "models",
    default=",".join(EVIDENCE_MODELS),
    show_default=True,
    metavar="NAME,...",
    help=f"The models to compare: {', '.join(EVIDENCE_MODELS)}.",
)
@click.option(
    "--grid",
    multiple=True,
    metavar="NAME=VALUE,...",
    help="Values of a parameter, such as expected_leaves=2,5,8. Several --grid options give all "
    "combinations.",
)
@with_options(option_of("memory_limit", LIMITS), *COLUMN_OPTIONS)
@with_reading(learns=True)
@with_cluster
@learning
def evidence(data: str, **options: Any) -> tuple[Task, TrainingData]:
    """Print the log evidence of models for the table DATA.

    The evidence is the probability of the rows under a model, averaged over all trees by their
    prior. Higher is better. A difference of two log evidences is a log Bayes factor; 3 nats make
    one model 20 times as probable as the other. Combinations that exist in no model are listed and
    left out. Ctrl-C ends it early; finished models are printed.
    """
    grid = parse_grid(options["grid"])
    task = outputs_of(options, {})
    from bayescascade.cli.rows import read_table
    from bayescascade.methods.density.trees.evidence_grid import evidence as evidence_of

    table = read_table(data, **task.declared)
    limits = parameters_of(options, MemoryParameters)

    def learn() -> "EvidenceGrid":
        found = evidence_of(table, models=split_commas(options["models"]), grid=grid, **limits)
        too_large = [point.needed for point in found if point.needed]
        if too_large and all(point.log_evidence is None for point in found):
            limit = limits.get("memory_limit", MemoryParameters.memory_limit.default)
            raise click.UsageError(
                f"--memory-limit must be large enough for one of the models, got {limit:g}: "
                f"{too_large[0]}"
            )
        if found.interrupted and not found:
            interrupted(_ENDED)
        return found

    return task, TrainingData(
        (), table.notes, fit=learn, ended=lambda f: _ENDED if f.interrupted else ""
    )


def parse_grid(texts: Sequence[str]) -> Mapping[str, list[Any]]:
    """Return values by parameter from texts such as "expected_leaves=2,5,8" or "leaf=uniform".

    Values are integers or real numbers, None for "none" or "all", and otherwise words.
    """
    grid: dict[str, list[Any]] = {}
    for text in texts:
        name, sign, values = text.partition("=")
        name = name.strip().replace("-", "_")
        if not sign or not values:
            raise click.UsageError(f"--grid must be NAME=VALUE,VALUE,..., got {text!r}")
        if name in grid:
            raise click.UsageError(f"--grid must name {name} once, got {text!r}")
        grid[name] = [_value(value.strip()) for value in split_commas(values)]
    return grid


def _value(text: str) -> Any:
    if text in ("none", "all"):
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
