"""Whatever estimator there is: fitted, printed, saved, resumed and refused in the same way."""

import io
import json
import pickle
from contextlib import suppress

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from rich.cells import cell_len
from scipy.special import xlogy
from sklearn.base import RegressorMixin, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import confusion_matrix

import bayescascade
from bayescascade import BayesCascadeError, DataError, ParameterError
from bayescascade.model import record as saved
from bayescascade.model.roles import Classifier, Density, Predicted, Shown
from samplers import CheckpointError
from tests.benchmarks.pruning_baselines import TruncatedForest
from tests.commands import command
from tests.contracts.listed import ESTIMATORS, answers, fitted, rows

CHAINED = [n for n, c in ESTIMATORS.items() if "checkpoint" in c.make().get_params()]
GATES = ("gate", "group lasso", "boosted gate", "least squares gate", "miser")
WEIGHTED = [  # of others rows are drawn, as those that choose or as folds
    "leaf", "branch", "dependent", "rules", "labels", "det", "histogram", "mixture", "tree", "l1",
    "boxes", "fast boxes",
]  # fmt: skip
WEIGHTED += [
    pytest.param(name, marks=pytest.mark.slow)
    for name in (
        "auto",
        "mixture auto",
        "leaf auto",
        "leaf exact",
        "dependent exact",
        "boxes, pooled",
    )
]


def outcome(model):
    """Return all that was learned, as text: the file's, or what is printed and answered."""
    if hasattr(model, "to_record"):
        return json.dumps(model.to_record())
    return f"{model} {answers(model, rows()).tolist()}"


@pytest.mark.parametrize("name", ESTIMATORS)
def test_fitting_follows_scikit_learn(name):
    """Clones know nothing of our classes; workers change nothing, and rows stay as they were."""
    case, frame = ESTIMATORS[name], rows().copy()
    unfitted = case.make(**case.parameters)
    assert repr(unfitted).startswith(case.make.__name__)
    with pytest.raises(Exception, match="not fitted"):
        answers(unfitted, rows())
    with pytest.raises(Exception, match="not fitted"):
        unfitted.page()
    model = fitted(name)
    assert list(model.feature_names_in_) == list(rows().columns)
    assert model.n_features_in_ == 4
    cloned = clone(model)
    if "n_jobs" in cloned.get_params():
        cloned.set_params(n_jobs=2)
    before = {k: repr(v) for k, v in cloned.get_params().items()}
    assert outcome(cloned.fit(frame, *case.beside())) == outcome(model)
    answers(cloned, frame)
    pd.testing.assert_frame_equal(frame, rows())
    assert {k: repr(v) for k, v in cloned.get_params().items()} == before
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(answers(again, rows()), answers(model, rows()))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_what_users_call_is_there_and_completion_offers_it(name):
    """Parameters, methods and what fit learned; `to_dict` is plain data, `to_dot` is of trees."""
    model = fitted(name)
    shown = set(dir(model))
    assert isinstance(model, Shown)
    assert model.to_dict()
    assert not hasattr(model, "to_dot") or model.to_dot().startswith("digraph")
    assert {"fit", "page", "to_dict", *model.get_params(deep=False)} <= shown
    assert ("score" in shown) == isinstance(model, Classifier | Density | RegressorMixin)
    assert {n for n in vars(model) if n.endswith("_") and not n.startswith("_")} <= shown
    for learned in ("tree_", "rules_"):
        if learned in shown and name not in ("tree", "classifiers", "l1", "cstc"):
            assert "plot" in dir(getattr(model, learned))
            assert isinstance(getattr(model, learned), Shown)
            assert getattr(model, learned).plot() is not None


