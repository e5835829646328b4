"""A schema turns rows into codes and back, and says what does not fit."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from bayescascade.base.errors import DataError, ModelFileError, ParameterError
from bayescascade.base.store import stored
from bayescascade.data.column import Column
from bayescascade.data.schema import Schema
from bayescascade.data.table import Table

SEX = Column("sex", "nominal", ("female", "male"))
SIZE = Column("size", "ordinal", (3, 1, 2, 7), has_missing_level=True)
INCOME = Column("income", "continuous", (), (0.0, 1.0, 2.5, 10.0), has_missing_level=True)
OWNER = Column("owner", "nominal", (False, True))
SCHEMA = Schema((SEX, SIZE, INCOME, OWNER))


def test_codes_follow_the_levels():
    frame = pd.DataFrame(
        {
            "owner": [True, False, None],
            "ignored": 1,
            "income": [0.0, 10.0, None],
            "size": [3, 2, None],
            "sex": ["male", "female", None],
        }
    )
    codes = SCHEMA.encode(frame)
    assert codes.dtype == np.int32
    assert codes.flags.c_contiguous
    assert codes.tolist() == [[1, 0, -1], [0, 2, 4], [0, 2, 3], [1, 0, -1]]


@pytest.mark.parametrize(
    "rows",
    [
        {"sex": "male", "size": 1, "income": 1, "owner": True},
        pd.Series({"owner": True, "income": 1.0, "sex": "male", "size": 1}),
        {"sex": ["male"], "size": ["1"], "income": ["1.0"], "owner": ["true"]},
        np.array([["male", 1.0, 1, np.True_]], dtype=object),
        [["male", np.int8(1), "1", "TRUE"]],
        pd.DataFrame({"sex": pd.Categorical(["male"]), "size": 1, "income": 1, "owner": True}),
    ],
    ids=["mapping", "series", "columns", "array", "list", "frame"],
)
def test_one_row_in_any_form(rows):
    """A model fitted on a DataFrame must score what a user has at hand, text included."""
    assert SCHEMA.encode(rows).tolist() == [[1], [1], [1], [1]]


@pytest.mark.parametrize("cells", [[1, 2], [1.0, 2.0], ["1", "2"], ["1.0", " 2"], ["01", "2e0"]])
def test_number_levels_match_any_spelling(cells):
    """A CSV file read as text, or with a missing cell that made floats, is the same table."""
    assert Column("n", "nominal", (1, 2)).encode(pd.Series(cells)).tolist() == [0, 1]


def test_text_levels_match_the_canonical_text_only():
    """The texts "01" and "1" may be two codes of a register; the number 1 means the latter."""
    column = Column("code", "nominal", ("01", "1", "x"))
    assert column.encode(pd.Series(["01", "1", "x"])).tolist() == [0, 1, 2]
    assert column.encode(pd.Series([1, 1.0])).tolist() == [1, 1]
    with pytest.raises(DataError, match=r'unknown level "1\.0"'):
        column.encode(pd.Series(["1.0"]))


def test_truth_values_are_not_numbers():
    """True must not silently be taken for 1."""
    with pytest.raises(DataError, match='unknown level "True" in row 1'):
        Column("n", "nominal", (0, 1)).encode(pd.Series([True]))
    with pytest.raises(DataError, match='unknown level "1" in row 2'):
        OWNER.encode(pd.Series([True, 1], dtype=object))


def test_large_integers_are_exact():
    """Beyond 2**53 neighboring integers must not be confused by a float in between."""
    column = Column("id", "nominal", (2**53, 2**53 + 1))
    assert column.encode(pd.Series([2**53 + 1, 2**53])).tolist() == [1, 0]
    assert column.encode(pd.Series([str(2**53 + 1), str(2**53)])).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"sex": "mael"},
            'column "sex" has the unknown level "mael" in row 17; known levels: female, male',
        ),
        (
            {"income": 10.5},
            'column "income" has 10.5 in row 17, outside [0, 10] '
            "(a bin includes its lower edge, the last bin both)",
        ),
        (
            {"income": "much"},
            "continuous column \"income\" must hold numbers, got 'much' in row 17",
        ),
    ],
)
def test_a_cell_outside_the_domain_is_named(change, message):
    row = {"sex": "male", "size": 1, "income": 1, "owner": True}
    frame = pd.DataFrame([row] * 16 + [row | change])
    with pytest.raises(DataError) as caught:
        SCHEMA.encode(frame)
    assert str(caught.value).startswith(message)


def test_structural_errors_are_named():
    with pytest.raises(DataError, match='column "size" is missing; columns: sex'):
        SCHEMA.encode(pd.DataFrame({"sex": ["male"]}))
    with pytest.raises(DataError, match='column "owner" is missing'):
        SCHEMA.encode({"sex": "male", "size": 1, "income": 2})
    with pytest.raises(DataError, match="rows must have 4 columns, got 3"):
        SCHEMA.encode(np.zeros((2, 3)))
    with pytest.raises(DataError, match="2 dimensions, got 1"):
        SCHEMA.encode(np.zeros(4))
    with pytest.raises(DataError, match='must be different, got "sex" more than once'):
        SCHEMA.encode(pd.DataFrame([["male"] * 5], columns=["sex", "sex", "size", "income", "x"]))
    with pytest.raises(DataError, match="same length"):
        SCHEMA.encode({"sex": ["male"], "size": [1, 2], "income": [1], "owner": [True]})


def test_a_table_with_the_schema_is_taken_as_it_is():
    """Scoring a Table must not need its rows again; another domain is an error."""
    table = Table.from_frame(pd.DataFrame({"a": [2, 1, 2], "b": ["x", "y", "x"]}))
    assert table.schema.encode(table).tolist() == [[0, 1], [1, 0]]
    with pytest.raises(DataError, match="the model's columns and levels"):
        SCHEMA.encode(table)


def test_decode_reverses_encode(rng):
    """Sampled rows must be rows of the table's domain, with its types."""
    codes = np.array([rng.integers(0, n, 500) for n in SCHEMA.n_levels])
    frame = SCHEMA.decode(codes, rng)
    assert list(frame.columns) == list(SCHEMA.names)
    assert SCHEMA.encode(frame).tolist() == codes.tolist()
    assert frame["owner"].dtype == bool
    assert frame["size"].dtype == "Int64"  # integers beside missing cells
    assert Schema((Column("n", "nominal", (1, 2)),)).decode(codes[:1], rng)["n"].dtype == np.int64
    assert frame["income"].isna().tolist() == (codes[2] == 3).tolist()


