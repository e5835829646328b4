"""Whatever estimator there is makes a report: one file, complete, that any browser reads."""

import math
import re
import shutil
import subprocess
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

import bayescascade
from bayescascade import AdditiveNoiseModel, LeafCascade, ParameterError, PrivateAdditiveNoiseModel
from bayescascade.base.texts import with_article
from bayescascade.base.typed_words import words_of_commands
from bayescascade.model.diagnostics import Diagnostic
from bayescascade.model.readable_model import ReadableModel
from bayescascade.model.sentences import doubt_sentences, held_out_sentences
from bayescascade.model.solution import Certificate
from tests.cli.conftest import assert_error
from tests.commands import run
from tests.contracts.listed import COSTS, ESTIMATORS, SHOWN, fitted, rows
from tests.report.test_folding import VOTES
from tests.report.test_model_text import model as model_of
from tests.report.trees import random_density

EVIL = "<script>alert(1)</script>"
EMPTY = {"meta"}


class Outline(HTMLParser):
    """Reads a file as a browser does, and is strict about what is open."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.texts, self.attributes = [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.texts.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())


def read(path):
    """Return the outline of a report, which fetches and runs nothing."""
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    for word in ("http", "url(", "@import", "<script", "<link", "<img", "<iframe"):
        assert word not in text
    outline = Outline(text)
    assert {name for name, _ in outline.attributes} <= {
        "lang", "charset", "name", "content", "class", "style", "open", "colspan",
        "viewbox", "role", "aria-label", "d", "x", "y",
    }  # fmt: skip
    return outline


def directions():
    """Return the models that are no classifier and no density."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 60)
    y = np.tanh(3 * x) + 0.3 * rng.uniform(-1, 1, 60)
    private = PrivateAdditiveNoiseModel(
        epsilon=1.0, x_bounds=(-1, 1), y_bounds=(-2, 2), random_state=0
    )
    return [AdditiveNoiseModel(random_state=0).fit(x, y), private.fit(x, y)]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_makes_a_report(name, tmp_path):
    """It says what it is, how it is read and what it cannot tell, before and after saving."""
    model, path = fitted(name), tmp_path / "report.html"
    model.report(path)
    result = read(path)
    for words in ("What was learned", "How to read it", "What it cannot tell", model.purpose):
        assert words in result.text
    for column in rows().columns:
        assert column in result.text
    if isinstance(model, ReadableModel):
        model.save(tmp_path / "model.json")
        bayescascade.load(tmp_path / "model.json").report(tmp_path / "again.html")
        assert (tmp_path / "again.html").read_bytes() == path.read_bytes()
    with pytest.raises(Exception, match="not fitted"):
        clone(model).report(path)


def test_directions_make_reports(tmp_path):
    for model in directions():
        model.report(tmp_path / "report.html", title="Dose & response")
        text = read(tmp_path / "report.html")
        assert "Dose & response" in text.text
        assert "assumes that one of the two columns causes the other" in text.text
        with pytest.raises(ParameterError, match="held_out must be None"):
            model.report(tmp_path / "report.html", held_out=rows())


@cache
def evil_rows():
    """Return the rows, a column and a level named so that a browser would run them."""
    return rows().rename(columns={"sex": EVIL}).replace({"male": EVIL})


def evil_labels(name):
    """Return labels that a browser would run."""
    return ESTIMATORS[name].labels().map(lambda label: f"{EVIL}{label}")


@cache
def evil(name):
    """Return a listed estimator fitted to such rows and labels; treat it as read-only."""
    case = ESTIMATORS[name]
    renamed = {EVIL if key == "sex" else key: cost for key, cost in COSTS.items()}
    changed = {"costs": renamed, "budget": 8.0}  # in another order of columns, others are dear
    changed = {key: value for key, value in changed.items() if key in case.parameters}
    beside = [evil_labels(name)] if case.is_labeled else case.beside()
    return case.make(**{**case.parameters, **changed}).fit(evil_rows(), *beside)


@pytest.mark.parametrize("name", SHOWN)
def test_names_and_levels_stay_text(name, tmp_path):
    """Whoever names a column runs nothing in the browser of whoever reads of it."""
    model, is_labeled = evil(name), ESTIMATORS[name].is_labeled
    held_out = (evil_rows(), evil_labels(name)) if is_labeled else None
    model.report(tmp_path / "report.html", title=EVIL, held_out=held_out)
    text = read(tmp_path / "report.html")
    assert text.text.count(EVIL) >= 3
    assert any(f"{EVIL}{each}: area" in text.text for each in (True, False, 1)) == is_labeled
    assert "<script" not in model._repr_html_()


