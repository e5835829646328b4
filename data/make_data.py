"""Make the data sets of this folder: python data/make_data.py [directory].

Only the standard library is used, and of its random generator only what is the same in every
version of Python, so that every run writes the same bytes.
"""

import argparse
import csv
import functools
import itertools
import random
from collections.abc import Iterable, Sequence
from pathlib import Path

HOUSEBREAK_SEED = 1062
N_HOUSEBREAKS = 3000

# People aboard the Titanic (Dawson 1995): class, sex, age -> died, survived. No crew were children.
TITANIC = {
    ("1st", "male", "adult"): (118, 57),
    ("1st", "male", "child"): (0, 5),
    ("1st", "female", "adult"): (4, 140),
    ("1st", "female", "child"): (0, 1),
    ("2nd", "male", "adult"): (154, 14),
    ("2nd", "male", "child"): (0, 11),
    ("2nd", "female", "adult"): (13, 80),
    ("2nd", "female", "child"): (0, 13),
    ("3rd", "male", "adult"): (387, 75),
    ("3rd", "male", "child"): (35, 13),
    ("3rd", "female", "adult"): (89, 76),
    ("3rd", "female", "child"): (17, 14),
    ("crew", "male", "adult"): (670, 192),
    ("crew", "male", "child"): (0, 0),
    ("crew", "female", "adult"): (3, 20),
    ("crew", "female", "child"): (0, 0),
}

# Goh (2018), section 3.4.1: x1, x2, x3 -> rows.
SPARSE_TREE = {
    (1, 2, 1): 100,
    (1, 2, 2): 100,
    (2, 1, 1): 100,
    (2, 1, 2): 400,
    (2, 2, 2): 300,
}

ROWS_OF_SQUARES = ("top", "middle", "bottom")
COLUMNS_OF_SQUARES = ("left", "center", "right")
LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))

HOUSEBREAK_LEVELS = {
    "location_of_entry": ("window", "door", "wall", "basement"),
    "means_of_entry": ("forceful", "open_area", "picked_lock", "unlocked", "other"),
    "resident_inside": ("yes", "no"),
    "ransacked": ("yes", "no"),
    "day": ("weekday", "weekend"),
    "premise": (
        "residence",
        "workplace",
        "care_home",
        "parking",
        "club",
        "storage",
        "construction_site",
        "street",
        "church",
    ),
}

# The leaves of an invented density tree: its share of the rows, and the levels that it allows
# (all levels of a column that it does not name). Within a leaf all cells are equally likely.
# The leaves do not overlap and together cover every cell.
INSTITUTIONS = ("care_home", "club", "church")
OUTDOORS = ("parking", "storage", "construction_site", "street")
HOUSEBREAK_LEAVES: tuple[tuple[float, dict[str, tuple[str, ...]]], ...] = (
    (
        0.24,
        {
            "premise": ("residence",),
            "resident_inside": ("no",),
            "means_of_entry": ("forceful",),
            "location_of_entry": ("window", "door"),
            "day": ("weekday",),
        },
    ),
    (
        0.08,
        {
            "premise": ("residence",),
            "resident_inside": ("no",),
            "means_of_entry": ("forceful",),
            "location_of_entry": ("window", "door"),
            "day": ("weekend",),
        },
    ),
    (
        0.05,
        {
            "premise": ("residence",),
            "resident_inside": ("no",),
            "means_of_entry": ("forceful",),
            "location_of_entry": ("wall", "basement"),
        },
    ),
    (
        0.15,
        {
            "premise": ("residence",),
            "resident_inside": ("no",),
            "means_of_entry": ("open_area", "picked_lock", "unlocked", "other"),
            "ransacked": ("no",),
        },
    ),
    (
        0.05,
        {
            "premise": ("residence",),
            "resident_inside": ("no",),
            "means_of_entry": ("open_area", "picked_lock", "unlocked", "other"),
            "ransacked": ("yes",),
        },
    ),
    (
        0.11,
        {
            "premise": ("residence",),
            "resident_inside": ("yes",),
            "ransacked": ("no",),
            "means_of_entry": ("open_area", "unlocked"),
        },
    ),
    (
        0.03,
        {
            "premise": ("residence",),
            "resident_inside": ("yes",),
            "ransacked": ("no",),
            "means_of_entry": ("forceful", "picked_lock", "other"),
        },
    ),
    (
        0.01,
        {"premise": ("residence",), "resident_inside": ("yes",), "ransacked": ("yes",)},
    ),
    (
        0.12,
        {
            "premise": ("workplace",),
            "location_of_entry": ("door",),
            "means_of_entry": ("forceful", "picked_lock"),
        },
    ),
    (
        0.03,
        {
            "premise": ("workplace",),
            "location_of_entry": ("door",),
            "means_of_entry": ("open_area", "unlocked", "other"),
        },
    ),
    (0.04, {"premise": ("workplace",), "location_of_entry": ("window", "wall", "basement")}),
    (0.03, {"premise": INSTITUTIONS, "resident_inside": ("yes",)}),
    (0.02, {"premise": INSTITUTIONS, "resident_inside": ("no",)}),
    (0.03, {"premise": OUTDOORS, "day": ("weekend",)}),
    (0.01, {"premise": OUTDOORS, "day": ("weekday",)}),
)


