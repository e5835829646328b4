"""Rademacher observations of labeled rows: sums of edges, and what they promise about the rows.

They are computed where the rows are, and learned from where they are handed to: a
`RadoBoostClassifier` needs nothing else. Nobody is protected by that alone. Two ways to make them
promise something are in `releases`, and they promise different things: see `Promise`.
"""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from bayescascade.base.errors import DataError, ParameterError
from bayescascade.base.validation import check_choice, check_integer
from bayescascade.base.watch import Watch, watch_in_use
from bayescascade.methods.rado.parameters import (
    FeatureParameters,
    GaussianParameters,
    SampleParameters,
)
from bayescascade.methods.rado.private_rows import Bounds, read_declared, read_hiding
from bayescascade.methods.rado.protection import Promise, released_together
from bayescascade.methods.rado.rado_files import read_rados, write_arrays
from bayescascade.methods.rado.reading import Reading, read_rows
from bayescascade.methods.rado.releases import random_sums, release_feature, release_rows
from bayescascade.methods.rado.signatures import Floats
from bayescascade.model.search import Seed, seed_sequence
from bayescascade.privacy.accounting import PrivacyLedger
from bayescascade.report.page import BLANK, Heading, Page, Pieces, count_of
from bayescascade.report.printed import Printed

_FEW = 10  # rows of a sum by support "auto"


