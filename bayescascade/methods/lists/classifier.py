"""The rule-list classifier (Letham, Rudin, McCormick, Madigan 2015).

`models` has the formulas, `predicting` the predictions. Candidate rules are mined from the rows
with a minimum support; the fit is then that of every model of the package.
"""

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Annotated, Any, ClassVar, Self

import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import Tags

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import ParameterError
from bayescascade.base.store import Saved, Within
from bayescascade.data.given import GivenRows
from bayescascade.data.labels import (
    CLASSES,
    LabeledRows,
    class_number,
)
from bayescascade.data.levels import level_text
from bayescascade.data.schema import Schema
from bayescascade.data.table import Table
from bayescascade.methods.lists.antecedents import Antecedent
from bayescascade.methods.lists.estimators import with_chosen_concentration
from bayescascade.methods.lists.label_list import LabelList
from bayescascade.methods.lists.models import label_log_likelihood
from bayescascade.methods.lists.parameters import LabelListParameters
from bayescascade.methods.lists.posterior import LabelListPosterior
from bayescascade.methods.lists.predicting import LabelListPredictor
from bayescascade.methods.lists.rule_list import read_rules
from bayescascade.model.page import column_words
from bayescascade.model.rounds import Rounds
from bayescascade.model.view import OF_ROWS, View
from bayescascade.report.page import Pieces, count_of

_STEPS, _WORK = 125_000, 5e8  # default steps, and operations of all chains
_OF_ROUND = 0.6  # largest share of the operations for the first steps
_ANNEALING, _REPLICAS = 1.6, 0.4  # steps of annealing and of a replica, of those of a first round
_ROUNDS, _MOST_ROUNDS = 4, 7  # of plain chains, by default and with effort "thorough"
_USUAL_RULES = 8
_MOST_TRIPLES = 200_000  # candidates of three conditions, by default
_ALL_DRAWS = 1_000  # at least, of all chains until they agree
_OF_PROOF = 40  # operations of an exact search, for each of chains

_FOLD_SHARE = 0.4  # of the steps, in folds; see `fold_model`
_FOLD_CHAINS = 2


