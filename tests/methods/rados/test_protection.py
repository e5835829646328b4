"""What rados promise: exact laws by enumeration, budgets, noise, and audits with broken twins."""

import math

import numpy as np
import pandas as pd
import pytest

from bayescascade import (
    DataError,
    ParameterError,
    PrivacyError,
    PrivacyLedger,
    RadoBoostClassifier,
    Rados,
    audit_privacy,
)
from bayescascade.methods.rados import releases
from bayescascade.methods.rados.protection import (
    agreement_law,
    coordinate_delta,
    cut_of,
    draw_agreements,
)
from bayescascade.privacy.mechanisms import noise_source
from tests.methods.rados.problems import agreement_laws, blobs, smallest_delta

EPSILONS = (0.0, 0.2, 0.7, 1.5)


@pytest.mark.parametrize(("n_rows", "beta"), [(1, 0.0), (6, 0.0), (9, 0.2), (12, 0.3), (16, 0.15)])
def test_delta_is_exact_by_enumeration(n_rows, beta):
    """All signatures of two neighbors; whatever the data; and a shift ignored is told."""
    rng = np.random.default_rng(n_rows)
    signs = rng.choice([-1, 1], n_rows)
    neighbor = signs.copy()
    neighbor[0] *= -1
    laws = [agreement_laws(one, beta) for one in (signs, neighbor)]
    cut = cut_of(n_rows, beta)
    for epsilon in EPSILONS:
        exact = smallest_delta(*laws, epsilon)
        assert coordinate_delta(n_rows, cut, epsilon) == pytest.approx(exact, rel=1e-9)
        assert smallest_delta(laws[0], laws[0], epsilon) == 0.0 < exact


@pytest.mark.parametrize(("n_rows", "beta", "n"), [(10, 0.0, 2), (12, 0.2, 2), (9, 0.1, 3)])
def test_several_rados_are_within_the_bound(n_rows, beta, n):
    """Composed by all outcomes; the promise is at least that, and not much more."""
    signs = np.resize([1, -1, 1], n_rows)
    neighbor = signs.copy()
    neighbor[0] *= -1
    laws = [agreement_laws(one, beta) for one in (signs, neighbor)]
    for epsilon in EPSILONS[1:]:
        exact = smallest_delta(*laws, epsilon, n)
        promised = coordinate_delta(n_rows, cut_of(n_rows, beta), epsilon, n)
        assert exact <= promised * (1 + 1e-12)
        assert promised < 4 * exact + 0.05
        assert promised <= n * coordinate_delta(n_rows, cut_of(n_rows, beta), epsilon / n) + 1e-15