@pytest.mark.slow
def test_completion_of_the_package_offers_its_names():
    """IPython's, which asks Jedi too, as it comes."""
    assert set(dir(bayescascade)) == set(bayescascade.__all__)
    assert not any(name.startswith("_") for name in dir(bayescascade))
    shells = pytest.importorskip("IPython.core.interactiveshell")
    shell = shells.InteractiveShell()
    shell.push({"bayescascade": bayescascade, "model": fitted("leaf")})

    def offered(asked):
        with provisionalcompleter():
            found = list(shell.Completer.completions(asked, len(asked)))
        return {one.text.rsplit(".", 1)[-1].split("(")[0] for one in found}

    provisionalcompleter = pytest.importorskip("IPython.core.completer").provisionalcompleter
    assert "LeafCascade" in offered("bayescascade.Leaf")
    assert "predict_proba" in offered("model.")
    assert not any(one.startswith("_") for one in offered("model.") | offered("bayescascade."))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_columns_are_matched_by_name(name):
    shuffled = rows()[["fare", "age", "sex", "crew"]].assign(more=1)
    np.testing.assert_array_equal(answers(fitted(name), shuffled), answers(fitted(name), rows()))
    with pytest.raises(DataError, match="fare"):
        answers(fitted(name), rows().drop(columns="fare"))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_no_rows_have_no_answers(name):
    """A nightly batch may be empty: its results are, too, with the types and columns of others."""
    model, asked = fitted(name), rows()
    given = ("crew",) if isinstance(model, Density) else ()
    for method, others in [
        ("predict", given), ("predict_proba", given), ("score_samples", ()), ("explain_rows", ()),
        ("impute", ()), ("acquisition_cost", ()), ("transform", ()),
    ]:  # fmt: skip
        if not hasattr(model, method):
            continue
        none, some = (getattr(model, method)(asked[:n], *others) for n in (0, 2))
        assert none.shape == (0, *some.shape[1:]), method
        if isinstance(some, pd.DataFrame):
            assert list(none.columns) == list(some.columns)
        else:
            assert none.dtype.kind == some.dtype.kind
    with pytest.raises((DataError, ValueError), match=r"at least one row|0 sample"):
        clone(model).fit(asked[:0], *ESTIMATORS[name].beside(0))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("n", [1, 2, 4, 7])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_few_rows_have_a_model_or_an_error_of_ours(name, n):
    """Folds and held-out rows may be empty then, or all of one class."""
    case = ESTIMATORS[name]
    labels = np.asarray(case.beside()[0]) if case.is_labeled else np.zeros(len(rows()))
    of_each = [np.flatnonzero(labels == label)[:n] for label in np.unique(labels)]
    some = np.array([place for turn in zip(*of_each, strict=False) for place in turn])[:n]
    frame = rows().iloc[some].reset_index(drop=True)
    beside = [np.asarray(one)[some] for one in case.beside()]
    with suppress(BayesCascadeError):
        model = case.make(**case.parameters).fit(frame, *beside)
        assert len(answers(model, frame)) == len(some)
        assert str(model)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_importances_are_shares_of_what_splits_win(name):
    """Selectors of features read them; where there are no splits they are not there."""
    case, model = ESTIMATORS[name], fitted(name)
    assert not hasattr(case.make(**case.parameters), "feature_importances_")
    without = ("histogram", "mixture", "hidden", "continuous", "mixture auto", "neighbors", "rado")
    without += ("margins",)
    without = (*without, *GATES, "sensors", "always sensors", "auto budget")
    if name in without or ESTIMATORS[name].others is not None:
        assert not hasattr(model, "feature_importances_")
        return
    shares = model.feature_importances_
    assert shares.shape == model.feature_names_in_.shape
    assert shares.min() >= 0
    assert shares.sum() == pytest.approx(1.0)
    if name in ("leaf", "leaf exact", "branch", "det"):
        tree = getattr(model, "learned_", None) or model.tree_
        wins = dict.fromkeys(model.feature_names_in_, 0.0)

        def outcome(node):
            if "feature" not in node:
                return node["count"], node["volume"]
            parts = np.array([outcome(branch["child"]) for branch in node["branches"]])
            n, v = parts.sum(axis=0)
            wins[node["feature"]] += sum(m * np.log(m * v / (n * w)) for m, w in parts if m > 0)
            return n, v

        outcome(tree.node_dict())
        np.testing.assert_allclose(shares, np.array(list(wins.values())) / sum(wins.values()))
    elif name in ("rules", "labels"):  # what all rules win is what the list wins over none
        rules = model.rules_
        counts = rules.counts
        if name == "labels":
            alone = counts / counts.sum(axis=1, keepdims=True)
            together = counts.sum(axis=0) / counts.sum()
        else:
            alone, together = counts / np.exp(rules.log_volumes), counts.sum() / 1200
        assert rules.log_gains.sum() == pytest.approx(xlogy(counts, alone / together).sum())
        assert (rules.log_gains >= 0).all()


