"""Commands made from declarations: from a data file with labels to a printed and saved model."""

from typing import Any

import click

from bayescascade.base.parameters import Label
from bayescascade.cli.declared import Models, check_chosen, option_of, words_of
from bayescascade.cli.learning import FOLDS_OPTION, Task, TrainingData, learning, on_folds, set_up
from bayescascade.cli.options import CHOICE_OPTIONS, SAVE_OPTION, TARGET_OPTION, with_options
from bayescascade.cli.reading import with_reading
from bayescascade.model.listed import ListedCommand


def command_of(listed: ListedCommand) -> click.Command:
    """Return the command of a declaration."""
    learners = {each.name: each for each in listed.learners}
    models: Models = {name: each.parameters for name, each in learners.items()}
    default = next(iter(learners))

    def command(data: str, **options: Any) -> tuple[Task, TrainingData]:
        learner, n_folds = learners[options.pop("method", default)], options.pop("n_folds")
        check_chosen(models, learner.name, options, "--method")
        given = {k: v for k, v in options.items() if v not in (None, False)}
        options = {**options, **learner.given, **given}
        is_path = learner.call != "fit"
        for name, value in (("--out", options["out"]), ("--cv", n_folds)):
            if is_path and value is not None:
                raise click.UsageError(f"{name} needs another --method, got {learner.name}")
        task = set_up(learner.estimator, {"DATA": data}, options, learner.parameters)
        from bayescascade.cli.rows import open_rows, read_labeled

        chosen = {k: v for k, v in task.declared.items() if k in ("columns", "drop")}
        X, y, _ = read_labeled(open_rows(data), options["target"], **chosen)
        for name, declared in learner.parameters.declared().items():
            if isinstance(declared, Label) and options.get(name) is not None:
                task.model.set_params(**{name: label_of(declared.option, options[name], y)})
        rows = (X, y) if is_path else ()
        return task, TrainingData(
            (X, y),
            measure=lambda: None if is_path else on_folds(task.model, X, y, None, n_folds, "union"),
            fit=learner.call, words=listed.words, figure=lambda part: part.plot(*rows).figure,
        )  # fmt: skip

    command.__doc__ = listed.about
    names = listed.options or [*dict.fromkeys(n for m in models.values() for n in m.declared())]
    chooser = click.option(
        "--method", type=click.Choice(list(learners)), default=default, show_default=True,
        help=f"{words_of(learners.values())}.",
    )  # fmt: skip
    pictured = f"{listed.picture}: .png, .svg or .pdf."
    plot = click.option("--plot", metavar="FILE", help=pictured)
    decorated = with_options(
        click.argument("data"),
        TARGET_OPTION,
        *[chooser][: len(learners) - 1],
        FOLDS_OPTION,
        *(option_of(name, models) for name in names),
        *CHOICE_OPTIONS,
        *[plot][: bool(listed.picture)],
    )(with_reading(learns=True, labels=True)(SAVE_OPTION(learning(command))))
    return click.command(listed.name, short_help=listed.short)(decorated)


def label_of(option: str, text: str, labels: Any) -> Any:
    """Return the label that a text stands for; click.UsageError if there is none."""
    from bayescascade.data.levels import level_text

    known = {level_text(label): label for label in dict.fromkeys(labels.tolist())}
    if text not in known:
        raise click.UsageError(f"{option} must be {' or '.join(known)}, got {text}")
    return known[text]