@pytest.mark.parametrize("n_rows", [7, 40, 401])
def test_cutting_tails_off_costs_privacy(n_rows):
    """Unlike what theorem 6 is about: delta of one rado grows with the cut, at every epsilon."""
    cuts = range(n_rows // 2 + 1)
    for epsilon in (0.01, 0.3, 1.0, 3.0):
        deltas = [coordinate_delta(n_rows, cut, epsilon) for cut in cuts]
        assert (np.diff(deltas) >= -1e-15).all()
        assert deltas[-1] > deltas[0]


def test_laws_of_many_rows_are_binomial():
    for n_rows, cut in ((1_000, 0), (1_001, 480)):
        first, law = agreement_law(n_rows, cut)
        k = np.arange(first, first + len(law))
        logs = [math.lgamma(n_rows + 1) - math.lgamma(i + 1) - math.lgamma(n_rows - i + 1)
                for i in k]  # fmt: skip
        weights = np.exp(np.array(logs) - max(logs))
        np.testing.assert_allclose(law, weights / weights.sum(), rtol=1e-9, atol=1e-280)
        assert law.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("n_rows", [1, 2, 300, 1_000, 1_235, 1_400, 30_000, 2_000_001])
def test_promises_are_numbers_that_go_down_with_epsilon(n_rows):
    """Where probabilities are too small for floats, too."""
    for n in (1, 2, 50):
        deltas = [coordinate_delta(n_rows, 0, epsilon, n) for epsilon in (0.0, 0.1, 0.5, 2.0, 9.0)]
        assert np.isfinite(deltas).all()
        assert (np.diff(deltas) <= 1e-12).all()
        normal = 2 * math.sqrt(n / n_rows)  # the law's limit: shifts of one by sqrt(m) / 2
        if n_rows >= 300:
            assert deltas[1] <= 3 * math.exp(-0.5 * max(0, 0.1 / normal - normal / 2) ** 2) + 1e-15


def feature_rows(n_rows, n_ones, seed=0):
    X, y = blobs(n_rows, 2, seed)
    X[:, 1] = np.arange(n_rows) < n_ones
    return X, y


def coordinate(rados, place=1):
    return rados.values[:, place]


def simulated(X, y, rng, n_rados=1, truncation=0.0, **options):
    return Rados.sample_feature_private(
        X, y, feature=1, epsilon=9.0, delta=0.999, n_rados=n_rados, truncation=truncation,
        values=(0, 1), standardize=False, noise="simulated", random_state=rng, **options,
    )  # fmt: skip


@pytest.mark.parametrize("truncation", [0.0, 0.3])
def test_drawn_coordinates_have_the_law(truncation, monkeypatch):
    """By chi-square; the other coordinates are those of the same signature."""
    monkeypatch.setattr(releases, "check_budget", lambda *_: 0.5)  # of so many rados
    X, y = feature_rows(12, 5)
    signs = y * (2 * X[:, 1] - 1)
    law = agreement_laws(signs, truncation)
    rados = simulated(X, y, 0, 20_000, truncation)
    values, counts = np.unique(coordinate(rados), return_counts=True)
    assert set(values) <= set(law)
    expected = np.array([20_000 * law[value] for value in values])
    assert np.sum((counts - expected) ** 2 / expected) < 4 * len(values) + 20
    subsets = (np.arange(4096)[:, None] >> np.arange(12)) & 1
    columns = np.column_stack([X[:, 0], 2 * X[:, 1] - 1, np.ones(12)])
    every = subsets @ (y[:, None] * columns)
    near = np.abs(every[:, None, :] - rados.values[None, :200]).max(axis=2).min(axis=0)
    assert near.max() < 1e-9


def test_agreements_near_one_half_take_one_number_each():
    """Theorem 7's rejection would need about 1 / 0.0008 signatures for each."""
    used = []

    def draw(n):
        used.append(n)
        return np.random.default_rng(0).bytes(n)

    agreements, rounding = draw_agreements(draw, 1_000_001, 500_000, 50)
    assert used == [400]
    assert set(agreements) == {500_000, 500_001}
    assert rounding < 1e-12


def audited(drawn_with, epsilon, delta):
    """Return whether an audit of the coordinate refutes a promise, on two neighbors."""
    X, y = feature_rows(12, 6)
    neighbor = X.copy()
    neighbor[0, 1] = 1 - neighbor[0, 1]
    draws = {rows.tobytes(): iter(coordinate(simulated(rows, y, seed, 20_000, drawn_with)).tolist())
             for seed, rows in enumerate((X, neighbor))}  # fmt: skip
    run = lambda rows: next(draws[rows.tobytes()])  # noqa: E731 - as rados of a call are independent
    audit = audit_privacy(run, (X, neighbor), n_samples=20_000, delta=delta)
    return audit.epsilon_lower > epsilon


def test_audits_tell_the_promise_from_its_broken_twins(monkeypatch):
    """A narrower cut than promised for, and a shift that nobody counted; a wider one is no leak."""
    monkeypatch.setattr(releases, "check_budget", lambda *_: 0.5)  # of so many rados
    epsilon = 0.5
    delta = coordinate_delta(12, cut_of(12, 0.1), epsilon)
    assert not audited(0.1, epsilon, delta)
    assert not audited(0.0, epsilon, delta)
    assert audited(0.3, epsilon, delta)
    law = agreement_laws([1] * 12, 0.1)
    assert audited(0.1, 0.1, smallest_delta(law, law, 0.1))


def test_budgets_that_cannot_be_met_are_errors():
    X, y = feature_rows(400, 100)
    private = {"feature": 1, "values": (0, 1), "delta": 1e-6}
    with pytest.raises(PrivacyError, match="epsilon must be at least") as caught:
        Rados.sample_feature_private(X, y, epsilon=0.1, n_rados=3, **private)
    needed = float(str(caught.value).split("at least ")[1].split()[0])
    rados = Rados.sample_feature_private(X, y, epsilon=needed, n_rados=3, **private)
    assert rados.promise.delta <= 1e-6
    assert rados.promise.is_private
    assert "other coordinates are not protected" in " ".join(str(rados).split())
    with pytest.raises(PrivacyError, match="the truncation is too narrow"):
        Rados.sample_feature_private(X, y, epsilon=1.0, n_rados=3, truncation=0.4999, **private)
    with pytest.raises(PrivacyError, match="n_rados at most") as caught:
        Rados.sample_feature_private(X, y, epsilon=needed, n_rados=900, **private)
    most = int(str(caught.value).split("at most ")[1])
    assert most >= 3
    Rados.sample_feature_private(X, y, epsilon=needed, n_rados=most, **private)
    with pytest.raises(PrivacyError):
        Rados.sample_feature_private(X, y, epsilon=needed, n_rados=most + 1, **private)
    simulation = simulated(X, y, 0)
    assert "not private" in str(simulation)
    assert not simulation.promise.is_private


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"feature": 0}, 'column "x0" must be "0" or "1", as was declared, got'),
        ({"values": None}, "values must be the two values of the feature"),
        ({"values": (0, 1, 2)}, "values must be two different"),
        ({"values": (1, True)}, "values must be two different"),
        ({"values": (0.1, 0.3)}, "values must be numbers whose mean and half difference"),
        ({"feature": 7}, "feature must be one of 0, 1, got 7"),
        ({"feature": "hiv"}, "feature must be one of"),
        ({"like": 3}, "like must be"),
    ],
)
def test_bad_private_arguments_are_named(change, words):
    X, y = feature_rows(60, 20)
    given = {"feature": 1, "values": (0, 1), "epsilon": 5.0, "n_rados": 2, "delta": 0.1}
    with pytest.raises((ParameterError, DataError), match=words):
        Rados.sample_feature_private(X, y, **{**given, **change})


