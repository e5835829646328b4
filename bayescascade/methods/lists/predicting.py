"""What a fitted label list says of rows: probabilities, intervals, the rule that applies, SQL."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.arrays import Codes, Floats
from bayescascade.base.errors import DataError, ParameterError
from bayescascade.base.validation import check_choice
from bayescascade.data.cell_policy import UnknownCells
from bayescascade.data.column import Column
from bayescascade.data.given import GivenRows
from bayescascade.data.partitions import by_partitions
from bayescascade.data.schema import Rows
from bayescascade.data.table import Table
from bayescascade.methods.lists.draws import average_intervals, average_probabilities
from bayescascade.methods.lists.estimators import RuleListEstimator
from bayescascade.methods.lists.label_list import LabelList
from bayescascade.methods.lists.parameters import LabelListParameters
from bayescascade.methods.lists.parts import encode_for_labels
from bayescascade.model.matrix_classifier import LabeledFiles
from bayescascade.model.roles import Predicted


class LabelListPredictor(LabeledFiles, RuleListEstimator[LabelList]):
    """The predictions of `RuleListClassifier`."""

    unknown: str
    _most_draws = 200  # 1,000 take five times as long, and predict as well
    _draws_of_chain = 250  # kept at least

    @by_partitions
    def predict_proba(self, X: Rows) -> Floats:
        """Return the probability of each class for each row, (n_rows, n_classes) float64.

        Parameters and errors: see `predict`.
        """
        return self.predict_proba_codes(self.encode(X))

    def predict_proba_codes(self, codes: Codes) -> Floats:
        """Return the same as `predict_proba`, for (n_columns, n_rows) coded rows; see `encode`."""
        if self._is_average:
            return average_probabilities(*self._drawn(), codes)
        labels = self.learned_
        return labels.probabilities[labels.part_of_codes(codes)]

    def to_sql(self, label: object = None) -> str:
        """Return the class of a row, or the probability of a class, as a standard SQL expression.

        Use it as in ``f"SELECT *, {model.to_sql('yes')} AS yes FROM passengers"``. It reads columns
        by their names. The result is NULL for rows that `predict` would refuse. It is that of
        `rules_`, the best list; if `predict` averages over draws, a comment in the SQL says so.

        Parameters
        ----------
        label : object, optional
            The class whose probability is returned; by default it is the most probable class.

        Raises
        ------
        ParameterError
            If the label is not one of the classes, or `predictive` is "average".
        DataError
            If a name, level or class contains a NUL character.
        """
        rules = self.rules_
        if self.predictive == "average":
            raise ParameterError('predictive must be "map" for SQL, got "average"')
        how = LabelListParameters.unknown.check(self.unknown)
        sql = rules.to_sql(label, missing=self.missing, unknown=how)
        return f"/* the best list, not the average */ {sql}" if self._is_average else sql

    def credible_interval(self, X: Rows, level: float = 0.95) -> Floats:
        """Return credible intervals of the probabilities, (n_rows, n_classes, 2): low, high.

        Parameters
        ----------
        X : DataFrame, array, list of rows, mapping, Series or Table
            See `predict`.
        level : float in (0, 1)
            Posterior probability that the interval contains the probability of the class,
            separately for each class. The posterior is over lists and probabilities.

        Raises
        ------
        ParameterError
            If predictions are no averages over draws: the interval of the best list is for all rows
            of a rule, and too narrow for a single row.
        """
        return self.credible_interval_codes(self.encode(X), level)

    def credible_interval_codes(self, codes: Codes, level: float = 0.95) -> Floats:
        """Return the same as `credible_interval`, for coded rows; see `encode`."""
        if not self._is_average:
            raise ParameterError(
                'predictive must be "average", with a search that draws lists, for credible '
                f'intervals, got predictive "{self.predictive}" and search "{self.search}"'
            )
        return average_intervals(*self._drawn(), codes, level)

    @property
    def feature_texts(self) -> list[str]:
        """The columns that the model reads."""
        return list(self.schema_.names)

    @property
    def learned_columns(self) -> tuple[Column, ...]:
        """The columns with their levels, by which new rows are read."""
        return self.schema_.columns

    def predict_block(
        self,
        cells: pd.DataFrame,
        first_row: int,
        *,
        intervals: bool = False,
        explain: bool = False,
        unknown: UnknownCells | None = None,
    ) -> Predicted:
        """Return the probabilities of rows of a file; see `bayescascade.model.roles.Predictor`.

        The explanation of a row is the rule of the best list that applies to it. There are no
        intervals without draws, because those of the best list are too narrow for a single row.
        """
        codes = self.encode(cells, first_row=first_row, unknown=unknown)
        probabilities = self.predict_proba_codes(codes)
        record: dict[str, Sequence[object]] = {}
        if explain:
            record["rule"] = self._rules_of(codes)
        has_ends = intervals and self._is_average
        ends = self.credible_interval_codes(codes, 0.95) if has_ends else None
        return Predicted(record, probabilities, intervals=ends)

    def _rules_of(self, codes: Codes) -> list[str]:
        rules = self.rules_
        words = [rules.part_words(part) for part in range(rules.n_rules + 1)]
        return [words[part] for part in rules.part_of_codes(codes).tolist()]

    def _reasons(self, X: Rows) -> list[str]:
        return self._rules_of(self.encode(X))

    def explain(self, row: Mapping[str, object] | pd.Series | pd.DataFrame) -> str:
        """Return in words the rule of the most probable list that applies to a row.

        If predictions are averages over draws, the probabilities of the average follow.
        See `LabelList.explain`. A DataFrame must have one row; for several rows use `explain_rows`.
        """
        codes = self.encode(row)
        if codes.shape[1] != 1:
            raise ParameterError(f"row must be a single row, got {codes.shape[1]}")
        text = self.learned_.explain_codes(codes[:, 0])
        if self._is_average:
            average = self.predict_proba_codes(codes)[0], self.credible_interval_codes(codes)[0]
            text += f"; average over draws: {self.learned_.estimates(*average)}"
        return text

    @property
    def _is_average(self) -> bool:
        """Whether predictions are averages over draws."""
        how = LabelListParameters.predictive.check(self.predictive)
        return how == "average" or (how == "auto" and bool(self._draws.times))

    def _model_pieces(self) -> list[str]:
        return [*self._parameter_words(), *["predictive average"] * self._is_average]

    def encode(self, X: Rows, *, first_row: int = 1, unknown: UnknownCells | None = None) -> Codes:
        """Return the codes of rows, (n_columns, n_rows), -1 where a cell satisfies no condition.

        `first_row` is the number of the first row, for messages. Rows with unknown levels are
        appended to `unknown` if it is given; otherwise there is a warning. Other parameters and
        errors: see `predict`.
        """
        check_is_fitted(self, "_best")
        if isinstance(X, Table):
            return self._codes_of_table(X)
        frame = GivenRows.of(X, self.schema_.columns).frame(self.schema_.names, type(self).__name__)
        missing = check_choice("missing", self.missing, ("error", "level"))
        how = LabelListParameters.unknown.check(self.unknown)
        return encode_for_labels(
            self.schema_, frame, missing=missing, unknown=how, first_row=first_row, whole=unknown
        )

    def _codes_of_table(self, table: Table) -> Codes:
        columns = table.schema.columns
        try:
            chosen = [columns.index(column) for column in self.schema_.columns]
        except ValueError:
            raise DataError(
                "the table must have the model's columns and levels, got others"
            ) from None
        return table.codes[chosen].astype(np.int32)
