"""Trees and blocks: one tree is one object, and every broken invariant is named."""

import json

import numpy as np
import pytest

from bayescascade.data.column import Column
from bayescascade.data.schema import Schema
from bayescascade.methods.cascades.tree import Tree, block_codes, full_block, pack_block
from tests import reference
from tests.methods.cascades.problems import ORDINAL, TERNARY

NOMINAL = [True, False]
SCHEMA = Schema((Column("c0", "nominal", tuple("abc")), Column("c1", "ordinal", tuple("abcd"))))
NESTED = (0, [((0, 2), (1, [((0,), None), ((1, 2, 3), None)])), ((1,), None)])


def problems(tree):
    return list(tree.problems(SCHEMA))


def test_flat_form_survives_json():
    """Saved models and checkpoints hold it; 64-level blocks need every bit."""
    for tree in [*ORDINAL.trees[::50], Tree.from_nodes([0, -1, -1], [-1, 0, 0], [0, 1, 2**64 - 2])]:
        assert Tree.from_flat(json.loads(json.dumps(tree.to_flat()))) == tree


def test_order_of_branches_does_not_matter():
    """An unordered partition is one split, in whatever order it is written down."""
    turned = (0, [((1,), None), ((2, 0), (1, [((1, 2, 3), None), ((0,), None)]))])
    one, other = Tree.from_nested(NESTED, NOMINAL), Tree.from_nested(turned, NOMINAL)
    assert one == other
    assert hash(one) == hash(other)
    assert one != Tree.root()
    assert one != "a tree"


def test_facts_of_a_tree():
    """They are printed and traced."""
    tree = Tree.from_nested(NESTED, NOMINAL)
    assert (tree.n_nodes, tree.n_leaves, tree.depth) == (5, 3, 2)
    assert tree.features_used.tolist() == [0, 1]
    assert tree.leaves.tolist() == [2, 3, 4]
    assert tree.children(0) == [1, 4]
    root = Tree.root()
    assert (root.n_leaves, root.depth, root.features_used.size) == (1, 0, 0)


def test_trees_cannot_be_changed():
    """States are shared by chains, traces and best-so-far: a change would reach all of them."""
    tree = Tree.from_nested(NESTED, NOMINAL)
    for array in (tree.feature, tree.parent, tree.block):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5


def test_boxes_are_those_of_the_twin():
    """Counts and volumes of the printed leaves come from them."""
    root = [full_block(n, q) for n, q in zip(TERNARY.nominal, TERNARY.n_levels, strict=True)]
    for nested, tree in zip(TERNARY.nested[::40], TERNARY.trees[::40], strict=True):
        boxes = tree.boxes(np.array(root, np.uint64))[tree.leaves]
        found = [tuple(block_codes(True, int(word)) for word in box) for box in boxes]
        assert found == reference.leaves_of(nested, TERNARY.n_levels)


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


def test_nodes_must_stand_in_preorder():
    """Equal trees must be equal arrays, or a tree would be counted as two."""
    breadth_first = Tree.from_nodes(
        [0, 1, -1, -1, -1], [-1, 0, 0, 1, 1], [0, 0b101, 0b010, 0 | 1 << 32, 1 | 4 << 32]
    )
    assert problems(breadth_first) == ["nodes must stand in preorder"]


@pytest.mark.parametrize("value", [None, "0", [0.5], ["1"], [True], [None], [2**70], [[0]], {}])
@pytest.mark.parametrize("field", ["feature", "parent", "block"])
def test_flat_form_must_hold_integers(field, value):
    """Half a node is nothing to be rounded."""
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