@pytest.mark.parametrize("values", [(False, True), (-1, 1), ("no", "yes")])
def test_features_of_two_values_are_signs(values):
    rows = np.array([values[i % 3 == 0] for i in range(60)])
    frame = pd.DataFrame({"age": np.arange(60.0), "hiv": rows})
    y = np.arange(60) % 2
    private = {"feature": "hiv", "epsilon": 9, "delta": 0.1, "n_rados": 4}
    rados = Rados.sample_feature_private(frame, y, values=values, **private)
    assert rados.promise.feature.startswith("hiv")
    assert (coordinate(rados) % 2 == coordinate(rados)[0] % 2).any()
    assert (np.abs(coordinate(rados)) <= 60).all()
    assert (coordinate(rados) == np.rint(coordinate(rados))).all()
    again = Rados.sample_feature_private(frame, y, like=rados, **private)
    nobody = frame.assign(hiv=values[0])
    alone = Rados.sample_feature_private(nobody, y, like=rados, **private)
    assert Rados.merge([rados, alone]).n_rows == 120
    with pytest.raises((ParameterError, DataError), match=r"like must|as was declared"):
        Rados.sample_feature_private(frame, y, like=Rados.sample(frame, y, 2), **private)
    with pytest.raises(ParameterError, match="values must be None with like"):
        Rados.sample_feature_private(frame, y, like=rados, values=values, **private)
    assert Rados.merge([rados, again], rows="same").promise.epsilon == 18
    assert Rados.merge([rados, again]).promise.epsilon == 9
    assert Rados.merge([rados, Rados.sample(frame, y, 4, like=rados)]).promise is None


