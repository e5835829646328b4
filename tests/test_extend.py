"""The family of the page for newcomers keeps the contracts of all estimators."""

import re
import sys
from importlib import import_module

import numpy as np
import pytest
from click.testing import CliRunner

import bayescascade
from bayescascade.cli.listed import command_of
from tests.contracts import (
    test_damaged_files,
    test_estimators as contracts,
    test_reports,
    test_saved_estimators,
)
from tests.contracts.listed import ESTIMATORS, Case
from tests.documents import ROOT

TITANIC = str(ROOT / "data" / "titanic.csv")


@pytest.fixture
def page(monkeypatch, tmp_path):
    """Return a module of the page's code; its class is public, and listed as "naive"."""
    text = (ROOT / "docs" / "extend.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    code = "\n".join(block.partition("\nprint(")[0] for block in blocks)
    (tmp_path / "naive_bayes.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "naive_bayes", raising=False)
    module = import_module("naive_bayes")
    made = module.NaiveBayesClassifier
    monkeypatch.setattr(bayescascade, made.__name__, made, raising=False)
    monkeypatch.setattr(bayescascade, "__all__", [*bayescascade.__all__, made.__name__])
    monkeypatch.setitem(ESTIMATORS, "naive", Case(made, {}, is_labeled=True))
    return module


@pytest.mark.usefixtures("page")
def test_the_family_of_the_page_keeps_the_contracts(tmp_path, monkeypatch):
    contracts.test_fitting_follows_scikit_learn("naive")
    contracts.test_columns_are_matched_by_name("naive")
    contracts.test_weights_are_repeated_rows("naive")
    contracts.test_pages_fit_a_terminal_and_a_notebook("naive")
    contracts.test_bad_rows_are_named("naive")
    test_reports.test_every_estimator_makes_a_report("naive", tmp_path)
    test_saved_estimators.test_saved_models_come_back("naive", tmp_path)
    test_damaged_files.test_damaged_leaves_are_refused("naive", tmp_path, monkeypatch)


def test_it_is_naive_bayes(page):
    """The posterior of two rows by hand: equal classes, one column, prior rows of all rows."""
    model = page.NaiveBayesClassifier(smoothing=1e-9)
    model.fit([[0.0], [2.0], [5.0], [7.0]], ["a", "a", "b", "b"])
    far = np.array([(3.0 - 1.0) ** 2, (3.0 - 6.0) ** 2])  # variances are one
    expected = np.exp(-far / 2) / np.exp(-far / 2).sum()
    np.testing.assert_allclose(model.predict_proba([[3.0]])[0], expected, rtol=1e-6)


def test_its_declaration_is_a_command(page, tmp_path):
    command, out = command_of(page.NAIVE), tmp_path / "naive.json"
    given = [TITANIC, "--target", "survived", "--smoothing", "2", "--out", str(out)]
    found = CliRunner().invoke(command, given)
    assert found.exit_code == 0, found.output
    assert "naive Bayes" in found.output
    assert bayescascade.load(out).smoothing == 2.0
    refused = CliRunner().invoke(command, [*given[:3], "--smoothing", "0"])
    assert refused.exit_code == 2
    assert "smoothing" in refused.output
