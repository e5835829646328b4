"""Everything that prints is a page, as text and as HTML; `report` knows none of it."""

from xml.etree import ElementTree

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from bayescascade import (
    AdditiveNoiseModel,
    BudgetPruneClassifier,
    LeafCascade,
    PrivacyLedger,
    Rados,
    Table,
    audit_privacy,
    explore,
)
from bayescascade.base.errors import ParameterError
from bayescascade.costs.curve import cost_accuracy_curve
from bayescascade.methods.density.trees.evidence_grid import evidence
from bayescascade.model.comparison import Comparison
from bayescascade.privacy.accounting import Cost
from bayescascade.report.folding import folded
from bayescascade.report.html import to_html
from bayescascade.report.page import Fitting, Guided, Heading, PrintedTable as Numbers, render
from tests.contracts.listed import gibbs
from tests.methods.budget.forests.fits import COSTS, PlainForest, diagnoses, patients
from tests.report.lists import label_list, titanic_list
from tests.report.runs import toy_run
from tests.report.test_comparison import comparison
from tests.report.test_model_text import model
from tests.report.test_tree_text import MIXED
from tests.report.trees import random_density, titanic_tree, with_independent_leaves


@pytest.fixture(scope="module")
def kinds():
    """Return one of each kind of object that is printed."""
    rng = np.random.default_rng(0)
    frame = patients(rng)
    labels = diagnoses(frame, rng)
    forest = RandomForestClassifier(5, max_depth=3, random_state=0)
    pruned = BudgetPruneClassifier(forest, costs=COSTS, tradeoff=0.01, random_state=0).fit(
        frame, labels
    )
    plain = PlainForest(costs=COSTS).fit(frame, labels)
    table = Table.from_frame(frame[["sex", "ward"]])
    spent = PrivacyLedger(epsilon=1.0)
    spent.spend(Cost(0.25), "<mean> of the ages")
    return [
        titanic_tree(),
        titanic_tree().condition({"sex": "male"}),
        with_independent_leaves(rng, titanic_tree()),
        titanic_list(),
        label_list(["<no> & never", "yes"], [[10, 800], [300, 327], [700, 12]]),
        label_list(["a", "b", "<c>"], [[10, 800, 1], [300, 327, 4], [700, 12, 9]]),
        label_list(["a", "b" * 30, "<c>"], [[10, 800, 1], [300, 327, 4], [700, 12, 9]]),
        toy_run().trace,
        toy_run("anneal").trace,
        comparison(),
        evidence(table, models=["leaf"], grid={"expected_leaves": [2, 8]}),
        evidence(table, memory_limit=1e-9),
        COSTS,
        plain.acquire(frame.iloc[0].__getitem__, max_cost=5.0),
        cost_accuracy_curve([plain, pruned], frame, labels),
        pruned.path([0.001, 0.01]),
        pruned.near_optimal(n_steps=2000, n_draws=20, random_state=0),
        explore(gibbs(), n_steps=200, n_chains=2, random_state=0),
        AdditiveNoiseModel(random_state=0).fit(frame["age"], frame["age"] ** 2 + frame["scan"]),
        Rados.sample(frame[["age"]], frame["sex"], n_rados=20, random_state=0),
        spent,
        audit_privacy(lambda data: data, (0.0, 1.0), n_samples=40),
        random_density(rng, MIXED, 80),
    ]


def texts(page):
    """Yield every text of a page, those of what was not chosen for a wide page left out."""
    for block in page:
        if isinstance(block, Fitting):
            yield from texts(block.chosen(120))
        elif isinstance(block, Numbers | Guided):
            yield from block.labels
            for column in block.columns:
                yield from column.texts
            for inside in block.below:
                yield from inside.pieces if inside is not None else ()
        else:
            yield from block.pieces


def test_all_that_prints_is_html(kinds):
    for printed in kinds:
        html = to_html(printed.page())
        assert html == printed._repr_html_()
        root = ElementTree.fromstring(html)
        assert {element.tag for element in root.iter()} <= {
            "div", "span", "br", "table", "tr", "th", "td", "details", "summary", "style",
        }  # fmt: skip
        shown = "".join(root.itertext())
        assert all(text in shown for text in texts(printed.page()))
        assert not {"href", "src", "onclick"} & {n for e in root.iter() for n in e.attrib}
        n_rows = sum(len(b.labels) for b in printed.page() if isinstance(b, Numbers | Guided))
        assert len(root.findall(".//tr")) + html.count('class="row"') >= n_rows


def test_all_that_prints_fits_and_color_changes_no_text(kinds):
    """Lines too long wrap in a terminal, and codes in a file would be noise."""
    for printed in kinds:
        plain, colored = (render(printed.page(), width=70, color=color) for color in (0, 1))
        assert max(map(len, plain.split("\n"))) <= (80 if isinstance(printed, Comparison) else 70)
        for code in ("1", "2", "33", "36", "0"):
            colored = colored.replace(f"\x1b[{code}m", "")
        assert colored == plain
        assert str(printed) == render(folded(printed.page()))
        assert printed.to_text(full=True) == render(printed.page())
    assert "\x1b[36m        4.81\x1b[0m" in render(titanic_tree().page(), color=True)


def test_what_is_not_fitted_is_shown_as_by_scikit_learn():
    unfitted = LeafCascade(expected_leaves=3)
    assert str(unfitted) == repr(unfitted)
    assert "expected_leaves" in unfitted._repr_html_()
    assert unfitted._repr_mimebundle_()["text/html"].startswith("<style>")
    assert set(model()._repr_mimebundle_()) == {"text/plain", "text/html"}


def test_widths_that_nobody_can_read_are_refused():
    with pytest.raises(ParameterError, match="width must be an integer >= 60, got 59"):
        render((Heading(["a"]),), width=59)
