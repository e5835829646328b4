"""Sets of many levels in words: short, and exact unless they say how many there are."""

import re

import numpy as np
import pandas as pd
import pytest

from bayescascade.data.column import Column
from bayescascade.data.schema import Schema, conditions_words
from tests.report.trees import density_tree

AGES = tuple(range(17, 58))
NOT_FIRST = 'not "Aaland and its islands"'  # the five others would be cut
PLACES = tuple(f"{a}{b}land" for a in "ABCDEFG" for b in "aeioruy")


@pytest.mark.parametrize(
    ("levels", "gap", "codes", "words"),
    [
        (AGES, False, range(12, 38), "29 to 54"),
        (AGES, False, [*range(10), 12, 14, 15], "17 to 26, 29, 31, 32"),
        (AGES, False, range(0, 41, 2), "17, 19, 21, 23, ... (21 of 41 levels)"),
        (AGES, False, [0, 1, 2], "17, 18, 19"),
        (AGES, False, [*range(3), *range(4, 41)], "17 to 19, 21 to 57"),
        (AGES, True, range(12, 38), "29 to 54"),
        (AGES, True, [*range(12, 38), 41], "29 to 54 or missing"),
        (PLACES, False, range(2, 49), "none of Aaland, Aeland"),
        (PLACES, True, range(2, 49), "none of Aaland, Aeland, missing"),
        (PLACES, True, range(2, 50), "missing or none of Aaland, Aeland"),
        (PLACES, False, range(3, 30), "Aoland, Arland, ... (27 of 49 levels)"),
        (PLACES, True, [*range(3, 30), 49], "Aoland, Arland, ... (27 of 49 levels) or missing"),
        (PLACES, True, range(1, 49), "neither Aaland nor missing"),
        (PLACES, True, range(1, 50), "missing or not Aaland"),
        (PLACES, True, range(49), "not missing"),
        (PLACES[:6], False, range(5), "Aaland, Aeland, Ailand, Aoland, Arland"),
        ([f"{place} and its islands" for place in PLACES[:6]], False, range(1, 6), NOT_FIRST),
        (("a, b", *"cdefgh"), False, range(1, 7), "c, d, e, f, g, h"),
        (("a, b", *"cdefghi"), False, range(1, 8), 'not "a, b"'),
        (("a,b", "c", "d"), False, [0, 1], '"a,b", c'),
        (("a   b", "c", "d"), False, [0, 1], '"a   b", c'),
        (("a", "b", "missing"), True, [0, 2], 'a, "missing"'),
        (("a", "b", "missing"), True, [0, 3], "a or missing"),
    ],
)
def test_many_levels_in_words(levels, gap, codes, words):
    """A line of a tree has no room for dozens of names."""
    assert Column("c", "nominal", tuple(sorted(levels)), (), gap).describe_codes(codes) == words


def test_words_are_exact_unless_they_are_cut(rng):
    """Who reads a rule must know which cells it holds, a gap included; evidence is never cut."""
    for gap in (False, True):
        column = Column("age", "nominal", AGES, (), gap)
        for share in np.repeat([0.1, 0.5, 0.9, 0.97], 60):
            codes = np.flatnonzero(rng.random(column.n_levels) < share).tolist()
            if 0 < len(codes) < column.n_levels:
                assert _parsed(column.describe_codes(codes, is_full=True), gap) == codes
                words = column.describe_codes(codes)
                assert len(words) <= 50 + len(" or missing")
                assert "..." in words or _parsed(words, gap) == codes
        schema, known = Schema((column,)), {0: tuple(range(0, 41, 2))}
        assert "..." in column.condition_words(known[0])
        assert "..." not in conditions_words(schema, known)


def _parsed(words: str, gap: bool) -> list[int]:
    """Return the codes that words about `AGES` name."""
    if left := re.fullmatch("(missing or )?(not|none of|neither) (.*)", words):
        others = _parsed(left[3].replace(" nor ", ", "), gap)
        return sorted(set(range(len(AGES) + gap)) - set(others))
    codes = []
    for part in words.replace(" or ", ", ").split(", "):
        ends = [
            len(AGES) if end == "missing" else AGES.index(int(end)) for end in part.split(" to ")
        ]
        codes += range(ends[0], ends[-1] + 1)
    return codes


def test_splits_on_many_levels_take_two_lines():
    """On a terminal of 80 columns, a branch of 24 places took seven; all are in --full and HTML."""
    schema = Schema((Column("place", "nominal", PLACES), Column("sex", "nominal", ("f", "m"))))
    inner = (1, [((0,), None), ((1,), None)])
    tree = density_tree(
        schema, (0, [(tuple(range(24)), inner), (tuple(range(24, 49)), None)]), [5, 6, 7]
    )
    lines = tree.to_text(width=80).splitlines()
    branch = next(
        i for i, line in enumerate(lines) if line.startswith("├─ place is Aaland, Aeland")
    )
    assert any("sex is f" in line for line in lines[branch + 1 : branch + 3])
    assert any(
        "some levels are left out" in line and "to_text(full=True)" in line for line in lines
    )
    full = " ".join(tree.to_text(full=True, width=80).replace("│", "").split())
    assert all(place in full for place in PLACES)
    assert all(place in tree._repr_html_() for place in PLACES)
    assert all(place in tree.to_sql() for place in PLACES)
    result = tree.explain(pd.Series({"place": "Galand", "sex": "f"}))
    assert "(25 of 49 levels)" in result
