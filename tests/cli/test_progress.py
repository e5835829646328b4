"""The progress bar: what the samplers say, in the words of the family that is searched."""

import io
import sys

import pytest

import samplers
from bayescascade.cli.progress import progress_bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("sizes", "described", "words"),
    [
        (("n_leaves", "leaves"), {"n_leaves": 8.0, "depth": 3.0}, "8 leaves"),
        (("n_rules", "rules"), {"log_prior": -9.0, "n_rules": 5.2}, "5 rules"),
    ],
)
def test_sizes_are_told_in_their_own_words(
    sizes: tuple[str, str], described: dict[str, float], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search for lists must neither fail for want of leaves nor speak of them."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    with progress_bar(*sizes) as show:
        show(
            samplers.Progress(
                phase="annealing", done=1, total=4, best_log_density=-4000.0, log_density=-4321.06,
                acceptance_rate=0.25, described=described,
            )
        )  # fmt: skip
    assert f"log posterior -4,321.1  {words}  25% accepted" in terminal.getvalue()
