"""``bayescascade compare``: densities, or classifiers, measured on the same held-out rows."""

import secrets
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from bayescascade.cli.cluster import with_cluster
from bayescascade.cli.declared import Models, option_of, parameters_of, words_of
from bayescascade.cli.learning import Task, TrainingData, learning, outputs_of
from bayescascade.cli.options import COLUMN_OPTIONS, split_commas, with_options
from bayescascade.cli.output import echo_page, note
from bayescascade.cli.progress_lines import count_progress
from bayescascade.cli.reading import with_reading
from bayescascade.methods.density.listed import DENSITIES
from bayescascade.model.parameters import ComparisonParameters

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bayescascade.data.read_as import ReadAs
    from bayescascade.data.table import Table
    from bayescascade.model.comparison import Comparison
    from bayescascade.report.page import Page

HOW: Models = {"": ComparisonParameters}
_OF_DENSITIES = ("weights", "nominal", "ordinal", "continuous", "missing")
_QUICK = [each for each in DENSITIES.values() if each.is_quick]
_SLOW = [each for each in DENSITIES.values() if not each.is_quick]


@click.command(short_help="Compare densities, or classifiers, on held-out rows.")
@click.argument("data", nargs=-1, required=True)
@click.option("--target", metavar="NAME", help="Column of labels: compare classifiers of it.")
@click.option(
    "--models",
    metavar="MODEL,...",
    help=f"Densities to compare. {words_of(_QUICK)}. These take minutes: {words_of(_SLOW)}. "
    f"[{','.join(each.name for each in _QUICK)}] With --target: rules, boxes (two classes), "
    "compress, rados (two classes), budget (half of the columns), logistic, boosted. [all]",
)
@with_options(option_of("n_halvings", HOW), *COLUMN_OPTIONS)
@with_reading(learns=True, labels=True)
@with_options(option_of("n_jobs", HOW))
@with_cluster
@with_options(option_of("random_state", HOW))
@click.option(
    "--plot", metavar="FILE", help="Draw score against size of each density: .png, .svg or .pdf."
)
@learning
def compare(data: tuple[str, ...], **options: Any) -> tuple[Task, TrainingData]:
    """Learn densities on a random half of each table DATA, and score them on the other half.

    A density with a higher score is better. If scores are equal, the density with fewer parts is
    easier to read. The halves are the same for all densities. If there are several tables, options
    that name columns apply to each table that has them. Ctrl-C ends the comparison early; finished
    densities are printed.

    With --target, classifiers of a table are compared in five folds, with their default parameters:
    those of the commands classify, boxes, compress, rados and budget, logistic regression, and
    boosted trees, which nobody can read. This takes a minute or more.
    """
    if (target := options.pop("target")) is not None:
        return _of_classifiers(data, target, options)
    models = _models(options["models"] or ",".join(each.name for each in _QUICK))
    task = outputs_of(options, {f"DATA {path}": path for path in data})
    tables = _read_tables(data, task.declared)
    from bayescascade.methods.density.comparing import compare as learn_and_score

    how: dict[str, Any] = parameters_of(options, ComparisonParameters)
    seed = how.setdefault("random_state", secrets.randbits(64))
    n_fits = how.setdefault("n_halvings", ComparisonParameters.n_halvings.default) * len(models)

    def learn() -> _Compared:
        finished: list[Comparison] = []
        for table in tables:
            if finished and not task.as_json:  # the last one is printed at the end
                echo_page(finished[-1].page())
                click.echo()
            with count_progress(f"{table.source}, fits", n_fits) as done:
                finished.append(learn_and_score(table, models=models, done=done, **how))
            if finished[-1].interrupted:
                break
        return _Compared(finished, seed, len(tables) * n_fits)

    return task, TrainingData(fit=learn, figure=_Compared.figure, ended=_Compared.ended)


