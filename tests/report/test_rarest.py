"""The rarest rows are the rarest of all, however the file was cut into blocks."""

from itertools import pairwise

import numpy as np
import pandas as pd
from hypothesis import given, settings, strategies as st
from rich.cells import cell_len

from bayescascade.model.rarest import RarestRows, rare_row_page
from bayescascade.report.page import render
from tests.report.trees import titanic_tree


@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(1, 80),
    n_kept=st.integers(0, 9),
    cuts=st.lists(st.integers(0, 80), max_size=4),
    is_weighted=st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_rarest_rows_equal_a_search_of_everything(seed, n_rows, n_kept, cuts, is_weighted):
    """A row that is lost at the edge of a block would be an outlier nobody sees."""
    rng = np.random.default_rng(seed)
    density = titanic_tree()
    codes = np.stack([rng.integers(-1, n, n_rows) for n in (4, 2, 2)]).astype(np.int32)
    kinds = {
        key: float(rng.choice([-9.0, -3.0, -1.0])) for key in set(map(tuple, codes.T.tolist()))
    }
    scores = np.array([kinds[key] for key in map(tuple, codes.T.tolist())])
    weights = rng.integers(0, 2, n_rows).astype(float) if is_weighted else np.ones(n_rows)
    cells = pd.DataFrame({"row": np.arange(n_rows)})
    rarest = RarestRows(density, n_kept)
    edges = sorted({0, n_rows, *(cut for cut in cuts if cut < n_rows)})
    for low, high in pairwise(edges):
        part = slice(low, high)
        rarest.add(
            cells[part], codes[:, part], scores[part], low + 1,
            weights[part] if is_weighted else None,
        )  # fmt: skip

    expected: dict[tuple[int, ...], list[int]] = {}
    for row, key in enumerate(map(tuple, codes.T.tolist()), 1):
        if weights[row - 1]:
            expected.setdefault(key, []).append(row)
    ranked = sorted(expected.items(), key=lambda item: (kinds[item[0]], item[1][0]))[:n_kept]
    assert [(r.log_density, r.row, r.times) for r in rarest.rows] == [
        (kinds[key], rows[0], len(rows)) for key, rows in ranked
    ]
    for rare, (key, _) in zip(rarest.rows, ranked, strict=True):
        sizes = [n for code, n in zip(key, (4, 2, 2), strict=True) if code >= 0]
        assert np.isclose(rare.log_uniform, -np.log(sizes).sum())


def test_a_rare_row_is_told_with_its_reason():
    """The point of the list is the why: cells, and the rule that makes them rare."""
    density = titanic_tree()
    rarest = RarestRows(density, 2)
    cells = pd.DataFrame(
        {"class": ["crew", "1st"], "sex": ["female", None], "age": ["child", "child"]}
    )
    rarest.add(cells, density.schema.encode(cells), np.array([-5.28, -4.39]), 1000)
    first, second = (render(rare_row_page(density, row)).split("\n") for row in rarest.rows)
    assert first == [
        "row 1,000   log density -5.28   0.08 x uniform",
        "  class: crew   sex: female   age: child",
        "  because sex is female and age is child: 45 of 2,201 rows, probability 0.02045,",
        "    density 0.005111, 0.0818 x uniform",
    ]
    assert "sex: missing" in second[1]
    averaged = RarestRows(density, 1)
    averaged.add(cells[:1], density.schema.encode(cells[:1]), np.array([-6.0]), 1)
    (of_row,) = (render(rare_row_page(density, row)) for row in averaged.rows)
    text = "averaged (by the model shown alone: 0.08 x uniform)"
    assert text in " ".join(of_row.split())
    assert sum(line.startswith("  because ") for line in second) == 2
    assert max(cell_len(line) for line in [*first, *second]) <= 80
