"""Trees and blocks: one tree is one object, also of all with its leaves; invariants are named."""

import itertools
import json
from collections import defaultdict

import numpy as np
import pytest

from bayescascade.data.column import Column
from bayescascade.data.schema import Schema
from bayescascade.methods.density.trees.posterior import BranchPosterior
from bayescascade.methods.density.trees.tree import LEAF, Tree, block_codes, full_block, pack_block
from tests import reference
from tests.methods.density.trees import problems as tiny
from tests.methods.density.trees.problems import Problem, each

NOMINAL = [True, False]
SCHEMA = Schema((Column("c0", "nominal", tuple("abc")), Column("c1", "ordinal", tuple("abcd"))))
NESTED = (0, [((0, 2), (1, [((0,), None), ((1, 2, 3), None)])), ((1,), None)])


def problems(tree):
    return list(tree.problems(SCHEMA))


def test_flat_form_survives_json():
    """Saved models and checkpoints hold it; 64-level blocks need every bit."""
    for tree in [
        *tiny.ORDINAL.trees[::50],
        Tree.from_nodes([0, -1, -1], [-1, 0, 0], [0, 1, 2**64 - 2]),
    ]:
        assert Tree.from_flat(json.loads(json.dumps(tree.to_flat()))) == tree


def test_facts_of_a_tree():
    """They are printed and traced."""
    tree = Tree.from_nested(NESTED, NOMINAL)
    assert (tree.n_nodes, tree.n_leaves, tree.depth) == (5, 3, 2)
    assert tree.features_used.tolist() == [0, 1]
    assert tree.leaves.tolist() == [2, 3, 4]
    assert tree.children(0) == [1, 4]
    root = Tree.root()
    assert (root.n_leaves, root.depth, root.features_used.size) == (1, 0, 0)


def test_layers_make_the_tree_of_their_nodes():
    """Draws are made layer by layer; a node at the wrong place would have other rows."""
    for nested, tree in zip(tiny.TERNARY.nested[::40], tiny.TERNARY.trees[::40], strict=True):
        layers, nodes = [], [(nested, 0)]
        while nodes:
            below = [
                [(child, pack_block(True, codes)) for codes, child in sorted(node[1])]
                if node else []
                for node, _ in nodes
            ]  # fmt: skip
            columns = [node[0] if node else LEAF for node, _ in nodes]
            blocks = np.array([block for _, block in nodes], np.uint64)
            layers.append((np.array(columns), np.array([*map(len, below)]), blocks))
            nodes = [*itertools.chain.from_iterable(below)]
        assert Tree.from_layers(layers) == tree


def test_trees_cannot_be_changed():
    """States are shared by chains, traces and best-so-far: a change would reach all of them."""
    tree = Tree.from_nested(NESTED, NOMINAL)
    for array in (tree.feature, tree.parent, tree.block):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5


def test_boxes_are_those_of_the_twin():
    """Counts and volumes of the printed leaves come from them."""
    root = [
        full_block(n, q) for n, q in zip(tiny.TERNARY.nominal, tiny.TERNARY.n_levels, strict=True)
    ]
    for nested, tree in zip(tiny.TERNARY.nested[::40], tiny.TERNARY.trees[::40], strict=True):
        boxes = tree.boxes(np.array(root, np.uint64))[tree.leaves]
        found = [tuple(block_codes(True, int(word)) for word in box) for box in boxes]
        assert found == reference.leaves_of(nested, tiny.TERNARY.n_levels)


VALID = {"feature": [0, 1, -1, -1, -1], "parent": [-1, 0, 1, 1, 0]}
BLOCKS = [0, 0b101, 0 | 1 << 32, 1 | 4 << 32, 0b010]


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("feature", [], "one length"),
        ("parent", [-1, 0, 1, 1], "one length"),
        ("block", [*BLOCKS, 1], "one length"),
        ("parent", [0, 0, 1, 1, 0], "first node must be the root"),
        ("parent", [-1, 0, 1, 4, 0], "parent must come before"),
        ("parent", [-1, 0, 1, -1, 0], "parent must come before"),
        ("feature", [0, 2, -1, -1, -1], "column must be below 2"),
        ("feature", [0, -2, -1, -1, -1], "column must be below 2"),
        ("feature", [0, 1, -1, -1, 1], "leaf exactly if it has no branches"),
        ("feature", [0, -1, -1, -1, -1], "split a column"),
        ("block", [0, 0b100, *BLOCKS[2:]], "share out its remaining levels"),
        ("block", [0, 0b111, *BLOCKS[2:]], "share out its remaining levels"),
        ("block", [0, 0b101, 0 | 1 << 32, 1 | 5 << 32, 0b010], "node 1"),
        ("block", [0, 0b101, 0 | 1 << 32, 1 | (2**32 - 1) << 32, 0b010], "node 1"),
        ("block", [0, 0b101, 0, 0 | 4 << 32, 0b010], "node 1"),
        ("block", [0, 0b101, 1 | 4 << 32, 0 | 1 << 32, 0b010], "by their lowest level"),
        ("parent", [-1, 0, 1, 0, 1], "node"),
    ],
)
def test_broken_invariants_are_named(field, value, words):
    """A forged file must be refused before anything is computed from it, whatever it holds."""
    arrays = {**VALID, "block": BLOCKS}
    assert problems(Tree.from_nodes(**arrays)) == []
    found = problems(Tree.from_nodes(**{**arrays, field: value}))
    assert found
    assert words in found[0]


