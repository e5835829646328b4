"""Saved cascades and rule lists: nothing is lost, and nothing that was forged is believed."""

import copy
import json
import tracemalloc
import zlib
from base64 import b64encode

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp

import bayescascade
from bayescascade import BranchCascade, LeafCascade
from bayescascade.base.errors import ModelFileError
from bayescascade.model.packing import _TYPES, Unpacked, narrow, pack
from tests.methods.density.trees import fits as trees
from tests.methods.lists.fits import classifier, fitted as rules, people
from tests.people import DECLARED

MODELS = {
    "leaf": lambda: trees.fitted(LeafCascade),
    "branch": lambda: trees.fitted(BranchCascade),
    "independent": lambda: trees.fitted(LeafCascade, leaf="independent"),
    "rules": rules,
    "labels": classifier,
}


def write(tmp_path, record):
    """Write a record as forged.json; return the path."""
    path = tmp_path / "forged.json"
    path.write_text(json.dumps(record))
    return path


@pytest.fixture(scope="module", params=MODELS)
def saved(request):
    """Return a model and the record in its file, but for most draws."""
    model = MODELS[request.param]()
    record = json.loads(json.dumps(model.to_record()))
    record["draws"] = record["draws"][:3] if "rules" in record else record["draws"]
    return model, record


@pytest.mark.parametrize("saved", ["branch", "labels"], indirect=True)
def test_a_loaded_model_says_that_it_has_no_data(saved, tmp_path):
    """The posterior needs the rows, which are not saved; it can be fitted anew."""
    model, record = saved
    loaded = bayescascade.load(write(tmp_path, record))
    for name in ("posterior_", "run_"):
        with pytest.raises(AttributeError, match=f"^{name} needs the rows"):
            getattr(loaded, name)
    with pytest.raises(AttributeError, match="has no attribute 'anything_'"):
        _ = loaded.anything_
    rows, labels = people(60), np.arange(60) % 2
    again = loaded.set_params(random_state=0, n_steps=100).fit(rows, labels)
    fresh = type(model)(**again.get_params()).fit(rows, labels)
    assert again.to_record() == fresh.to_record()


def test_parameters_are_saved_whatever_their_type(tmp_path):
    """NumPy's and pandas' containers are accepted by fit, so they must be by save."""
    model = LeafCascade(
        **trees.QUICK,
        expected_leaves=np.int64(6),
        columns=pd.Index(["sex", "fare"]),
        continuous={"fare": np.array([0.0, 5.0, 100.0])},
    ).fit(people())
    model.save(tmp_path / "model.json")
    loaded = bayescascade.load(tmp_path / "model.json")
    assert (loaded.expected_leaves, loaded.columns) == (6, ["sex", "fare"])
    assert loaded.continuous == {"fare": [0.0, 5.0, 100.0]}


def test_files_hold_no_rows(saved):
    """A model is passed on where the data must not be."""
    _, record = saved
    common = {"format", "version", "model", "parameters", "schema", "log_posterior", "summary"}
    own = {"rules", "n_candidates"} if "rules" in record else {"tree"}
    own |= {"classes", "target", "concentration"} if "classes" in record else set()
    assert set(record) == {*common, "draws", *own}
    assert not {"random_state", "checkpoint", "progress"} & set(record["parameters"])


@pytest.mark.parametrize("estimator", trees.ESTIMATORS)
def test_counts_of_levels_belong_to_independent_leaves(estimator, tmp_path):
    """They are what the probabilities inside leaves are made of, and so is the log posterior."""
    record = json.loads(json.dumps(trees.fitted(estimator, leaf="independent").to_record()))
    for place, words in (("tree", "exactly if its leaves are"), ("draws", "trees with indep")):
        without = copy.deepcopy(record)
        del without[place]["level_counts"]
        with pytest.raises(ModelFileError, match=words):
            bayescascade.load(write(tmp_path, without))
    for name, value, words in (
        ("leaf", "uniform", "exactly if its leaves are independent"),
        ("leaf_concentration", 3.0, "log posterior must follow from its counts"),
    ):
        path = write(tmp_path, {**record, "parameters": {**record["parameters"], name: value}})
        with pytest.raises(ModelFileError, match=words):
            bayescascade.load(path)


def put(place, value):
    """Return an edit of numbers; place and value may be made of them."""

    def edit(numbers):
        at = place(numbers) if callable(place) else place
        numbers[at] = value(numbers) if callable(value) else value

    return edit


def one_more(place):
    return put(place, lambda numbers: numbers[place] + 1)