def test_importances_of_forests_are_those_of_scikit_learn():
    X = rows()[["age", "fare"]].assign(age=np.arange(150) % 7)
    forest = RandomForestClassifier(8, random_state=0).fit(X, ESTIMATORS["prune"].labels())
    whole = TruncatedForest(forest=forest).fit(X, ESTIMATORS["prune"].labels(), X)
    np.testing.assert_allclose(whole.feature_importances_, forest.feature_importances_)


@pytest.mark.parametrize("name", WEIGHTED)
def test_weights_are_repeated_rows(name):
    case = ESTIMATORS[name]
    weights = np.arange(len(rows())) % 3
    repeated = rows().loc[np.repeat(rows().index, weights)]
    labels = case.labels()
    given = [rows(), labels] if case.is_labeled else [rows()]
    weighted = case.make(**case.parameters).fit(*given, sample_weight=weights)
    given = [repeated, labels.loc[repeated.index]] if case.is_labeled else [repeated]
    np.testing.assert_allclose(
        answers(weighted, rows()), answers(case.make(**case.parameters).fit(*given), rows())
    )


@pytest.mark.parametrize("name", ESTIMATORS)
def test_pages_fit_a_terminal_and_a_notebook(name):
    model = fitted(name)
    lines = str(model).splitlines()
    assert lines
    assert max(map(cell_len, lines)) <= 80
    assert max(map(cell_len, model.to_text(width=60).splitlines())) <= 60
    assert "\x1b" not in str(model)
    html = model._repr_html_()
    assert "<" in html
    assert lines[0].split("   ")[0].split(",")[0] in html


LABELED = [name for name in ESTIMATORS if ESTIMATORS[name].is_labeled]


@pytest.mark.parametrize("name", LABELED)
def test_errors_are_weighed_alike_by_every_classifier(name):
    """Who must miss nobody says so when predicting, and needs no other model for that."""
    model = fitted(name)
    probabilities, classes = model.predict_proba(rows()), model.classes_.tolist()
    costs = np.random.default_rng(0).uniform(1, 9, (len(classes), len(classes)))
    best = model.classes_[(probabilities @ costs).argmin(axis=1)]
    np.testing.assert_array_equal(model.predict(rows(), class_costs=costs), best)
    by_class = pd.DataFrame(costs.T, classes, classes).to_dict()
    np.testing.assert_array_equal(model.predict(rows(), class_costs=by_class), best)
    only = model.predict(rows(), class_costs={classes[0]: 1e9})
    assert (only[probabilities[:, 0] > 1e-6] == classes[0]).all()
    for bad, words in [
        ({"nobody": 2.0}, "class_costs must name classes, .*, got 'nobody'"),
        ({classes[0]: -1.0}, "class_costs must be a finite number >= 0, got -1.0"),
        ([[0.0, 1.0]], "numbers of shape"),
    ]:
        with pytest.raises(ParameterError, match=words):
            model.predict(rows(), class_costs=bad)
    if len(classes) > 2:
        with pytest.raises(ParameterError, match=f"there are {len(classes)} classes, not two"):
            model.predict(rows(), threshold=0.3)
    else:
        second = model.predict(rows(), threshold=0.3) == classes[1]
        np.testing.assert_array_equal(second, probabilities[:, 1] >= 0.3)
        with pytest.raises(ParameterError, match=r"threshold must be .* <= 1, got 1.5"):
            model.predict(rows(), threshold=1.5)
        with pytest.raises(ParameterError, match="class_costs must be None where threshold"):
            model.predict(rows(), threshold=0.3, class_costs=costs)