def test_equal_trees_are_equal_arrays():
    """In whatever order branches are written; nodes out of preorder would be counted as two."""
    turned = (0, [((1,), None), ((2, 0), (1, [((1, 2, 3), None), ((0,), None)]))])
    one, other = Tree.from_nested(NESTED, NOMINAL), Tree.from_nested(turned, NOMINAL)
    assert one == other
    assert hash(one) == hash(other)
    assert one != Tree.root()
    assert one != "a tree"
    breadth_first = Tree.from_nodes(
        [0, 1, -1, -1, -1], [-1, 0, 0, 1, 1], [0, 0b101, 0b010, 0 | 1 << 32, 1 | 4 << 32]
    )
    assert problems(breadth_first) == ["nodes must stand in preorder"]


@pytest.mark.parametrize("field", ["feature", "parent", "block"])
def test_flat_form_must_hold_integers(field):
    """Half a node is nothing to be rounded."""
    for value in (None, "0", [0.5], ["1"], [True], [None], [2**70], [[0]], {}):
        with pytest.raises((KeyError, TypeError, ValueError, OverflowError)):
            Tree.from_flat({**VALID, "block": BLOCKS, field: value})


def test_blocks_are_packed_and_unpacked():
    """The highest of 64 levels is the sign bit of other integer types."""
    assert block_codes(True, pack_block(True, [63, 0])) == (0, 63)
    assert block_codes(True, full_block(True, 64)) == tuple(range(64))
    assert block_codes(False, pack_block(False, [999, 998])) == (998, 999)
    assert block_codes(False, full_block(False, 65_536)) == tuple(range(65_536))
    with pytest.raises(ValueError, match="contiguous"):
        pack_block(False, [1, 3])


FOUR = (tiny.BINARY, tiny.MULTIWAY, tiny.ORDINAL, tiny.LEVELS)


def leaves(problem, nested):
    return frozenset(reference.leaves_of(nested, problem.n_levels))


@pytest.mark.parametrize(
    "problem",
    [tiny.BINARY, tiny.MULTIWAY, tiny.BINS, tiny.FRACTIONAL]
    + [pytest.param(problem, marks=pytest.mark.slow) for problem in (tiny.ORDINAL, tiny.LEVELS)],
    ids=lambda p: p.name,
)
def test_same_leaves_same_tree(problem):
    """Twenty searches that find the same leaves must print the same tree."""
    posterior = tiny.LEAF.on(problem)
    found = defaultdict(set)
    for nested, tree in zip(problem.nested, problem.trees, strict=True):
        canonical = posterior.canonical(tree)
        found[leaves(problem, nested)].add(canonical)
        assert leaves(problem, canonical.to_nested(problem.nominal)) == leaves(problem, nested)
    assert all(len(trees) == 1 for trees in found.values())
    assert len(found) < len(problem.trees)


@each(*FOUR, models=[tiny.LEAF, tiny.INDEPENDENT])
def test_canonical_trees_are_valid_and_as_probable(problem, model):
    """What is printed must be a tree of the posterior, with the density that is printed."""
    posterior = model.on(problem)
    known = set(problem.trees)
    for tree in problem.trees[::7]:
        canonical = posterior.canonical(tree)
        assert canonical in known
        expected = posterior.log_density(tree)
        assert posterior.log_density(canonical) == pytest.approx(expected, abs=1e-9)
        assert posterior.canonical(canonical) == canonical


def test_the_strongest_split_comes_first():
    """A reader takes the first split for the most important one: rows, 3 to 10, not 9 to 4."""
    weights = {(0, 0): 2.0, (0, 1): 1.0, (1, 0): 7.0, (1, 1): 3.0}
    posterior = tiny.LEAF.on(Problem("strong", (2, 2), (True, True), 2, given=weights))
    both = [((0,), None), ((1,), None)]
    columns_first, rows_first = (
        Tree.from_nested((first, [((k,), (1 - first, both)) for k in (0, 1)]), [True, True])
        for first in (1, 0)
    )
    assert posterior.canonical(columns_first) == rows_first


def test_branch_trees_stand_for_themselves():
    """Their density depends on the order of the splits."""
    posterior = tiny.BRANCH.on(tiny.BINARY)
    assert isinstance(posterior, BranchPosterior)
    assert all(posterior.canonical(tree) is tree for tree in tiny.BINARY.trees)
