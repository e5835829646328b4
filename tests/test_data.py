"""The data sets are what their README says, and their script makes them byte for byte."""

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

DATA = Path(__file__).parents[1] / "data"
NAMES = (
    "titanic",
    "sparse_tree",
    "extreme_uniform",
    "tic_tac_toe",
    "housebreak",
    "liver_clinic",
    "liver_clinic_costs",
)


@pytest.fixture(scope="module")
def remade(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory into which the script has written all sets anew."""
    directory = tmp_path_factory.mktemp("data")
    subprocess.run([sys.executable, DATA / "make_data.py", directory], check=True)
    return directory


@pytest.mark.parametrize("name", NAMES)
def test_script_makes_the_same_bytes(name: str, remade: Path) -> None:
    """Else nobody could tell where a file came from."""
    assert (remade / f"{name}.csv").read_bytes() == (DATA / f"{name}.csv").read_bytes()


def test_every_file_has_a_script_and_an_entry(remade: Path) -> None:
    """A set without provenance must not slip into the folder."""
    files = {path.name for path in DATA.glob("*.csv")}
    assert files == {path.name for path in remade.iterdir()} == {f"{name}.csv" for name in NAMES}
    readme = (DATA / "README.md").read_text(encoding="utf-8")
    assert all(f"`{file}`" in readme for file in files)


def test_titanic_has_the_published_marginals() -> None:
    """A mistyped count would change every figure that the README shows."""
    frame = pd.read_csv(DATA / "titanic.csv")
    assert list(frame.columns) == ["class", "sex", "age", "survived"]
    assert frame["class"].value_counts().to_dict() == {
        "crew": 885,
        "3rd": 706,
        "1st": 325,
        "2nd": 285,
    }
    assert frame["sex"].value_counts().to_dict() == {"male": 1731, "female": 470}
    assert frame["age"].value_counts().to_dict() == {"adult": 2092, "child": 109}
    assert frame["survived"].value_counts().to_dict() == {"no": 1490, "yes": 711}
    assert len(frame.drop(columns="survived").drop_duplicates()) == 14
    survivors = frame[frame["survived"] == "yes"]
    assert survivors["sex"].value_counts().to_dict() == {"male": 367, "female": 344}
    assert survivors["class"].value_counts().to_dict() == {
        "crew": 212,
        "1st": 203,
        "3rd": 178,
        "2nd": 118,
    }


def test_sparse_tree_occupies_five_cells() -> None:
    """The thesis's figures hold for exactly these counts."""
    frame = pd.read_csv(DATA / "sparse_tree.csv")
    assert frame.value_counts().to_dict() == {
        (1, 2, 1): 100,
        (1, 2, 2): 100,
        (2, 1, 1): 100,
        (2, 1, 2): 400,
        (2, 2, 2): 300,
    }


def test_extreme_uniform_has_each_integer_once() -> None:
    """A repeated value would no longer be the thesis's extreme case."""
    assert pd.read_csv(DATA / "extreme_uniform.csv")["x"].tolist() == list(range(1, 101))


def test_tic_tac_toe_has_all_legal_end_positions() -> None:
    """A missing or illegal board would make the classification task another one."""
    frame = pd.read_csv(DATA / "tic_tac_toe.csv")
    squares = frame.drop(columns="outcome")
    assert squares.shape == (958, 9)
    assert not squares.duplicated().any()
    assert frame["outcome"].value_counts().to_dict() == {"positive": 626, "negative": 332}
    n_x, n_o = (squares == "x").sum(axis=1), (squares == "o").sum(axis=1)
    assert ((n_x - n_o == 1) | (n_x == n_o)).all()
    assert (n_x > n_o)[frame["outcome"] == "positive"].all()  # x has just moved if x wins


def test_housebreak_has_the_described_shape() -> None:
    """The 1,440 cells are what the table stands for."""
    frame = pd.read_csv(DATA / "housebreak.csv")
    assert frame.nunique().to_dict() == {
        "location_of_entry": 4,
        "means_of_entry": 5,
        "resident_inside": 2,
        "ransacked": 2,
        "day": 2,
        "premise": 9,
    }
    assert len(frame) == 3000


def test_liver_clinic_has_a_price_for_every_column_but_the_outcome() -> None:
    """A column without a price would silently cost the default."""
    patients = pd.read_csv(DATA / "liver_clinic.csv")
    costs = pd.read_csv(DATA / "liver_clinic_costs.csv").set_index("name")
    assert set(costs.index) - {"blood"} == set(patients.columns) - {"outcome"}
    in_blood = costs[costs["group"] == "blood"]
    alone = in_blood["cost"] + costs.loc["blood", "cost"]
    assert alone.round(2).to_dict() == {
        "bilirubin": 7.27,
        "alk_phosphate": 7.27,
        "sgot": 7.27,
        "albumin": 7.27,
        "protime": 8.3,
    }
    assert patients.shape == (1500, 20)
    assert 0.2 < (patients["outcome"] == "die").mean() < 0.25