def _of_classifiers(
    data: "tuple[str | ReadAs, ...]", target: str, options: dict[str, Any]
) -> tuple[Task, TrainingData]:
    """Return the task and the training data of a comparison of classifiers."""
    if len(data) > 1:
        raise click.UsageError(f"--target needs one DATA, got {len(data)}")
    names = {f"--{name}": name for name in (*_OF_DENSITIES, "plot")}
    for option, name in {**names, "--repeats": "n_halvings", "--jobs": "n_jobs"}.items():
        if options.get(name) not in (None, ()):
            raise click.UsageError(f"{option} must not come with --target, got {options[name]}")
    task = outputs_of(options, {"DATA": str(data[0])})
    from bayescascade.cli.rows import open_rows, read_labeled
    from bayescascade.methods.comparing_classifiers import CLASSIFIERS, compare_classifiers

    source = open_rows(data[0])
    X, y, _ = read_labeled(source, target, **task.declared)
    models = options["models"] and split_commas(options["models"])
    how = {"models": models, "random_state": options["random_state"], "source": source.label}

    def learn() -> Any:
        total = 5 * len(models or CLASSIFIERS)
        with count_progress(f"{source.label}, fits", total) as done:
            return compare_classifiers(X, y, done=done, **how)

    finished = "classifiers finished: {}".format
    return task, TrainingData(
        fit=learn, ended=lambda c: finished(len(c.table)) if c.interrupted else ""
    )


class _Compared(NamedTuple):
    """Comparisons of tables; all but the last are already printed."""

    finished: "list[Comparison]"
    seed: int
    n_fits: int

    def page(self) -> "Page":
        return self.finished[-1].page()

    def to_dict(self) -> dict[str, Any]:
        return {"seed": self.seed, "tables": [each.to_dict() for each in self.finished]}

    def figure(self) -> "Figure":
        from bayescascade.model.pictures import plot_comparisons

        return plot_comparisons(self.finished)

    def ended(self) -> str:
        """Return how much is finished, if Ctrl-C ended it."""
        n_finished = sum(len(each.outcomes) for each in self.finished)
        text = f"{n_finished} of {self.n_fits} fits were finished"
        return text if self.finished[-1].interrupted else ""


def _models(text: str) -> tuple[str, ...]:
    models = tuple(dict.fromkeys(split_commas(text)))
    for model in models:
        if model not in DENSITIES:
            known = ", ".join(DENSITIES)
            raise click.UsageError(f"--models must be some of {known}, got {model!r}")
    return models


def _read_tables(paths: "Sequence[str | ReadAs]", declared: Mapping[str, Any]) -> "list[Table]":
    """Read all tables before anything is learned."""
    from bayescascade.cli.rows import read_table
    from bayescascade.data.files import open_files
    from bayescascade.data.read_as import ReadAs

    if len(paths) == 1:
        tables = [read_table(paths[0], **declared)]
    else:
        plain = [path.unchanged if isinstance(path, ReadAs) else path for path in paths]
        names = [open_files(path).names for path in plain]
        pairs = zip(paths, names, strict=True)
        paths = [p.among(known) if isinstance(p, ReadAs) else p for p, known in pairs]
        names = [open_files(path).names for path in paths]  # with parts of dates
        known = {name for columns in names for name in columns}
        tables = []
        for path, columns in zip(paths, names, strict=True):
            concerning = _concerning(declared, known - set(columns))
            if "columns" in declared and not concerning["columns"]:
                raise click.UsageError(
                    f"--columns must name a column of every table, got none of {path}"
                )
            tables.append(read_table(path, **concerning))
    for table in tables:
        for text in table.notes:
            note(f"{table.source}: {text}" if len(tables) > 1 else text)
    return tables


def _concerning(declared: Mapping[str, Any], elsewhere: set[str]) -> dict[str, Any]:
    """Return the declarations of columns that this table has."""
    kept: dict[str, Any] = {}
    for name, value in declared.items():
        if isinstance(value, dict):
            kept[name] = {column: kind for column, kind in value.items() if column not in elsewhere}
        elif isinstance(value, list):
            kept[name] = [column for column in value if column not in elsewhere]
        elif value not in elsewhere:
            kept[name] = value
    return kept