@pytest.mark.parametrize("name", ESTIMATORS)
def test_rows_held_out_are_scored(name, tmp_path):
    """A density by how probable they are, a classifier by who is right and whom it finds."""
    case, model, path = ESTIMATORS[name], fitted(name), tmp_path / "report.html"
    labels = case.labels()
    if case.others is not None:
        with pytest.raises(
            ParameterError, match=f"held_out must be None for {with_article(model.title)}, which"
        ):
            model.report(path, held_out=rows())
        return
    model.report(path, held_out=(rows(), labels) if case.is_labeled else rows())
    outline = read(path)
    result = outline.text
    assert "tried on 150 rows, given as held-out rows" in result
    if case.is_labeled:
        right = 100 * float((model.predict(rows()) == labels).mean())
        assert f"predicts the right class for {right:.1f} " in result
        assert "area under the ROC curve is 0." in result
        assert outline.tags.count("svg") == 2
        assert "Calibration" in result
        assert ("ROC curves, each against the rest" in result) != case.is_binary
        assert result.count(": area ") == (1 if case.is_binary else labels.nunique())
        if case.is_binary:
            area = roc_auc_score(labels, model.predict_proba(rows())[:, 1])
            assert f"{getattr(model, 'positive_', True)}: area {area:.3f}" in result
        with pytest.raises(ParameterError, match=r"held_out must be \(rows, labels\)"):
            model.report(path, held_out=rows())
    else:
        assert f"{model.score_samples(rows()).mean():.4f} nats a row" in result


def test_impossible_rows_are_told_apart():
    """One row that cannot be must not hide what is known of the others."""
    frame = pd.DataFrame({"a": ["x"] * 30 + ["y"] * 10, "b": ["x", "y"] * 20})
    model = LeafCascade(density="empirical", expected_leaves=50.0, random_state=0)
    model.set_params(nominal={"a": ["x", "y"]}).fit(frame[frame["a"] == "x"])
    result, *_ = held_out_sentences(model, frame)
    assert np.isneginf(model.score_samples(frame)).sum() == 10
    assert "tried on 30 rows" in result[0]
    assert result[1].startswith("10 more rows are impossible")


def test_a_report_is_deterministic_and_replaced_whole(tmp_path):
    model, path = fitted("leaf"), tmp_path / "report.html"
    model.report(path)
    before = path.read_bytes()
    model.report(path)
    assert path.read_bytes() == before
    with pytest.raises(ParameterError, match="title must be text or None, got 3"):
        model.report(path, title=3)
    with pytest.raises(OSError, match="cannot write"):
        model.report(tmp_path / "nowhere" / "report.html")
    assert path.read_bytes() == before


def test_the_command_writes_the_same_report(tmp_path):
    path, data, html = (tmp_path / name for name in ("model.json", "rows.csv", "shown.html"))
    labels = ESTIMATORS["labels"].labels()
    rows().assign(boat=labels).to_csv(data, index=False)
    for name, held_out, options in (
        ("labels", None, ()),
        ("labels", (rows(), labels), ("--held-out", data, "--target", "boat")),
        ("leaf", rows(), ("--held-out", data)),
    ):
        fitted(name).save(path)
        with words_of_commands():
            fitted(name).report(tmp_path / "python.html", held_out=held_out)
        assert run("show", path, "--html", html, *options).stdout == ""
        assert html.read_bytes() == (tmp_path / "python.html").read_bytes()
    before = path.read_bytes()
    for options, message in (
        (("--held-out", data), "--held-out needs --html, got none"),
        (("--html", path), "--html must be another file than MODEL.json"),
        (("--html", html, "--given", "sex=male"), "--given"),
    ):
        assert_error(run("show", path, *options), message)
    assert path.read_bytes() == before


