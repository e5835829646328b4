"""Notes on labels of single rows, and on columns that say nothing, all, or the same."""

import numpy as np
import pandas as pd
import pytest

from bayescascade.data.label_notes import label_notes
from bayescascade.data.labels import check_labels

N = 300


def frame_of(rng, make):
    """Return a table of noise and a column "k", and the labels of its rows."""
    labels = rng.integers(2, size=N)
    return pd.DataFrame({"noise": rng.integers(4, size=N), "k": make(labels, rng)}), labels


@pytest.mark.parametrize(
    "make",
    [
        lambda y, _: y,
        lambda y, _: np.array(["no", "yes"])[y],
        lambda y, _: pd.Categorical(np.array(["no", "yes"])[y]),
        lambda y, rng: np.array(list("abcd"))[2 * y + rng.integers(2, size=N)],
        lambda y, rng: 10.0 * y + rng.random(N),  # a cut separates the classes
        lambda y, _: pd.Series(np.where(y == 1, 1.0, np.nan)),  # known for one class only
    ],
)
def test_a_column_that_determines_the_label_is_noted(make, rng):
    frame, labels = frame_of(rng, make)
    (texts,) = label_notes(frame, labels)
    assert texts.startswith('column "k" alone determines the label in all 300 rows: leave it out')


@pytest.mark.parametrize(
    "make",
    [
        lambda _, rng: rng.random(N),  # all values differ
        lambda y, rng: 2 * y + rng.normal(size=N),  # a related column
        lambda _, rng: [f"id{i}" for i in rng.permutation(N)],
        lambda y, _: np.where(np.arange(N) == 5, 1 - y, y),
        lambda y, _: pd.Series(np.where(np.arange(N) % 9 > 0, y, np.nan)),  # not for all rows
    ],
)
def test_chance_and_near_copies_are_not_noted(make, rng):
    """A note that comes by chance would make users drop good columns."""
    frame, labels = frame_of(rng, make)
    assert label_notes(frame, labels) == ()
    rare = (np.arange(N) == 7).astype(np.int64)  # some column singles out one row by chance
    assert label_notes(frame[["noise"]].assign(flag=rare), rare) == ()


def test_labels_of_single_rows_and_columns_without_cells_are_noted(rng):
    """scikit-learn's own warning names a `y` that no user of a command has written."""
    frame = pd.DataFrame({"noise": rng.integers(4, size=N), "k": [None] * N})
    assert label_notes(frame, np.arange(N) % 150) == ('column "k": only missing cells',)
    labels = np.array([f"l{i % 151}" for i in range(N)])
    assert len(check_labels(labels, "y", "a test")) == N  # a warning would fail here
    own, _ = label_notes(frame, np.arange(N) % 151)
    assert (
        own == "labels must be classes of several rows to be predicted, got 151 classes in 300 rows"
    )


def test_rows_without_weight_are_not_counted(rng):
    frame, labels = frame_of(rng, lambda y, _: np.where(np.arange(N) == 3, 1 - y, y))
    weights = np.ones(N)
    assert label_notes(frame, labels, weights) == ()
    weights[3] = 0.0
    assert "in all 299 rows" in label_notes(frame, labels, weights)[0]


def test_a_sample_only_chooses_what_is_looked_at():
    """In long tables a sample is looked at first; the last row decides nonetheless."""
    labels = np.arange(50_000) % 2
    frame = pd.DataFrame({"k": labels, "a": labels, "b": 1 - labels})
    leaks, ties = label_notes(frame, labels)
    assert leaks.startswith('each of the columns "k", "a", "b" alone determines the label in all')
    assert ties.startswith('"k", "a", "b" say the same in every row: any of them could')
    frame.loc[49_999, ["k", "b"]] = [0, 1]
    leaks, ties = label_notes(frame, labels)
    assert leaks.startswith('column "a" alone determines')
    assert ties.startswith('"k" and "b" mirror each other')


@pytest.mark.parametrize(
    ("a", "b", "how"),
    [
        ([1, 2, 3, 2], [1, 2, 3, 2], "are copies of each other: either could stand in a rule"),
        ([1.5, 2.0, 3.0, 2.0], [-1.5, -2.0, -3.0, -2.0], "mirror each other"),
        ([0, 1, 1, 0], [1, 0, 0, 1], "mirror each other"),
        ([0, 1, 1, 0], ["f", "m", "m", "f"], "say the same in every row"),
        (list("abaa"), list("cbcc"), "say the same in every row"),
        ([1, 2, 3, 2], [1, 20, 300, 20], "say the same in every row"),
        ([1, 2, np.nan, 2], [1, 2, np.nan, 2], "are copies of each other"),
        ([1, 2, 3, 2], [2, 1, 3, 1], ""),  # no cut of one is a cut of the other
        ([1, 2, 3, 2], [1, 2, np.nan, 2], ""),
        ([1, 1, 1, 1], [2, 2, 2, 2], ""),
        (["i", "j", "k", "l"], ["p", "q", "r", "s"], ""),  # names of rows
    ],
)
def test_columns_that_say_the_same_tie(a, b, how):
    texts = label_notes(pd.DataFrame({"a": a, "b": b}), np.array([0, 0, 1, 1]))
    assert len(texts) == bool(how)
    assert not how or how in texts[0]


def test_many_ties_are_counted(rng):
    columns = {f"a{k}": rng.integers(9, size=60) for k in range(12)}
    frame = pd.DataFrame({**columns, **{f"{name}_": cells for name, cells in columns.items()}})
    texts = label_notes(frame, rng.integers(2, size=60))
    assert len(texts) == 4
    assert texts[-1] == "9 more groups of columns say the same"