@pytest.mark.parametrize("name", ["labels", "boxes"])  # blocks of rows of tables, and of matrices
def test_commands_weigh_errors_as_their_models_do(name, tmp_path):
    model, labels = fitted(name), ESTIMATORS[name].labels()
    path, data, classes = tmp_path / "model.json", tmp_path / "rows.csv", model.classes_
    model.save(path)
    rows().assign(label=labels).to_csv(data, index=False)
    first = str(classes[0])
    lines = command("predict", path, data, "--class-costs", f"{first}=7.5")
    named = pd.read_csv(io.StringIO(lines))["predicted"].to_numpy()
    expected = model.predict(rows(), class_costs={classes[0]: 7.5})
    np.testing.assert_array_equal(named, expected)
    outcome = ("score", path, data, "--target", "label", "--class-costs", f"{first}=7.5", "--json")
    scored = json.loads(command(*outcome))
    matrix = confusion_matrix(labels, expected)
    assert scored["confusion"] == matrix.tolist()
    weighed = matrix[1:].sum() - np.trace(matrix[1:, 1:]) + 7.5 * matrix[0, 1:].sum()
    assert scored["class_cost"] == pytest.approx(weighed / len(labels))


@pytest.mark.parametrize("name", [n for n, c in ESTIMATORS.items() if c.others is None])
def test_every_row_of_many_is_explained(name, tmp_path):
    """A case worker has a list of people, not one; each has its reason, in words, on a terminal."""
    model, asked = fitted(name), rows()[::7]
    outcome = model.explain_rows(asked)
    assert outcome.index.equals(asked.index)
    if isinstance(model, Density):
        np.testing.assert_array_equal(outcome["log_density"], model.score_samples(asked))
    else:
        np.testing.assert_array_equal(outcome["predicted"], model.predict(asked))
        best = np.searchsorted(model.classes_, outcome["predicted"])
        chances = model.predict_proba(asked)[np.arange(len(asked)), best]
        np.testing.assert_array_equal(outcome["probability"], chances)
    assert all(outcome["because"])
    reader = pa.Table.from_pandas(asked).to_reader()  # which can be read only once
    assert model.explain_rows(reader)["because"].tolist() == outcome["because"].tolist()
    if hasattr(model, "explain"):
        for row, because in enumerate(outcome["because"]):
            assert model.explain(asked.iloc[row]).startswith(because)
    if name not in ("leaf", "labels", "forest"):  # the command is the same for all
        return
    path, data = tmp_path / "model.json", tmp_path / "rows.csv"
    model.save(path)
    rows().to_csv(data, index=False)
    record = json.loads(command("explain", path, data, "--rows", "8-8", "--json"))
    expected = {"row": 8, **outcome.iloc[1].to_dict()}
    assert record == {"source": "rows.csv", "rows": [pytest.approx(expected)]}
    lines = command("explain", path, data).splitlines()
    assert [line[:3].strip() for line in lines if line[:3].strip()] == [
        "row",
        *map(str, range(1, 11)),
    ]
    assert max(map(len, lines)) <= 80
    assert set(outcome["because"].iloc[0].split()) <= set(" ".join(lines).split())