def test_doubt_is_told_in_plain_words():
    """R-hat means nothing to most readers; that searches disagree does."""
    summary = fitted("leaf").summary_
    sizes = {"leaves": {"9": 0.5, "10": 0.3, "12": 0.15, "30": 0.05}}
    bad = {"n_leaves": Diagnostic(9.0, 1.0, 1.5, 12.0)}
    rough = replace(summary, diagnostics=bad, shares=sizes)
    result = doubt_sentences(rough, "tree", ("leaf", "leaves"), 9)
    assert "They do not agree well with each other (R-hat 1.500" in result[0]
    assert result[1] == (
        "Of all trees that are plausible given the rows, 95.0 % have from 9 to 12 leaves; "
        "the one shown has 9."
    )
    fine = replace(rough, diagnostics={"n_leaves": Diagnostic(9.0, 1.0, 1.0, 900.0)})
    assert "you can rely on" in doubt_sentences(fine, "tree", ("leaf", "leaves"), 9)[0]
    proof = Certificate(0.0, "9 boxes", None, "of depth up to 2, tempered at 300 rows,")
    tempered = doubt_sentences(replace(fine, certificate=proof), "tree", ("leaf", "leaves"), 9)
    assert "from a tempered distribution, which is no posterior" in tempered[1]
    assert not any(word in " ".join(tempered[1:]) for word in ("plausible", "certain", "probabl"))
    untempered = replace(proof, scope="of depth up to 2")
    result = doubt_sentences(replace(fine, certificate=untempered), "tree", ("leaf", "leaves"), 9)
    assert "plausible" in result[1]
    few = replace(rough, diagnostics={"n_leaves": Diagnostic(9.0, 1.0, math.nan, math.nan)})
    assert "(R-hat unknown, " in doubt_sentences(few, "tree", ("leaf", "leaves"), 9)[0]
    proved = replace(rough, certificate=Certificate(0.0, "9 boxes", None))
    assert "proved to be the most probable" in doubt_sentences(proved, "tree", None, None)[0]
    some = Certificate(0.0, "9 boxes", None, "of up to 16 leaves")
    (first, *_) = doubt_sentences(
        replace(rough, certificate=some, interrupted=True), "tree", None, 9
    )
    assert first.startswith(
        "The search was stopped early. What is shown is proved to be the most probable tree of up "
        "to 16 leaves: every possible one "
    )
    open_gap = replace(rough, certificate=Certificate(2.0, "9 boxes", None), interrupted=True)
    (first, *_) = doubt_sentences(open_gap, "list", None, None)
    assert "stopped early" in first
    assert "no list is more probable by more than 2.00 nats (a factor of 7.39)" in first
    rounded = replace(rough, certificate=Certificate(0.7, "9 boxes", None, is_rounding=True))
    (first, *_) = doubt_sentences(rounded, "tree", None, None)
    assert "every possible tree was taken into account" in first
    assert "may still be more probable by up to 0.70 nats" in first
    assert "longer search" not in first
    unsampled = replace(rough, diagnostics={}, shares={})
    assert len(doubt_sentences(unsampled, "tree", None, None)) == 1


def browser():
    """Return a browser that can be run without a screen, None if none is found."""
    for name in ("chromium", "chromium-browser", "google-chrome", "chrome"):
        if found := shutil.which(name):
            return found
    return None


NO_BROWSER = "no browser was found: looked for chromium, chromium-browser, google-chrome, chrome"


@pytest.mark.slow
@pytest.mark.skipif(browser() is None, reason=NO_BROWSER)
def test_a_browser_shows_and_prints_all_of_it(tmp_path):
    """What is folded on the screen is on paper; a wide table of columns fits a phone."""
    model = model_of(random_density(np.random.default_rng(0), VOTES, 100))
    path, printed = tmp_path / "report.html", tmp_path / "report.pdf"
    model.report(path)
    options = [browser(), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]

    def browse(*more):
        done = subprocess.run([*options, *more, path.as_uri()], capture_output=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout.decode()

    dom = browse("--dump-dom")
    assert dom.count("<details") == path.read_text(encoding="utf-8").count("<details")
    for size in ("1000,900", "500,900"):
        browse(f"--window-size={size}", f"--screenshot={tmp_path / 'seen.png'}")
        assert (tmp_path / "seen.png").stat().st_size > 20_000
    browse("--no-pdf-header-footer", f"--print-to-pdf={printed}")
    sheets = len(re.findall(rb"/Type\s*/Page\b", printed.read_bytes()))
    closed = path.read_text(encoding="utf-8").replace("details::details-content", "nothing")
    path.write_text(closed, encoding="utf-8")
    browse("--no-pdf-header-footer", f"--print-to-pdf={printed}")
    assert sheets > len(re.findall(rb"/Type\s*/Page\b", printed.read_bytes())) >= 2
