"""Rademacher observations of labeled rows: sums of edges, and what they promise about the rows.

They are computed where the rows are, and learned from where they are handed to: a
`RadoBoostClassifier` needs nothing else. Nobody is protected by that alone. Two ways to make them
promise something are here, and they promise different things: see `Promise`, and `protection` for
the first, of a feature.

**Gaussian noise** (section 5.2 of the paper). Cells are clipped to declared bounds and scaled to
[-1, 1], so that with D columns, the intercept among them, replacing a row moves its edge by at most
2 sqrt(D). Noise for that on each of the m D cells of edges is the paper's way, after which any
number of rados may be made. Or it is put on the n rados: with the subsets of rows fixed first, by
coins that owe nothing to the rows, and row i in u_i of them, replacing it moves all rados together
by at most 2 sqrt(D max_i u_i). That is n D values in place of m D, and less noise where rados are
fewer than their rows. Edges are rounded to multiples of 2**-20, so that sums of up to 2**32 of them
are exact.
"""

import io
import json
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from bayescascade.base.errors import DataError, ModelFileError, ParameterError
from bayescascade.base.files import replaced_file
from bayescascade.base.validation import (
    check_choice,
    check_flag,
    check_integer,
    check_probability,
    check_real,
)
from bayescascade.methods.rado.protection import (
    Promise,
    check_budget,
    cut_of,
    draw_agreements,
    released_together,
)
from bayescascade.methods.rado.reading import Reading, Rows, read_rows
from bayescascade.methods.rado.sampling import (
    Bounds,
    announce,
    clipped,
    random_sums,
    with_bounds,
    with_signs,
)
from bayescascade.methods.rado.signatures import (
    Floats,
    draw_by,
    draw_subsets,
    groups,
    subset_sums,
)
from bayescascade.model.record import contradictions_refused
from bayescascade.model.search import Seed, seed_sequence
from bayescascade.privacy.accounting import Cost, PrivacyLedger
from bayescascade.privacy.mechanisms import gaussian
from bayescascade.privacy.noise import noise_source
from bayescascade.report.page import BLANK, Heading, Page, Pieces, counted
from bayescascade.report.printed import Printed

__all__ = ["Rados"]