def test_predict_tells_numbers_too(tmp_path, monkeypatch):
    """A model that predicts numbers needs nothing of the command but its own block."""

    class Double:
        title, feature_texts, takes_texts = "doubler", ["fare"], False

        def predict_block(self, cells, _, *, intervals=False, explain=False, unknown=None):
            assert intervals > explain
            assert unknown.n_rows == 0
            texts = {"high_95": (3 * cells["fare"]).tolist()}
            costs = np.array([0.1 + 0.2, 7.0])  # written without the rounding of sums
            return Predicted(texts, values=2 * cells["fare"].to_numpy(float), costs=costs)

    monkeypatch.setattr(saved, "load", lambda _: Double())
    (tmp_path / "rows.csv").write_text("fare\n1\n2.5\n")
    texts = command("predict", tmp_path / "model.json", tmp_path / "rows.csv")
    assert texts == "row,predicted,cost,high_95\n1,2.0,0.3,3.0\n2,5.0,7,7.5\n"
    assert "score needs a density, got " in command("score", "m.json", tmp_path / "rows.csv")


class InterruptedAt:
    """A progress callback that is Ctrl-C at the n-th report, but for those of a phase."""

    def __init__(self, n, but_for=None):
        self.left, self.but_for = n, but_for

    def __call__(self, report):
        self.left -= report.phase != self.but_for
        if self.left == 0:
            raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("name", "n"),
    [("leaf", 1), ("neighbors", 1), *((name, 6) for name in CHAINED if "exact" not in name)],
)
def test_interrupted_fits_are_models_and_go_on(name, n, tmp_path, monkeypatch):
    """What was paid for is kept, and the result is the same file, byte for byte."""
    case, file = ESTIMATORS[name], tmp_path / "run.json"
    with monkeypatch.context() as patch:
        patch.setattr("samplers.chains.ROUND_SECONDS", 0.0)
        stopped = case.fit(checkpoint=file, progress=InterruptedAt(n))
    assert stopped.run_.interrupted
    assert np.isfinite(answers(stopped, rows())).all()
    assert "interrupted" in str(stopped)
    if "predictive" in stopped.get_params():  # over no draws it is the best model's
        assert np.isfinite(answers(stopped.set_params(predictive="average"), rows())).all()
    assert outcome(case.fit(checkpoint=file, resume=True)) == outcome(fitted(name))


@pytest.mark.parametrize("name", [n for n in CHAINED if "auto" not in n])  # as of that chosen
def test_checkpoints_of_another_fit_are_refused(name, tmp_path, monkeypatch):
    """Half a run of one model and half of another are no run."""
    monkeypatch.setattr("samplers.chains.ROUND_SECONDS", 0.0)
    case = ESTIMATORS[name]
    other = {
        next(n for n in ("concentration", "prior_scale", "box_cost") if n in vars(case.make())): 9
    }
    search = case.parameters["search"].replace("exact", "anneal+metropolis")
    longer = {"n_steps": 600, "search": search, "checkpoint": tmp_path / "run.json"}
    case.fit(**longer, progress=InterruptedAt(2, but_for="choosing"))
    before = longer["checkpoint"].read_bytes()
    for changed in ({"random_state": 4}, {"n_steps": 700}, {"n_chains": 3}, other):
        with pytest.raises(CheckpointError):
            case.fit(**{**longer, **changed}, resume=True)
    with pytest.raises(CheckpointError, match="data"):
        case.fit_to(rows()[:149], **longer, resume=True)
    with pytest.raises(CheckpointError, match="unfinished"):
        case.fit(**longer)
    assert longer["checkpoint"].read_bytes() == before


@pytest.mark.parametrize("name", ESTIMATORS)
def test_bad_rows_are_named(name):
    for bad, words in (
        (rows()[:0], "at least one"),
        (rows().set_axis(["a", "a", "b", "c"], axis=1), '"?a"?'),
        (rows().assign(fare=np.inf), "fare"),
    ):
        with pytest.raises((BayesCascadeError, ValueError), match=words):
            ESTIMATORS[name].fit_to(bad)


@pytest.mark.parametrize("name", CHAINED)
def test_bad_parameters_are_named(name):
    """Those that are no number or word; what is declared of others is held by `test_parameters`."""
    for parameter, value in (("random_state", "x"), ("resume", True), ("progress", 3)):
        with pytest.raises(ParameterError, match=parameter):
            ESTIMATORS[name].fit(**{parameter: value})