# -- Gaussian noise --------------------------------------------------------------------------------


class Silent:
    """A source without noise, which keeps its scales."""

    is_private = False

    def __init__(self):
        self.scales = []

    def gaussian(self, scale, n):
        self.scales.append((scale, n))
        return np.zeros(n, np.int64)


GAUSSIAN = {"epsilon": 1.0, "delta": 1e-5, "edge_bounds": (-2.0, 6.0), "classes": (-1, 1)}


@pytest.fixture
def silent(monkeypatch):
    source = Silent()
    monkeypatch.setattr(releases, "noise_source", lambda *_: source)
    return source


@pytest.mark.parametrize("noise_on", ["edges", "rados"])
@pytest.mark.parametrize("support", [None, 5])
def test_no_row_moves_more_than_it_is_said(silent, monkeypatch, noise_on, support):
    """The sensitivity that the mechanism is given, against what rows at the bounds do."""
    asked = []
    real = releases.gaussian

    def spy(values, sensitivity, *rest):
        asked.append((np.array(values), sensitivity))
        return real(values, sensitivity, *rest)

    monkeypatch.setattr(releases, "gaussian", spy)
    X, y = blobs(30, 2)
    farthest = 0.0
    for row in range(30):
        asked.clear()
        for corner, label in ((1e9, 1), (-1e9, 1)):
            rows, labels = X.copy(), y.copy()
            rows[row], labels[row] = corner, label
            Rados.sample_gaussian(
                rows, labels, **GAUSSIAN, noise_on=noise_on, support=support, n_rados=12,
                intercept=False, random_state=0,
            )  # fmt: skip
        (one, sensitivity), (other, again) = asked
        assert sensitivity == again
        farthest = max(farthest, float(np.linalg.norm(one - other)))
        assert np.linalg.norm(one - other) <= sensitivity * (1 + 1e-12)
    assert farthest == pytest.approx(sensitivity, rel=1e-9)  # it is tight
    used = 12 * 2 if noise_on == "rados" else 30 * 2
    assert {n for _, n in silent.scales} == {used}


def test_a_label_alone_is_hidden_too(silent):
    """An intercept's edge is the label: it counts as a column."""
    X, y = blobs(10, 1)
    two = Rados.sample_gaussian(X, y, **GAUSSIAN, n_rados=2)
    one = Rados.sample_gaussian(X, y, **GAUSSIAN, n_rados=2, intercept=False)
    assert [n for _, n in silent.scales] == [20, 10]
    assert scale_of(two) / scale_of(one) == pytest.approx(math.sqrt(2), rel=0.01)


def scale_of(rados):
    return float(rados.promise.noise.split("scale ")[1].split(" on")[0])


def test_without_noise_they_are_the_rados_of_clipped_rows(silent):
    X, y = blobs(40, 2)
    for noise_on in ("edges", "rados"):
        rados = Rados.sample_gaussian(
            X, y, **GAUSSIAN, noise_on=noise_on, support=40, n_rados=3, intercept=False
        )
        sums = (((X.clip(-2, 6) - 2) / 4) * y[:, None]).sum(axis=0)
        np.testing.assert_allclose(rados.values, np.tile(sums, (3, 1)), atol=40 * 2.0**-19)
    assert silent.scales


