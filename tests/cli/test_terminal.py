"""Names and levels of files are not obeyed by terminals: their control characters are escaped."""

import numpy as np
import pandas as pd
import pytest

from bayescascade.cli import output
from bayescascade.cli.application import application
from tests.commands import invoke

RED = "\x1b[31m"
NAME, LEVEL = f"{RED}name", f"{RED}level"
SAVED = {"predict": (), "score": (), "explain": (), "impute": ()}
LEARNED = {
    "boxes": ("--target", NAME, "--positive", LEVEL, "--method", "fast"),
    "budget": ("--target", NAME, "--budgets", 2, "--method", "tree", "--time-limit", 1),
    "classify": ("--target", NAME, "--search", "anneal", "--steps", 50, "--details"),
    "compare": ("--models", "leaf,histogram", "--repeats", 1),
    "compress": ("--target", NAME, "--prototypes", 4, "--time-limit", 1),
    "effect": ("--outcome", NAME, "--treatment", "t", "--method", "forest", "--good", LEVEL),
    "evidence": (),
    "fit": ("--model", "leaf", "--search", "anneal", "--steps", 50),
    "online": ("--target", NAME, "--first", 50),
    "sensors": ("--target", NAME, "--sensors", "sensors.csv", "--budgets", "3", "--steps", 50),
}
OTHERS = {"causal", "completion", "diagnose", "doctor", "rados", "sample", "show"}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Return a table whose path, columns and levels would be red."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 4, 160)
    frame = pd.DataFrame({
        "x": x,
        f"{RED}z": np.where(x + rng.integers(0, 2, 160) > 2, LEVEL, "plain"),
        NAME: np.where(x + rng.integers(0, 3, 160) > 2, LEVEL, "plain"),
        "t": rng.choice(["new", "old"], 160),
    })  # fmt: skip
    path = tmp_path_factory.mktemp("red") / f"{RED}rows.csv"
    frame.to_csv(path, index=False)
    sensors = f"name,cost,group\nx,,near\n{RED}z,,{RED}far\nt,,{RED}far\nnear,1,\n{RED}far,2,\n"
    path.with_name("sensors.csv").write_text(sensors)
    return path


@pytest.fixture(autouse=True)
def terminal(data, monkeypatch):
    """Let commands take their output for a terminal, without colors of their own."""
    monkeypatch.chdir(data.parent)
    monkeypatch.setattr(output, "is_terminal", lambda _: True)


def tell(*arguments):
    """Run a command; return its exit code and what it printed, which no terminal obeys."""
    found = invoke(*arguments)
    assert found.exception is None or isinstance(found.exception, SystemExit), found.exc_info
    text = found.stdout + found.stderr
    assert RED not in text
    assert not any(c != "\n" and not c.isprintable() for c in text)
    return found.exit_code, text


@pytest.mark.parametrize("name", sorted(application.commands))
def test_errors_do_not_color_the_terminal(name, data):
    """Whoever looks at a file of others should not run its control characters."""
    words = {"rados": ["make"]}.get(name, [])
    code, texts = tell(name, *words, f"{RED}none.csv", f"{RED}more.csv", f"--{RED}no=1")
    assert (code, "\\x1b[31m" in texts) == (2, True) or name == "doctor"
    targets = {"--target", "--outcome", "--columns"}
    for option in (each for one in application.commands[name].params for each in one.opts):
        if option in targets and name in LEARNED:
            words = () if name == "compare" else LEARNED[name]  # or it compares densities
            code, texts = tell(name, data, *words, option, f"{RED}unknown")
            assert (code, "\\x1b[31munknown" in texts) == (2, True)


@pytest.mark.filterwarnings("ignore")
def test_saved_models_and_warnings_do_not_color_the_terminal(data, tmp_path):
    """A warning names unknown levels; rows on a terminal are those of the file."""
    model, odd = tmp_path / f"{RED}m.json", tmp_path / "odd.csv"
    code, result = tell("fit", data, *LEARNED["fit"], "--seed", 0, "--out", model)
    assert (code, "\\x1b[31mname" in result) == (0, True)
    frame = pd.read_csv(data)
    frame.loc[3, NAME] = f"{RED}unseen"
    frame.loc[4, NAME] = None
    frame.to_csv(odd, index=False)
    for arguments in (
        ("show", model), ("show", model, "--dot"), ("sample", model, "-n", 5),
        ("score", model, odd), ("explain", model, odd, "--rows", "1-5"), ("impute", model, odd),
        ("predict", model, odd, "--target", NAME),
    ):  # fmt: skip
        code, result = tell(*arguments)
        assert (code, "\\x1b[31mlevel" in result) == (0, True), arguments
        assert ("warning: " in result and "\\x1b[31munseen" in result) or arguments[-1] != odd
    rows = tmp_path / "rows.csv"
    tell("sample", model, "-n", 5, "--out", rows)
    assert NAME in rows.read_text()  # a file is not changed


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(LEARNED))
def test_what_is_learned_does_not_color_the_terminal(name, data):
    code, result = tell(name, data, *LEARNED[name])
    assert code == 0, result
    assert "\\x1b[31m" in result or name == "online"  # which prints no names


def test_all_commands_are_tried():
    assert {*LEARNED, *SAVED, *OTHERS} == set(application.commands)