@dataclass(eq=False, repr=False)
class RuleListClassifier(LabelListPredictor):
    """A classifier by a list of rules, "if ..., else if ..., else", with probabilities.

    Parameters
    ----------
    expected_rules, expected_size, search, n_chains, n_jobs, random_state, memory_limit, \
time_limit, until, checkpoint, resume, progress
        As in `DensityRuleList`.
    max_size
        Maximum number of conditions of a rule. "auto": 3; or 2 with ``search="exact"``, or if there
        could be more than 200,000 candidate rules of three conditions.
    concentration
        Dirichlet parameter of each class: the number of pseudo-rows of each class in each part.
        "auto": 1 for two classes. For more classes, the value among 1, 1/2, 1/4, ... down to 1 /
        n_classes that gives a list from a short annealing the largest evidence.
    min_support
        Minimum share of the rows, by weight, that satisfy a candidate rule.
    n_bins
        Number of quantile bins for columns of numbers that are not declared. Columns with at most
        this number of different values are ordinal. The outer bins are open: values outside the
        range of the training rows belong to them.
    n_steps
        Proposals per chain, both in annealing and in sampling. None: 200,000 in annealing and
        125,000 in sampling (a quarter of these with effort "quick", five times these with
        "thorough"), and fewer if they would take over 60 % of the work; half of that per
        temperature for "tempering". Sampling may continue after these steps; see `until`.
    effort
        Work of the search. Chains that do not agree when it is done give the result, with a
        warning. An exact search takes up to 40 times as much, and then has a bound on better lists.
    nominal, ordinal, continuous
        How to read columns, by name or, for an array, by number; see
        `bayescascade.data.table.Table`. Truth values, text and categories are nominal by default.
        The outer bins of declared edges are open as well.
    missing
        "level": missing cells are a separate level in columns that have some in fit, and are
        treated as an unknown level in other columns. "error": missing cells are an error.
    unknown
        How to treat a level that fit has not seen. "ignore": the cell satisfies no condition, and
        an `UnknownLevelWarning` says so. "error": it is an error. In cross-validation a rare level
        may be in a test fold only.
    positive
        The label whose probability is shown, with its interval. None: the second of two labels; for
        more labels, all probabilities are shown. It changes no probability.

    Attributes
    ----------
    classes_ : (n_classes,) array
        The labels, sorted; for a Table, in the order of the column's levels.
    positive_ : label or None
        The label whose probability is shown; None if all are.
    concentration_ : float
        `concentration`, or the value that was chosen.
    target_ : str
        Name of the column of labels; "label" if `y` had no name.
    rules_ : LabelList
        The most probable list that was found.
    n_candidates_, log_posterior_, run_, summary_, schema_, n_features_in_, feature_names_in_
        As in `DensityRuleList`; the schema is that of the features.
    posterior_ : LabelListPosterior
        The posterior. A model that was read from a file does not have it, because files contain no
        rows.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayescascade import RuleListClassifier
    >>> frame = pd.DataFrame({"sky": ["grey"] * 20 + ["blue"] * 20, "wind": ["yes", "no"] * 20})
    >>> model = RuleListClassifier(n_steps=200, random_state=0).fit(frame, frame["sky"] == "blue")
    >>> model.predict(pd.DataFrame({"sky": ["blue"], "wind": ["no"]}))
    array([ True])
    >>> for text in model.explain({"sky": "blue", "wind": "no"}).split("; "):
    ...     print(text)
    sky is blue: P(True) = 0.95 (95% 0.84-1.00), n = 20
    average over draws: P(True) = 0.95 (95% 0.81-1.00)
    """

    model_name: ClassVar[str] = "RuleListClassifier"
    title: ClassVar[str] = "rule list classifier"
    purpose: ClassVar[str] = (
        "How probable each class is for a row, as a list of rules. Read it from the top."
    )
    takes_texts: ClassVar[bool] = True

    declares = LabelListParameters

    _least_steps: ClassVar[int] = 5_000

    concentration: float | str = LabelListParameters.concentration.default  # type: ignore[assignment] # others: float
    max_size: int | str = LabelListParameters.max_size.default  # type: ignore[assignment] # others: int
    min_support: float = LabelListParameters.min_support.default
    _: KW_ONLY
    n_bins: int = LabelListParameters.n_bins.default
    predictive: str = LabelListParameters.predictive.default
    unknown: str = LabelListParameters.unknown.default
    positive: Any = LabelListParameters.positive.default

    concentration_: Annotated[float, Within(above=0), Saved("concentration")] = field(init=False)
    classes_: Annotated[NDArray[Any], CLASSES, Saved("classes")] = field(init=False)
    target_: Annotated[str, Saved("target")] = field(init=False)
    notes_: Annotated[tuple[str, ...], Saved("notes", is_optional=True)] = field(
        init=False, default=()
    )
    posterior_: LabelListPosterior = field(init=False)
    _labeled: LabeledRows | None = field(init=False, default=None)  # None if read from a file

    # -- fitting -----------------------------------------------------------------------------------

    def fit(
        self,
        X: pd.DataFrame | ArrayLike | Table | LabeledRows,
        y: ArrayLike | str | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Search for the most probable list, and sample the posterior.

        Parameters
        ----------
        X : DataFrame or other table, paths, mapping, array, Table or LabeledRows
            Rows to learn from: a DataFrame or a table of polars, Arrow, DuckDB, Dask or narwhals;
            paths or URLs of CSV, Parquet or Arrow files; a mapping of columns; an (n_rows,
            n_columns) array or list of rows. A Table has its own columns and weights, so `n_bins`,
            `nominal`, `ordinal`, `continuous` and `missing` do not apply to it. LabeledRows also
            have labels.
        y : (n_rows,) array, or str
            Labels: text, whole numbers or truth values. For files or a Table, the name of the
            column of labels; the levels of that column of a Table are the classes.
        sample_weight : (n_rows,) array of float >= 0, optional
            Number of rows that each row counts as. Rows with weight zero are not used.

        Returns
        -------
        self
            Ctrl-C ends the search early. Then the model is the best result so far, and
            ``run_.interrupted`` is true.

        Raises
        ------
        ParameterError
            If a parameter is out of its range, no candidate rule has the minimum support, or the
            candidates need more memory than `memory_limit`.
        DataError
            If the data cannot be used; the message names column, value and row.
        samplers.CheckpointError
            If the checkpoint belongs to another model or other data, is damaged, or cannot be
            written.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            If chains do not agree (R-hat above 1.01) or give too few draws (effective sample size
            below 400). The warning says what to do.
        """
        search = self.check_parameters()
        self._labeled = self._labeled_rows(X, y, sample_weight)
        self.notes_ = self._labeled.notes
        if self.positive is not None:
            class_number(self._labeled.classes, self.positive, "positive")
        self._fit_table(self._labeled.table, search)
        self._draws  # noqa: B018 - counted now, because predicting must not change the model
        return self

    def _labeled_rows(
        self,
        X: pd.DataFrame | ArrayLike | Table | LabeledRows,
        y: ArrayLike | str | None,
        sample_weight: ArrayLike | None,
    ) -> LabeledRows:
        if isinstance(X, LabeledRows):
            return X
        if isinstance(X, Table):
            if sample_weight is not None:
                raise ParameterError("sample_weight must be None with a Table, which has weights")
            return LabeledRows.of_table(X, y)
        owner = type(self).__name__
        given = GivenRows.labeled(X, y, sample_weight)
        return LabeledRows.of(given, n_bins=self.n_bins, kinds=self, owner=owner)

    def _parameter_words(self) -> list[str]:
        value: float | str = self.concentration_
        if self.concentration == "auto" and self._n_classes > 2:
            value = f"{value:g} (of most evidence)"
        chosen = {"concentration": value, "max_size": self._max_size}
        return self.parameter_words({**self.get_params(), **chosen})

    @property
    def _max_size(self) -> int:
        given: int | str = self.max_size
        return self.n_candidates_.size - 1 if isinstance(given, str) else given

    @property
    def positive_(self) -> Any:
        """The label whose probability is shown; None if all are."""
        shown = self.learned_.shown_class
        return None if shown is None else self.classes_.tolist()[shown]

    @property
    def _n_classes(self) -> int:
        return len(self.classes_ if self._labeled is None else self._labeled.classes)

    def _set_features(self, schema: Schema) -> None:
        super()._set_features(schema)
        if self._labeled is not None:
            self.classes_, self.target_ = self._labeled.classes, self._labeled.target

    def fold_model(self) -> tuple[Self, str]:
        """Return an unfitted, cheaper model for cross-validation, and a text that describes it.

        It keeps no more draws than predictions use.
        """
        if self.summary_.method == "exact" and self.summary_.n_draws:  # it needs no chains
            model = clone(self).set_params(
                unknown="ignore", checkpoint=None, resume=False, progress=None, time_limit=None,
                positive=None, max_size=self._max_size,
            )  # fmt: skip
            model._draws_of_sum = -(-self._most_draws // self.n_chains)
            return model, "lists in folds by sums over all lists"
        table = self.posterior_.table
        steps = self._search().steps(self._default_steps(table))
        n_steps = max(1, int(_FOLD_SHARE * steps))
        chains = count_of(min(self.n_chains, _FOLD_CHAINS), "chain")
        model = clone(self).set_params(
            search="anneal+metropolis" if self._is_average else "anneal", n_steps=n_steps,
            n_chains=min(self.n_chains, _FOLD_CHAINS), unknown="ignore", checkpoint=None,
            resume=False, progress=None, time_limit=None, positive=None, max_size=self._max_size,
        )  # fmt: skip
        model._draws_of_chain = self._most_draws // _FOLD_CHAINS
        how = "annealing and sampling" if self._is_average else "annealing"
        if self.search == "exact":
            how += " (not exact)"
        return model, f"lists in folds by {how}, {chains} of {n_steps:,} steps"

    @property
    def variants(self) -> dict[str, dict[str, str]]:
        """The predictions that are measured on held-out rows; see `held_out.measure`."""
        average = {"average over draws": {"predictive": "average"}} if self._is_average else {}
        return {**average, "this list": {"predictive": "map"}}

    def _make_posterior(self, table: Table) -> LabelListPosterior:
        assert self._labeled is not None, "set by fit"
        given, target = self.concentration, self._labeled.target

        def of_size(most: int) -> LabelListPosterior:
            return LabelListPosterior(
                table, target, self.expected_rules, self.expected_size,
                1.0 if isinstance(given, str) else given, most, self.min_support,
                self.memory_limit,
            )  # fmt: skip

        posterior = of_size(2 if isinstance(self.max_size, str) else self.max_size)
        if self.max_size == "auto" and self.search != "exact":
            n_of_size = posterior.antecedents.n_of_size.tolist()
            if math.prod(n_of_size[1:]) <= 3 * _MOST_TRIPLES:  # there may be fewer
                posterior = of_size(3)
        if isinstance(given, str):
            posterior = with_chosen_concentration(posterior)
        self.concentration_, self.posterior_ = posterior.concentration, posterior
        return posterior

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.categorical = True, True
        tags.input_tags.allow_nan = self.missing == "level"
        return tags

    # -- lists and their settings ------------------------------------------------------------------

    def _most_steps_of(self, table: Table) -> float:
        del table
        a_step = self.n_chains * self.posterior_.operations(_USUAL_RULES)
        return min(_STEPS, _OF_ROUND * _WORK / a_step)

    def _n_blocks(self, table: Table) -> int:
        # a block takes as long as some hundred steps; rounds need draws for their diagnostics
        most = max(self._draws_of_chain, 0 if self.n_steps else _ALL_DRAWS // self.n_chains)
        return min(most, super()._n_blocks(table))

    def _rounds(self, table: Table) -> Rounds:
        del table
        plain = _MOST_ROUNDS if self.effort == "thorough" else _ROUNDS
        return Rounds(plain, exchange=4, share=_REPLICAS, most=_WORK, annealing=_ANNEALING)

    @property
    def _work_of_proof(self) -> float:
        return _OF_PROOF * _WORK

    def _list(self, rules: tuple[Antecedent, ...], counts: Floats) -> LabelList:
        shown = self.positive
        place = None if shown is None else class_number(self.classes_, shown, "positive")
        return LabelList(self.schema_, self.classes_, rules, counts, self.concentration_, place)

    def _data_pieces(self) -> list[str]:
        *pieces, _ = super()._data_pieces()  # the number of cells is of little use here
        return [*pieces, count_of(len(self.classes_), "class", "classes")]

    def view(self) -> View:
        """Return what is shown of a posterior, of the labels, and of their probabilities."""
        view, learned = super().view(), self.learned_
        read = (
            "Read it from the top. For each row, the first line whose conditions it satisfies "
            "decides, and all lines below are ignored. Rows that satisfy no line are under else."
        )
        terms = [("", read), ("rows", "the number of rows that a line decided")]
        key = learned.key
        if learned.shown_class is None:
            terms.append(("classes", "the probability of each class for such a row"))
        else:
            label = learned.class_texts[learned.shown_class]
            key = (Pieces([f"P: probability that {self.target_} is {label}"], "dim"), *key)
            interval = (
                "given these rows and this line, the probability lies in this range with "
                "probability 95 %. It is wide if there were few rows"
            )
            terms.append(("P", "the probability of the class for such a row"))
            terms.append(("95 % interval", interval))
        classes = ", ".join(map(level_text, self.classes_.tolist()))
        columns = (column_words(column, is_open=True) for column in self.schema_.columns)
        return view._replace(
            found=(*view.found, *(Pieces([text]) for text in self.notes_)),
            columns=[f"classes of {self.target_}: {classes}", *columns],
            key=key,
            words=learned.parts_in_words,
            terms=terms,
            limits=[
                "The probability is that of similar rows, and not of this single row. Anyone who "
                "decides about a person should also consider what is in no column.",
                "Conditions are associated with the classes in these rows. If you change a "
                "condition, the class may stay the same.",
                *OF_ROWS,
            ],
            source=[*view.source, *self.notes_],
        )

    def _log_likelihood(self, counted: LabelList) -> float:
        return label_log_likelihood(counted.counts, self.concentration_)

    def _read_counted(self, record: Mapping[str, Any]) -> LabelList:
        n_classes = len(self.classes_)
        return self._list(*read_rules(record, self.schema_, self._n_candidates, n_classes))

    def to_dict(self) -> dict[str, Any]:
        """Return parameters, data, notes, convergence, posterior and list as plain data."""
        notes = {"notes": list(self.notes_)} if self.notes_ else {}
        return {**super().to_dict(), **notes}

    def _restore(self, record: Mapping[str, Any]) -> None:
        super()._restore(record)
        if self.concentration not in ("auto", self.concentration_):
            raise ValueError("a saved concentration must be the parameter")
