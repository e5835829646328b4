"""Log gamma functions are listed only of weights that a box has, where boxes are few."""

import numpy as np
import pytest

from bayescascade import BranchCascade, LeafCascade
from bayescascade.base.errors import InternalError
from bayescascade.data.table import Table
from bayescascade.methods.cascades.exact import lattice, recursion

MODELS = {
    "leaf": LeafCascade(leaf="independent", search="exact", random_state=0),
    "process": LeafCascade(leaf="uniform", prior="generative", search="exact", random_state=0),
    "branch": BranchCascade(leaf="uniform", partitions="levels", search="exact", random_state=0),
    "subsets": BranchCascade(leaf="independent", search="exact", random_state=0),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("n_rows", [5_000, 1_000_000])
def test_what_is_listed_changes_no_digit(name, n_rows, rng, monkeypatch):
    """Evidence, best tree and averages are those with all weights listed."""
    codes = np.array(np.meshgrid(range(3), range(2), range(2))).reshape(3, -1)
    weights = rng.multinomial(n_rows, rng.dirichlet(np.full(12, 0.3))).astype(float)
    frame = {f"x{j}": row.repeat(weights.astype(int)).astype(str) for j, row in enumerate(codes)}
    table = Table.from_arrays(frame)

    def found():
        model = MODELS[name].fit(table)
        scores = model.score_codes(table.codes.astype(np.int32))
        return model.exact_.log_evidence, model.tree_.n_leaves, scores.tolist()

    few = found()
    assert np.isfinite(few[2]).all()
    monkeypatch.setattr(lattice, "_WEIGHTS_A_BOX", np.inf)
    assert found() == few


def test_weights_left_out_are_noticed(monkeypatch):
    """A weight that some box has, but the list has not, must not go unseen by the test above."""
    table = Table.from_arrays({"a": ["x"] * 3_000 + ["y"] * 2_000, "b": ["u", "v"] * 2_500})
    monkeypatch.setattr(recursion, "weights_of", lambda *_: np.zeros(1, np.int64))
    model = MODELS["subsets"]
    try:
        scores = model.fit(table).score_codes(table.codes.astype(np.int32))
    except (InternalError, ValueError):
        return
    assert not np.isfinite([model.exact_.log_evidence, *scores]).all()
