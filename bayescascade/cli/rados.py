"""``bayescascade rados``: sums of rows, made where the rows are, and learned from elsewhere."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from bayescascade.cli.declared import Models, option_of, parameters_of
from bayescascade.cli.learning import (
    CHOICE_OPTIONS,
    listed,
    with_options,
)
from bayescascade.cli.options import Bounds, Integer, Real, TwoLevels
from bayescascade.cli.output import check_outputs, echo_json, echo_page
from bayescascade.cli.reading import with_reading
from bayescascade.methods.rado.parameters import LearnerParameters, RadoParameters

if TYPE_CHECKING:
    from bayescascade.methods.rado.rados import Rados

LEARNED: Models = {"": LearnerParameters}
MADE: Models = {"": RadoParameters}
_POSITIVE = Real(above=0.0)


@click.group(short_help="Learn a classifier from sums of rows, not from rows.")
def rados() -> None:
    """Learn a linear classifier of two classes from sums of rows, Rademacher observations.

    make is run where the rows are, fit where the sums are handed to: two programs on two machines.
    A second party makes its sums --like the first one's, and fit adds them up.
    """


@rados.command(short_help="Make sums of the rows of a file.")
@click.argument("data")
@click.option("--target", metavar="NAME", required=True, help="Column of the labels, two classes.")
@click.option("--out", metavar="FILE.npz", required=True, help="Write the rados here.")
@click.option("--n", "n_rados", type=Integer(1), help="How many; 1000, or 100 with a feature.")
@click.option("--support", type=Integer(1), help="Rows in each; by default by a fair coin.")
@click.option("--like", metavar="FILE.npz", help="Columns, classes and units of these rados.")
@click.option("--raw", is_flag=True, help="Columns as they come, neither centered nor scaled.")
@click.option("--no-intercept", is_flag=True, help="No column of ones.")
@click.option("--epsilon", type=_POSITIVE, help="Privately, with this budget for all of them.")
@click.option("--delta", type=Real(above=0.0, below=1.0), help="Of the budget; 1e-6 by default.")
@click.option("--private-feature", metavar="NAME", help="Hide this boolean feature's coordinate.")
@click.option(
    "--values", type=TwoLevels(), help="Its two values, such as no,yes, whichever of them occur."
)
@click.option(
    "--truncation", type=Real(minimum=0.0, below=0.5), help="The paper's beta, of that feature."
)
@click.option(
    "--bounds",
    type=Bounds(named=True),
    multiple=True,
    metavar="[NAME=]LOW,HIGH",
    help="Hide rows by Gaussian noise: bounds of a column, or of all others, known from elsewhere.",
)
@click.option(
    "--classes", type=TwoLevels(), help="With --bounds: the two labels, whichever of them occur."
)
@click.option(
    "--noise-on", type=click.Choice(["edges", "rados"]), help="What that noise is put on; edges."
)
@with_options(*CHOICE_OPTIONS, option_of("missing", MADE))
@with_reading(learns=True, labels=True)
@click.option(
    "--time-limit", type=_POSITIVE, metavar="SECONDS", help="Make no more after that (no limit)."
)
@click.option("--seed", type=Integer(0), help="Same seed, same sums. No seed is taken for privacy.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def make(data: str, **options: Any) -> None:
    """Make sums of labeled rows, and say what they promise about single rows.

    Plain ones promise nothing. With --private-feature and --epsilon the coordinate of one boolean
    feature is differentially private, and no other; with --bounds and --epsilon whole rows are.
    Each release of the same rows spends more of their privacy, so run it once. Plain ones --like
    others are made block by block, of files of any size.
    """
    out, like_path = options["out"], options["like"]
    check_outputs({"--out": out}, {"DATA": data, "--like": like_path})
    feature, bounds, epsilon = options["private_feature"], options["bounds"], options["epsilon"]
    _check_private(options)
    if options["epsilon"] is not None and getattr(data, "depends_on_all_rows", False):
        raise click.UsageError(
            "--rare, --dates and --missing-labels must not come with --epsilon: how a row is read "
            "would tell of the others"
        )
    from bayescascade.cli.rows import open_rows, read_labeled, read_typed
    from bayescascade.methods.rado.rados import Rados

    like = None if like_path is None else Rados.load(like_path)
    source, target = open_rows(data), options["target"]
    columns, drop = listed(options["columns"]), listed(options["drop"])
    if like is not None and columns is None and drop is None:
        columns = like.reading.encoder.names
    n_rados = {} if options["n_rados"] is None else {"n_rados": options["n_rados"]}
    if like is not None and epsilon is None and options["support"] is None and columns is not None:
        blocks = read_typed(source, [*columns, target], None)
        parts = ((frame, frame.pop(target)) for _, frame, _ in blocks)
        made = Rados.sample_parts(parts, like=like, random_state=options["seed"], **n_rados)
        made.save(out)
        _tell(made, options["as_json"])
        return
    as_texts = () if epsilon is None else None if feature is None else [feature]
    X, y, _ = read_labeled(source, target, columns=columns, drop=drop, as_texts=as_texts)
    common: dict[str, Any] = {"like": like, "intercept": not options["no_intercept"], **n_rados}
    budget = {"epsilon": epsilon, "delta": 1e-6 if options["delta"] is None else options["delta"]}
    if feature is not None:
        made = Rados.sample_feature_private(
            X,
            y,
            feature=feature,
            values=options["values"],
            truncation=options["truncation"] or 0.0,
            standardize=not options["raw"],
            **budget,
            **common,
        )
    elif epsilon is not None:
        made = Rados.sample_gaussian(
            X,
            y,
            classes=options["classes"],
            edge_bounds=_edge_bounds(bounds, list(X.columns)),
            support=options["support"],
            noise_on=options["noise_on"] or "edges",
            random_state=options["seed"],
            **budget,
            **common,
        )
    else:
        made = Rados.sample(
            X,
            y,
            support=options["support"],
            standardize=not options["raw"],
            missing=options["missing"] or "level",
            time_limit=options["time_limit"],
            random_state=options["seed"],
            **common,
        )
    made.save(out)
    _tell(made, options["as_json"])


@rados.command(short_help="Learn a classifier from files of sums.")
@click.argument("files", nargs=-1, required=True)
@click.option("--out", metavar="FILE.json", help="Save the model, for predict and score.")
@with_options(*(option_of(name, LEARNED) for name in LearnerParameters.declared()))
@click.option("--json", "as_json", is_flag=True, help="Print JSON at full precision.")
def fit(files: tuple[str, ...], out: str | None, as_json: bool, **given: Any) -> None:
    """Learn a linear classifier from files that `make` wrote; those of several parties add up."""
    check_outputs({"--out": out}, {f"FILES {k + 1}": path for k, path in enumerate(files)})
    from bayescascade.methods.rado.estimators import RadoBoostClassifier
    from bayescascade.methods.rado.rados import Rados

    parameters = parameters_of(given, LearnerParameters)
    if {"n_rounds", "weak_learner"} & parameters.keys():
        parameters.setdefault("learner", "boost")  # of which these are
    parts = [Rados.load(path) for path in files]
    joined = parts[0] if len(parts) == 1 else Rados.merge(parts)
    model = RadoBoostClassifier(**parameters).fit_rados(joined)
    if out is not None:
        model.save(out)
    if as_json:
        echo_json(model.to_dict())
    else:
        echo_page(model.page())


def _check_private(options: dict[str, Any]) -> None:
    """Raise UsageError for options that do not go together."""
    feature, bounds, like = options["private_feature"], options["bounds"], options["like"]

    def must(is_so: bool, rule: str) -> None:
        if not is_so:
            raise click.UsageError(rule)

    is_private = options["epsilon"] is not None
    for name in ("private_feature", "bounds", "delta", "noise_on"):
        option = "--" + name.replace("_", "-")
        must(is_private or not options[name], f"{option} must come with --epsilon, got none")
    must(
        not is_private or feature is not None or bool(bounds) or like is not None,
        "--epsilon must come with --private-feature or --bounds, got neither",
    )
    if feature is not None:
        for name in ("bounds", "classes", "noise_on", "support", "seed"):
            option = "--" + name.replace("_", "-")
            is_given = options[name] not in (None, ())
            must(not is_given, f"{option} must not come with --private-feature, got both")
    for name in ("raw", "no_intercept", "missing", "values", "classes"):
        option = "--" + name.replace("_", "-")
        must(not (options[name] and like), f"{option} must not come with --like, got both")
    must(
        options["missing"] != "level" or not is_private,
        "--missing must be error with --epsilon, got level: what fills gaps would tell of the rows",
    )
    must(
        options["time_limit"] is None or not is_private,
        "--time-limit must not come with --epsilon: how many sums there are would tell of the rows",
    )
    must(
        options["time_limit"] is None or not like,
        "--time-limit must not come with --like: sums of several parties are added one by one",
    )
    must(not (options["raw"] and bounds), "--raw must not come with --bounds, got both")
    for name in ("truncation", "values"):
        is_fine = options[name] is None or feature is not None
        must(is_fine, f"--{name} must come with --private-feature, got none")
    must(not options["classes"] or is_private, "--classes must come with --epsilon, got none")


def _edge_bounds(
    given: Sequence[tuple[str, tuple[float, float]]], columns: Sequence[str]
) -> dict[str, tuple[float, float]]:
    """Return the bounds of columns by name, those without a name of all that are not named."""
    from bayescascade.data.names import check_known

    names = [name for name, _ in given]
    for name in names:
        if names.count(name) > 1:
            whose = f'column "{name}"' if name else "all others"
            raise click.UsageError(f"--bounds must be given once for {whose}, got {names}")
    named = dict(given)
    rest = named.pop("", None)
    check_known("--bounds", named, columns)
    return named if rest is None else {**dict.fromkeys(columns, rest), **named}


def _tell(made: "Rados", as_json: bool) -> None:
    if not as_json:
        echo_page(made.page())
        return
    echo_json(
        {
            "n_rados": len(made),
            "n_rows": made.n_rows,
            "support": made.support,
            "columns": made.reading.columns,
            "promise": None if made.promise is None else made.promise.record(),
        }
    )