def make_titanic(path: Path) -> None:
    """Write one row per person aboard the Titanic."""
    rows = []
    for person, (n_died, n_survived) in TITANIC.items():
        rows += [(*person, "no")] * n_died + [(*person, "yes")] * n_survived
    write_rows(path, ("class", "sex", "age", "survived"), rows)


def make_sparse_tree(path: Path) -> None:
    """Write the 1,000 rows of the thesis's sparse tree: five occupied cells of eight."""
    rows = itertools.chain.from_iterable([cell] * n for cell, n in SPARSE_TREE.items())
    write_rows(path, ("x1", "x2", "x3"), rows)


def make_extreme_uniform(path: Path) -> None:
    """Write the integers from 1 to 100, one a row."""
    write_rows(path, ("x",), ((x,) for x in range(1, 101)))


def make_tic_tac_toe(path: Path) -> None:
    """Write every board with which a game of tic-tac-toe can end if x moves first.

    Squares are x, o or b (blank); the outcome is positive if x has won.
    """
    squares = [f"{row}_{column}" for row in ROWS_OF_SQUARES for column in COLUMNS_OF_SQUARES]
    boards = sorted(end_positions("b" * 9, "x"))
    rows = [(*board, "positive" if has_won(board, "x") else "negative") for board in boards]
    write_rows(path, (*squares, "outcome"), rows)


def make_housebreak(path: Path) -> None:
    """Write fictional housebreaks, drawn from the invented density tree above."""
    uniform = random.Random(HOUSEBREAK_SEED).random
    shares = list(itertools.accumulate(share for share, _ in HOUSEBREAK_LEAVES))
    rows = []
    for _ in range(N_HOUSEBREAKS):
        draw = uniform() * shares[-1]
        leaf = next(i for i, share in enumerate(shares) if draw < share)
        allowed = HOUSEBREAK_LEAVES[leaf][1]
        choices = [allowed.get(name, levels) for name, levels in HOUSEBREAK_LEVELS.items()]
        rows.append([levels[int(uniform() * len(levels))] for levels in choices])
    write_rows(path, tuple(HOUSEBREAK_LEVELS), rows)


@functools.cache
def end_positions(board: str, mover: str) -> frozenset[str]:
    """Return the boards in which games can end that go on from `board` with `mover` to move."""
    if has_won(board, "x") or has_won(board, "o") or "b" not in board:
        return frozenset([board])
    other = "o" if mover == "x" else "x"
    ends: set[str] = set()
    for square, mark in enumerate(board):
        if mark == "b":
            ends |= end_positions(board[:square] + mover + board[square + 1 :], other)
    return frozenset(ends)


def has_won(board: str, player: str) -> bool:
    """Return whether `player` has three in a line."""
    return any(all(board[square] == player for square in line) for line in LINES)


def write_rows(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a CSV file with line feeds."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


MAKERS = {
    "titanic.csv": make_titanic,
    "sparse_tree.csv": make_sparse_tree,
    "extreme_uniform.csv": make_extreme_uniform,
    "tic_tac_toe.csv": make_tic_tac_toe,
    "housebreak.csv": make_housebreak,
}


def main() -> None:
    """Write all data sets into a directory, by default this folder."""
    parser = argparse.ArgumentParser(description="Make the data sets of this folder.")
    parser.add_argument("directory", nargs="?", type=Path, default=Path(__file__).parent)
    directory = parser.parse_args().directory
    for name, make in MAKERS.items():
        make(directory / name)
        print(directory / name)


if __name__ == "__main__":
    main()
