"""Long pages are folded: the strongest splits and rules stay, and what is left out is counted."""

import re
from dataclasses import replace

import numpy as np
import pytest
from rich.cells import cell_len

from bayescascade.data.column import Column
from bayescascade.data.schema import Schema
from bayescascade.methods.lists.label_list import LabelList
from bayescascade.report.folding import folded, shown_nodes
from bayescascade.report.html import to_html
from bayescascade.report.page import Fold, Guided, Numbers, Pieces, PrintedTable, render
from tests.report.lists import random_rules, wide_schema
from tests.report.trees import density_tree, random_density, titanic_tree, with_independent_leaves

VOTES = Schema(tuple(Column(f"vote {i}", "nominal", ("n", "y")) for i in range(17)))
STREETS = Schema(
    (
        Column("street", "nominal", tuple(f"street {i:02}" for i in range(60))),
        Column("night", "nominal", ("no", "yes")),
    )
)
FOLDED = re.compile(r"\.\.\. (\d+) lea(?:f|ves) in (\d+) splits?$", re.MULTILINE)


def votes(rng, n_splits=100):
    """Return a tree over seventeen yes or no columns."""
    return random_density(rng, VOTES, n_splits)


def test_a_long_tree_shows_its_strongest_splits(rng):
    """About forty lines, no leaf forgotten, and all of it for the asking."""
    tree = votes(rng)
    text, everything = tree.to_text(), tree.to_text(full=True)
    assert len(text.splitlines()) <= 46 + text.count("\n[")  # some labels wrap
    assert max(map(cell_len, text.splitlines())) <= 80
    assert everything == render(tree.page())
    assert len(everything.splitlines()) > 200
    shown = shown_nodes(tree.page()[0])
    leaves = set(tree.tree.leaves.tolist())
    texts = [tuple(map(int, found)) for found in FOLDED.findall(text)]
    assert len(leaves & shown) + sum(n for n, _ in texts) == tree.n_leaves
    n_splits = sum(n for _, n in texts)
    assert f"folded: {n_splits} of 100 splits, with " in text
    assert "all: to_text(full=True)" in " ".join(text.split())
    assert all(node == 0 or int(tree.tree.parent[node]) in shown for node in shown)
    strongest = np.argsort(-tree.gains, kind="stable")[:5].tolist()
    assert shown.issuperset(strongest)


def test_what_is_hardly_too_long_stays_whole(rng):
    """Folding a few lines would hide more than it saves."""
    tree = votes(rng, 28)
    assert 40 < tree.tree.n_nodes <= 60
    assert tree.to_text() == tree.to_text(full=True)
    small = titanic_tree()
    assert str(small) == render(small.page())


def test_branches_of_a_wide_split_are_folded_together():
    """Sixty streets: the busy ones have lines, the others one, with their rows."""
    by_night = (1, [((0,), None), ((1,), None)])
    nested = (0, [((i,), by_night if i in (3, 50) else None) for i in range(60)])
    counts = [10.0] * 62
    counts[7], counts[40] = 4000.0, 900.0
    lines = str(density_tree(STREETS, nested, counts)).splitlines()
    (line,) = (each for each in lines if "└─ ... " in each)
    assert any("street is street 06 " in each for each in lines)
    result = re.search(r"\.\.\. (\d+) leaves", line)
    n_shown = sum(" is " in each for each in lines)
    assert n_shown < 45
    assert int(result[1]) > 15
    assert f" {int(result[1]) * 10:,} rows (" in " ".join(" ".join(lines[-4:]).split())


@pytest.mark.slow
def test_no_depth_is_too_deep():
    """A chain of a thousand splits ends in a note, not in a traceback, on every medium."""
    chain = Guided(
        [f"node {i}" for i in range(2399)],
        [0, *(2 * (i // 2) for i in range(2398))],
        [Numbers("rows", ["1"] * 2399)],
        str,
        fold=Fold([0.0] * 2398 + [9.0], "all", ("leaf", "leaves")),
    )
    text = render(folded((chain,)))
    assert len(text.splitlines()) < 50
    assert to_html((chain,)).count("<details") == 1199


def test_gains_add_up_to_the_log_likelihood(rng):
    """What a split is said to win is what the tree is more probable by."""
    tree = votes(rng)
    tree = replace(tree, counts=tree.counts[0] * tree.probabilities)
    leaves = tree.tree.leaves
    won = tree.counts[leaves] @ (tree.log_densities[leaves] - tree.log_densities[0])
    assert tree.gains.sum() == pytest.approx(won)
    independent = with_independent_leaves(rng, titanic_tree())
    p = independent.probabilities[independent.tree.leaves]
    inside = independent.level_probabilities
    mixed = p @ inside

    def entropy(shares):
        return -float(np.sum(shares * np.log(np.where(shares > 0, shares, 1.0))))

    won = entropy(mixed) - entropy(p) - sum(w * entropy(q) for w, q in zip(p, inside, strict=True))
    assert independent.gains.sum() == pytest.approx(independent.counts[0] * won)


def test_long_lists_keep_their_order_and_their_else(rng):
    """Rules are read downward: stretches that are left out stand where they were."""
    schema = wide_schema(6)
    rules = random_rules(rng, schema, 80)
    counts = rng.integers(1, 400, (81, 2)).astype(float)
    density = LabelList(schema, np.array(["no", "yes"]), rules, counts, 1.0)
    text = density.to_text()
    assert len(density.to_text(full=True)) > len(text)
    assert text.splitlines()[1].startswith(("if ", "... "))
    assert re.search(r"^else  ", text, re.MULTILINE)
    left = [int(n) for n in re.findall(r"^\.\.\. (\d+) rules?, ", text, re.MULTILINE)]
    n_shown = len(re.findall(r"^(?:if|else if|else) ", text, re.MULTILINE))
    assert sum(left) + n_shown == 81
    assert n_shown + len(left) <= 41
    assert f"folded: {sum(left)} of 81 rules, with " in text


def test_a_row_left_out_alone_is_shown():
    """Its line would be as long as the one that stands for it."""
    fold = Fold([5.0, 0.0, 4.0, 3.0, 0.0, 0.0, 2.0, 0.0], "all", ("rule", "rules"), [1.0] * 8)
    table = PrintedTable([f"rule {i}" for i in range(8)], [Numbers("n", ["1"] * 8)], fold=fold)
    lines = render(folded((table,), 5)).splitlines()
    assert [line.split("  ")[0] for line in lines[1:5]] == ["rule 0", "rule 1", "rule 2", "rule 3"]
    assert lines[5] == "... 4 rules, 4 rows (50.0 %)"
    assert lines[6].startswith("folded: 4 of 8 rules, with 14.3 % of all")


def test_many_columns_are_counted():
    pieces = Pieces([f"c{i}: a, b" for i in range(300)], noun="column")
    assert render(folded((pieces,))).endswith("c11: a, b   ... 288 more columns")
    assert folded((Pieces(pieces.pieces[:12], noun="column"),))[0].pieces == pieces.pieces[:12]
