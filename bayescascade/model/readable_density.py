"""What any estimator does that shows a density part by part: draw, condition and explain rows."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.errors import ParameterError
from bayescascade.base.validation import check_integer
from bayescascade.data.row_frames import rows_frame
from bayescascade.data.sources import as_frame
from bayescascade.model.density_parts import DensityParts
from bayescascade.model.readable_model import ReadableModel
from bayescascade.model.reporting import AS_COMMON, OF_DENSITIES, OF_ROWS
from bayescascade.model.row_densities import RowDensities

D = TypeVar("D", bound=DensityParts)


class ReadableDensity(RowDensities, ReadableModel, Generic[D]):
    """A density over rows that a user reads as a D."""

    @property
    @abstractmethod
    def learned_(self) -> D:
        """The density that is shown; raises NotFittedError where there is none yet."""

    def sample(
        self, n_samples: int = 1, random_state: int | np.random.Generator | None = None
    ) -> pd.DataFrame:
        """Draw rows from the density, as a DataFrame with the levels' original types."""
        check_is_fitted(self)
        n_samples = check_integer("n_samples", n_samples, minimum=1)
        rng = np.random.default_rng(random_state)
        return self.schema_.decode(self._sample_codes(n_samples, rng), rng)

    def condition(self, evidence: Mapping[str, object]) -> D:
        """Return the density that is shown, given evidence; see its own `condition`."""
        return self.learned_.condition(evidence)

    def to_sql(self) -> str:
        """Return the log density of a row as standard SQL; see `DensityParts.to_sql`."""
        return self.learned_.to_sql()

    def explain(self, row: Mapping[str, object] | pd.Series | pd.DataFrame) -> str:
        """Return in words the rule that holds for a row, by the density that is shown.

        What is unknown of the row is told first, unless `unknown` is "error".
        """
        row = as_frame(row)
        if isinstance(row, pd.DataFrame):
            if len(row) != 1:
                raise ParameterError(f"row must be a single row, got {len(row)}")
            row = row.iloc[0]
        learned = self.learned_
        if self.unknown == "error":
            self.encode(dict(row))
        return learned.explain(row)

    def explain_rows(self, X: Any, *, first_row: int = 1) -> pd.DataFrame:
        """Return how common each of many rows is, and why.

        Parameters
        ----------
        X : DataFrame or other table, array, mapping or Series
            See `score_samples`.
        first_row : int
            Number of the first row, for messages.

        Returns
        -------
        DataFrame
            With the rows' index: the `log_density`, nats, and what that is `because` of, in words:
            see `explain`.

        Raises
        ------
        DataError
            As `score_samples`.
        """
        frame = rows_frame(X, self.schema_.names, owner=type(self).__name__)
        codes = self.encode(frame, first_row=first_row)
        told: dict[object, str] = {}  # the same of all rows whose cells are known and coded alike
        because = []
        for own, row in zip(codes.T, frame.to_dict("records"), strict=True):
            key = own.tobytes() if (own >= 0).all() else repr(row)
            if key not in told:
                told[key] = self.explain(pd.Series(row))
            because.append(told[key])
        scores = self.score_codes(codes)
        return pd.DataFrame({"log_density": scores, "because": because}, frame.index)

    def _score_known(self, codes: NDArray[np.int32]) -> NDArray[np.float64]:
        return self.learned_.score_codes(codes)

    def _sample_codes(self, n: int, rng: np.random.Generator) -> NDArray[np.int32]:
        """Draw (n_columns, n) codes."""
        return self.learned_.sample_codes(n, rng)

    def _words_lead(self) -> list[str]:
        return [AS_COMMON]

    def _in_words(self) -> list[tuple[str, str]]:
        return self.learned_.parts_in_words()

    def _how_to_read(self) -> list[tuple[str, str]]:
        return [*self.learned_.how_to_read, *self.learned_.columns_in_words()]

    def _cannot_tell(self) -> list[str]:
        return [*OF_DENSITIES, *OF_ROWS]
