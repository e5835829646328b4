"""Make the data sets of this folder: python data/make_data.py [directory].

Only the standard library is used, and of its random generator only what is the same in every
version of Python, so that every run writes the same bytes.
"""

import argparse
import csv
import functools
import itertools
import math
import random
from collections.abc import Iterable, Sequence
from pathlib import Path

HOUSEBREAK_SEED = 1062
N_HOUSEBREAKS = 3000

LIVER_SEED = 1995
N_LIVER_PATIENTS = 1500

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
SPARSE_TREE = {(1, 2, 1): 100, (1, 2, 2): 100, (2, 1, 1): 100, (2, 1, 2): 400, (2, 2, 2): 300}

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
    (0.01, {"premise": ("residence",), "resident_inside": ("yes",), "ransacked": ("yes",)}),
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

# Prices of the tests of liver patients, in dollars, after Turney (1995): an examination costs 1.00;
# a blood test its own price, and the drawing of blood once for all of them. Of alkaline phosphatase
# and SGOT we assume what bilirubin costs.
LIVER_EXAMINATIONS = (
    "age",
    "sex",
    "steroid",
    "antivirals",
    "fatigue",
    "malaise",
    "anorexia",
    "liver_big",
    "liver_firm",
    "spleen_palpable",
    "spiders",
    "ascites",
    "varices",
    "histology",
)
LIVER_BLOOD_TESTS = {
    "bilirubin": "5.17",
    "alk_phosphate": "5.17",
    "sgot": "5.17",
    "albumin": "5.17",
    "protime": "6.20",
}
BLOOD_PRICE = "2.10"


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


def make_liver_clinic(path: Path) -> None:
    """Write fictional liver patients: two hidden conditions, their symptoms and tests, an outcome.

    `failure` of the liver shows in the blood and in how patients feel, `pressure` in the portal
    vein in what an examination finds; both, and age, decide who dies.
    """
    uniform = random.Random(LIVER_SEED).random

    def normal() -> float:
        return math.fsum(uniform() for _ in range(12)) - 6  # `sum` rounds by version

    def yes_if(score: float) -> str:
        return "yes" if normal() < score else "no"

    rows = []
    for _ in range(N_LIVER_PATIENTS):
        failure, pressure = normal(), normal()
        pressure = 0.5 * failure + 0.85 * pressure
        age = min(78, max(18, round(42 + 13 * normal())))
        dies = 1.1 * failure + 0.9 * pressure + (age - 42) / 26 + 0.5 * normal() > 1.5
        rows.append(
            (
                age,
                "female" if uniform() < 0.3 else "male",
                yes_if(0.0),
                yes_if(-0.7),
                yes_if(0.3 + 0.6 * failure),
                yes_if(-0.3 + 0.5 * failure),
                yes_if(-0.7 + 0.4 * failure),
                yes_if(0.8),
                yes_if(-0.2 + 0.4 * pressure),
                yes_if(-0.8 + 0.7 * pressure),
                yes_if(-0.4 + 0.8 * pressure),
                yes_if(-1.3 + 0.6 * failure + 0.7 * pressure),
                yes_if(-1.4 + 1.1 * pressure),
                f"{max(0.3, 1.3 + 0.7 * failure + 0.4 * normal()):.1f}",
                round(max(26, 105 + 20 * failure + 35 * normal())),
                round(max(14, 85 + 25 * failure + 45 * normal())),
                f"{min(6.0, max(2.1, 3.8 - 0.45 * failure + 0.3 * normal())):.1f}",
                round(min(100, max(5, 62 - 18 * failure + 9 * normal()))),
                yes_if(-0.2 + 0.4 * pressure),
                "die" if dies else "live",
            )
        )
    examinations = LIVER_EXAMINATIONS[:-1]
    write_rows(path, (*examinations, *LIVER_BLOOD_TESTS, "histology", "outcome"), rows)


def make_liver_clinic_costs(path: Path) -> None:
    """Write what the tests of the liver patients cost; blood tests are in the group "blood"."""
    examinations = [(name, "1.00", "") for name in LIVER_EXAMINATIONS]
    blood_tests = [(name, price, "blood") for name, price in LIVER_BLOOD_TESTS.items()]
    rows = [("blood", BLOOD_PRICE, ""), *examinations, *blood_tests]
    write_rows(path, ("name", "cost", "group"), rows)


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
    "liver_clinic.csv": make_liver_clinic,
    "liver_clinic_costs.csv": make_liver_clinic_costs,
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
