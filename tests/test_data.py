"""The data sets are what their README says, and their script makes them byte for byte."""

import subprocess
import sys
from pathlib import Path

import pandas as pd

DATA = Path(__file__).parents[1] / "data"


def test_every_file_is_made_by_the_script_and_in_the_readme(tmp_path):
    subprocess.run([sys.executable, DATA / "make_data.py", tmp_path], check=True)
    files = {path.name: path.read_bytes() for path in DATA.glob("*.csv")}
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == files
    readme = (DATA / "README.md").read_text(encoding="utf-8")
    assert all(f"`{file}`" in readme for file in files)


def test_titanic_has_the_published_marginals():
    """A mistyped count would change every figure that the README shows."""
    frame = pd.read_csv(DATA / "titanic.csv")
    assert list(frame.columns) == ["class", "sex", "age", "survived"]
    classes = frame["class"].value_counts().to_dict()
    assert classes == {"crew": 885, "3rd": 706, "1st": 325, "2nd": 285}
    assert frame["sex"].value_counts().to_dict() == {"male": 1731, "female": 470}
    assert frame["age"].value_counts().to_dict() == {"adult": 2092, "child": 109}
    assert frame["survived"].value_counts().to_dict() == {"no": 1490, "yes": 711}
    assert len(frame.drop(columns="survived").drop_duplicates()) == 14
    survivors = frame[frame["survived"] == "yes"]
    assert survivors["sex"].value_counts().to_dict() == {"male": 367, "female": 344}
    classes = survivors["class"].value_counts().to_dict()
    assert classes == {"crew": 212, "1st": 203, "3rd": 178, "2nd": 118}


def test_tic_tac_toe_has_all_legal_end_positions():
    """A missing or illegal board would make the classification task another one."""
    frame = pd.read_csv(DATA / "tic_tac_toe.csv")
    squares = frame.drop(columns="outcome")
    assert squares.shape == (958, 9)
    assert not squares.duplicated().any()
    assert frame["outcome"].value_counts().to_dict() == {"positive": 626, "negative": 332}
    n_x, n_o = (squares == "x").sum(axis=1), (squares == "o").sum(axis=1)
    assert ((n_x - n_o == 1) | (n_x == n_o)).all()
    assert (n_x > n_o)[frame["outcome"] == "positive"].all()  # x has just moved if x wins


def test_liver_clinic_has_a_price_for_every_column_but_the_outcome():
    """A column without a price would silently cost the default."""
    patients = pd.read_csv(DATA / "liver_clinic.csv")
    costs = pd.read_csv(DATA / "liver_clinic_costs.csv").set_index("name")
    assert set(costs.index) - {"blood"} == set(patients.columns) - {"outcome"}
    in_blood = costs[costs["group"] == "blood"]
    alone = in_blood["cost"] + costs.loc["blood", "cost"]
    alike = dict.fromkeys(("bilirubin", "alk_phosphate", "sgot", "albumin"), 7.27)
    assert alone.round(2).to_dict() == {**alike, "protime": 8.3}
    assert patients.shape == (1500, 20)
    assert 0.2 < (patients["outcome"] == "die").mean() < 0.25
