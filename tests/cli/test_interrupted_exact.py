"""Ctrl-C during an exact search of trees: what is known by then is saved, and said as it is."""

import pandas as pd
import pytest

import bayescascade
from bayescascade.methods.density.trees import leaf_choice
from bayescascade.methods.density.trees.exact.recursion import Recursion
from tests.cli.conftest import TITANIC, run

BRANCH = ("--model", "branch", "--leaf", "uniform", "--search", "exact", "--seed", 0)


def pressed_in(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Have Ctrl-C pressed in the pass of that number, from 1."""
    passes, run_pass = [], Recursion.run

    def counted(self: Recursion, *arguments: object, **options: object) -> None:
        if self.shapes is not None:  # else it is of the prior
            passes.append(self)
            if len(passes) == number:
                raise KeyboardInterrupt
        run_pass(self, *arguments, **options)

    monkeypatch.setattr(Recursion, "run", counted)


def test_the_best_tree_is_kept_once_it_is_known(tmp_path, monkeypatch):
    """The first pass finds it, with its proof; the second, of sums, may take as long again."""
    whole, out, trace = tmp_path / "whole.json", tmp_path / "m.json", tmp_path / "t.nc"
    assert run("fit", TITANIC, *BRANCH, "--out", whole).exit_code == 0
    pressed_in(monkeypatch, 2)
    found = run(
        "fit", TITANIC, *BRANCH, "--out", out, "--trace", trace, "--checkpoint", tmp_path / "c"
    )
    assert found.exit_code == 130
    assert found.stderr == (
        "interrupted; exact: no tree is more probable; there are no posterior draws\n"
    )
    text = " ".join(found.stdout.split())
    assert "interrupted; exact: no tree is more probable" in text
    assert "log evidence" not in text
    assert "the best result only, no posterior draws" in text
    model, best = bayescascade.load(out), bayescascade.load(whole)
    assert model.tree_.to_dict() == best.tree_.to_dict()
    assert (model.summary_.interrupted, best.summary_.interrupted) == (True, False)
    assert run("show", out).stdout == found.stdout
    assert "no draws from the posterior: it ended before any" in run("diagnose", trace).stdout


@pytest.mark.parametrize(
    ("number", "model", "words"),
    [  # larger trees of a leaf model are bounded after those of up to 16 leaves are summed over
        (
            3,
            ("--leaf", "uniform", "--search", "exact"),
            "no tree of up to 16 leaves is more probable",
        ),
        # of another kind of leaves, after two passes of the first and five for its shares
        (8, ("--model", "branch", "--seed", 0), "leaf uniform (no others were compared)"),
    ],
)
def test_what_is_known_by_then_is_kept_and_said_as_it_is(number, model, words, monkeypatch):
    """A tree of few leaves is not the best of all; a search for other leaves takes none away."""
    pressed_in(monkeypatch, number)
    found = run("fit", TITANIC, *model)
    assert found.exit_code == 130
    text = " ".join(found.stdout.split())
    assert words in text
    assert "interrupted; exact: no tree " in text
    assert "log evidence" not in text or number == 8


def test_leaves_summed_over_are_kept_where_others_are_sampled(monkeypatch):
    """Dependent leaves come last, by a few steps of a chain, which have nothing to show."""

    def pressed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(leaf_choice, "best_of_few_steps", pressed)
    found = run("fit", TITANIC, "--model", "branch", "--seed", 0)
    assert found.exit_code == 130
    text = " ".join(found.stdout.split())
    assert "(log evidence " in text
    assert "dependent" not in text.replace("independent", "")
    assert "interrupted; exact: no tree is more probable" in text


@pytest.mark.parametrize("search", ["auto", "exact"])
def test_without_a_tree_a_greedy_one_is_kept(search, tmp_path, monkeypatch):
    """Whoever cannot wait for the first pass over all trees has something, and is told what."""
    pressed_in(monkeypatch, 1)
    out = tmp_path / "m.json"
    found = run("fit", TITANIC, "--leaf", "uniform", "--search", search, "--out", out)
    assert found.exit_code == 130
    assert "interrupted: best found so far by greedy growth" in found.stdout
    assert found.stderr == "interrupted: the tree is the best found so far\n"
    assert bayescascade.load(out).summary_.interrupted


def test_the_best_tree_is_kept_while_draws_are_scored(monkeypatch):
    """That may take longer than to find it, and whoever stops it must not lose everything."""
    from bayescascade.model import solution

    monkeypatch.setattr(solution, "_EVERY", 0.0)
    model = bayescascade.BranchCascade(search="exact", drop=["survived"], random_state=0)

    def stop(report):
        if report.phase == "scoring draws":
            raise KeyboardInterrupt

    frame = pd.read_csv(TITANIC)
    whole = bayescascade.BranchCascade(**model.get_params()).fit(frame)
    model.set_params(progress=stop).fit(frame)
    assert model.tree_.to_dict() == whole.tree_.to_dict()
    assert (model.summary_.interrupted, model.summary_.n_draws) == (True, 0)
    assert model.summary_.certificate == whole.summary_.certificate