_FEW = 10  # rows of a sum by support "auto"
_FORMAT, _VERSION = "bayescascade rados", 1


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
        What they promise about single rows; None is nothing.

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
    >>> model = RadoBoostClassifier(learner="moments").fit_rados(together)
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
        like: "Rados | None" = None,
        random_state: Seed = None,
    ) -> "Rados":
        """Make rados of labeled rows, with signatures drawn at random.

        Files too large for memory are sampled part by part: see `sample_parts`.

        Parameters
        ----------
        X : DataFrame, (n_rows, n_features) array or list of rows
            Numbers, truth values, text and categories, no cell missing.
        y : (n_rows,) array
            Labels of two classes.
        n_rados : int >= 1
        support : int from 1 to n_rows, "auto" or None
            Rows in each sum, drawn uniformly; None: each row is in by a fair coin. Sums of few rows
            are learned from better by boosting, and tell more of each row. "auto" is 10, or None
            where rows are fewer than 20.
        standardize : bool
            Whether columns are centered at their mean and divided by their standard deviation; the
            paper's are as they come.
        intercept : bool
            Whether a column of ones is added.
        like : Rados, optional
            Whose columns, classes and units to use, in place of the two above and of what these
            rows say; without that, rados of different rows cannot be merged.
        random_state : int, SeedSequence, Generator or None

        Raises
        ------
        ParameterError
            If a parameter is out of its range.
        DataError
            If rows or labels cannot be used, or sums are too large for floats.
        """
        check_integer("n_rados", n_rados, 1)
        rows = _rows(X, y, standardize, intercept, like)
        if support == "auto":
            support = _FEW if len(rows) >= 2 * _FEW else None
        fixed = None if support is None else check_integer("support", support, 1, len(rows))
        rng = np.random.default_rng(seed_sequence(random_state))
        values = random_sums(rows.edges(), rows.reading.n_columns, len(rows), n_rados, fixed, rng)
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

        In memory are one part and the sums. All parts are read as `like` or, without it, as the
        first part says, whose units and levels then stand for all.

        Parameters
        ----------
        parts : iterable of (X, y)
        n_rados, like, random_state : as of `sample`

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

        That coordinate's law is known whatever the rows are; `protection` has it, what follows for
        privacy, and what does not: the other coordinates are not protected. The feature is taken
        as -1 and 1; its two values are public.

        Parameters
        ----------
        X, y, standardize, intercept, like : as of `sample`
        feature : str or int
            Name, or index where columns have none, of a column of two values: truth values, 0 and
            1, -1 and 1, or text. Chosen by what must be hidden, never by looking at the rows.
        epsilon, delta : float > 0
            The budget of all these rados together.
        n_rados : int >= 1
        truncation : float in [0, 1/2)
            The paper's beta: signatures with fewer or more agreements than beta (m + 1) and m -
            beta (m + 1) are not drawn. 1 / (1 + exp(epsilon / 2)) is the paper's choice, epsilon
            that of one rado. More than 0 costs privacy.
        noise : {"system", "simulated"}
            Where signatures come from. The operating system's cannot be drawn again; "simulated"
            ones protect nobody.
        random_state : int, SeedSequence, Generator or None
            Of simulated ones alone.

        Raises
        ------
        PrivacyError
            If the rows are too few for the budget; says what would do.
        DataError
            If the feature is not boolean, or as `sample`.
        ParameterError
            If a parameter is out of its range, or there is no such feature.
        """
        check_integer("n_rados", n_rados, 1)
        check_real("epsilon", epsilon, above=0.0)
        check_probability("delta", delta, strict=True)
        check_real("truncation", truncation, minimum=0.0, below=0.5)
        is_private = check_choice("noise", noise, ("system", "simulated")) == "system"
        rows, place = with_signs(
            _rows(X, y, standardize, intercept, like), feature, is_given=like is not None
        )
        n_rows, cut = len(rows), cut_of(len(rows), truncation)
        rng = None if is_private else np.random.default_rng(seed_sequence(random_state))
        draw, sizes, rounding = draw_by(rng), None, 0.0
        if cut:
            sizes, rounding = draw_agreements(draw, n_rows, cut, n_rados)
        reached = check_budget(n_rows, cut, epsilon, delta, n_rados, rounding)
        reading = rows.reading
        edges = rows.signs * (rows.matrix[:, place] - reading.center[place]) / reading.units[place]
        flipped = np.packbits(edges < 0.0, bitorder="little")[:, np.newaxis]
        parts = []
        for group in groups(n_rows, n_rados):
            wanted = None if sizes is None else sizes[group]
            bits = draw_subsets(draw, n_rows, group.stop - group.start, wanted)
            parts.append(subset_sums(bits ^ flipped, rows.edges(), n_rows, reading.n_columns))
        how = "" if not cut else f"signatures of {cut:,} to {n_rows - cut:,} agreements"
        name = reading.columns[place]
        promise = Promise("feature", float(epsilon), reached, name, how, is_private)
        return cls._checked(np.concatenate(parts), n_rows, None, reading, promise)

    @classmethod
    def sample_gaussian(
        cls,
        X: Any,
        y: Any,
        *,
        epsilon: float,
        delta: float,
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
        """Make rados that hide each row, its label included, by Gaussian noise; see the module.

        Noise that hides a row in each of many sums is much: where one private classifier is all
        that is wanted, mechanisms that are made for one err far less for the same epsilon. The
        number of rows, the names of columns and the two classes are public. Exact noise takes
        0.01 to 0.1 ms a value; where that is more than ten seconds, a warning announces it.

        Parameters
        ----------
        X, y : as of `sample`
            Text must be categories, whose levels are declared, or come with `like`.
        epsilon, delta : float > 0
            The budget of all these rados together.
        edge_bounds : (float, float) or mapping of str to (float, float)
            Between which cells are known to be, from elsewhere than these rows: of all columns, or
            by name, or "x0", "x1", ... where they have none. What is outside is clipped. Not needed
            of columns of levels, nor with `like`.
        n_rados, support, intercept : as of `sample`
        noise_on : {"edges", "rados"}
            What noise is put on.
        like : Rados, optional
            Made by this function, too: whose columns, classes and bounds to use.
        noise : {"opendp", "simulated"}
            "simulated" can be seeded, and protects nobody.
        ledger : PrivacyLedger, optional
            Whose budget is spent.
        random_state : int, SeedSequence, Generator or None
            Of the signatures, which are no secret here, and of simulated noise.

        Raises
        ------
        ParameterError
            If a parameter is out of its range, or bounds are missing.
        DataError
            As `sample`, or if levels of text are not declared.
        PrivacyError
            If the ledger's budget does not allow for it; nothing is spent then.
        """
        check_integer("n_rados", n_rados, 1)
        check_real("epsilon", epsilon, above=0.0)
        check_probability("delta", delta, strict=True)
        on_edges = check_choice("noise_on", noise_on, ("edges", "rados")) == "edges"
        rows = _rows(X, y, False, intercept, like)
        if like is None:
            rows = with_bounds(rows, X, edge_bounds)
        elif like.promise is None or like.promise.protects != "rows":
            raise ParameterError("like must be rados with Gaussian noise, got others")
        n_rows, n_columns = len(rows), rows.reading.n_columns
        if support is not None:
            check_integer("support", support, 1, n_rows)
        subsets, drawing = seed_sequence(random_state).spawn(2)
        rng, source = (
            np.random.default_rng(subsets),
            noise_source(noise, np.random.default_rng(drawing)),
        )
        n_values = (n_rows if on_edges else n_rados) * n_columns
        announce(n_values, source)
        if ledger is not None:
            ledger.spend(Cost(epsilon, delta), "Rademacher observations")
        within, moved = clipped(rows), 2.0 * np.sqrt(n_columns)
        if on_edges:
            each = within(0, n_rows)
            released = gaussian(each.ravel(), moved, epsilon, delta, source)
            noisy = released.values.reshape(each.shape)
            values = random_sums(lambda a, b: noisy[a:b], n_columns, n_rows, n_rados, support, rng)
        else:
            counts = np.zeros(n_rows, np.int64)
            sums = random_sums(within, n_columns, n_rows, n_rados, support, rng, counts)
            moved *= np.sqrt(max(1, int(counts.max())))
            released = gaussian(sums.ravel(), moved, epsilon, delta, source)
            values = released.values.reshape(sums.shape)
        how = f"Gaussian noise of scale {released.scale:.3g} on each {noise_on[:-1]}"
        promise = Promise("rows", float(epsilon), float(delta), "", how, released.is_private)
        return cls._checked(values, n_rows, support, rows.reading, promise)

    # -- adding ------------------------------------------------------------------------------------

    @classmethod
    def merge(cls, parts: "Sequence[Rados]", *, rows: str = "different") -> "Rados":
        """Return the rados of all parts.

        Parameters
        ----------
        parts : sequence of Rados
            With the same columns, classes and units, as by `like`.
        rows : {"different", "same"}
            Of different rows, as two hospitals have them, the k-th rados of all parts are added:
            the sums are rados of all rows, and there must be as many in each part. Of the same
            rows, those of all parts are kept; what they give away adds up. Rows are in by coins in
            all parts or in none; in those of the same rows, as many.

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
        return cls._checked(
            np.sum(values, axis=0),
            sum(part.n_rows for part in parts),
            None if first.support is None else sum(one or 0 for one in supports),
            first.reading,
            promise,
        )

    def spreads(self) -> Floats:
        """Return about the standard deviations of the cells summed, (n_columns,), told by the sums.

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
            "format": _FORMAT,
            "version": _VERSION,
            "n_rows": self.n_rows,
            "support": self.support,
            "reading": self.reading.record(),
            "promise": None if self.promise is None else self.promise.record(),
        }
        with replaced_file(path) as temporary, temporary.open("wb") as file:
            np.savez(file, values=self.values, about=np.array(json.dumps(about, allow_nan=False)))

    @classmethod
    def load(cls, path: str | Path) -> "Rados":
        """Read what `save` wrote.

        Raises
        ------
        ModelFileError
            If the file cannot be read, is of another format, or contradicts itself. Nothing in it
            is executed.
        """
        try:
            with contradictions_refused():
                return cls._read(Path(path))
        except (OSError, EOFError, MemoryError, zipfile.BadZipFile) as error:
            raise ModelFileError(f"{path}: cannot be read as rados: {error}") from None
        except ModelFileError as error:
            raise ModelFileError(f"{path}: {error}") from None

    @classmethod
    def _read(cls, path: Path) -> "Rados":
        content = path.read_bytes()
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if any(one.compress_type != zipfile.ZIP_STORED for one in archive.infolist()):
                raise ModelFileError("rados must be stored without compression")
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            if set(arrays.files) != {"values", "about"}:
                raise ModelFileError("rados must have the arrays values and about")
            values, told = arrays["values"], arrays["about"]
        if told.dtype.kind != "U" or told.ndim:
            raise ModelFileError("about must be text")
        about = json.loads(str(told))
        if (about["format"], about["version"]) != (_FORMAT, _VERSION):
            raise ModelFileError(f"format must be {_FORMAT}, version {_VERSION}")
        reading = Reading.from_record(about["reading"])
        n_rows = check_integer("n_rows", about["n_rows"], 1)
        support = about["support"]
        if support is not None:
            check_integer("support", support, 1, n_rows)
        if values.dtype != np.float64 or values.ndim != 2 or not len(values):
            raise ModelFileError("values of rados must be a matrix of float64")
        if values.shape[1] != reading.n_columns or not np.isfinite(values).all():
            raise ModelFileError(f"values of rados must be finite, {reading.n_columns} each")
        promise = about["promise"]
        if promise is not None:
            promise = Promise.from_record(promise)
            if promise.feature and promise.feature not in reading.columns:
                raise ModelFileError("a promise's feature must be one of the columns")
        return cls(np.ascontiguousarray(values), n_rows, support, reading, promise)

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"<Rados: {len(self)} of {self.n_rows} rows, {self.values.shape[1]} columns>"

    def page(self) -> Page:
        """Return how many there are, of what, and what they promise."""
        each = (
            "each row in it by a fair coin"
            if self.support is None
            else f"{counted(self.support, 'row')} in each"
        )
        return (
            Heading([self.title, f"{counted(len(self), 'rado')} of {counted(self.n_rows, 'row')}"]),
            Pieces([counted(self.values.shape[1], "column"), each]),
            BLANK,
            *self.promise_page(),
        )

    def promise_page(self) -> Page:
        """Return what is promised about single rows."""
        if self.promise is None:
            return (Pieces(["no privacy is promised: sums, too, tell about single rows"], "dim"),)
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
        if not np.isfinite(values).all():
            place = int(np.argmin(np.isfinite(values).all(axis=0)))
            raise DataError(
                f'column "{reading.columns[place]}" must have cells whose sums floats hold, '
                "got larger ones"
            )
        return cls(values, n_rows, support, reading, promise)


def _rows(X: Any, y: Any, standardize: bool, intercept: bool, like: Rados | None) -> Rows:
    check_flag("standardize", standardize)
    check_flag("intercept", intercept)
    if like is not None and not isinstance(like, Rados):
        raise ParameterError(f"like must be Rados or None, got {type(like).__name__}")
    reading = None if like is None else like.reading
    return read_rows(
        X, y, standardize=standardize, intercept=intercept, like=reading, owner="Rados"
    )


def _check_alike(one: Rados, other: Rados) -> None:
    if one.reading.agrees_with(other.reading):
        return
    if one.reading.columns != other.reading.columns:
        ours, theirs = (", ".join(part.reading.columns[:8]) for part in (one, other))
        raise DataError(f"parts must have the same columns, got {ours} and {theirs}")
    raise DataError("parts must have the same classes and units, as by like=, got different ones")
