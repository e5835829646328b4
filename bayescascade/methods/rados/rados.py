"""Rademacher observations of labeled rows: sums of edges, with an optional privacy guarantee.

They are computed by the owner of the rows, and given to others, whose `RadoBoostClassifier` needs
nothing else. This alone protects nobody. `releases` has two ways to make rados with different
guarantees; see `Promise`.
"""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import DataError, ParameterError
from bayescascade.base.store import stored
from bayescascade.base.validation import check_choice, check_integer
from bayescascade.base.watch import Watch, watch_in_use
from bayescascade.methods.rados.parameters import (
    FeatureParameters,
    GaussianParameters,
    SampleParameters,
)
from bayescascade.methods.rados.private_rows import Bounds, read_declared, read_hiding
from bayescascade.methods.rados.protection import Promise, released_together
from bayescascade.methods.rados.reading import Reading, read_rados, read_rows, write_arrays
from bayescascade.methods.rados.releases import random_sums, release_feature, release_rows
from bayescascade.model.search import Seed, seed_sequence
from bayescascade.privacy.accounting import PrivacyLedger
from bayescascade.report.page import BLANK, Heading, Page, Pieces, count_of
from bayescascade.report.printed import Printed

_FEW = 10  # rows of a sum with support "auto"


@dataclass(frozen=True, slots=True, eq=False)
class Rados(Printed):
    """Rademacher observations (rados); made by `sample`, or by one of its private versions.

    Attributes
    ----------
    values : (n_rados, n_columns) float64
        The rados, one per row, in the units of `reading`.
    n_rows : int >= 1
        Number m of labeled rows from which they were made.
    support : int or None
        Number of rows in each sum. None: each row with probability 1/2.
    reading : Reading
        Columns, classes and units.
    promise : Promise or None
        Privacy guarantee; None if there is none.

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

    def __post_init__(self) -> None:
        self.reading.check_sums(self.values)

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
        """Make rados from labeled rows, with random signatures.

        For files that do not fit into memory, see `sample_parts`.

        Parameters
        ----------
        X : DataFrame, (n_rows, n_features) array or list of rows
            Numbers, truth values, text and categories; NaN or None is missing.
        y : (n_rows,) array
            Labels of two classes.
        n_rados : int >= 1
        support : int from 1 to n_rows, "auto" or None
            Number of rows in each sum, drawn uniformly. None: each row is in with probability 1/2.
            Boosting learns better from sums of few rows, but such sums reveal more about each row.
            "auto": 10, or None if there are fewer than 20 rows.
        standardize : bool
            Center columns at their mean, and divide by their standard deviation.
        intercept : bool
            Add a column of ones.
        missing : {"level", "error"}
            "level": missing cells of text and categories are a separate level; missing numbers are
            imputed by the median, with an indicator column. "error": missing cells are an error. In
            the private versions without `like`, they are always an error, because a median depends
            on the rows.
        like : Rados, optional
            Rados whose columns, classes and units are used, in place of `standardize`, `intercept`
            and `missing`. Without it, rados of different rows cannot be merged.
        time_limit : float > 0 or None
            Seconds after which no more rados are made; a warning has their number. The private
            versions have no time limit, because the number would reveal something about the rows.
        random_state : int, SeedSequence, Generator or None

        Raises
        ------
        ParameterError
            If a parameter is out of its range.
        DataError
            If rows or labels cannot be used, or if sums are too large for floats.
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
            text = f"time_limit ended it: {len(values):,} of {n_rados:,} rados were made"
            warnings.warn(text, UserWarning, stacklevel=2)
        return cls(values, len(rows), fixed, rows.reading)

    @classmethod
    def sample_parts(
        cls,
        parts: Iterable[tuple[Any, Any]],
        n_rados: int = 1000,
        *,
        like: "Rados | None" = None,
        random_state: Seed = None,
    ) -> "Rados":
        """Make rados from rows in parts, such as blocks of a file, with fair coins.

        Only one part and the sums are in memory. All parts are coded as `like` or, without it, as
        the first part.

        Parameters
        ----------
        parts : iterable of (X, y)
        n_rados, like, random_state : as for `sample`

        Raises
        ------
        ParameterError, DataError
            As in `sample`, and if there are no parts.
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

        The distribution of this coordinate is known for all rows (see `protection`). The other
        coordinates are not protected. The feature is coded as -1 and 1, and nothing else that is
        printed or saved depends on it. A cell with a value other than the two declared ones is an
        error.

        Parameters
        ----------
        X, y, standardize, intercept, like : as for `sample`
            Columns without missing cells in `like` must have none.
        feature : str or int
            Name of a column with two values, or its index if columns have no names.
        values : (level, level), optional
            Its two values, such as (0, 1) or ("no", "yes"). The smaller one (the first one in
            order, for text) is coded as -1. Not needed for truth values, for a Categorical with two
            categories that were declared and not taken from the rows, or with `like`.
        epsilon, delta : float > 0
            Privacy budget of all these rados together.
        n_rados : int >= 1
        truncation : float in [0, 1/2)
            Beta of the paper: signatures with fewer than beta (m + 1) or more than m - beta (m + 1)
            agreements are not drawn. In the paper it is 1 / (1 + exp(epsilon / 2)), where epsilon
            is that of one rado. A value above 0 costs privacy.
        noise : {"system", "simulated"}
            Source of the signatures: the operating system, or a simulation, which protects nobody.
        random_state : int, SeedSequence, Generator or None
            Seed of simulated signatures.

        Raises
        ------
        PrivacyError
            If there are too few rows for the budget. The message says what would suffice.
        DataError
            If a cell of the feature has another value, and in the cases of `sample`.
        ParameterError
            If a parameter is out of its range, the feature does not exist, or its values are not
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
        return cls(made, len(rows), None, rows.reading, promise)

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

        If you need only one private classifier, mechanisms for private classifiers have far fewer
        errors at the same epsilon. The number of rows, names and types of columns, and the two
        classes are public. Nothing else that is printed or saved depends on the rows. Errors are
        not private: cells that are missing, infinite or of another type, and other labels, are
        errors. Exact noise takes 0.01 to 0.1 ms per value.

        Parameters
        ----------
        X, y : as for `sample`
            Text must be categories with levels that are declared, not taken from the rows, or that
            come from `like`. All other cells are numbers, even if they are written as text.
        epsilon, delta : float > 0
            Privacy budget of all these rados together.
        classes : (level, level), optional
            The two classes, as text, whole numbers or truth values. Not needed if `y` has truth
            values or two declared categories, or with `like`.
        edge_bounds : (float, float) or mapping of str to (float, float)
            Bounds of the cells, which must not be computed from these rows: for all columns, or by
            name ("x0", "x1", ... if columns have no names). Values outside are clipped. Not needed
            for columns of levels, or with `like`.
        n_rados, support, intercept : as for `sample`
        noise_on : {"edges", "rados"}
        like : Rados, optional
            Rados of this function, whose columns, classes and bounds are used.
        noise : {"opendp", "simulated"}
            Source of the noise. "simulated" noise has a seed, and protects nobody.
        ledger : PrivacyLedger, optional
            Ledger whose budget is spent.
        random_state : int, SeedSequence, Generator or None
            Seed of the signatures, which are not secret here, and of simulated noise.

        Raises
        ------
        ParameterError
            If a parameter is out of its range, or classes or bounds are not declared.
        DataError
            As in `sample`, and if a cell is not a number and its column has no declared levels.
        PrivacyError
            If the budget of the ledger is too small. Nothing is spent then.
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
        return cls(values, len(rows), support, rows.reading, promise)

    # -- adding ------------------------------------------------------------------------------------

    @classmethod
    def merge(cls, parts: "Sequence[Rados]", *, rows: str = "different") -> "Rados":
        """Merge rados of several parts.

        Parameters
        ----------
        parts : sequence of Rados
            Rados with the same columns, classes and units; see `like`.
        rows : {"different", "same"}
            "different": the parts have different rows. Then the k-th rados of all parts are added,
            so each part needs the same number of rados. "same": the parts have the same rows. Then
            all rados are kept, and their privacy costs add up. Either all parts use fair coins, or
            none does.

        Raises
        ------
        ParameterError
            If there are no parts, or if numbers of rados, rows or supports do not fit together.
        DataError
            If columns, classes or units differ.
        """
        if not parts or not all(isinstance(part, Rados) for part in parts):
            raise ParameterError("parts must be Rados, at least one, got others or none")
        check_choice("rows", rows, ("different", "same"))
        first, same = parts[0], rows == "same"
        for part in parts[1:]:
            first.reading.check_agrees(part.reading)
            ours, theirs = (one.n_rows if same else len(one) for one in (first, part))
            if ours != theirs:
                what = "rows of the same rows" if same else "rados of different rows"
                raise ParameterError(
                    f"parts must have the same number of {what}, got {ours} and {theirs}"
                )
        values, supports = [part.values for part in parts], [part.support for part in parts]
        if len(set(supports) if same else {support is None for support in supports}) > 1:
            raise ParameterError(f"parts must have compatible supports, got {supports}")
        promise = released_together([part.promise for part in parts], same_rows=same)
        if same:
            return cls(np.concatenate(values), first.n_rows, first.support, first.reading, promise)
        if any(one.any() and np.array_equal(one, other) for one, other in combinations(values, 2)):
            raise ParameterError("parts must be rados of different rows, got the same ones twice")
        return cls(
            np.sum(values, axis=0),
            sum(part.n_rows for part in parts),
            None if first.support is None else sum(support or 0 for support in supports),
            first.reading,
            promise,
        )

    def spreads(self) -> Floats:
        """Return standard deviations of cells, estimated from the sums, (n_columns,).

        They are 1 if sums do not vary.
        """
        m, s = self.n_rows, self.support
        variance = m / 4.0 if s is None else max(s * (1.0 - s / m), 1.0 / m)
        largest = np.abs(self.values).max(axis=0)
        largest[largest == 0.0] = 1.0  # squares of very large sums would overflow
        spreads: Floats = largest * ((self.values / largest).std(axis=0) / np.sqrt(variance))
        usable = np.isfinite(spreads) & (spreads > np.finfo(np.float64).tiny)
        return np.where(usable, spreads, 1.0)

    # -- files and printing ------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the rados to a file in NumPy's npz format; `load` reads it back."""
        names = ("n_rows", "support", "reading", "promise")
        about = {name: stored(getattr(self, name)) for name in names}
        write_arrays(path, self.values, about)

    @classmethod
    def load(cls, path: str | Path) -> "Rados":
        """Read a file that was written by `save`.

        Raises
        ------
        ModelFileError
            If the file cannot be read, has another format, or contradicts itself. Nothing in it is
            executed.
        """
        return cls(*read_rados(path))

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"<Rados: {len(self)} of {self.n_rows} rows, {self.values.shape[1]} columns>"

    def page(self) -> Page:
        """Return the number of rados, their columns, and their guarantee."""
        unprotected = [Pieces(["no privacy is promised: sums can reveal single rows"], "dim")]
        each = "each sums a random half of the rows"
        if self.support is not None:
            each = f"{count_of(self.support, 'row')} in each"
        size = f"{count_of(len(self), 'rado')} of {count_of(self.n_rows, 'row')}"
        return (
            Heading([self.title, size]),
            Pieces([count_of(self.values.shape[1], "column"), each]),
            *(Pieces([text]) for text in self.reading.encoder.missing_texts),
            BLANK,
            *(unprotected if self.promise is None else self.promise.page()),
        )


def _reading(like: Rados | None) -> Reading | None:
    if like is not None and not isinstance(like, Rados):
        raise ParameterError(f"like must be Rados or None, got {type(like).__name__}")
    return None if like is None else like.reading
