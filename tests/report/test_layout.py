"""Lines break where a reader expects it and never grow beyond their width."""

import re

import pytest
from hypothesis import given, strategies as st
from rich.cells import cell_len

from bayescascade.base.texts import printable
from bayescascade.report.layout import flow, wrap
from bayescascade.report.page import Guided, Numbers, Pieces, PrintedTable, render

WORDS = st.text(alphabet="ab,漢 -é\t", min_size=0, max_size=60)


@given(text=WORDS, width=st.integers(4, 30), hanging=st.integers(0, 2))
def test_wrapped_lines_fit_and_lose_nothing(text, width, hanging):
    """A level's name that is cut off would be another level."""
    first, *others = wrap(text, width, hanging)
    assert cell_len(first) <= width
    assert all(cell_len(line) <= width - hanging for line in others)
    assert "".join([first, *others]).replace(" ", "") == printable(text).replace(" ", "")


def test_long_words_break_at_their_joints():
    """A column's name cut anywhere, "arr" and "est", is hard to read and to search for."""
    assert wrap("days_b_screening_arrest is 3", 20) == ["days_b_screening_", "arrest is 3"]
    assert wrap("is a_bcdefghij", 6) == ["is", "a_", "bcdefg", "hij"]


@given(pieces=st.lists(WORDS, max_size=8), width=st.integers(12, 40), indent=st.integers(0, 4))
def test_flowing_pieces_fit_and_lose_nothing(pieces, width, indent):
    """Every column and level that is printed must be there to the end."""
    lines = flow(pieces, width, indent)
    assert all(cell_len(line) <= width for line in lines)
    assert all(line.startswith(" " * indent) for line in lines[1:])
    everything = "".join(printable(piece) for piece in pieces)
    assert "".join(lines).replace(" ", "") == everything.replace(" ", "")


def test_pieces_stand_side_by_side_and_continue_under_their_title():
    lines = flow(["a (0.71)", "b (0.22)", "c (0.05)"], 26, 6, first="used  ", gap="  ")
    assert lines == ["used  a (0.71)  b (0.22)", "      c (0.05)"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain text, as it is", "plain text, as it is"),
        ("tab\there", "tab\\there"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("byte\udc80", "byte\\udc80"),
        ("漢字", "漢字"),
    ],
)
def test_what_a_terminal_would_act_on_is_escaped(text, expected):
    assert printable(text) == expected
    assert re.fullmatch(r"[^\x00-\x1f\x7f]*", printable(text))


def test_names_and_levels_anywhere_in_a_table_are_printable():
    """Cells hold levels, too: a terminal would obey their control characters."""
    red = "\x1b[31m"
    columns = [Numbers(f"{red}a\nb", [f"{red}level"]), Numbers("n", ["1"])]
    page = (
        PrintedTable([f"{red}label"], columns, header=f"{red}header"),
        Guided([f"{red}root"], [0], columns, lambda _: f"{red}heading"),
        Pieces([f"{red}piece"], first=f"{red}first", indent=30),
    )
    text = render(page)
    assert red not in text
    assert all(text.count(f"\\x1b[31m{word}") for word in ("level", "a", "header", "first"))
