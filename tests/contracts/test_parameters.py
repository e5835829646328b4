"""What an estimator declares of its parameters: it takes, refuses and says that, and no other."""

import ast
import inspect
import re

import numpy as np
import pytest

from bayescascade import (
    AdditiveNoiseModel,
    NeighborCompressionClassifier,
    ParameterError,
    PrivateAdditiveNoiseModel,
    RadoBoostClassifier,
    Rados,
    RuleListClassifier,
)
from bayescascade.base.parameters import Flag, LooseInteger, Other
from bayescascade.cli import rados
from bayescascade.cli.application import application
from bayescascade.cli.causal import MODELS as DIRECTIONS, causal
from bayescascade.cli.classify import MODELS as LISTS, classify
from bayescascade.cli.compress import MODELS as COMPRESSED, compress
from bayescascade.cli.fit import LISTED as FITTED, MODELS, fit
from bayescascade.methods.budget.listed import BUDGET_LEARNERS
from bayescascade.methods.density.listed import DENSITIES
from bayescascade.methods.listed import COMMANDS
from bayescascade.methods.rados.parameters import (
    FeatureParameters,
    GaussianParameters,
    SampleParameters,
)
from tests.contracts.listed import ESTIMATORS, rows

BOUNDS = {"x_bounds": (0, 40), "y_bounds": (0, 40), "noise": "simulated"}
OF_PAIRS = {AdditiveNoiseModel: {}, PrivateAdditiveNoiseModel: BOUNDS}
LISTED = {c.make: n for n, c in ESTIMATORS.items() if "declares" in vars(c.make)}
DECLARING = [*LISTED, *OF_PAIRS]
COLUMNS = {"columns", "drop", "nominal", "ordinal", "continuous", "missing"}
ASIDE = COLUMNS | {"progress"}  # what is no number and no choice is checked where it is read


@pytest.mark.parametrize("make", DECLARING)
def test_every_parameter_is_declared_with_its_default(make):
    """One that is not has no check and no option; another default would be shown than is used."""
    taken = {k: v.default for k, v in inspect.signature(make).parameters.items()}
    declared = {name: each.default for name, each in make.declares.declared().items()}
    assert declared == {n: value for n, value in taken.items() if n not in ASIDE or n in declared}


@pytest.mark.parametrize("make", DECLARING)
def test_the_docstring_says_what_is_declared(make):
    for name, declared in make.declares.declared().items():
        entry = re.search(rf"^{name} : (.+), default (.+)$", make.__doc__, re.M)
        if entry is None:  # as in another estimator, which the docstring names
            assert re.search(rf"^(\w+, )*{name}(, \w+)*( : .+)?$", make.__doc__, re.M)
            continue
        assert ast.literal_eval(entry[2]) == declared.default
        assert declared.type_text in entry[1]


@pytest.mark.parametrize("make", DECLARING)
def test_what_is_out_of_range_is_refused_before_rows_are_read(make):
    given, data = OF_PAIRS.get(make), [range(40), range(40)]
    if given is None:
        case = ESTIMATORS[LISTED[make]]
        given, data = case.parameters, [rows(), *case.beside()]
    for name, value in out_of_range(make.declares):
        with pytest.raises(ParameterError, match=f"^{name} must be "):
            make(**{**given, name: value}).fit(*data)


def out_of_range(declares):
    """Yield names and values that a declaration does not allow."""
    beyond = {"minimum": -1, "above": 0, "maximum": 1, "below": 0}
    for name, declared in declares.declared().items():
        if isinstance(declared, Other | LooseInteger):
            continue
        wrong = [object(), "no such word", float("nan")]
        wrong += [None] if declared.none is None else []
        wrong += [bound + beyond[side] for side, bound in declared.limits.items()]
        yield from ((name, value) for value in wrong)


OPTIONS = [
    (fit, MODELS, {name: each.made() for name, each in FITTED.items()}),
    (classify, LISTS, {"": RuleListClassifier}),
    (causal, DIRECTIONS, dict(zip(DIRECTIONS, OF_PAIRS, strict=True))),
    (compress, COMPRESSED, {"": NeighborCompressionClassifier}),
    (rados.fit, rados.LEARNED, {"": RadoBoostClassifier}),
    (rados.make, rados.MADE, {}),
    *(
        (
            application.commands[listed.name],
            {each.name: each.parameters for each in listed.learners},
            {each.name: each.made() for each in listed.learners},
        )
        for listed in COMMANDS
    ),
]


@pytest.mark.parametrize(
    ("command", "models", "names"), OPTIONS, ids=lambda one: getattr(one, "name", "")
)
def test_options_of_commands_are_what_is_declared(command, models, names) -> None:
    """An option of their own would have another range, default or meaning some day."""
    options, seen = {param.name: param for param in command.params}, set()
    has_all = command in (fit, classify)
    for model, declares in models.items():
        made = names.get(model)
        assert made is None or issubclass(made.declares, declares)
        assert not has_all or made.declares is declares
        for name, declared in declares.declared().items():
            if name not in options and not has_all:
                continue
            option, is_first = options[name], name not in seen
            seen.add(name)
            assert option.opts == [declared.option]
            assert option.is_flag == isinstance(declared, Flag)
            if is_first or has_all:
                words, defaults = (
                    declared.words_of(declared.in_commands),
                    option.help.rpartition(" ["),
                )
                assert words in defaults[2]
                assert not is_first or option.help.startswith(declared.about)
            if has_all:
                assert model in defaults[2] or all(name in m.declared() for m in models.values())
    assert len(seen) >= 5


HIDING = {"feature": 0, "values": (0, 1), "epsilon": 9.0, "delta": 0.1}
BOUNDED = {"edge_bounds": (0, 9), "classes": (0, 1), "epsilon": 1.0, "delta": 1e-5}


@pytest.mark.parametrize(
    ("function", "declares", "given"),
    [
        (Rados.sample, SampleParameters, {}),
        (Rados.sample_feature_private, FeatureParameters, HIDING),
        (Rados.sample_gaussian, GaussianParameters, BOUNDED),
    ],
)
def test_functions_have_the_defaults_and_the_ranges_that_are_declared(function, declares, given):
    """Or no default: a command's is then nobody else's."""
    taken = inspect.signature(function).parameters
    for name, declared in declares.declared().items():
        assert taken[name].default in (declared.default, inspect.Parameter.empty)
    numbers = np.arange(40)
    for name, value in out_of_range(declares):
        with pytest.raises(ParameterError, match=f"^{name} must be "):
            function(np.c_[numbers % 2, numbers], numbers % 2, **{**given, name: value})


@pytest.mark.parametrize("listed", [*DENSITIES.values(), *BUDGET_LEARNERS.values()])
def test_what_is_listed_is_made_by_what_it_declares(listed):
    """A name of the list that leads to another estimator would learn what nobody asked for."""
    model = listed.made(random_state=1, no_such_parameter=2)
    assert (type(model).__name__, type(model).declares) == (listed.estimator, listed.parameters)
    settings = getattr(listed, "among", ()) or [{**listed.given, **listed.of_trees(3)}]
    for given in settings:
        assert given.items() <= listed.made(**given).get_params().items()


@pytest.mark.parametrize("make", DECLARING)
def test_few_classes_stand_above_an_estimator(make):
    """Whoever looks for what a method does reads up to seven classes, and no more."""
    ours = [one for one in make.__mro__[1:] if one.__module__.startswith("bayescascade.")]
    assert 1 <= len(ours) <= 7
