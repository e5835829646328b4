"""``bayescascade causal``: which of two columns is the cause, with privacy if requested."""

from typing import Any

import click

from bayescascade.cli.declared import Models, option_name, option_of
from bayescascade.cli.learning import Task, TrainingData, learning, set_up
from bayescascade.cli.options import with_options
from bayescascade.cli.reading import with_reading
from bayescascade.methods.causal.parameters import AdditiveNoiseParameters, PrivateNoiseParameters

MODELS: Models = {"without": AdditiveNoiseParameters, "with --epsilon": PrivateNoiseParameters}
_ONLY_OTHER = ("decide",)
_ONLY_PRIVATE = ("delta", "x_bounds", "y_bounds", "protect", "publish")


@click.command(short_help="Say which of two columns is the cause.")
@click.argument("data")
@click.option("--x", metavar="NAME", required=True, help="First column of numbers.")
@click.option("--y", metavar="NAME", required=True, help="Second column of numbers.")
@with_options(option_of("score", MODELS), option_of("epsilon", {"": PrivateNoiseParameters}))
@with_options(*(option_of(name, MODELS) for name in (*_ONLY_OTHER, *_ONLY_PRIVATE)))
@with_reading(learns=False)
@with_options(option_of("random_state", MODELS))
@click.option("--out", metavar="FILE.json", help="Save the model. It contains scores and no rows.")
@learning
def causal(data: str, **options: Any) -> tuple[Task, TrainingData]:
    """Say which of two columns is the cause, by an additive noise model.

    It assumes that one causes the other and that nothing causes both. With --epsilon the result is
    differentially private, and the print may be published with its guarantee. Bounds of both
    columns must then be declared, and noise comes from the operating system. Run it once: each
    release of the same rows spends more of their privacy, and averaging several would remove the
    noise.
    """
    names = [options["x"], options["y"]]
    if names[0] == names[1]:
        raise click.UsageError(f"--x and --y must be two columns, got {names[0]} for both")
    is_private = options["epsilon"] is not None
    for name in _ONLY_OTHER if is_private else _ONLY_PRIVATE:
        if options[name] is not None:
            rule = "must not come with --epsilon" if is_private else "must come with --epsilon"
            raise click.UsageError(f"{option_name(MODELS, name)} {rule}, got {options[name]}")
    estimator = "PrivateAdditiveNoiseModel" if is_private else "AdditiveNoiseModel"
    declared = PrivateNoiseParameters if is_private else AdditiveNoiseParameters
    task = set_up(estimator, {"DATA": data}, options, declared)
    from bayescascade.cli.rows import open_rows, read_frame

    frame, _ = read_frame(open_rows(data), names, None)
    return task, TrainingData((frame[names[0]], frame[names[1]]))
