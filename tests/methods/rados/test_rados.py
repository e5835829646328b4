"""Rados: what is summed, how it is drawn, and what a file may be."""

import io
import json
import math
import zipfile
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chisquare

from bayescascade import DataError, ModelFileError, ParameterError, RadoBoostClassifier, Rados
from bayescascade.base.watch import Watch
from bayescascade.methods.rados import signatures
from bayescascade.methods.rados.signatures import draw_subsets, subset_sums, uses
from tests.methods.rados.problems import all_rados, blobs

PLAIN = {"standardize": False, "intercept": False}


def members(bits, n_rows):
    return np.unpackbits(bits, axis=0, bitorder="little")[:n_rows].T


@pytest.mark.parametrize("n_rows", [1, 7, 8, 20_001])
def test_sums_are_those_of_the_subsets(n_rows):
    """Bytes, blocks and what is beyond the rows."""
    rng = np.random.default_rng(n_rows)
    edges = rng.normal(size=(n_rows, 3))
    for size in (None, 0, max(1, n_rows // 9), n_rows // 2, n_rows - 1, n_rows):
        sizes = None if size is None else np.full(5, size)
        bits = draw_subsets(rng.bytes, n_rows, 5, sizes)
        chosen = members(bits, n_rows)
        assert (np.unpackbits(bits, axis=0, bitorder="little")[n_rows:] == 0).all()
        if size is not None:
            assert (chosen.sum(axis=1) == size).all()
        found = subset_sums(bits, lambda a, b: edges[a:b], n_rows, 3)
        np.testing.assert_allclose(found, chosen @ edges, atol=1e-9)
        np.testing.assert_array_equal(uses(bits, n_rows), chosen.sum(axis=0))


def test_a_time_limit_leaves_the_first_rados(monkeypatch):
    """They are drawn as without one, so that rados do not depend on how many there are."""
    X, y = blobs(60)
    whole = Rados.sample(X, y, 100, random_state=0)
    monkeypatch.setattr(signatures, "_GROUP_BYTES", 64)
    with pytest.warns(UserWarning, match="time_limit ended it: 8 of 100 rados were made"):
        first = Rados.sample(X, y, 100, time_limit=1e-9, random_state=0)
    np.testing.assert_array_equal(first.values, whole.values[:8])
    assert len(Rados.sample(X, y, 100, time_limit=600.0, random_state=0)) == 100
    with pytest.raises(ParameterError, match="time_limit must be a finite number > 0, got 0"):
        Rados.sample(X, y, time_limit=0)


def test_no_clock_decides_how_many_private_rados_are_released(monkeypatch):
    """Time depends on cells, and the number is released; plain rados do end."""
    X, y = blobs(400)
    hidden = np.arange(400) % 3 == 0
    frame = pd.DataFrame(X).add_prefix("x").assign(hidden=hidden)
    monkeypatch.setattr(signatures, "_GROUP_BYTES", 64)
    budget = {"epsilon": 3.0, "delta": 1e-6, "n_rados": 7, "noise": "simulated"}
    with Watch(1e-9).watching():
        rows = [
            Rados.sample_gaussian(
                X, y > 0, edge_bounds=(-3.0, 3.0), noise_on=on, random_state=0, **budget
            )
            for on in ("edges", "rados")
        ]
        feature = Rados.sample_feature_private(frame, y, feature="hidden", random_state=0, **budget)
        assert len(Rados.sample(X, y, 7, random_state=0)) == 1
    assert [len(made) for made in (*rows, feature)] == [7, 7, 7]


def shares_of_subsets(bits, n_rows, expected):
    """Return the p-value of subsets being uniform among those expected."""
    seen = members(bits, n_rows) @ (1 << np.arange(n_rows))
    counts = np.array([np.sum(seen == one) for one in expected])
    assert counts.sum() == len(seen)
    return chisquare(counts).pvalue


@pytest.mark.parametrize("size", [None, 1, 3, 5])
def test_all_subsets_are_as_probable(size, monkeypatch):
    """Of a size, too; and a test that tells if steps were passed over."""
    rng, n_rows, n = np.random.default_rng(0), 6, 8_000
    monkeypatch.setattr(signatures, "_MOST_WORDS", 50)  # so that there are several rounds
    rows = range(n_rows)
    sizes = range(n_rows + 1) if size is None else [size]
    expected = [sum(1 << i for i in chosen) for s in sizes for chosen in combinations(rows, s)]
    bits = draw_subsets(rng.bytes, n_rows, n, None if size is None else np.full(n, size))
    assert shares_of_subsets(bits, n_rows, expected) > 1e-4
    if size == 3:  # the broken twin: the first of the rows instead of random ones
        counts = members(draw_subsets(rng.bytes, n_rows, n), n_rows)
        for row in counts:
            for i in range(n_rows):
                if row.sum() < size:
                    row[i] = 1
                elif row.sum() > size:
                    row[i] = 0
        broken = np.packbits(counts.T, axis=0, bitorder="little")
        assert shares_of_subsets(broken, n_rows, expected) < 1e-9


def test_rows_are_as_probable_where_their_number_is_a_power_of_two():
    """Remainders of random words are, of integers; of floats they would not be."""
    sizes = np.full(4_000, 5)
    counts = uses(draw_subsets(np.random.default_rng(1).bytes, 1_024, 4_000, sizes), 1_024)
    assert chisquare(counts).pvalue > 1e-4


def test_rados_are_those_of_the_definition():
    """Each is among the 2^m of definition 1, and fair coins find their mean."""
    X, y = blobs(8)
    every = all_rados(X, y)
    rados = Rados.sample(X, y, 500, **PLAIN, random_state=1)
    nearest = np.abs(every[:, None] - rados.values).max(axis=2).min(axis=0)
    assert nearest.max() < 1e-9
    error = every.std(axis=0) / math.sqrt(500)
    assert (np.abs(rados.values.mean(axis=0) - every.mean(axis=0)) < 4 * error).all()
    whole = Rados.sample(X, y, 2, support=8, **PLAIN).values
    np.testing.assert_allclose(whole, np.tile(y @ X, (2, 1)), atol=1e-9)


def test_parts_of_the_rows_add_up():
    """Chunks and hospitals: sums of sums, by the same columns, labels and units."""
    X, y = blobs(90)
    parts = [Rados.sample(X[:30], y[:30], 40, random_state=0)]
    for first in (30, 60):
        rows = slice(first, first + 30)
        parts.append(Rados.sample(X[rows], y[rows], 40, like=parts[0], random_state=first))
    merged = Rados.merge(parts)
    assert (merged.n_rows, len(merged)) == (90, 40)
    np.testing.assert_allclose(merged.values, sum(part.values for part in parts), atol=1e-12)
    fixed = [Rados.sample(X[i::2], y[i::2], 5, support=45, like=parts[0]) for i in range(2)]
    whole = parts[0].reading.scaled(X) * y[:, None]
    np.testing.assert_allclose(Rados.merge(fixed).values[0], whole.sum(axis=0), atol=1e-9)
    assert Rados.merge(fixed).support == 90
    rows = [slice(0, 30), slice(30, 60), slice(60, 90)]
    blocks = Rados.sample_parts(((X[r], y[r]) for r in rows), 20_000, random_state=3)
    assert (blocks.n_rows, len(blocks)) == (90, 20_000)
    edges = blocks.reading.scaled(X) * y[:, None]
    half, spread = 0.5 * edges.sum(axis=0), blocks.values.std(axis=0)
    np.testing.assert_allclose(spread, 0.5 * np.linalg.norm(edges, axis=0), rtol=0.05)
    assert (np.abs(blocks.values.mean(axis=0) - half) < 4 * spread / math.sqrt(20_000)).all()
    with pytest.raises(DataError, match="parts must be at least one"):
        Rados.sample_parts([])
    assert Rados.sample(X, y, 3, support="auto").support == 10
    assert Rados.sample(X[:19], y[:19], 3, support="auto").support is None
    with pytest.raises(ParameterError, match="got the same ones twice"):
        Rados.merge([*parts, parts[1]])
    more = Rados.merge([parts[0], parts[0]], rows="same")
    assert (more.n_rows, len(more)) == (30, 80)


def test_standardized_columns_have_mean_0_and_deviation_1():
    X, y = blobs(50)
    X = X * [1e-200, 3.0, 1e150] + [0.0, 5.0, 1e155]
    reading = Rados.sample(X, y, 3).reading
    scaled = reading.scaled(X)
    np.testing.assert_allclose(scaled[:, :2].mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(scaled[:, :2].std(axis=0), 1, atol=1e-12)
    assert (scaled[:, 3] == 1).all()
    constant = Rados.sample(np.full((50, 1), 0.1), y, 3, intercept=False)
    assert (constant.values == 0).all()


def refused(words, kind=(DataError, ParameterError)):
    return pytest.raises(kind, match=words)


def test_what_is_no_data_is_named():
    X, y = blobs(20)
    with refused("two classes.*got 3"):
        Rados.sample(X, np.arange(20) % 3)
    with refused("at least two classes"):
        Rados.sample(X, np.ones(20, int))
    with pytest.raises(ValueError, match="0 feature"):
        Rados.sample(X[:, :0], y)
    with refused("support must be an integer from 1 to 20, got 21"):
        Rados.sample(X, y, support=21)
    with refused("n_rados must be an integer >= 1"):
        Rados.sample(X, y, 0)
    with refused('"x1".*missing'):
        Rados.sample(np.where([[0, 1, 0]], np.nan, X), y, missing="error")
    with refused('"x1".*sums floats hold'):
        Rados.sample(np.where([[0, 1, 0]], 1.7e308, X), np.sort(y), standardize=False)
    assert np.isfinite(Rados.sample(np.where(np.eye(20, 3) > 0, 1e300, X), y).values).all()


def test_rows_with_missing_cells_are_learned_from(tmp_path):
    """And those of others are read as the first, whose medians are not theirs."""
    X, y = blobs(400, shift=2.0)
    X[::5, 1] = np.nan
    north = Rados.sample(X[:200], y[:200], 200, random_state=0)
    south = Rados.sample(X[200:], y[200:], 200, like=north, random_state=1)
    together = Rados.merge([north, south])
    assert together.reading.columns == ["x0", "x1", "x1 is missing", "x2", "(intercept)"]
    assert "missing x1: imputed by the median, plus an indicator column" in str(together)
    together.save(tmp_path / "sums.json")
    model = RadoBoostClassifier(learner="moments").fit_rados(Rados.load(tmp_path / "sums.json"))
    assert np.mean(model.predict(X) == y) > 0.9
    assert "imputed by the median" in str(RadoBoostClassifier(random_state=0).fit(X, y))


def test_private_rados_take_no_median_of_rows():
    """It would be a release of its own, which the promise does not count."""
    X, y = blobs(40)
    X[:, 0] = X[:, 0] > 0
    X[3, 1] = np.nan
    private = {"feature": 0, "epsilon": 1.0, "noise": "simulated"}
    with refused('"x1" has a missing cell'):
        Rados.sample_feature_private(X, y, **private, values=(0, 1))
    with refused('"x1" has a missing cell'):
        Rados.sample_gaussian(
            X, y, edge_bounds=(-9, 9), classes=(-1, 1), epsilon=1.0, delta=1e-6, noise="simulated"
        )
    public = Rados.sample(np.where(np.arange(40)[:, None] == 5, np.nan, X), y, standardize=False)
    with refused("like must be rados whose column 0 is boolean"):  # gaps would be in the open
        Rados.sample_feature_private(X, y, **private, like=public)


def test_only_what_is_alike_is_merged():
    X, y = blobs(20)
    one = Rados.sample(X, y, 5)
    with refused("same columns"):
        Rados.merge([one, Rados.sample(X[:, :2], y, 5)])
    with refused("by like="):
        Rados.merge([one, Rados.sample(2 * X, y, 5)])
    with refused("by like="):
        Rados.merge([one, Rados.sample(X, np.array(["no", "yes"])[(y + 1) // 2], 5)])
    with refused("same number of rados"):
        Rados.merge([one, Rados.sample(X, y, 6, like=one)])
    few = Rados.sample(X, y, 5, like=one, support=3)
    for rows in ("same", "different"):
        with refused("compatible supports"):
            Rados.merge([one, few], rows=rows)
    with refused("at least one"):
        Rados.merge([])
    with refused("classes of y"):
        Rados.sample(X, y + 5, 5, like=one)
    with refused("like must be Rados"):
        Rados.sample(X, y, 5, like=one.reading)


def test_files_come_back(tmp_path):
    frame = pd.DataFrame({"sex": ["m", "f", "f"] * 9, "age": np.arange(27.0)})
    rados = Rados.sample(frame, ["no", "yes", "yes"] * 9, 4, support=7)
    rados.save(tmp_path / "r.npz")
    loaded = Rados.load(tmp_path / "r.npz")
    np.testing.assert_array_equal(loaded.values, rados.values)
    assert str(loaded) == str(rados)
    loaded.reading.check_agrees(rados.reading)
    assert Rados.merge([rados, loaded], rows="same").n_rows == 27


class Bomb:
    """What a pickle would run."""

    def __reduce__(self):
        return (pytest.fail, ("a file was executed",))


def test_forged_files_are_refused(tmp_path):
    """Each in one line, and nothing in it is run."""
    X, y = blobs(20)
    good, bad = tmp_path / "good.npz", tmp_path / "bad.npz"
    Rados.sample_feature_private(X > 0, y, feature=1, epsilon=3, delta=0.1, n_rados=1).save(good)
    with np.load(good) as arrays:
        values, about = arrays["values"], json.loads(str(arrays["about"]))
    promise, reading = about["promise"], about["reading"]
    forged = [{k: v for k, v in about.items() if k != name} for name in about]
    forged += [{**about, **change} for change in (
        {"n_rows": 0}, {"n_rows": True}, {"support": 21}, {"version": 9}, {"reading": 3},
        {"reading": {**reading, "units": [1.0, 0.0, 1.0]}},
        {"reading": {**reading, "center": [1.0]}},
        {"reading": {**reading, "classes": {"values": [1, -1], "dtype": "<i8"}}},
        {"reading": {**reading, "has_intercept": 1}}, {"reading": {**reading, "encoding": {}}},
        {"promise": {**promise, "epsilon": -1}}, {"promise": {**promise, "is_private": "yes"}},
        {"promise": {**promise, "feature": "z"}}, {"promise": {**promise, "protects": "rows"}},
    )]  # fmt: skip
    contents = [{"values": values, "about": json.dumps(one)} for one in forged]
    result = json.dumps(about)
    contents += [
        {"values": values},
        {"values": values[:, :2], "about": result},
        {"values": values * np.nan, "about": result},
        {"values": values.astype(np.float32), "about": result},
        {"values": np.array([[Bomb()]], dtype=object), "about": result},
        {"values": values, "about": np.array(Bomb(), dtype=object)},
        {"values": values, "about": "{"},
    ]
    for content in contents:
        with bad.open("wb") as file:
            np.savez(file, **content)
        with refused("bad.npz", ModelFileError) as caught:
            Rados.load(bad)
        assert "\n" not in str(caught.value)
    np.savez_compressed(bad, values=values, about=result)  # which may hide how large it is
    with refused("compression", ModelFileError):
        Rados.load(bad)
    header = b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little")
    shape = b"{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999, 4), }"
    with zipfile.ZipFile(bad, "w") as archive:
        archive.writestr("values.npy", header + shape.ljust(117) + b"\n")
        text = io.BytesIO()
        np.save(text, np.array(result))
        archive.writestr("about.npy", text.getvalue())
    for content in (bad.read_bytes(), good.read_bytes()[:-30], b"", b"PK"):
        bad.write_bytes(content)
        with refused("bad.npz", ModelFileError):
            Rados.load(bad)
    with refused("none.npz", ModelFileError):
        Rados.load(tmp_path / "none.npz")