SWAP = put([1, 2], lambda numbers: numbers[[2, 1]])
BEYOND = put(0, lambda numbers: numbers.max() + 1)
FORGED = {
    "feature": [put(np.argmin, 1), put(np.argmax, 9)],  # the first is a leaf's
    "depth": [put(0, 1), put(1, 0), put(np.argmax, lambda numbers: numbers.max() + 1)],
    "block": [SWAP, put(0, 1), put(1, 0), put(1, np.max), put(1, lambda n: n.max() + 1)],
    "blocks": [put(slice(None), 3)],
    "n_nodes": [
        put(0, 0),
        one_more(0),
        put([0, 1], lambda numbers: numbers[:2] + np.array([1, -1])),
    ],
    "counts": [one_more(0)],
    "rows": [SWAP, BEYOND],
    "level_counts": [one_more(0), SWAP],  # of two columns
    "pair_counts": [one_more(1), one_more(2)],
}
"""What may be edited in packed draws, and how."""


@pytest.mark.parametrize("leaf", ["uniform", "independent", "dependent"])
def test_forged_draws_are_refused(leaf, tmp_path):
    """Packed numbers are checked like those in plain sight."""
    model = trees.fitted(LeafCascade, leaf=leaf, predictive="average")
    record = model.to_record()
    for name, edits in FORGED.items():
        if record["draws"].get(name, {"size": 0})["size"] < 2:
            continue
        for edit in edits:
            numbers = (
                Unpacked(record["draws"])
                ._array(name, None, _TYPES["number"] + _TYPES["whole"])
                .astype(float)
            )
            edit(numbers)
            draws = {**record["draws"], name: pack(narrow(numbers))}
            with pytest.raises(ModelFileError, match=r"forged\.json: a (draw|saved)"):
                bayescascade.load(write(tmp_path, {**record, "draws": draws}))


def test_as_many_draws_are_kept_as_fit(tmp_path):
    """Fewer are an average over fewer, evenly chosen; the file says that some are left out."""
    how = {"leaf": "independent", "predictive": "average"}
    model = LeafCascade(**trees.QUICK, **DECLARED, **how, memory_limit=1e-4).fit(people())
    n_all = sum(trees.fitted(LeafCascade, **how)._draws.times)
    n_kept = sum(model._draws.times)
    assert 1 <= n_kept <= n_all / 2
    assert model.summary_.notes[-1] == (
        f"{n_kept} of {n_all} draws are kept, because trees are large"
    )
    model.save(tmp_path / "model.json")
    loaded, frame = bayescascade.load(tmp_path / "model.json"), people(60, seed=9)
    assert loaded.summary_ == model.summary_
    assert_array_equal(loaded.score_samples(frame), model.score_samples(frame))
    assert_array_equal(loaded.sample(9, random_state=1), model.sample(9, random_state=1))
    alone = logsumexp(
        [one.score_codes(model.encode(frame)) for one in model._drawn()[0]],
        axis=0, b=np.array(model._draws.times)[:, np.newaxis] / n_kept,
    )  # fmt: skip
    assert_allclose(model.score_samples(frame), alone, atol=1e-12)


@pytest.mark.parametrize("n_bytes", [1 << 20, 1 << 33])
def test_draws_take_no_more_memory_than_they_say(n_bytes, tmp_path):
    """A few kilobytes of zeros, unpacked, would fill the memory."""
    record = trees.fitted(LeafCascade).to_record()
    zeros = zlib.compressobj(9)
    data = b"".join(zeros.compress(bytes(1 << 20)) for _ in range(min(n_bytes, 1 << 26) >> 20))
    data = b64encode(data + zeros.flush()).decode()
    for size in (record["draws"]["blocks"]["size"], n_bytes):
        bomb = {"type": "|u1", "size": size, "data": data}
        draws = {**record["draws"], "blocks": bomb}
        tracemalloc.start()
        with pytest.raises(ModelFileError, match=r"forged\.json"):
            bayescascade.load(write(tmp_path, {**record, "draws": draws}))
        assert tracemalloc.get_traced_memory()[1] < 2e7
        tracemalloc.stop()


def test_forged_trees_are_not_as_large_as_files_can_say(tmp_path):
    """Fifty million nodes, a chain of splits, are 50 kilobytes: boxes of all would be gigabytes."""
    record = trees.fitted(LeafCascade).to_record()
    for n in (50_000_000, 500_000):
        many = pack(np.ones(n, np.uint8))
        depth = pack(np.arange(n, dtype="<u4")) if n < 10**6 else many
        own = {"times": [1], "n_nodes": pack(np.array([n], "<u4")), "feature": many}
        own |= {"depth": depth, "block": many, "counts": pack(np.empty(0, np.uint8))}
        path = write(tmp_path, {**record, "draws": {**record["draws"], **own}})
        tracemalloc.start()
        with pytest.raises(ModelFileError):
            bayescascade.load(path)
        assert tracemalloc.get_traced_memory()[1] < 3e8
        tracemalloc.stop()


def test_parts_without_cells_are_refused(tmp_path):
    """A density cannot live where there is nothing."""
    record = json.loads(json.dumps(rules().to_record()))
    record["draws"][0]["rules"] = [[[0, 0, 1]], [[0, 1, 2]]]
    record["draws"][0]["counts"] = [100.0, 100.0, 0.0]
    with pytest.raises(ModelFileError, match="every part of a saved density list must capture"):
        bayescascade.load(write(tmp_path, record))
