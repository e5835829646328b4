"""``bayescascade sensors``: gated sensors within budgets, measured on held-out rows."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from bayescascade.cli.budget import FoundWithin, budgets_of
from bayescascade.cli.declared import Models, option_of, parameters_of
from bayescascade.cli.file_types import INPUT
from bayescascade.cli.learning import Task, TrainingData, learning, outputs_of
from bayescascade.cli.options import BUDGETS_OPTION, CHOICE_OPTIONS, TARGET_OPTION, with_options
from bayescascade.cli.reading import with_reading
from bayescascade.cli.splitting import SPLIT_SEED, test_share_option
from bayescascade.methods.sensors.parameters import SensorClassifierParameters

if TYPE_CHECKING:
    from bayescascade.costs.feature_costs import FeatureCosts

MODELS: Models = {"": SensorClassifierParameters}
_CHOSEN = ("features", "n_steps", "missing", "unknown", "effort", "time_limit")


@click.command(short_help="Learn when each of several sensors must send.")
@click.argument("data")
@TARGET_OPTION
@click.option(
    "--sensors",
    type=INPUT,
    metavar="FILE.csv",
    required=True,
    help="A CSV file with the columns name, cost and group. In the line of a column of "
    "DATA, group is its sensor. A line may also have the name of a sensor and the cost of sending "
    "(default 1).",
)
@BUDGETS_OPTION
@test_share_option("Share of the rows for the test; a quarter of the others chooses settings.")
@with_options(*(option_of(name, MODELS) for name in _CHOSEN), *CHOICE_OPTIONS)
@with_reading(learns=True, labels=True)
@with_options(SPLIT_SEED)
@click.option("--out", metavar="FILE.json", help="Save the classifiers of all budgets.")
@click.option("--plot", metavar="FILE", help="Draw error against cost: .png, .svg or .pdf.")
@learning
def sensors(data: str, **options: Any) -> tuple[Task, TrainingData]:
    """Learn sensors that send only if their own readings show that they are needed.

    DATA has the labels in the column --target. Each sensor of --sensors decides from its own
    columns whether it sends, which has a cost. The cost and error of each budget's classifier on
    held-out rows are printed. Ctrl-C ends it early; finished classifiers are printed.
    """
    budgets = budgets_of(options["budgets"])
    task = outputs_of(options, {"DATA": data, "--sensors": options["sensors"]})
    from bayescascade.cli.rows import open_rows
    from bayescascade.cli.splitting import read_split
    from bayescascade.costs.feature_costs import FeatureCosts
    from bayescascade.methods.sensors.estimators import GatedSensorsClassifier

    share = options["test_share"]
    parts = read_split(open_rows(data), options, (1 - share, share), "sensors")
    found = FeatureCosts.read_csv(options["sensors"])
    columns, costs = _sensors(found, options["sensors"])
    given = parameters_of({name: options[name] for name in _CHOSEN}, SensorClassifierParameters)
    model = GatedSensorsClassifier(sensors=columns, costs=costs, random_state=parts.seed, **given)
    learn = FoundSensors(parts, {"target": options["target"]}).learn
    task = task._replace(model=model)
    return task, TrainingData(
        (model, budgets), fit=learn, figure=FoundWithin.figure, ended=lambda found: found.ended
    )


@dataclass
class FoundSensors(FoundWithin):
    """The sensors of the budgets, with their costs and errors on the test rows."""

    @property
    def _chooses_text(self) -> str:
        return "settings are chosen on a quarter of the training rows"


def _sensors(found: "FeatureCosts", path: str) -> tuple[dict[str, list[Any]], dict[str, float]]:
    """Return columns and costs of sensors; DataError without sensors, or if a column has a cost."""
    from bayescascade.base.errors import DataError

    columns = {name: list(members) for name, members in found.groups.items()}
    if not columns:
        raise DataError(f"{path}: there must be sensors in the column group, got none")
    costs = {}
    for key, cost in found.costs.items():
        if key not in columns:
            raise DataError(f"{path}: costs must be of sensors, not of the column {key!r}")
        costs[str(key)] = cost
    return columns, costs