def test_decoded_bins_include_no_upper_edge(rng):
    """Between neighboring floats rounding must not move a draw to the next bin."""
    edges = (1.0, np.nextafter(1, 2), np.nextafter(np.nextafter(1, 2), 2), 2.0)
    schema = Schema((Column("x", "continuous", (), tuple(map(float, edges))),))
    codes = rng.integers(0, 3, (1, 1000))
    assert schema.encode(schema.decode(codes, rng)).tolist() == codes.tolist()


def test_decoded_values_are_uniform_within_their_bin(rng):
    """The density within a bin is constant; a draw that is not uniform must be noticed."""
    schema = Schema((Column("x", "continuous", (), (0.0, 1.0, 3.0)),))
    values = schema.decode(np.ones((1, 5000), dtype=np.int64), rng)["x"].to_numpy()
    p_value = stats.kstest(values, stats.uniform(1, 2).cdf).pvalue
    assert p_value > 1e-4
    broken = 1 + 2 * ((values - 1) / 2) ** 1.2
    assert stats.kstest(broken, stats.uniform(1, 2).cdf).pvalue < 1e-4


def test_decode_refuses_codes_out_of_range(rng):
    """A wrong code must not be wrapped around to the last level."""
    for codes in ([[0], [0], [0], [2]], [[-1], [0], [0], [0]]):
        with pytest.raises(ParameterError, match="must be from 0 to 1"):
            SCHEMA.decode(np.array(codes), rng)
    with pytest.raises(ParameterError, match=r"shape \(4, n_rows\), got \(1, 4\)"):
        SCHEMA.decode(np.zeros((1, 4), dtype=int), rng)


@pytest.mark.parametrize(
    ("evidence", "codes"),
    [
        ({"sex": "male"}, {0: (1,)}),
        ({"sex": ["male", "female", "male"]}, {0: (0, 1)}),
        ({"size": {1, "7"}, "owner": "true"}, {1: (1, 3), 3: (1,)}),
        ({"size": None}, {1: (4,)}),
        ({"income": 2.5}, {2: (2,)}),
        ({"income": (0, 2.5)}, {2: (0, 1)}),
        ({"income": [1.0, 10]}, {2: (1, 2)}),
        ({"income": np.array([1.0, 2.5]), "size": np.array([7, 1])}, {2: (1,), 1: (1, 3)}),
        ({}, {}),
    ],
)
def test_evidence_becomes_codes(evidence, codes):
    assert SCHEMA.encode_conditions(evidence) == codes


@pytest.mark.parametrize(
    ("evidence", "message"),
    [
        ({"gender": "male"}, 'conditions names the unknown column "gender"; columns: sex, size'),
        ({"sex": "mael"}, 'column "sex" has the unknown level "mael"; known levels: female, male'),
        ({"sex": []}, 'conditions on column "sex" must name a level, got none'),
        ({"sex": None}, 'column "sex" has no level for missing cells, got None'),
        ({"income": (0, 2)}, "a pair of increasing edges out of 0, 1, 2.5, 10, got 0, 2"),
        ({"income": (0, 1, 2.5)}, "got 0, 1, 2.5"),
        ({"income": 11}, 'column "income" has 11 in row 1, outside [0, 10]'),
    ],
)
def test_wrong_evidence_is_named(evidence, message):
    """Evidence that is off by an edge must not silently condition on something else."""
    with pytest.raises(DataError) as caught:
        SCHEMA.encode_conditions(evidence)
    assert message in str(caught.value)