def test_noise_is_that_of_the_promise():
    """Simulated, by its deviation; the ledger pays once, and refuses more."""
    X, y = blobs(2_000, 2)
    for noise_on in ("edges", "rados"):
        ledger = PrivacyLedger(1.0, 1e-5)
        given = {**GAUSSIAN, "noise_on": noise_on, "noise": "simulated", "random_state": 1}
        result = Rados.sample_gaussian(X, y, **given, n_rados=2_000, support=1, ledger=ledger)
        assert result.values.std() == pytest.approx(scale_of(result), rel=0.05)  # edges are below 1
        assert scale_of(result) > 10
        with pytest.raises(PrivacyError):
            Rados.sample_gaussian(X, y, **given, ledger=ledger)


def gaussian_audit(cheat=1.0):
    """Return what an audit finds of one Gaussian rado whose noise is `cheat` times too small."""
    X, y = np.zeros((6, 1)), np.array([1, 1, 1, -1, -1, -1])
    near = X.copy()
    X[0], near[0] = 1.0, -1.0
    rng = np.random.default_rng(2)

    def run(rows):
        rados = Rados.sample_gaussian(
            rows, y, epsilon=cheat * 1.0, delta=0.01, edge_bounds=(-1, 1), classes=(-1, 1),
            support=6, n_rados=1, noise_on="rados", intercept=False, noise="simulated",
            random_state=rng,
        )  # fmt: skip
        return float(rados.values[0, 0])

    return audit_privacy(run, (X, near), n_samples=800, delta=0.01).epsilon_lower


@pytest.mark.slow
def test_audits_believe_the_noise_and_not_a_sixth_of_it():
    assert gaussian_audit() <= 1.0 < gaussian_audit(6.0)


def test_exact_noise_is_private_and_learned_from():
    pytest.importorskip("opendp")
    X, y = blobs(500, 2, shift=2.0)
    rados = Rados.sample_gaussian(X, y, **GAUSSIAN, n_rados=100, noise_on="rados")
    assert rados.promise.is_private
    model = RadoBoostClassifier(weak_learner="prudential").fit_rados(rados)
    assert model.promise_ == rados.promise
    assert "replacing one row" in " ".join(str(model).split())


def test_long_noise_is_announced():
    source = noise_source("simulated", 0)
    source.is_private = True
    with pytest.warns(UserWarning, match="for 200,000 values, one by one"):
        releases.announce(200_000, source)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"edge_bounds": None}, 'edge_bounds must be .low, high.* "x0"'),
        ({"edge_bounds": {"x0": (0, 1)}}, '"x1"'),
        ({"edge_bounds": (1, 1)}, "edge_bounds must be"),
        ({"edge_bounds": (0, np.inf)}, "edge_bounds must be"),
        ({"classes": None}, "classes must be the two classes"),
        ({"classes": (0.5, 1)}, "classes must be texts, whole numbers or truth values"),
        ({"support": 31}, "support must be"),
    ],
)
def test_bad_gaussian_arguments_are_named(change, words):
    X, y = blobs(30, 2)
    with pytest.raises(ParameterError, match=words):
        Rados.sample_gaussian(X, y, **{**GAUSSIAN, "noise": "simulated", **change})


def test_levels_and_units_must_be_declared():
    """What is learned from the rows would tell of them."""
    X, y = blobs(30, 1)
    frame = pd.DataFrame({"x": X[:, 0], "job": ["a", "b", "c"] * 10})
    given = {**GAUSSIAN, "noise": "simulated"}
    with pytest.raises(DataError, match="those of a Categorical"):
        Rados.sample_gaussian(frame, y, **given)
    declared = frame.assign(job=pd.Categorical(frame["job"], ["a", "b", "c", "d"]))
    first = Rados.sample_gaussian(declared, y, **given)
    assert first.reading.columns == ["x", "job=a", "job=b", "job=c", "job=d", "(intercept)"]
    given["classes"] = None  # they come with like
    assert Rados.sample_gaussian(frame, y, **given, like=first).values.shape == (1000, 6)
    with pytest.raises(ParameterError, match="with Gaussian noise"):
        Rados.sample_gaussian(frame, y, **given, like=Rados.sample(frame, y, 3))
