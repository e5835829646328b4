"""What an estimator declares of its parameters: it takes, refuses and says that, and no other."""

import ast
import inspect
import re

import pytest

from bayescascade import ModelFileError, ParameterError, RuleListClassifier
from bayescascade.base.parameters import Flag, LooseInteger, Other
from bayescascade.cli.classify import MODELS as LISTS, classify
from bayescascade.cli.fit import MODELS, NAMES, fit
from bayescascade.model.record import model_class
from tests.contracts.listed import ESTIMATORS, fitted, rows

DECLARING = {c.make: n for n, c in ESTIMATORS.items() if "declares" in vars(c.make)}
COLUMNS = {"columns", "drop", "nominal", "ordinal", "continuous", "missing"}
ASIDE = COLUMNS | {"progress"}  # what is no number and no choice is checked where it is read
CASES = [(make, name) for make in DECLARING for name in make.declares.declared()]
CASES = [(m, n) for m, n in CASES if not isinstance(m.declares.declared()[n], Other | LooseInteger)]


@pytest.mark.parametrize("make", DECLARING)
def test_every_parameter_is_declared_with_its_default(make) -> None:
    """One that is not has no check and no option; another default would be shown than is used."""
    taken = {k: v.default for k, v in inspect.signature(make).parameters.items()}
    declared = {name: each.default for name, each in make.declares.declared().items()}
    assert declared == {n: value for n, value in taken.items() if n not in ASIDE or n in declared}


@pytest.mark.parametrize("make", DECLARING)
def test_the_docstring_says_what_is_declared(make) -> None:
    """Another type or default in it would be believed."""
    for name, declared in make.declares.declared().items():
        entry = re.search(rf"^{name} : (.+), default (.+)$", make.__doc__, re.M)
        if entry is None:  # as in another estimator, which the docstring names
            assert re.search(rf"^(\w+, )*{name}(, \w+)*$", make.__doc__, re.M)
            continue
        assert ast.literal_eval(entry[2]) == declared.default
        assert declared.type_text in entry[1]


@pytest.mark.parametrize(("make", "name"), CASES)
def test_what_is_out_of_range_is_refused_before_rows_are_read(make, name) -> None:
    """By name, rule and value, whatever the declaration allows."""
    declared = make.declares.declared()[name]
    wrong = [object(), "no such word", float("nan"), *([] if declared.none is not None else [None])]
    limits = declared.limits
    wrong += [limits[k] - 1 for k in ("minimum", "above") if k in limits]
    wrong += [limits[k] + 1 for k in ("maximum", "below") if k in limits]
    case = ESTIMATORS[DECLARING[make]]
    for value in wrong:
        with pytest.raises(ParameterError, match=f"^{name} must be "):
            make(**{**case.parameters, name: value}).fit(rows(), *[case.labels()] * case.is_labeled)


@pytest.mark.parametrize(
    ("command", "models", "names"),
    [
        (fit, MODELS, {m: model_class(NAMES.get(m, m)) for m in MODELS}),
        (classify, LISTS, {"": RuleListClassifier}),
    ],
)
def test_commands_have_an_option_for_each_and_say_its_default(command, models, names) -> None:
    options = {param.name: param for param in command.params}
    for model, declares in models.items():
        assert declares is names[model].declares
        for name, declared in declares.declared().items():
            option = options[name]
            assert option.opts == [declared.option]
            assert option.is_flag == isinstance(declared, Flag)
            words = declared.words_of(declared.in_commands)
            defaults = option.help.rpartition(". [")[2]
            assert words in defaults
            assert model in defaults or all(name in m.declared() for m in models.values())


@pytest.mark.parametrize("make", [make for make in DECLARING if make._former_parameters])
def test_files_with_parameters_that_are_no_more_load(make) -> None:
    """What was learned would be lost with an option that nobody needed."""
    record = fitted(DECLARING[make]).to_record()
    older = {**record["parameters"], **dict.fromkeys(make._former_parameters, 1)}
    assert make.from_record({**record, "parameters": older}).to_record() == record
    with pytest.raises(ModelFileError, match="parameters must be"):
        make.from_record({**record, "parameters": {**older, "never": 1}})