@dataclass(frozen=True, slots=True, eq=False)
class Rados(Printed):
    """Rademacher observations; made by `sample` and its private siblings.

    Attributes
    ----------
    values : (n_rados, n_columns) float64
        One a row, in the units of `reading`.
    n_rows : int >= 1
        Labeled rows that they were made of, m.
    support : int or None
        Rows in each sum; None: each row by a fair coin.
    reading : Reading
        Columns, classes and units.
    promise : Promise or None
        Guarantee about single rows; None if there is none.

    Examples
    --------
    >>> import numpy as np
    >>> from bayescascade import RadoBoostClassifier, Rados
    >>> X = np.random.default_rng(0).normal(size=(600, 3))
    >>> y = X[:, 0] > X[:, 1]
    >>> north = Rados.sample(X[:300], y[:300], n_rados=200, random_state=0)
    >>> south = Rados.sample(X[300:], y[300:], n_rados=200, like=north, random_state=1)
    >>> together = Rados.merge([north, south])
    >>> together.n_rows, together.values.shape
    (600, (200, 4))
    >>> model = RadoBoostClassifier().fit_rados(together)
    >>> bool(np.mean(model.predict(X) == y) > 0.95)
    True
    """

    title: ClassVar[str] = "Rademacher observations"

    values: Floats
    n_rows: int
    support: int | None
    reading: Reading
    promise: Promise | None = None

    # -- making ------------------------------------------------------------------------------------

    @classmethod
    def sample(
        cls,
        X: Any,
        y: Any,
        n_rados: int = 1000,
        *,
        support: int | str | None = None,
        standardize: bool = True,
        intercept: bool = True,
        missing: str = "level",
        like: "Rados | None" = None,
        time_limit: float | None = None,
        random_state: Seed = None,
    ) -> "Rados":
        """Make rados of labeled rows, with signatures drawn at random.

        Files too large for memory are sampled part by part: see `sample_parts`.

        Parameters
        ----------
        X : DataFrame, (n_rows, n_features) array or list of rows
            Numbers, truth values, text and categories; NaN or None is missing.
        y : (n_rows,) array
            Labels of two classes.
        n_rados : int >= 1
        support : int from 1 to n_rows, "auto" or None
            Rows in each sum, drawn uniformly; None: each row is in by a fair coin. Boosting learns
            better from sums of few rows, which tell more of each. "auto" is 10, or None where rows
            are fewer than 20.
        standardize : bool
            Center columns at their mean, and divide by their standard deviation.
        intercept : bool
            Add a column of ones.
        missing : {"level", "error"}
            A missing cell is a level of text and categories, and of numbers their median, with a
            column of 0 and 1 that says so; or an error, as it is to private siblings without
            `like`: medians are of the rows.
        like : Rados, optional
            Whose columns, classes and units to use, in place of the three above; without that,
            rados of different rows cannot be merged.
        time_limit : float > 0 or None
            Seconds after which no more are made, and a warning says how many there are. Private
            siblings have none: that number would tell of the rows, as time does.
        random_state : int, SeedSequence, Generator or None

        Raises
        ------
        ParameterError
            If a parameter is out of its range.
        DataError
            If rows or labels cannot be used, or sums are too large for floats.
        """
        SampleParameters.check_values(
            n_rados=n_rados, standardize=standardize, intercept=intercept, missing=missing
        )
        watch = watch_in_use() if time_limit is None else Watch(time_limit)
        rows = read_rows(
            X, y,
            standardize=standardize, intercept=intercept, like=_reading(like), missing=missing,
        )  # fmt: skip
        if support == "auto":
            support = _FEW if len(rows) >= 2 * _FEW else None
        fixed = None if support is None else check_integer("support", support, 1, len(rows))
        rng = np.random.default_rng(seed_sequence(random_state))
        values = random_sums(
            rows.edges(), rows.reading.n_columns, len(rows), n_rados, fixed, rng, watch=watch
        )
        if time_limit is not None and len(values) < n_rados:
            told = f"time_limit ended it: {len(values):,} of {n_rados:,} rados were made"
            warnings.warn(told, UserWarning, stacklevel=2)
        return cls._checked(values, len(rows), fixed, rows.reading)

    @classmethod
    def sample_parts(
        cls,
        parts: Iterable[tuple[Any, Any]],
        n_rados: int = 1000,
        *,
        like: "Rados | None" = None,
        random_state: Seed = None,
    ) -> "Rados":
        """Make rados of rows that come in parts, such as blocks of a file, by fair coins.

        In memory are one part and the sums. All parts are read as `like` or else the first part.

        Parameters
        ----------
        parts : iterable of (X, y)
        n_rados, like, random_state : as for `sample`

        Raises
        ------
        ParameterError, DataError
            As `sample`, or if there are no parts.
        """
        rng, total = np.random.default_rng(seed_sequence(random_state)), None
        for X, y in parts:
            made = cls.sample(
                X, y, n_rados, like=like if total is None else total, random_state=rng
            )
            total = made if total is None else cls.merge([total, made])
        if total is None:
            raise DataError("parts must be at least one, got none")
        return total

    @classmethod
    def sample_feature_private(
        cls,
        X: Any,
        y: Any,
        *,
        feature: str | int,
        values: Sequence[Any] | None = None,
        epsilon: float,
        delta: float = 1e-6,
        n_rados: int = 100,
        truncation: float = 0.0,
        standardize: bool = True,
        intercept: bool = True,
        like: "Rados | None" = None,
        noise: str = "system",
        random_state: Seed = None,
    ) -> "Rados":
        """Make rados that hide one boolean feature of each row, in its own coordinate (DP-Feat).

        The law of that coordinate is known for any rows (see `protection`); the others are not
        protected. The feature is taken as -1 and 1, and nothing else that is printed or saved
        depends on it. A cell that is neither of its two declared values is an error.

        Parameters
        ----------
        X, y, standardize, intercept, like : as for `sample`
            No cell is missing in a column that has no missing cells in `like`.
        feature : str or int
            Name of a column of two values, or index where columns have none.
        values : (level, level), optional
            These two, such as (0, 1) or ("no", "yes"): the smaller, or of texts the first in order,
            is -1. Not needed of truth values, of a Categorical whose two categories were declared
            and not taken from the rows, or with `like`.
        epsilon, delta : float > 0
            The budget of all these rados together.
        n_rados : int >= 1
        truncation : float in [0, 1/2)
            The paper's beta: signatures with fewer or more agreements than beta (m + 1) and m -
            beta (m + 1) are not drawn. The paper's is 1 / (1 + exp(epsilon / 2)), epsilon that of
            one rado. More than 0 costs privacy.
        noise : {"system", "simulated"}
            Signatures are the operating system's, or simulated ones, which protect nobody.
        random_state : int, SeedSequence, Generator or None
            Of simulated ones alone.

        Raises
        ------
        PrivacyError
            If the rows are too few for the budget; says what would do.
        DataError
            If a cell of the feature has neither value, or as `sample`.
        ParameterError
            If a parameter is out of its range, there is no such feature, or its values are not
            declared.
        """
        FeatureParameters.check_values(
            n_rados=n_rados, epsilon=epsilon, delta=delta, truncation=truncation, noise=noise,
            standardize=standardize, intercept=intercept,
        )  # fmt: skip
        rows, place = read_hiding(
            X, y, feature, values,
            standardize=standardize, intercept=intercept, like=_reading(like),
        )  # fmt: skip
        rng = None if noise == "system" else np.random.default_rng(seed_sequence(random_state))
        made, promise = release_feature(rows, place, n_rados, epsilon, delta, truncation, rng)
        return cls._checked(made, len(rows), None, rows.reading, promise)

    @classmethod
    def sample_gaussian(
        cls,
        X: Any,
        y: Any,
        *,
        epsilon: float,
        delta: float,
        classes: Sequence[Any] | None = None,
        edge_bounds: Bounds | None = None,
        n_rados: int = 1000,
        support: int | None = None,
        noise_on: str = "edges",
        intercept: bool = True,
        like: "Rados | None" = None,
        noise: str = "opendp",
        ledger: PrivacyLedger | None = None,
        random_state: Seed = None,
    ) -> "Rados":
        """Make rados that hide each row, its label included, by Gaussian noise; see `releases`.

        Where one private classifier is all that is wanted, mechanisms that are made for one err far
        less for the same epsilon. The number of rows, the names and types of columns and the two
        classes are public, and nothing else that is printed or saved depends on the rows. Cells
        that are missing, infinite or of another type, and other labels, are errors, and that is not
        private. Exact noise takes 0.01 to 0.1 ms a value.

        Parameters
        ----------
        X, y : as for `sample`
            Text must be categories, whose levels are declared and not taken from the rows, or come
            with `like`. All else are numbers, also where they are written as text.
        epsilon, delta : float > 0
            The budget of all these rados together.
        classes : (level, level), optional
            The two classes, texts, whole numbers or truth values. Not needed if `y` is of truth
            values or of two declared categories, or with `like`.
        edge_bounds : (float, float) or mapping of str to (float, float)
            Between which cells are known to be, from elsewhere than these rows: of all columns, or
            by name ("x0", "x1", ... where they have none). Others are clipped. Not needed of
            columns of levels, nor with `like`.
        n_rados, support, intercept : as for `sample`
        noise_on : {"edges", "rados"}
        like : Rados, optional
            Made by this function, too: whose columns, classes and bounds to use.
        noise : {"opendp", "simulated"}
            "simulated" can be seeded, and protects nobody.
        ledger : PrivacyLedger, optional
            Ledger whose budget is spent.
        random_state : int, SeedSequence, Generator or None
            Of the signatures, which are no secret here, and of simulated noise.

        Raises
        ------
        ParameterError
            If a parameter is out of its range, or classes or bounds are not declared.
        DataError
            As `sample`, or if a cell is no number and its levels are not declared.
        PrivacyError
            If the ledger's budget does not allow for it; nothing is spent then.
        """
        GaussianParameters.check_values(
            n_rados=n_rados, epsilon=epsilon, delta=delta, noise_on=noise_on, noise=noise,
            intercept=intercept,
        )  # fmt: skip
        reading = _reading(like)
        if like is not None and (like.promise is None or like.promise.protects != "rows"):
            raise ParameterError("like must be rados with Gaussian noise, got others")
        rows = read_declared(X, y, classes, edge_bounds, intercept=intercept, like=reading)
        if support is not None:
            check_integer("support", support, 1, len(rows))
        values, promise = release_rows(
            rows, n_rados, support, epsilon, delta,
            on_edges=noise_on == "edges", noise=noise, ledger=ledger, random_state=random_state,
        )  # fmt: skip
        return cls._checked(values, len(rows), support, rows.reading, promise)

    # -- adding ------------------------------------------------------------------------------------

    @classmethod
    def merge(cls, parts: "Sequence[Rados]", *, rows: str = "different") -> "Rados":
        """Return the rados of all parts.

        Parameters
        ----------
        parts : sequence of Rados
            With the same columns, classes and units, as by `like`.
        rows : {"different", "same"}
            Of different rows, the k-th rados of all parts are added, of which there must be as many
            in each. Of the same rows, those of all parts are kept; what they give away adds up.
            Rows are in by coins in all parts or in none.

        Raises
        ------
        ParameterError
            If there are no parts, or numbers of rados, rows or supports do not go together.
        DataError
            If columns, classes or units differ.
        """
        if not parts or not all(isinstance(part, Rados) for part in parts):
            raise ParameterError("parts must be Rados, at least one, got others or none")
        check_choice("rows", rows, ("different", "same"))
        first, same = parts[0], rows == "same"
        for part in parts[1:]:
            _check_alike(first, part)
            ours, theirs = (
                (first.n_rows, part.n_rows) if same else (len(first.values), len(part.values))
            )
            if ours != theirs:
                what = "rows of the same rows" if same else "rados of different rows"
                raise ParameterError(f"parts must have as many {what}, got {ours} and {theirs}")
        values, supports = [part.values for part in parts], [part.support for part in parts]
        if len(set(supports) if same else {one is None for one in supports}) > 1:
            raise ParameterError(f"parts must have supports that go together, got {supports}")
        promise = released_together([part.promise for part in parts], same_rows=same)
        if same:
            return cls(np.concatenate(values), first.n_rows, first.support, first.reading, promise)
        if any(one.any() and np.array_equal(one, other) for one, other in combinations(values, 2)):
            raise ParameterError("parts must be rados of different rows, got the same ones twice")
        return cls._checked(
            np.sum(values, axis=0),
            sum(part.n_rows for part in parts),
            None if first.support is None else sum(one or 0 for one in supports),
            first.reading,
            promise,
        )

    def spreads(self) -> Floats:
        """Return standard deviations of the cells summed, (n_columns,), estimated from the sums.

        Where sums do not vary, 1.
        """
        m, s = self.n_rows, self.support
        variance = m / 4.0 if s is None else max(s * (1.0 - s / m), 1.0 / m)
        largest = np.abs(self.values).max(axis=0)
        largest[largest == 0.0] = 1.0  # squares of very large sums would not fit
        spreads: Floats = largest * ((self.values / largest).std(axis=0) / np.sqrt(variance))
        usable = np.isfinite(spreads) & (spreads > np.finfo(np.float64).tiny)
        return np.where(usable, spreads, 1.0)

    # -- files and printing ------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the rados to a file of NumPy's npz format; `load` reads it back."""
        about = {
            "n_rows": self.n_rows,
            "support": self.support,
            "reading": self.reading.record(),
            "promise": None if self.promise is None else self.promise.record(),
        }
        write_arrays(path, self.values, about)

    @classmethod
    def load(cls, path: str | Path) -> "Rados":
        """Read what `save` wrote.

        Raises
        ------
        ModelFileError
            If the file cannot be read, is of another format, or contradicts itself. Nothing in it
            is executed.
        """
        return cls(*read_rados(path))

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"<Rados: {len(self)} of {self.n_rows} rows, {self.values.shape[1]} columns>"

    def page(self) -> Page:
        """Return how many there are, of what, and what they promise."""
        each = (
            "each sums a random half of the rows"
            if self.support is None
            else f"{count_of(self.support, 'row')} in each"
        )
        return (
            Heading(
                [
                    self.title,
                    f"{count_of(len(self), 'rado')} of {count_of(self.n_rows, 'row')}",
                ]
            ),
            Pieces([count_of(self.values.shape[1], "column"), each]),
            *(Pieces([text]) for text in self.reading.encoder.missing_texts),
            BLANK,
            *self.promise_page(),
        )

    def promise_page(self) -> Page:
        """Return the guarantee about single rows."""
        if self.promise is None:
            return (Pieces(["no privacy is promised: sums can reveal single rows"], "dim"),)
        return self.promise.page()

    @classmethod
    def _checked(
        cls,
        values: Floats,
        n_rows: int,
        support: int | None,
        reading: Reading,
        promise: Promise | None = None,
    ) -> "Rados":
        reading.check_sums(values)
        return cls(values, n_rows, support, reading, promise)


def _reading(like: Rados | None) -> Reading | None:
    if like is not None and not isinstance(like, Rados):
        raise ParameterError(f"like must be Rados or None, got {type(like).__name__}")
    return None if like is None else like.reading


def _check_alike(one: Rados, other: Rados) -> None:
    if one.reading.agrees_with(other.reading):
        return
    if one.reading.columns != other.reading.columns:
        ours, theirs = (", ".join(part.reading.columns[:8]) for part in (one, other))
        raise DataError(f"parts must have the same columns, got {ours} and {theirs}")
    raise DataError("parts must have the same classes and units, as by like=, got different ones")
