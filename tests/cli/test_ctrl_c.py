"""Ctrl-C in every kind of learning: no traceback, the code of interrupts, and the best result."""

import os
import signal
import threading
import time

import click
import numpy as np
import pandas as pd
import pytest

import bayescascade
from bayescascade.cli import learning
from bayescascade.cli.application import application
from tests.commands import invoke

AGAIN = 30.0  # seconds
LONGEST = 120.0  # seconds from Ctrl-C to the end: what is compiled, or one long step, is finished

TARGET = ("--target", "y")
CHOOSING = {  # options that choose how a command learns, and others that their words need
    ("fit", "--model"): (),
    ("fit", "--effort"): (),
    ("fit", "--leaf"): ("--model", "branch"),
    ("fit", "--kind"): ("--model", "mixture"),
    ("fit", "--search"): ("--leaf", "uniform", "--max-leaves", 5, "--steps", 10**8),
    ("classify", "--search"): (*TARGET, "--steps", 10**8),
    ("classify", "--effort"): (*TARGET, "--steps", 10**8),
    ("budget", "--method"): (*TARGET, "--budgets", "2,5"),
    ("budget", "--effort"): (*TARGET, "--budgets", "2,5"),
    ("compress", "--metric"): TARGET,
    ("compress", "--effort"): TARGET,
    ("boxes", "--method"): TARGET,
    ("boxes", "--search"): (*TARGET, "--likelihood", "gibbs", "--steps", 10**8),
    ("boxes", "--solver"): (*TARGET, "--method", "exact"),
    ("boxes", "--likelihood"): TARGET,
    ("boxes", "--effort"): (*TARGET, "--steps", 10**8),
    ("effect", "--method"): ("--outcome", "y", "--treatment", "t"),
    ("effect", "--effort"): ("--outcome", "y", "--treatment", "t"),
}


def words_of(name: str, option: str) -> list[str]:
    command = application.commands[name]
    (found,) = (one for one in command.params if option in one.opts)
    assert isinstance(found.type, click.Choice)
    return list(found.type.choices)


CASES = [(*key, word) for key in CHOOSING for word in words_of(*key)]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Return the path of a table that takes more than a moment to learn."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 5, (3_000, 8))
    for j in range(1, 8, 2):
        codes[:, j] = np.where(rng.random(3_000) < 0.6, codes[:, j - 1], codes[:, j])
    frame = pd.DataFrame(codes, columns=[f"c{j}" for j in range(8)])
    is_one = (frame["c0"] > frame["c3"]) ^ (rng.random(3_000) < 0.2)
    frame = frame.assign(y=np.where(is_one, "yes", "no"), t=rng.choice(["new", "old"], 3_000))
    path = tmp_path_factory.mktemp("data") / "rows.csv"
    frame.to_csv(path, index=False)
    return path


def pressed(monkeypatch, seconds, *arguments):
    """Run a command with a real Ctrl-C some seconds after its search began; check how it ends.

    Like a user, press again if nothing happens: Python ignores a signal that comes in a callback of
    its garbage collector, such as while a process is being started.
    """
    fit, pressed_at = learning._fit, []

    def press(is_over):
        wait = seconds
        while not is_over.wait(wait):
            pressed_at.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)
            wait = AGAIN

    def fit_and_press(task, training):
        is_over = threading.Event()
        threading.Thread(target=press, args=(is_over,), daemon=True).start()
        try:
            return fit(task, training)
        finally:
            is_over.set()

    monkeypatch.setattr(learning, "_fit", fit_and_press)
    found = invoke(*arguments)
    if not pressed_at:  # it was over before
        assert found.exit_code == 0, (found.stderr, found.exception)
        return None
    assert time.monotonic() - pressed_at[0] < LONGEST
    if found.exit_code == 0:  # it was over as Ctrl-C came
        return None
    assert isinstance(found.exception, SystemExit), found.exc_info
    assert found.exit_code == 130, found.stderr
    assert "Traceback" not in found.stderr
    assert found.stderr.splitlines()[-1].startswith("interrupted")
    return found


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "option", "word"), CASES)
def test_ctrl_c_keeps_the_best_of_all_methods(name, option, word, data, tmp_path, monkeypatch):
    """Who waits an hour for one of them and presses Ctrl-C wants what was found, no traceback."""
    budgets = ("--budgets", 4) if name == "budget" else ()  # one can be saved
    save = "--save" if name == "compress" else "--out"
    out = tmp_path / "m.json"
    saves = (save, out) if word != "path" else ()
    arguments = (name, data, option, word, *CHOOSING[name, option], *budgets, *saves, "--seed", 0)
    found, seconds = None, 0.4
    while found is None and seconds > 1e-4:
        out.unlink(missing_ok=True)  # of a run that was over before
        with monkeypatch.context() as patch:
            found = pressed(patch, seconds, *arguments)
        seconds /= 4
    if found is None:  # it takes less than that
        return
    is_empty = "no result yet" in found.stderr or "0 of 1 fits" in found.stderr
    assert (found.stdout == "") == is_empty
    if saves:
        assert out.exists() != is_empty
    if out.exists():
        assert str(bayescascade.load(out))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(application.commands))
def test_all_options_that_choose_a_method_are_pressed(name):
    """A method that is added is tried above."""
    chosen = ("--model", "--method", "--search", "--solver", "--kind", "--leaf", "--effort")
    for one in application.commands[name].params:
        option = max(one.opts, key=len)
        if isinstance(one.type, click.Choice) and option in chosen and name != "sensors":
            assert (name, option) in CHOOSING