def test_edges_may_be_given_as_printed():
    """A user copies an interval from a printed tree, where edges are rounded."""
    column = Column("x", "continuous", (), (0.1, 1 / 3, 2 / 3))
    assert column.describe_codes([0]) == "in [0.1, 0.333333)"
    assert column.codes_for((0.333333, 2 / 3)) == (1,)


@pytest.mark.parametrize(
    ("column", "codes", "words"),
    [
        (Column("c", "nominal", ("1st", "2nd", "crew")), [2, 0], "1st, crew"),
        (Column("c", "nominal", ("a", "b"), has_missing_level=True), [0, 2], "a or missing"),
        (Column("c", "nominal", ("a", "b"), has_missing_level=True), [2], "missing"),
        (SIZE, [1, 2], "1, 2"),
        (SIZE, [1, 2, 3], "1 to 7"),
        (SIZE, [0, 2, 3], "3, 2, 7"),
        (INCOME, [0, 1], "in [0, 2.5)"),
        (INCOME, [2], "in [2.5, 10]"),
        (INCOME, [0, 2, 3], "in [0, 1) or [2.5, 10] or missing"),
        (Column("x", "continuous", (), (0.0, 1e6, 1234567.5)), [0], "in [0, 1000000)"),
        (Column("x", "continuous", (), (1.0, 1.00000001, 2.0)), [1], "in [1.00000001, 2]"),
    ],
)
def test_codes_in_words(column, codes, words):
    assert column.describe_codes(codes) == words


def test_volumes():
    """Densities divide by these widths; the missing level of a continuous column is an atom."""
    assert SEX.widths.tolist() == [1, 1]
    assert SIZE.widths.tolist() == [1] * 5
    assert INCOME.widths.tolist() == [1, 1.5, 7.5, 1]
    assert SCHEMA.log_cells == pytest.approx(math.log(2 * 5 * 11 * 2))
    assert SCHEMA.n_cells is None
    assert SCHEMA.n_levels.tolist() == [2, 5, 4, 2]
    assert not SCHEMA.n_levels.flags.writeable


def test_json_round_trip():
    record = json.loads(json.dumps(SCHEMA.to_dict()))
    rebuilt = Schema.from_dict(record)
    assert rebuilt == SCHEMA
    assert [type(level) for level in rebuilt.columns[3].levels] == [bool, bool]
    assert rebuilt.fingerprint() == SCHEMA.fingerprint()
    assert Schema((SEX,)).fingerprint() != Schema((OWNER,)).fingerprint()


def column_record(**changes: object) -> dict[str, object]:
    return {**stored(SEX), **changes}


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (None, "schema must be a mapping"),
        ({"columns": []}, "at least one column"),
        ({"columns": [stored(SEX)] * 2}, 'got "sex" more than once'),
        ({"columns": [{"name": "sex"}]}, "must have the field 'kind'"),
        ({"columns": [column_record(name=1)]}, "name must be text"),
        (
            {"columns": [column_record(kind="cardinal")]},
            "must be one of 'nominal'",
        ),
        ({"columns": [column_record(levels="ab")]}, "must be a list"),
        ({"columns": [column_record(levels=[])]}, "1 to 64 levels, got 0"),
        (
            {"columns": [column_record(levels=list(range(64)), has_missing_level=True)]},
            "1 to 64 levels, got 65",
        ),
        (
            {"columns": [column_record(kind="ordinal", levels=list(range(65537)))]},
            "1 to 65,536 levels, got 65,537",
        ),
        ({"columns": [column_record(levels=["b", "a"])]}, "must be sorted"),
        ({"columns": [column_record(levels=["1", 1])]}, "must be different and of one type"),
        ({"columns": [column_record(levels=[None])]}, "got None of type NoneType"),
        ({"columns": [column_record(edges=[0, 1])]}, "must have no edges"),
        ({"columns": [column_record(has_missing_level=1)]}, "true or false"),
        (
            {"columns": [column_record(kind="continuous", levels=[], edges=[1, 1])]},
            "strictly increasing",
        ),
        (
            {"columns": [column_record(kind="continuous", levels=[], edges=[-1e308, 1e308])]},
            "finite",
        ),
        (
            {"columns": [column_record(kind="continuous", levels=[], edges=[1, 10**400])]},
            "too large",
        ),
    ],
)
def test_forged_schemas_are_refused(record, message):
    with pytest.raises(ModelFileError, match=message):
        Schema.from_dict(record)
